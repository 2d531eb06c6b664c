"""What an audit lists beside a tick, reduced to nouns.

Everything that is read is listed in docs/access/clusterrole-audit.yaml, and nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from steward.cluster.audit import (
    AccessBinding,
    AccessRole,
    AccessRule,
    AccessSubject,
    AdmissionBinding,
    AdmissionPolicy,
    Audit,
    NetworkFence,
    ResourceQuota,
    ServiceAccount,
)
from steward.cluster.quantity import parse
from steward.sources.kubernetes.fields import MalformedError, mapping, objects, optional_text, text
from steward.sources.kubernetes.lists import CORE

if TYPE_CHECKING:
    from steward.sources.kubernetes.lists import Lists

RBAC = "/apis/rbac.authorization.k8s.io/v1"
NETWORKING = "/apis/networking.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"

type Item = Mapping[str, Any]


def read_audit(lists: Lists) -> Audit:
    """List everything that only an audit looks at; what is refused is None here, and a part."""
    return Audit(
        roles=lists.read("roles", RBAC, read_role),
        cluster_roles=lists.read("clusterroles", RBAC, read_role),
        bindings=lists.read("rolebindings", RBAC, read_binding),
        cluster_bindings=lists.read("clusterrolebindings", RBAC, read_binding),
        network_policies=lists.read("networkpolicies", NETWORKING, read_network_policy),
        service_accounts=lists.read("serviceaccounts", CORE, read_service_account),
        resource_quotas=lists.read("resourcequotas", CORE, read_resource_quota),
        admission_policies=lists.read("validatingadmissionpolicies", ADMISSION, read_policy),
        admission_bindings=lists.read(
            "validatingadmissionpolicybindings", ADMISSION, read_policy_binding
        ),
    )


def read_role(item: Item) -> AccessRole:
    """Reduce a Role or ClusterRole; raises MalformedError."""
    metadata = mapping(item, "metadata")
    return AccessRole(
        namespace=optional_text(metadata, "namespace"),
        name=text(metadata, "name"),
        rules=tuple(
            AccessRule(
                api_groups=_texts(rule, "apiGroups"),
                resources=_texts(rule, "resources"),
                verbs=_texts(rule, "verbs"),
                names=_texts(rule, "resourceNames"),
                urls=_texts(rule, "nonResourceURLs"),
            )
            for rule in objects(item, "rules")
        ),
        aggregated=bool(mapping(item, "aggregationRule")),
    )


def read_binding(item: Item) -> AccessBinding:
    """Reduce a RoleBinding or ClusterRoleBinding; raises MalformedError."""
    metadata, role = mapping(item, "metadata"), mapping(item, "roleRef")
    return AccessBinding(
        namespace=optional_text(metadata, "namespace"),
        name=text(metadata, "name"),
        role_kind=text(role, "kind"),
        role=text(role, "name"),
        subjects=tuple(
            AccessSubject(
                kind=text(one, "kind"),
                name=text(one, "name"),
                namespace=optional_text(one, "namespace"),
            )
            for one in objects(item, "subjects")
        ),
    )


def read_network_policy(item: Item) -> NetworkFence:
    """Reduce a NetworkPolicy; raises MalformedError.

    Kubernetes' rule for a policy that names no types: Ingress, and Egress if it has egress rules.
    """
    metadata, spec = mapping(item, "metadata"), mapping(item, "spec")
    egress = len(list(objects(spec, "egress")))
    implied = ("Ingress", "Egress") if egress else ("Ingress",)
    return NetworkFence(
        namespace=text(metadata, "namespace"),
        name=text(metadata, "name"),
        selects_all=not any(mapping(spec, "podSelector").values()),
        types=_texts(spec, "policyTypes") or implied,
        ingress_rules=len(list(objects(spec, "ingress"))),
        egress_rules=egress,
    )


def read_service_account(item: Item) -> ServiceAccount:
    """Reduce a ServiceAccount; raises MalformedError."""
    metadata = mapping(item, "metadata")
    mounts = item.get("automountServiceAccountToken")
    return ServiceAccount(
        namespace=text(metadata, "namespace"),
        name=text(metadata, "name"),
        mounts_token=mounts if isinstance(mounts, bool) else None,
    )


def read_resource_quota(item: Item) -> ResourceQuota:
    """Reduce a ResourceQuota; raises MalformedError."""
    metadata = mapping(item, "metadata")
    return ResourceQuota(
        namespace=text(metadata, "namespace"),
        name=text(metadata, "name"),
        hard=_amounts(mapping(item, "spec"), "hard"),
        used=_amounts(mapping(item, "status"), "used"),
    )


def read_policy(item: Item) -> AdmissionPolicy:
    """Reduce a ValidatingAdmissionPolicy; raises MalformedError."""
    spec = mapping(item, "spec")
    rules = objects(mapping(spec, "matchConstraints"), "resourceRules")
    return AdmissionPolicy(
        name=text(mapping(item, "metadata"), "name"),
        failure_policy=optional_text(spec, "failurePolicy") or "Fail",
        resources=tuple(
            f"{group}/{resource}"
            for rule in rules
            for group in _texts(rule, "apiGroups")
            for resource in _texts(rule, "resources")
        ),
        expressions=tuple(text(one, "expression") for one in objects(spec, "validations")),
    )


def read_policy_binding(item: Item) -> AdmissionBinding:
    """Reduce a ValidatingAdmissionPolicyBinding; raises MalformedError."""
    spec = mapping(item, "spec")
    selector = mapping(mapping(spec, "matchResources"), "namespaceSelector")
    return AdmissionBinding(
        name=text(mapping(item, "metadata"), "name"),
        policy=text(spec, "policyName"),
        actions=_texts(spec, "validationActions"),
        namespaces=tuple(_asked(selector)),
    )


def _asked(selector: Item) -> Iterator[str]:
    for key in sorted(mapping(selector, "matchLabels")):
        yield f"{key}={selector['matchLabels'][key]}"
    for one in objects(selector, "matchExpressions"):
        key, operator = text(one, "key"), text(one, "operator")
        values = ",".join(_texts(one, "values"))
        known = {"Exists": key, "DoesNotExist": f"!{key}", "In": f"{key}={values}"}
        yield known.get(operator, f"{key}!={values}")


def _texts(parent: Item, key: str) -> tuple[str, ...]:
    value = parent.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise MalformedError(f"{key} is {value!r:.40}, not a list of texts")
    return tuple(value)


def _amounts(parent: Item, key: str) -> dict[str, float]:
    try:
        return {name: float(parse(value)) for name, value in mapping(parent, key).items()}
    except ValueError as error:
        raise MalformedError(f"{key}: {error}") from error
