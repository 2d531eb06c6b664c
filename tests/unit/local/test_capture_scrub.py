"""What is left of an answer: what the detectors read, and nothing that is a person or a secret."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.capture.aws_scrub import LABELS, scrub_aws, scrub_labels
from local.capture.kubernetes_scrub import meet, scrub
from local.capture.names import Pseudonyms, names_person
from local.capture.policy_copy import copy_policy
from local.metrics_check.needs import NEEDS
from local.policy import load
from local.replay import ROOT
from steward.sources.prometheus.families import BY_METRIC
from steward.sources.prometheus.kueue import EVICTED, GAUGES

ACCOUNT = "123456789012"
SECRET = "s3cr3t"

KEYS = st.sampled_from(
    ["spec", "template", "containers", "env", "args", "metadata", "annotations", "x", "volumes"]
)
TREES = st.recursive(
    st.just(SECRET) | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def names(**more: Any) -> Pseudonyms:
    return Pseudonyms(salt=b"salt", **more)


def only(resource: str, item: dict[str, Any], who: Pseudonyms | None = None) -> Any:
    listed = {"kind": "List", "items": [item]}
    kept = scrub(resource, listed, who or names())
    assert kept["kind"] == "List"
    return kept["items"][0]


# --- names ---------------------------------------------------------------------------------------


def test_a_person_has_one_pseudonym_in_a_recording_and_another_in_the_next() -> None:
    one, other = names(), Pseudonyms(salt=b"other")
    assert one.person("jane") == one.person("jane")
    assert one.person("jane") != one.person("john")
    assert one.person("jane") != other.person("jane")
    assert "jane" not in one.person("jane")


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("ask jane.roe@corp.example.com now", "jane.roe"),
        ("arn:aws:sts::123456789012:assumed-role/dev/jane", "jane"),
        ("arn:aws:iam::123456789012:user/eng/jane", "jane"),
        (f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/train:1", ACCOUNT),
        (f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/c", ACCOUNT),
        (f"https://sqs.eu-west-1.amazonaws.com/{ACCOUNT}/requests", ACCOUNT),
        (f"https://sqs.cn-north-1.amazonaws.com.cn/{ACCOUNT}/requests", ACCOUNT),
        ('pods is forbidden: User "jane" cannot list resource', "jane"),
        ('cannot impersonate user "oidc:jane" at the cluster scope', "jane"),
    ],
)
def test_people_and_accounts_are_replaced_wherever_they_stand(text: str, gone: str) -> None:
    assert gone not in names().text(text)


def test_an_account_that_is_known_is_found_inside_of_other_names() -> None:
    who = names()
    assert ACCOUNT in who.text(f"bucket-{ACCOUNT}-logs")  # any twelve digits may be part of an id
    who.meet_accounts(f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/c")
    assert ACCOUNT not in who.text(f"bucket-{ACCOUNT}-logs")


def test_what_is_no_name_stays() -> None:
    text = "insufficient unused quota for nvidia.com/gpu in flavor ml.p5.48xlarge, 4 more needed"
    assert names().text(text) == text
    assert names().text("274877906944") == "274877906944"  # 256 GiB in bytes: no account
    refused = 'User "system:serviceaccount:kube-system:ops" cannot list resource "pods"'
    assert names().text(refused) == refused
    assert names().text("GPU-5f0c8a9e-1b2c-3d4e-5f60-123456789012").endswith("-123456789012")


@pytest.mark.parametrize(
    "key", ["sagemaker.user/created-by", "owner", "team.example/submitted_by", "CreatedBy", "user"]
)
def test_labels_that_name_a_person(key: str) -> None:
    assert names_person(key)


@pytest.mark.parametrize("key", ["name", "kubernetes.io/metadata.name", "power", "ownerReferences"])
def test_labels_that_do_not(key: str) -> None:
    assert not names_person(key)


# --- Kubernetes ----------------------------------------------------------------------------------


def test_a_pod_keeps_what_is_judged_and_loses_what_it_runs() -> None:
    item = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-0",
            "namespace": "hyperpod-ns-research",
            "labels": {"sagemaker.user/created-by": "jane", "kueue.x-k8s.io/queue-name": "q"},
            "annotations": {"kueue.x-k8s.io/workload": "w", "memo": SECRET},
            "managedFields": [{"manager": SECRET}],
        },
        "spec": {
            "nodeName": "hyperpod-i-0a",
            "containers": [
                {
                    "name": "main",
                    "image": f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/team/train:1",
                    "env": [{"name": "K", "value": SECRET}],
                    "command": [SECRET],
                    "args": [SECRET],
                    "livenessProbe": {"exec": {"command": [SECRET]}},
                    "resources": {"requests": {"nvidia.com/gpu": "8"}},
                }
            ],
            "volumes": [
                {"name": "v", "secret": {"secretName": SECRET}},
                {"name": "p", "projected": {"sources": [{"secret": {"name": SECRET}}]}},
            ],
        },
        "status": {
            "phase": "Running",
            "startTime": "2026-11-05T08:00:00Z",
            "message": SECRET,
            "containerStatuses": [
                {
                    "name": "main",
                    "restartCount": 2,
                    "lastState": {"terminated": {"exitCode": 1, "message": SECRET}},
                }
            ],
        },
    }
    kept = only("pods", item)
    assert SECRET not in json.dumps(kept)
    assert "jane" not in json.dumps(kept)
    assert kept["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "q"
    assert kept["metadata"]["annotations"] == {"kueue.x-k8s.io/workload": "w"}
    container = kept["spec"]["containers"][0]
    assert container["resources"] == {"requests": {"nvidia.com/gpu": "8"}}
    assert container["image"] == "train:1"
    assert kept["spec"]["nodeName"] == "hyperpod-i-0a"
    assert kept["status"]["phase"] == "Running"
    state = kept["status"]["containerStatuses"][0]
    assert (state["restartCount"], state["lastState"]["terminated"]) == (2, {"exitCode": 1})


@pytest.mark.parametrize("resource", ["jobs", "pytorchjobs", "rayjobs", "rayclusters", "jobsets"])
@given(spec=TREES)
def test_no_word_of_a_jobs_own_description_is_kept(resource: str, spec: object) -> None:
    kept = only(resource, {"metadata": {"name": "j"}, "spec": spec, "status": {"note": SECRET}})
    assert SECRET not in json.dumps(kept)
    assert kept["metadata"]["name"] == "j"


def test_a_workload_keeps_its_verdicts_and_loses_what_its_pods_run() -> None:
    item = {
        "metadata": {"name": "job-a-1", "namespace": "n", "uid": "u"},
        "spec": {
            "podSets": [
                {
                    "name": "main",
                    "count": 2,
                    "template": {
                        "spec": {
                            "containers": [
                                {
                                    "name": "c",
                                    "env": [{"value": SECRET}],
                                    "resources": {"requests": {"nvidia.com/gpu": "4"}},
                                }
                            ]
                        }
                    },
                }
            ]
        },
        "status": {
            "conditions": [
                {"type": "QuotaReserved", "status": "False", "message": "insufficient quota"}
            ]
        },
    }
    kept = only("workloads", item)
    assert SECRET not in json.dumps(kept)
    assert kept["status"] == item["status"]
    container = kept["spec"]["podSets"][0]["template"]["spec"]["containers"][0]
    assert container["resources"]["requests"] == {"nvidia.com/gpu": "4"}


def test_messages_are_kept_of_those_who_speak_of_admission() -> None:
    said = {"reason": "Pending", "message": "pods want 4 more", "metadata": {"name": "e"}}
    kueue = only("events", said | {"reportingComponent": "kueue-admission"})
    other = only("events", said | {"source": {"component": "someones-webhook"}})
    assert kueue["message"] == "pods want 4 more"
    assert other["message"] == "(left out of the recording)"
    assert other["reason"] == "Pending"


def test_people_in_bindings_are_replaced_and_groups_are_not() -> None:
    subjects = [
        {"kind": "User", "name": "jane@corp.example.com"},
        {"kind": "User", "name": "system:kube-scheduler"},
        {"kind": "Group", "name": "research-team"},
    ]
    kept = only("rolebindings", {"metadata": {"name": "b"}, "subjects": subjects})["subjects"]
    assert kept[0]["name"].startswith("person-")
    assert [one["name"] for one in kept[1:]] == ["system:kube-scheduler", "research-team"]


def test_a_refusal_stays_one_without_the_name_of_whom_it_refused() -> None:
    message = 'User "arn:aws:sts::123456789012:assumed-role/dev/jane" cannot list pods'
    refusal = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": message}
    kept = scrub("pods", refusal, names())
    assert (kept["kind"], kept["code"]) == ("Status", 403)
    assert "jane" not in kept["message"]
    assert ACCOUNT not in kept["message"]


def test_a_renamed_job_is_renamed_in_texts_that_mention_it() -> None:
    who = names(rename_jobs=True)
    meet("workloads", {"items": [{"metadata": {"name": "job-secret-plan-a1"}}]}, who)
    event = {"message": "Preempted workload ns/job-secret-plan-a1 (UID: u)", "source": {}}
    kept = only("events", event | {"reportingComponent": "kueue-admission"}, who)
    assert kept["message"] == f"Preempted workload ns/{who.job('job-secret-plan-a1')} (UID: u)"


def test_renamed_pods_of_one_controller_still_differ_in_their_last_part_alone() -> None:
    # The exporter's own pods are told from others by exactly this.
    who = names(rename_jobs=True)
    one, other = who.job("dcgm-exporter-x7k2p"), who.job("dcgm-exporter-q9z4m")
    assert one != other
    assert one.rpartition("-")[0] == other.rpartition("-")[0] == who.job("dcgm-exporter")


# --- AWS, metrics, policy ------------------------------------------------------------------------


def test_an_add_ons_configuration_keeps_only_what_the_steward_reads() -> None:
    configuration = {
        "metricsProvider": {"taskGovernanceMetrics": {"level": "DISABLED"}},
        "grafana": {"adminPassword": SECRET},
        "ampWorkspace": {"arn": SECRET},
    }
    add_on = {
        "addonName": "amazon-sagemaker-hyperpod-observability",
        "configurationValues": json.dumps(configuration),
        "tags": {"owner": "jane"},
    }
    kept = scrub_aws({"addon": add_on}, names())["addon"]
    assert json.loads(kept["configurationValues"]) == {
        "metricsProvider": {"taskGovernanceMetrics": {"level": "DISABLED"}}
    }
    assert "tags" not in kept
    unread = scrub_aws({"addon": add_on | {"configurationValues": f"a: {SECRET}"}}, names())
    assert SECRET not in json.dumps(unread)
    assert unread["addon"]["configurationValues"]  # still not JSON: the settings are not known


def test_labels_of_a_series_keep_series_apart() -> None:
    who = names()
    one = scrub_labels({"UUID": "GPU-1", "instance": "10.0.0.1:9400", "owner": "jane"}, who)
    other = scrub_labels({"UUID": "GPU-1", "instance": "10.0.0.2:9400", "owner": "jane"}, who)
    assert one["UUID"] == "GPU-1"
    assert "jane" not in one["owner"]
    assert "10.0.0" not in one["instance"]
    assert one["instance"] != other["instance"]


def test_every_label_that_is_needed_is_kept() -> None:
    needed = {
        label
        for need in NEEDS
        if need.backend == "prometheus"
        for spellings in (*need.on_every, *need.on_some)
        for label in spellings
    }
    assert needed <= LABELS


def test_every_metric_that_the_steward_reads_is_in_the_table() -> None:
    table = {metric for need in NEEDS for metric in need.metrics}
    assert {*BY_METRIC, *GAUGES, EVICTED} <= table


def test_the_policys_copy_is_the_same_policy_without_addresses_and_channels(
    tmp_path: Path,
) -> None:
    path = ROOT / "layers/policy/governance.yaml"
    (tmp_path / "copy.yaml").write_text(text := copy_policy(path, "ml-shared-01", names()))
    for gone in ("research-oncall", "C0GPURESEA01", "# HyperPod cluster"):
        assert gone in path.read_text()
        assert gone not in text
    before, after = load(path), load(tmp_path / "copy.yaml")
    (old,), (new,) = before.clusters, after.clusters
    assert [(t.name, t.accelerators, t.strategy) for t in new.teams] == [
        (t.name, t.accelerators, t.strategy) for t in old.teams
    ]
    assert (new.thresholds, new.metrics, new.prices) == (old.thresholds, old.metrics, old.prices)


def test_the_policys_copy_names_nobody_and_no_account_and_still_resolves(tmp_path: Path) -> None:
    text = (ROOT / "layers/policy/governance.yaml").read_text()
    exemption = """\
        exemptions:
          - {subject: Job/hyperpod-ns-research/warm-pool-*, reason: Jane tunes it, author: Jane Roe,
             until: 2026-12-31T00:00:00Z}
"""
    queue = f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/steward-snapshot-requests"
    path = tmp_path / "governance.yaml"
    path.write_text(
        text.replace(
            "    region: us-east-1\n",
            f'    region: us-east-1\n    account: "{ACCOUNT}"\n    spoke_queue_url: {queue}\n',
        ).replace("      - name: research\n", f"      - name: research\n{exemption}")
    )
    before = load(path).clusters[0]
    assert (before.account, before.spoke_queue_url) == (ACCOUNT, queue)
    who = names(rename_jobs=True)
    (tmp_path / "copy.yaml").write_text(copied := copy_policy(path, "ml-shared-01", who))
    for gone in ("Jane", ACCOUNT, "warm-pool"):
        assert gone in path.read_text()
        assert gone not in copied
    after = load(tmp_path / "copy.yaml").clusters[0]
    # The cluster's account is the queue's, as before.
    assert after.account == who.account(ACCOUNT)
    assert after.account in (after.spoke_queue_url or "")
    team = next(one for one in after.teams if one.name == "research")
    (promise,) = team.exemptions
    # It still covers the renamed jobs that it covered, and no others.
    assert promise.subject == f"Job/hyperpod-ns-research/{who.job('warm-pool')}-*"
    assert who.job("warm-pool-3").startswith(promise.subject.rpartition("/")[2].removesuffix("*"))


def test_a_prometheus_of_ones_own_keeps_its_name_to_itself(tmp_path: Path) -> None:
    text = (ROOT / "layers/policy/governance.yaml").read_text()
    path = tmp_path / "governance.yaml"
    path.write_text(re.sub(r"endpoint: \S+", "endpoint: https://prom.acme.example.com", text))
    assert "acme" in load(path).clusters[0].metrics.endpoint
    assert "acme" not in copy_policy(path, "ml-shared-01", names())
