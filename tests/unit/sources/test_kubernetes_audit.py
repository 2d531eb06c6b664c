"""Objects of the audit scope, reduced: shapes as `kubectl get -o json` prints them."""

import pytest

from steward.cluster.audit import (
    AccessBinding,
    AccessRole,
    AccessRule,
    AccessSubject,
    AdmissionBinding,
    AdmissionPolicy,
    NetworkFence,
    ResourceQuota,
    ServiceAccount,
)
from steward.sources.kubernetes import audit
from steward.sources.kubernetes.fields import MalformedError

NS = "hyperpod-ns-research"


def metadata(name, namespace=NS):
    return {"name": name} | ({"namespace": namespace} if namespace else {})


def test_a_role_keeps_its_rules():
    item = {
        "metadata": metadata("team"),
        "rules": [
            {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": ["patch"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["a"]},
        ],
    }
    assert audit.read_role(item) == AccessRole(
        namespace=NS,
        name="team",
        rules=(
            AccessRule(api_groups=("kueue.x-k8s.io",), resources=("workloads",), verbs=("patch",)),
            AccessRule(api_groups=("",), resources=("secrets",), verbs=("get",), names=("a",)),
        ),
    )


def test_a_cluster_role_may_gather_its_rules_and_have_none_yet():
    item = {
        "metadata": metadata("view", None),
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
        "rules": None,
    }
    assert audit.read_role(item) == AccessRole(
        namespace=None, name="view", rules=(), aggregated=True
    )


def test_a_binding_names_its_role_and_its_subjects():
    item = {
        "metadata": metadata("team"),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [
            {"kind": "Group", "name": "research"},
            {"kind": "ServiceAccount", "name": "runner", "namespace": NS},
        ],
    }
    assert audit.read_binding(item) == AccessBinding(
        namespace=NS,
        name="team",
        role_kind="ClusterRole",
        role="edit",
        subjects=(
            AccessSubject(kind="Group", name="research"),
            AccessSubject(kind="ServiceAccount", name="runner", namespace=NS),
        ),
    )


def test_a_binding_without_a_role_is_malformed():
    with pytest.raises(MalformedError, match="kind is missing"):
        audit.read_binding({"metadata": metadata("team")})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        # Kubernetes' default-deny: every pod, both directions, nothing let through.
        ({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}, (True, "Ingress Egress", 0, 0)),
        # Without types a policy stands for Ingress, and for Egress only if it has such rules.
        ({"podSelector": {}}, (True, "Ingress", 0, 0)),
        ({"podSelector": {}, "egress": [{}]}, (True, "Ingress Egress", 0, 1)),
        (
            {"podSelector": {"matchLabels": {"app": "a"}}, "ingress": [{}, {}]},
            (False, "Ingress", 2, 0),
        ),
    ],
)
def test_a_network_policy_says_what_it_fences(spec, expected):
    everything, types, ingress, egress = expected
    assert audit.read_network_policy({"metadata": metadata("p"), "spec": spec}) == NetworkFence(
        namespace=NS,
        name="p",
        selects_all=everything,
        types=tuple(types.split()),
        ingress_rules=ingress,
        egress_rules=egress,
    )


def test_a_service_account_keeps_no_secret_names():
    item = {
        "metadata": metadata("runner") | {"annotations": {"a": "hidden"}},
        "secrets": [{"name": "runner-token"}],
        "automountServiceAccountToken": False,
    }
    assert audit.read_service_account(item) == ServiceAccount(
        namespace=NS, name="runner", mounts_token=False
    )


def test_a_resource_quota_is_in_base_units():
    item = {
        "metadata": metadata("gpus"),
        "spec": {"hard": {"requests.nvidia.com/gpu": "8", "limits.memory": "1Gi"}},
        "status": {"used": {"requests.nvidia.com/gpu": "500m"}},
    }
    assert audit.read_resource_quota(item) == ResourceQuota(
        namespace=NS,
        name="gpus",
        hard={"requests.nvidia.com/gpu": 8.0, "limits.memory": 2.0**30},
        used={"requests.nvidia.com/gpu": 0.5},
    )


def test_a_quantity_that_is_none_is_malformed():
    item = {"metadata": metadata("gpus"), "spec": {"hard": {"cpu": "many"}}}
    with pytest.raises(MalformedError, match="hard: 'many'"):
        audit.read_resource_quota(item)


def test_an_admission_policy_says_what_it_looks_at():
    item = {
        "metadata": metadata("queue-label", None),
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": ["batch"], "resources": ["jobs"], "operations": ["CREATE"]},
                    {"apiGroups": ["", "apps"], "resources": ["pods"]},
                ]
            },
            "validations": [{"expression": "'queue' in object.metadata.labels"}],
        },
    }
    assert audit.read_policy(item) == AdmissionPolicy(
        name="queue-label",
        failure_policy="Fail",  # Kubernetes' default
        resources=("batch/jobs", "/pods", "apps/pods"),
        expressions=("'queue' in object.metadata.labels",),
    )


def test_an_admission_binding_says_where_it_holds():
    expressions = [
        {"key": "team", "operator": "Exists"},
        {"key": "exempt", "operator": "DoesNotExist"},
        {"key": "zone", "operator": "NotIn", "values": ["a", "b"]},
    ]
    selector = {"matchLabels": {"governed": "true"}, "matchExpressions": expressions}
    item = {
        "metadata": metadata("queue-label", None),
        "spec": {
            "policyName": "queue-label",
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": selector},
        },
    }
    assert audit.read_policy_binding(item) == AdmissionBinding(
        name="queue-label",
        policy="queue-label",
        actions=("Deny",),
        namespaces=("governed=true", "team", "!exempt", "zone!=a,b"),
    )


def test_a_list_that_is_no_list_is_malformed():
    with pytest.raises(MalformedError, match="verbs is 'get', not a list of texts"):
        audit.read_role({"metadata": metadata("r"), "rules": [{"verbs": "get"}]})
