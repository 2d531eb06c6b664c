"""What an audit reads beside a tick: who may do what in the cluster, and what fences namespaces."""

import msgspec


class AccessRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of a Role or ClusterRole."""

    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()


class AccessRole(msgspec.Struct, frozen=True, kw_only=True):
    """A Role, or a ClusterRole (then `namespace` is None).

    Attributes
    ----------
    aggregated : bool
        Whether its rules are gathered from other ClusterRoles.
    """

    namespace: str | None
    name: str
    rules: tuple[AccessRule, ...]
    aggregated: bool = False


class AccessSubject(msgspec.Struct, frozen=True, kw_only=True):
    """Who a binding speaks of: User, Group or ServiceAccount (which has a namespace)."""

    kind: str
    name: str
    namespace: str | None = None


class AccessBinding(msgspec.Struct, frozen=True, kw_only=True):
    """A RoleBinding, or a ClusterRoleBinding (then `namespace` is None)."""

    namespace: str | None
    name: str
    role_kind: str
    role: str
    subjects: tuple[AccessSubject, ...]


class NetworkFence(msgspec.Struct, frozen=True, kw_only=True):
    """A NetworkPolicy.

    Attributes
    ----------
    selects_all : bool
        Whether its pod selector is empty: it stands for every pod of the namespace.
    types : tuple of str
        Ingress, Egress.
    ingress_rules, egress_rules : int
        How many rules let something through; none is "deny".
    """

    namespace: str
    name: str
    selects_all: bool
    types: tuple[str, ...]
    ingress_rules: int
    egress_rules: int


class ServiceAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A service account; `mounts_token` is None where it does not say."""

    namespace: str
    name: str
    mounts_token: bool | None = None


class ResourceQuota(msgspec.Struct, frozen=True, kw_only=True):
    """A ResourceQuota: resource to amount, in Kubernetes base units."""

    namespace: str
    name: str
    hard: dict[str, float]
    used: dict[str, float]


class AdmissionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A ValidatingAdmissionPolicy.

    Attributes
    ----------
    resources : tuple of str
        `<group>/<resource>` that it looks at.
    expressions : tuple of str
        Its CEL validations.
    """

    name: str
    failure_policy: str
    resources: tuple[str, ...]
    expressions: tuple[str, ...]


class AdmissionBinding(msgspec.Struct, frozen=True, kw_only=True):
    """A ValidatingAdmissionPolicyBinding: without one a policy does nothing.

    Attributes
    ----------
    actions : tuple of str
        Deny, Warn, Audit.
    namespaces : tuple of str
        Labels that its namespace selector asks for, `key=value`, `key` or `!key`; empty: all.
    """

    name: str
    policy: str
    actions: tuple[str, ...]
    namespaces: tuple[str, ...]


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that only an audit reads; None where a resource was refused or is not served."""

    roles: tuple[AccessRole, ...] | None = None
    cluster_roles: tuple[AccessRole, ...] | None = None
    bindings: tuple[AccessBinding, ...] | None = None
    cluster_bindings: tuple[AccessBinding, ...] | None = None
    network_policies: tuple[NetworkFence, ...] | None = None
    service_accounts: tuple[ServiceAccount, ...] | None = None
    resource_quotas: tuple[ResourceQuota, ...] | None = None
    admission_policies: tuple[AdmissionPolicy, ...] | None = None
    admission_bindings: tuple[AdmissionBinding, ...] | None = None
