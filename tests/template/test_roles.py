"""One template, three roles: what each deployment has and needs.

Every deployment is looked at with its conditions decided (`GIVEN` in deployments.py).
"""

import re
from collections.abc import Iterator

import pytest

from local.conditions import decide
from tests.template.deployments import GIVEN, Deploy, Document, faults, of_type

DEAD_LETTERS = {"DeadLetters", "DeadLettersPolicy", "DeadLettersAlarm"}
FUNCTION_ALARMS = {"ErrorsAlarm", "ThrottlesAlarm"}
READER = {
    "TakeSnapshot",
    "TakeSnapshotSnapshotRequest",  # the poller
    "TakeSnapshotRole",
    "TakeSnapshotLogs",
    "HyperPodEvents",
    "ApiCalls",
    "TriggerAlarms",
    "SnapshotRequested",
    "EvictionsAlarm",
    "PendingAlarm",
    "SnapshotRequests",
    "SnapshotRequestsPolicy",
}


def references(node: object) -> Iterator[str]:
    """Yield the logical id or parameter of every Ref, GetAtt and Sub below a node."""
    if isinstance(node, list):
        for item in node:
            yield from references(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "Ref":
                yield value
            elif key == "Fn::GetAtt":
                yield value.partition(".")[0] if isinstance(value, str) else value[0]
            elif key == "Fn::Sub":
                text, own = value if isinstance(value, list) else (value, {})
                names = {name.partition(".")[0] for name in re.findall(r"\$\{([^}!]+)\}", text)}
                yield from names - set(own)
                yield from references(own)
            else:
                yield from references(value)


# --- what there is -------------------------------------------------------------------------------


def test_both_is_everything(written: Document) -> None:
    assert set(decide(written, **GIVEN["both"])["Resources"]) == set(written["Resources"])


def test_a_hub_has_everything_but_take_snapshot_and_its_queue(deploy: Deploy) -> None:
    assert set(deploy("both")) - set(deploy("hub")) == READER


def test_a_spoke_has_take_snapshot_its_queue_and_its_net_and_nothing_else(deploy: Deploy) -> None:
    resources = deploy("spoke")
    layers = set(of_type(resources, "AWS::Lambda::LayerVersion"))

    assert len(layers) == 3
    assert set(resources) == READER | DEAD_LETTERS | FUNCTION_ALARMS | layers


def test_a_stack_that_lets_nobody_in_has_no_policy_for_it(written: Document) -> None:
    alone = {"Role": "both"}
    resources = decide(written, **alone)["Resources"]

    assert of_type(resources, "AWS::Events::EventBusPolicy") == {}
    (tls,) = resources["BucketPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert tls["Effect"] == "Deny"


@pytest.mark.parametrize("role", GIVEN)
def test_nothing_refers_to_what_the_role_does_not_have(
    role: str, written: Document, deploy: Deploy
) -> None:
    resources = deploy(role)
    outputs = decide(written, **GIVEN[role])["Outputs"]
    known = set(resources) | set(written["Parameters"])

    dangling = {
        name for name in references([resources, outputs]) if not name.startswith("AWS::")
    } - known
    assert dangling == set()


def test_a_dangling_reference_would_be_noticed() -> None:
    node = [
        {"Ref": "A"},
        {"Fn::GetAtt": ["B", "Arn"]},
        {"Fn::GetAtt": "C.Arn"},
        {"Fn::Sub": "${D}/${E.Arn}"},
        {"Fn::Sub": ["${Own}/${F}", {"Own": {"Ref": "G"}}]},
    ]
    assert set(references(node)) == set("ABCDEFG")


def as_given(written: Document, role: str) -> Document:
    """Return a role's template with the given parameters as its defaults, every check switched on."""
    document = decide(written, **GIVEN[role])
    for name, value in GIVEN[role].items():
        document["Parameters"][name]["Default"] = value
    used = set(references([document["Resources"], document["Outputs"], document["Globals"]]))
    document["Parameters"] = {n: p for n, p in document["Parameters"].items() if n in used}
    del document["Metadata"], document["Rules"]
    return document


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("both", []),
        ("hub", []),
        ("spoke", ["E9004 0 schedules instead of one"]),  # the one schedule is the hub's
    ],
)
def test_every_role_is_a_sound_template(role: str, expected: list[str], written: Document) -> None:
    # The whole template switches W1030 and W1031 off: empty defaults. Here they are on.
    assert faults(as_given(written, role)) == expected


def test_a_role_that_is_not_sound_would_be_noticed(written: Document) -> None:
    document = as_given(written, "spoke")
    document["Parameters"]["HubBusArn"]["Default"] = "gpu-steward"
    del document["Resources"]["DeadLettersPolicy"]

    found = faults(document)
    assert any("W1030" in fault and "HubBusArn" in fault for fault in found)
    assert any("DeadLetters has no policy" in fault for fault in found)


# --- what a role cannot do without ---------------------------------------------------------------


def refused(written: Document, given: dict[str, str]) -> set[str]:
    """Name the parameter that each failing assertion speaks of, as CloudFormation's Rules would."""
    defaults = {name: p.get("Default", "") for name, p in written["Parameters"].items()}
    values = defaults | given

    def true(condition: Document) -> bool:
        ((function, parts),) = condition.items()
        if function == "Fn::Not":
            return not true(parts[0])
        left, right = parts
        value = values[left["Ref"]]
        if function == "Fn::EachMemberEquals":
            return all(each == right for each in value.split(","))
        assert function == "Fn::Equals"
        return bool(value == right)

    return {
        assertion["AssertDescription"].partition(" ")[0]
        for rule in written["Rules"].values()
        if true(rule["RuleCondition"])
        for assertion in rule["Assertions"]
        if not true(assertion["Assert"])
    }


@pytest.mark.parametrize(
    ("role", "missing"),
    [
        ("both", {"SlackSecretArn", "ClusterArns", "EksClusterArns"}),
        ("hub", {"SlackSecretArn", "SpokeQueueArns"}),
        ("spoke", {"ClusterArns", "EksClusterArns", "HubAccountId", "HubBucket", "HubBusArn"}),
    ],
)
def test_a_deployment_without_what_its_role_needs_is_refused(
    role: str, missing: set[str], written: Document
) -> None:
    assert refused(written, {"Role": role}) == missing
    assert refused(written, {"Role": role} | {n: GIVEN[role][n] for n in missing}) == set()
    for name in missing:
        others = {n: GIVEN[role][n] for n in missing - {name}}
        assert refused(written, {"Role": role, **others}) == {name}


@pytest.mark.parametrize("role", GIVEN)
def test_what_the_tests_give_is_what_the_parameters_take(role: str, written: Document) -> None:
    for name, value in GIVEN[role].items():
        parameter = written["Parameters"][name]
        for each in value.split(",") if parameter["Type"] == "CommaDelimitedList" else [value]:
            assert re.fullmatch(parameter.get("AllowedPattern", ".*"), each), name


def test_a_stack_without_checkpoint_buckets_or_an_alarm_cluster_has_nothing_for_them(
    written: Document,
) -> None:
    given = {
        n: v for n, v in GIVEN["both"].items() if n not in {"CheckpointBuckets", "AlarmEksCluster"}
    }
    without = set(written["Resources"]) - set(decide(written, **given)["Resources"])

    assert without == {"ForwardMarkers", "MarkerWritten", "EvictionsAlarm", "PendingAlarm"}


@pytest.mark.parametrize("name", ["SpokeAccountIds", "MemberAccountIds", "HubAccountId"])
@pytest.mark.parametrize("value", ["*", "11112222333", "arn:aws:iam::111122223333:root"])
def test_nobody_is_let_in_but_accounts_by_their_ids(
    name: str, value: str, written: Document
) -> None:
    assert re.fullmatch(written["Parameters"][name]["AllowedPattern"], value) is None
