"""The watch over the watcher: few alarms, each on a metric that exists, none of which triggers us."""

import json
import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from local.conditions import decide
from steward.metrics import NAMESPACE, UNITS
from tests.template.deployments import GIVEN, ROOT, Deploy, Document, of_type, read, spelt

TRIGGERS = {"EvictionsAlarm", "PendingAlarm"}
FUNCTION_METRICS = {"Errors", "Throttles", "Duration"}
QUEUE_METRICS = {"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"}


def alarms(deploy: Deploy, role: str) -> dict[str, Document]:
    """Return the alarms about the steward itself, spelt out."""
    found = of_type(deploy(role), "AWS::CloudWatch::Alarm")
    return {name: spelt(alarm, role) for name, alarm in found.items() if name not in TRIGGERS}


def watched(alarm: Document) -> list[tuple[str, str, dict[str, str]]]:
    """List the metrics that an alarm reads: namespace, name, dimensions."""
    stats = [m["MetricStat"]["Metric"] for m in alarm.get("Metrics", []) if "MetricStat" in m]
    return [
        (m["Namespace"], m["MetricName"], {d["Name"]: d["Value"] for d in m["Dimensions"]})
        for m in (stats or [alarm])
    ]


# --- alarms --------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", GIVEN)
def test_a_deployment_has_at_most_ten_alarms_those_that_trigger_counted(
    role: str, deploy: Deploy
) -> None:
    assert len(of_type(deploy(role), "AWS::CloudWatch::Alarm")) <= 10


def test_what_is_watched_is_what_can_go_wrong(deploy: Deploy) -> None:
    watched_by = {
        alarm["AlarmName"].removeprefix("gpu-steward-"): {name for _, name, _ in watched(alarm)}
        for alarm in alarms(deploy, "both").values()
    }

    assert watched_by == {
        "heartbeat": {"OldestSnapshotAge"},
        "lateness": {"Lateness"},
        "coverage": {"Coverage"},
        "undelivered": {"CardsUndelivered"},
        "slack-refusals": {"SlackRefusals"},
        "dead-letters": {"ApproximateNumberOfMessagesVisible"},
        "errors": {"Errors"},
        "throttles": {"Throttles"},
    }


@pytest.mark.parametrize("role", GIVEN)
def test_every_metric_that_an_alarm_reads_is_published_of_what_the_stack_has(
    role: str, deploy: Deploy
) -> None:
    resources = deploy(role)
    functions = {f"<{name}>" for name in of_type(resources, "AWS::Lambda::Function")}
    queues = {f"<{name}.QueueName>" for name in of_type(resources, "AWS::SQS::Queue")}
    for alarm in alarms(deploy, role).values():
        for namespace, metric, dimensions in watched(alarm):
            match namespace:
                case "AWS/Lambda":
                    assert metric in FUNCTION_METRICS
                    assert set(dimensions) == {"FunctionName"}
                    assert set(dimensions.values()) <= functions
                case "AWS/SQS":
                    assert metric in QUEUE_METRICS
                    assert set(dimensions) == {"QueueName"}
                    assert set(dimensions.values()) <= queues
                case _:
                    # As `emit` writes them: one dimension, the stack's name.
                    assert (namespace, dimensions) == (NAMESPACE, {"service": "gpu-steward"})
                    assert metric in UNITS


@pytest.mark.parametrize("role", GIVEN)
@pytest.mark.parametrize("name", ["ErrorsAlarm", "ThrottlesAlarm"])
def test_no_function_and_no_dead_letter_queue_is_forgotten(
    role: str, name: str, deploy: Deploy
) -> None:
    resources = deploy(role)
    mine = alarms(deploy, role)

    functions = {d["FunctionName"] for _, _, d in watched(mine[name])}
    queues = {d["QueueName"] for _, _, d in watched(mine["DeadLettersAlarm"])}
    assert functions == {f"<{n}>" for n in of_type(resources, "AWS::Lambda::Function")}
    dead = {n for n in of_type(resources, "AWS::SQS::Queue") if n.startswith("DeadLetters")}
    assert queues == {f"<{n}.QueueName>" for n in dead}


@pytest.mark.parametrize("role", GIVEN)
def test_an_expression_is_one_that_an_alarm_may_watch(role: str, deploy: Deploy) -> None:
    for alarm in alarms(deploy, role).values():
        queries = alarm.get("Metrics", [])
        if not queries:
            continue
        # CloudWatch takes ten metrics, and watches the one query that returns data.
        assert sum("MetricStat" in query for query in queries) <= 10
        (shown,) = [query for query in queries if query.get("ReturnData", True)]
        # A queue or function that nobody uses has no points: without filling, the sum had none.
        assert shown["Expression"] == "SUM(FILL(METRICS(), 0))"
        ids = [query["Id"] for query in queries]
        assert len(set(ids)) == len(ids)
        assert all(re.fullmatch(r"[a-z][A-Za-z0-9_]*", one) for one in ids)
        # The newest point may be such a filling: one alone must not end the alarm.
        assert alarm["DatapointsToAlarm"] < alarm["EvaluationPeriods"]


def test_silence_is_an_alarm_of_the_heartbeat_and_of_nothing_else(deploy: Deploy) -> None:
    missing = {n: alarm["TreatMissingData"] for n, alarm in alarms(deploy, "both").items()}

    assert missing.pop("HeartbeatAlarm") == "breaching"
    assert set(missing.values()) == {"notBreaching"}


def test_the_heartbeat_waits_for_no_more_than_three_ticks_of_silence(
    deploy: Deploy, written: Document
) -> None:
    heartbeat = alarms(deploy, "hub")["HeartbeatAlarm"]

    # PlanTicks tells the age every five minutes, of the cluster whose is greatest.
    assert (heartbeat["Period"], heartbeat["EvaluationPeriods"]) == (300, 3)
    assert heartbeat["Statistic"] == "Maximum"
    assert heartbeat["Threshold"] == "1800"
    # Six ticks of five minutes; a policy with longer ones gives more.
    assert written["Parameters"]["SnapshotAgeLimit"]["Default"] == 6 * 300


def test_the_worst_cluster_decides_not_the_average(deploy: Deploy) -> None:
    worst = {n: a["Statistic"] for n, a in alarms(deploy, "hub").items() if "Statistic" in a}

    assert worst == {
        "HeartbeatAlarm": "Maximum",
        "LatenessAlarm": "Maximum",
        "CoverageAlarm": "Minimum",
        "UndeliveredAlarm": "Maximum",
        "RefusalsAlarm": "Sum",
    }


@pytest.mark.parametrize("role", GIVEN)
def test_an_alarm_tells_the_topic_when_it_begins_and_when_it_ends(
    role: str, deploy: Deploy
) -> None:
    topic = [GIVEN[role]["AlarmTopicArn"]]
    for alarm in alarms(deploy, role).values():
        assert (alarm["AlarmActions"], alarm["OKActions"]) == (topic, topic)
        assert alarm["AlarmDescription"]


def test_without_a_topic_the_alarms_are_there_and_tell_nobody(written: Document) -> None:
    resources = decide(written, Role="both")["Resources"]
    found = of_type(resources, "AWS::CloudWatch::Alarm")

    assert len(found) == 8
    assert not any("AlarmActions" in alarm or "OKActions" in alarm for alarm in found.values())


def test_the_page_for_operators_explains_every_alarm_and_every_metric(deploy: Deploy) -> None:
    page = (ROOT / "docs" / "operate.md").read_text()
    explained = set(re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE))

    words = {a["AlarmName"].removeprefix("gpu-steward-") for a in alarms(deploy, "both").values()}
    assert explained == words | set(UNITS)


# --- no alarm of ours asks for a snapshot --------------------------------------------------------

TEMPLATE = read(ROOT / "template.yaml")
PREFIX = TEMPLATE["Parameters"]["TriggerAlarmPrefix"]
OURS = [
    alarm["AlarmName"]["Fn::Sub"].removeprefix("${AWS::StackName}")
    for name, alarm in of_type(TEMPLATE["Resources"], "AWS::CloudWatch::Alarm").items()
    if name not in TRIGGERS
]


def listened_to(role: str, deploy: Deploy) -> list[str]:
    """Return the prefixes that the rules for alarms let through, wherever they listen."""
    resources = deploy(role)
    rules = [
        resources[n]["Properties"] for n in ("ForwardAlarms", "TriggerAlarms") if n in resources
    ]
    return [
        spelt(matcher, role)["prefix"]
        for rule in rules
        for matcher in rule["EventPattern"]["detail"]["alarmName"]
    ]


@pytest.mark.parametrize("role", GIVEN)
def test_the_rules_let_none_of_our_own_alarms_through(role: str, deploy: Deploy) -> None:
    prefixes = listened_to(role, deploy)

    assert prefixes
    for alarm in alarms(deploy, role).values():
        assert alarm["AlarmName"].startswith("gpu-steward-")
        assert not any(alarm["AlarmName"].startswith(prefix) for prefix in prefixes)


@given(
    stack=st.from_regex(r"[a-zA-Z][a-zA-Z0-9-]{0,63}", fullmatch=True),
    cut=st.integers(min_value=1, max_value=64),
    purpose=st.sampled_from(OURS),
)
def test_none_is_let_through_even_where_the_prefix_begins_as_the_stack_is_called(
    stack: str, cut: int, purpose: str
) -> None:
    prefix = f"{stack[:cut]}-trigger-"
    assert re.fullmatch(PREFIX["AllowedPattern"], prefix)
    # docs/deploy.md: a stack's name holds no "-trigger".
    assume("-trigger" not in stack)
    assert not f"{stack}{purpose}".startswith(prefix)


# --- metrics -------------------------------------------------------------------------------------


def test_there_are_at_most_eight_custom_metrics() -> None:
    assert len(UNITS) <= 8


# --- the dashboard -------------------------------------------------------------------------------


@pytest.fixture(params=["both", "hub"])
def dashboard(request: pytest.FixtureRequest, deploy: Deploy) -> tuple[Document, Document]:
    """The body as CloudWatch gets it, and the stack's resources."""
    role = request.param
    resources = deploy(role)
    ((_, properties),) = of_type(resources, "AWS::CloudWatch::Dashboard").items()
    body: Document = json.loads(spelt(properties["DashboardBody"], role))
    return body, resources


def shown(body: Document) -> list[list[Any]]:
    return [m for w in body["widgets"] for m in w["properties"].get("metrics", [])]


def test_the_dashboard_shows_every_metric_queue_and_function(
    dashboard: tuple[Document, Document],
) -> None:
    body, resources = dashboard
    metrics = shown(body)

    assert {m[1] for m in metrics if m[0] == NAMESPACE} == set(UNITS)
    assert all(m[2:4] == ["service", "gpu-steward"] for m in metrics if m[0] == NAMESPACE)
    queues = {f"<{n}.QueueName>" for n in of_type(resources, "AWS::SQS::Queue")}
    assert {m[3] for m in metrics if m[0] == "AWS/SQS"} == queues
    functions = {f"<{n}>" for n in of_type(resources, "AWS::Lambda::Function")}
    for metric in FUNCTION_METRICS:
        assert {m[3] for m in metrics if m[:2] == ["AWS/Lambda", metric]} == functions


def test_the_dashboard_begins_with_the_state_of_every_alarm_of_ours(
    dashboard: tuple[Document, Document],
) -> None:
    body, resources = dashboard
    first, *_ = body["widgets"]

    ours = set(of_type(resources, "AWS::CloudWatch::Alarm")) - TRIGGERS
    assert first["type"] == "alarm"
    assert set(first["properties"]["alarms"]) == {f"<{name}.Arn>" for name in ours}


def test_no_widget_lies_over_another_or_outside_the_grid(
    dashboard: tuple[Document, Document],
) -> None:
    body, _ = dashboard
    taken: set[tuple[int, int]] = set()
    for widget in body["widgets"]:
        cells = {
            (widget["x"] + column, widget["y"] + row)
            for column in range(widget["width"])
            for row in range(widget["height"])
        }
        assert not cells & taken
        assert all(column < 24 for column, _ in cells)  # CloudWatch's grid
        taken |= cells


def test_a_spoke_has_no_dashboard(deploy: Deploy) -> None:
    assert of_type(deploy("spoke"), "AWS::CloudWatch::Dashboard") == {}
