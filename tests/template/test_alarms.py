"""The alarms that ask for a snapshot: in the stack for one cluster, in an example for each further one."""

import json
import re

import pytest

from tests.template.deployments import (
    DEFAULTS,
    ROOT,
    Deploy,
    Document,
    faults,
    of_type,
    read,
    spelt,
)

ALARMS = ROOT / "examples" / "cluster-alarms.yaml"
MEMBER = ROOT / "examples" / "member-events.yaml"
TRIGGERS = {"EvictionsAlarm", "PendingAlarm"}
"""Those that ask for a snapshot; the others are about the steward itself (test_watching.py)."""


@pytest.mark.parametrize("role", ["both", "spoke"])
def test_each_alarm_is_about_one_eks_cluster_and_called_as_the_rule_expects(
    role: str, deploy: Deploy
) -> None:
    found = {
        name: spelt(alarm, role)
        for name, alarm in of_type(deploy(role), "AWS::CloudWatch::Alarm").items()
        if name in TRIGGERS
    }
    (pattern,) = deploy(role)["TriggerAlarms"]["Properties"]["EventPattern"]["detail"]["alarmName"]

    assert {alarm["AlarmName"] for alarm in found.values()} == {
        "gpu-steward-trigger-evictions-ml-shared-01-eks",
        "gpu-steward-trigger-pending-ml-shared-01-eks",
    }
    for alarm in found.values():
        assert alarm["AlarmName"].startswith(spelt(pattern, role)["prefix"])
        # Container Insights knows the EKS cluster's name; more dimensions would be another series.
        assert alarm["Dimensions"] == [{"Name": "ClusterName", "Value": "ml-shared-01-eks"}]
        assert alarm["Namespace"] == "ContainerInsights/Prometheus"
        # EventBridge hears of every alarm: one with an action would tell somebody else as well.
        assert "AlarmActions" not in alarm


def test_evictions_are_counted_by_their_sum_and_waiting_by_its_maximum(deployed: Document) -> None:
    evictions = deployed["EvictionsAlarm"]["Properties"]
    pending = deployed["PendingAlarm"]["Properties"]

    # A point of the counter is what happened since the last one.
    assert (evictions["MetricName"], evictions["Statistic"]) == (
        "kueue_evicted_workloads_total",
        "Sum",
    )
    assert (pending["MetricName"], pending["Statistic"]) == ("kueue_pending_workloads", "Maximum")
    for alarm in (evictions, pending):
        assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)
        # Published once a minute; without Kueue there is nothing to look at.
        assert (alarm["Period"], alarm["TreatMissingData"]) == (60, "notBreaching")


def test_the_example_makes_the_same_alarms_for_another_cluster(written: Document) -> None:
    example = of_type(read(ALARMS)["Resources"], "AWS::CloudWatch::Alarm")
    said = json.dumps(example).replace("EksCluster", "AlarmEksCluster")

    alarms = of_type(written["Resources"], "AWS::CloudWatch::Alarm")
    assert json.loads(said) == {name: alarms[name] for name in TRIGGERS}


def test_the_example_is_sound() -> None:
    assert faults(read(ALARMS)) == ["E9004 0 schedules instead of one"]


def test_alarms_are_called_the_same_whatever_the_stack_is_and_never_as_one_about_the_stack(
    written: Document,
) -> None:
    prefix = written["Parameters"]["TriggerAlarmPrefix"]
    allowed = re.compile(prefix["AllowedPattern"])

    assert DEFAULTS["TriggerAlarmPrefix"] == prefix["Default"]
    assert allowed.search("ml-alerts-trigger-")
    # Nothing would be every alarm, the steward's own among them; so would the stack's name be.
    assert not [
        name for name in ("", "gpu-steward-", "-trigger-x", "*-trigger-") if allowed.search(name)
    ]
    for example in (ALARMS, MEMBER):
        same = read(example)["Parameters"]["TriggerAlarmPrefix"]
        assert {key: same[key] for key in ("Default", "AllowedPattern", "Type")} == {
            key: prefix[key] for key in ("Default", "AllowedPattern", "Type")
        }


def test_a_hub_that_reads_nothing_has_none_of_them(deploy: Deploy) -> None:
    assert TRIGGERS & set(deploy("hub")) == set()
