"""The recording loader, against CONTRACT wording: what is in force when, and what is refused."""

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.recording import Recording, moment
from steward.errors import ConfigError

NINE = datetime(2026, 11, 2, 9, tzinfo=UTC)
HEADER = "cluster: ml-shared-01\nfrom: 2026-11-02T09:00:00Z\nto: 2026-11-02T10:00:00Z\n"

type Write = Callable[[str, object], Path]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recording with nothing but its header."""
    (tmp_path / "recording.yaml").write_text(HEADER)
    return tmp_path


@pytest.fixture
def write(folder: Path) -> Write:
    """Write one file of the recording: text as it is, anything else as JSON."""

    def write(name: str, content: object) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def open_with_header(folder: Path, header: str) -> Recording:
    (folder / "recording.yaml").write_text(header)
    return Recording.open(folder)


def refusal(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        Recording.open(folder)
    return str(caught.value)


# --- the header


def test_the_tick_is_five_minutes_where_none_is_written(folder: Path) -> None:
    recording = Recording.open(folder)
    assert recording.cluster == "ml-shared-01"
    assert (recording.start, recording.end) == (NINE, NINE + timedelta(hours=1))
    assert recording.tick == timedelta(minutes=5)  # the contract's default
    assert recording.now is None
    assert recording.note == ""


@pytest.mark.parametrize(
    ("text", "seconds"), [("5m", 300), ("1h", 3600), ("300s", 300), ("90s", 90)]
)
def test_a_tick_is_read_in_seconds_minutes_or_hours(folder: Path, text: str, seconds: int) -> None:
    assert open_with_header(folder, f"{HEADER}tick: {text}\n").tick.total_seconds() == seconds


def test_times_of_any_offset_are_the_same_moment_in_utc(folder: Path) -> None:
    header = "cluster: c\nfrom: 2026-11-02T14:30:00+05:30\nto: '2026-11-02T02:00:00-08:00'\n"
    recording = open_with_header(folder, header)
    # 14:30 less 5:30 is 09:00; 02:00 plus 8:00 is 10:00. Quoted or not makes no difference.
    assert (recording.start, recording.end) == (NINE, NINE + timedelta(hours=1))
    assert recording.start.utcoffset() == timedelta(0)


def test_now_makes_the_recording_a_single_tick(folder: Path) -> None:
    recording = open_with_header(folder, f"{HEADER}now: 2026-11-02T09:30:00Z\n")
    half_past = NINE + timedelta(minutes=30)
    assert (recording.start, recording.end, recording.now) == (half_past,) * 3


def test_now_needs_no_from_and_to(folder: Path) -> None:
    recording = open_with_header(folder, "cluster: c\nnow: 2026-11-02T09:00:00Z\n")
    assert (recording.start, recording.end) == (NINE, NINE)


def test_a_cluster_name_that_looks_like_a_number_stays_a_name(folder: Path) -> None:
    # YAML would read it as the octal number 8.
    assert open_with_header(folder, HEADER.replace("ml-shared-01", "010")).cluster == "010"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f"{HEADER}tikc: 5m\n", "recording.yaml:4: unknown key 'tikc'; did you mean 'tick'?"),
        (f"{HEADER}note: a\nnote: b\n", "recording.yaml:5: 'note' is there twice"),
        (HEADER.replace("cluster: ml-shared-01\n", ""), "cluster is missing; add `cluster: "),
        (HEADER.replace("ml-shared-01", ""), "recording.yaml:1: cluster is missing"),
        ("cluster: c\nto: 2026-11-02T10:00:00Z\n", "from is missing"),
        (HEADER.replace("T10:", "T08:"), "recording.yaml:3: to is before `from`"),
        (
            HEADER.replace("T09:00:00Z", "T09:00:00"),
            "recording.yaml:2: from '2026-11-02T09:00:00' ",
        ),
        (HEADER.replace("2026-11-02T09:00:00Z", "2026-11-02"), "lacks an offset"),
        (HEADER.replace("2026-11-02T09:00:00Z", "yesterday"), "'yesterday' is not a time"),
        (f"{HEADER}tick: 5 minutes\n", "recording.yaml:4: tick '5 minutes' is not a duration"),
        (f"{HEADER}tick: 300\n", "write it like 5m, 1h or 300s"),
        (f"{HEADER}tick: 0m\n", "'0m' is not a duration"),
        ("cluster: [a\n", "not YAML"),
        ("cluster: [a]\n", "recording.yaml:1: not a simple value"),
        ("- cluster\n", "not a mapping"),
        ("", "not a mapping"),
    ],
)
def test_a_header_that_is_wrong_is_refused_in_one_line(
    folder: Path, header: str, expected: str
) -> None:
    (folder / "recording.yaml").write_text(header)
    text = refusal(folder)
    assert expected in text
    assert "\n" not in text
    assert str(folder) in text


@pytest.mark.parametrize("data", [b"cluster: caf\xe9\n", b"cluster: a\x00b\n"])
def test_a_header_that_is_no_text_is_refused(folder: Path, data: bytes) -> None:
    (folder / "recording.yaml").write_bytes(data)
    text = refusal(folder)
    assert "recording.yaml: not YAML in UTF-8" in text
    assert "\n" not in text


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    assert "elsewhere: no such folder" in refusal(tmp_path / "elsewhere")


def test_a_folder_without_a_header_is_no_recording(tmp_path: Path) -> None:
    assert "recording.yaml: missing" in refusal(tmp_path)


# --- what is in force when


def test_the_newest_folder_not_later_than_the_tick_is_in_force_as_a_whole(
    folder: Path, write: Write
) -> None:
    write("kubernetes/20261102T090000Z/pods.json", {"items": [1]})
    write("kubernetes/20261102T090000Z/nodes.json", {"items": [2]})
    write("kubernetes/20261102T093000Z/pods.json", {"items": [3]})
    recording = Recording.open(folder)
    assert recording.kubernetes("pods", NINE) == {"items": [1]}  # "not later than" includes equal
    assert recording.kubernetes("pods", NINE + timedelta(minutes=29)) == {"items": [1]}
    assert recording.kubernetes("pods", NINE + timedelta(minutes=30)) == {"items": [3]}
    # As a whole: nodes are not carried over from the older folder.
    assert recording.kubernetes("nodes", NINE + timedelta(minutes=30)) is None
    assert recording.has_kubernetes(NINE + timedelta(minutes=30))


def test_no_folder_is_in_force_before_the_first(folder: Path, write: Write) -> None:
    write("kubernetes/20261102T090000Z/pods.json", {"items": []})
    recording = Recording.open(folder)
    assert not recording.has_kubernetes(NINE - timedelta(seconds=1))
    assert recording.kubernetes("pods", NINE - timedelta(seconds=1)) is None


def test_a_tick_in_another_time_zone_finds_the_same_folder(folder: Path, write: Write) -> None:
    write("kubernetes/20261102T090000Z/pods.json", {})
    tokyo = datetime(2026, 11, 2, 18, tzinfo=timezone(timedelta(hours=9)))
    assert Recording.open(folder).has_kubernetes(tokyo)


def test_absent_folders_are_in_force_never(folder: Path) -> None:
    recording = Recording.open(folder)
    assert not recording.has_kubernetes(NINE)
    assert not recording.has_metrics
    assert recording.events() == []
    assert recording.slack_files() == []
    assert recording.snapshots() == []
    assert recording.governance is None


def test_untimed_answers_are_in_force_until_the_first_timed_folder(
    folder: Path, write: Write
) -> None:
    write("sagemaker/DescribeCluster.json", {"ClusterStatus": "Updating"})
    write("sagemaker/ListClusterNodes.json", {"ClusterNodeSummaries": []})
    write("sagemaker/20261102T093000Z/DescribeCluster.json", {"ClusterStatus": "InService"})
    recording = Recording.open(folder)
    later = NINE + timedelta(minutes=30)
    assert recording.sagemaker("DescribeCluster", None, NINE) == {"ClusterStatus": "Updating"}
    assert recording.sagemaker("DescribeCluster", None, later) == {"ClusterStatus": "InService"}
    assert recording.sagemaker("ListClusterNodes", None, later) is None


def test_a_describe_without_identifier_answers_for_every_identifier(
    folder: Path, write: Write
) -> None:
    write("eks/DescribeAddon.json", {"addon": {"addonName": "any"}})
    write("eks/DescribeAddon.kube-proxy.json", {"addon": {"addonName": "kube-proxy"}})
    recording = Recording.open(folder)
    assert recording.eks("DescribeAddon", "kube-proxy", NINE) == {
        "addon": {"addonName": "kube-proxy"}
    }
    assert recording.eks("DescribeAddon", "vpc-cni", NINE) == {"addon": {"addonName": "any"}}


def test_a_describe_with_another_identifier_is_no_answer(folder: Path, write: Write) -> None:
    write("sagemaker/DescribeClusterSchedulerConfig.aaaaaaaaaaaa.json", {"Name": "a"})
    recording = Recording.open(folder)
    assert recording.sagemaker("DescribeClusterSchedulerConfig", "bbbbbbbbbbbb", NINE) is None


def test_only_a_describe_answers_for_every_identifier(folder: Path, write: Write) -> None:
    # The contract says so of `Describe….json`; a list of one cluster is not that of another.
    write("eks/ListAddons.json", {"addons": []})
    assert Recording.open(folder).eks("ListAddons", "ml-other-02", NINE) is None


def test_an_identifier_cannot_leave_the_folder(folder: Path, write: Write) -> None:
    write("secret.json", {"secret": True})
    write("eks/ListAddons.json", {"addons": []})
    assert Recording.open(folder).eks("DescribeAddon", "/../../secret", NINE) is None


def test_an_answer_is_parsed_once(folder: Path, write: Write) -> None:
    write("eks/ListAddons.json", {"addons": []})
    recording = Recording.open(folder)
    first = recording.eks("ListAddons", None, NINE)
    assert recording.eks("ListAddons", None, NINE + timedelta(minutes=5)) is first


# --- the other folders


def test_events_come_in_the_order_of_their_times(folder: Path, write: Write) -> None:
    write("events/b.json", [{"id": "3", "time": "2026-11-02T09:10:00Z"}])
    # 10:05 at +01:00 is 09:05 UTC; epoch 1793610300 is 2026-11-02T09:05:00Z as well, so the file
    # name and the position in the file decide between the two.
    write(
        "events/c.json",
        [{"id": "1", "time": "2026-11-02T10:05:00+01:00"}, {"id": "2", "time": 1793610300}],
    )
    write("events/a.json", {"id": "0", "time": "2026-11-02T08:00:00Z"})
    events = [event for _, event in Recording.open(folder).events()]
    assert [event["id"] for event in events] == ["0", "1", "2", "3"]
    # EventBridge delivers UTC with a Z, whatever form was recorded.
    assert [event["time"] for event in events[1:3]] == ["2026-11-02T09:05:00Z"] * 2


def test_an_event_may_be_delivered_later_than_it_happened(folder: Path, write: Write) -> None:
    first = {"id": "1", "time": "2026-11-02T09:01:00Z"}
    write("events/a.json", [first, {**first, "delivered": "2026-11-02T09:41:00Z"}])
    once, again = Recording.open(folder).events()
    assert (once.at, again.at) == (NINE + timedelta(minutes=1), NINE + timedelta(minutes=41))
    # What is delivered is the same envelope, with its own time and nothing of ours.
    assert once.event == again.event == first


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"id": "1"}, "an event without `time`"),
        ({"time": "2026-11-02T09:00:00Z", "delivered": "soon"}, "delivered 'soon' is not a time"),
        (
            {"time": "2026-11-02T09:00:00Z", "delivered": "2026-11-02T08:59:59Z"},
            "delivered is before `time`; swap them",
        ),
        (7, "an event without `time`"),
        ({"time": "2026-11-02T09:00:00"}, "lacks an offset"),
        ({"time": True}, "True is not a time"),
    ],
)
def test_an_event_that_cannot_be_delivered_is_refused(
    folder: Path, write: Write, event: object, expected: str
) -> None:
    write("events/e.json", event)
    text = refusal(folder)
    assert expected in text
    assert "events/e.json" in text


# --- what people press and type

PRESS = {"time": "2026-11-02T09:01:00Z", "kind": "interaction", "body": {"type": "block_actions"}}
COMMAND = {
    "time": "2026-11-02T09:02:00Z",
    "kind": "command",
    "body": {"command": "/gpu", "text": "why a&b=ü"},
}


def test_a_press_is_the_form_that_slack_posts(folder: Path, write: Write) -> None:
    write("slack/a.json", PRESS)
    (press,) = Recording.open(folder).presses
    assert (press.at, press.kind) == (NINE + timedelta(minutes=1), "interaction")
    # One field, with JSON (docs.slack.dev, handling user interaction).
    fields = parse_qs(press.body, strict_parsing=True)
    assert list(fields) == ["payload"]
    assert json.loads(fields["payload"][0]) == PRESS["body"]


def test_a_command_is_a_form_of_flat_fields(folder: Path, write: Write) -> None:
    write("slack/a.json", COMMAND)
    (press,) = Recording.open(folder).presses
    assert parse_qs(press.body) == {"command": ["/gpu"], "text": ["why a&b=ü"]}


@pytest.mark.parametrize("raw", ["command=%2Fgpu&text=why+a%26b", "text=&command=/gpu&x=%zz"])
def test_a_form_that_was_recorded_as_text_is_taken_to_the_byte(
    folder: Path, write: Write, raw: str
) -> None:
    # A signature is over the raw body: what is read and written again may differ.
    write("slack/a.json", {**COMMAND, "body": raw})
    (press,) = Recording.open(folder).presses
    assert press.body == raw


def test_presses_come_in_the_order_of_their_times_and_answers_are_none(
    folder: Path, write: Write
) -> None:
    answer = {"method": "chat.postMessage", "status": 503}
    write("slack/b.json", [COMMAND, answer, {**COMMAND, "body": "command=first"}])
    write("slack/a.json", [{**COMMAND, "time": "2026-11-02T10:03:00+01:00"}])
    write("slack/c.json", PRESS)
    presses = Recording.open(folder).presses
    assert [press.at.minute for press in presses] == [1, 2, 2, 3]
    assert presses[2].body == "command=first"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({**PRESS, "kind": "press"}, "kind is 'press', not interaction or command"),
        ({**PRESS, "times": 2}, "unknown key 'times'; a press has time, kind and body"),
        ({"kind": "command", "body": "command=x"}, "time is missing"),
        ({"kind": "command", "time": "2026-11-02T09:00:00Z"}, "body is missing"),
        ({**PRESS, "time": "nine"}, "time 'nine' is not a time"),
        ({**PRESS, "body": ["payload"]}, "body is neither text nor an object"),
        ({**PRESS, "body": '{"type": "block_actions"}'}, "body has no field 'payload'"),
        ({**COMMAND, "body": "payload=%7B%7D"}, "body has no field 'command'"),
        ({**COMMAND, "body": {"command": "/gpu", "n": 1}}, "body.n is no text"),
        (7, "is not a JSON object"),
    ],
)
def test_a_press_that_cannot_be_delivered_is_refused(
    folder: Path, write: Write, entry: object, expected: str
) -> None:
    write("slack/a.json", [PRESS, entry])
    text = refusal(folder)
    assert f"slack/a.json: [1]: {expected}" in text
    assert "\n" not in text


# --- files


def test_metric_files_of_both_forms_are_listed_by_name(folder: Path, write: Write) -> None:
    write("metrics/b.om", "# TYPE x gauge\n# EOF\n")
    write("metrics/a.prom", "x 1 1793610000000\n")  # Prometheus text has no end mark
    write("metrics/README.md", "about")
    recording = Recording.open(folder)
    assert [path.name for path in recording.metric_files()] == ["a.prom", "b.om"]
    assert recording.has_metrics


@pytest.mark.parametrize("text", ["", "x 1 1793610000\n", "# EOF\nx 1 1793610000\n"])
def test_a_metric_file_that_was_cut_off_is_refused(folder: Path, write: Write, text: str) -> None:
    write("metrics/a.om", text)
    assert "metrics/a.om: does not end with `# EOF`" in refusal(folder)


def test_stored_snapshots_are_listed_with_their_times(folder: Path) -> None:
    (folder / "snapshots").mkdir()
    for name in ("20261102T090500Z", "20261102T090000Z"):
        (folder / "snapshots" / f"{name}.json.gz").write_bytes(gzip.compress(b"{}"))
    times = [when for when, _ in Recording.open(folder).snapshots()]
    assert times == [NINE, NINE + timedelta(minutes=5)]


def test_the_recordings_own_policy_is_found(folder: Path, write: Write) -> None:
    path = write("governance.yaml", "clusters: []\n")
    assert Recording.open(folder).governance == path


@pytest.mark.parametrize(
    "name",
    [
        "sagemaker/DescribeCluster.json",
        "sagemaker/20261102T090000Z/DescribeCluster.json",
        "eks/ListAddons.json",
        "kubernetes/20261102T090000Z/pods.json",
        "cloudwatch/a.json",
        "events/a.json",
        "checkpoints/a.json",
        "slack/a.json",
    ],
)
@pytest.mark.parametrize("text", ["", "{", '{"a": 1}}'])
def test_a_file_that_is_not_json_is_refused_wherever_it_lies(
    folder: Path, write: Write, name: str, text: str
) -> None:
    write(name, text)
    message = refusal(folder)
    assert f"{name}:1: not JSON" in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["sagemaker/DescribeCluster.json", "eks/ListAddons.json"])
def test_an_answer_that_is_no_object_is_refused(folder: Path, write: Write, name: str) -> None:
    write(name, [])
    assert f"{name}: not a JSON object" in refusal(folder)


def test_text_that_is_not_utf_8_is_refused(folder: Path, write: Write) -> None:
    write("slack/a.json", "{}").write_bytes(b'{"text": "\xe9"}')
    assert "slack/a.json: not JSON: not UTF-8" in refusal(folder)


@pytest.mark.parametrize("data", [b"{}", gzip.compress(b'{"schema": 1}')[:-9]])
def test_a_snapshot_that_is_not_whole_is_refused(folder: Path, write: Write, data: bytes) -> None:
    write("snapshots/20261102T090000Z.json.gz", "").write_bytes(data)
    assert "20261102T090000Z.json.gz: cannot be read" in refusal(folder)


@pytest.mark.parametrize(
    "name",
    [
        "kubernetes/2026-11-02T09:00:00Z/pods.json",
        "kubernetes/20261302T090000Z/pods.json",  # there is no month 13
        "kubernetes/2026112T090000Z/pods.json",
        "kubernetes/20261102T090000/pods.json",
        "sagemaker/monday/DescribeCluster.json",
        "eks/20261102T090000z/ListAddons.json",
        "snapshots/monday.json.gz",
    ],
)
def test_a_folder_whose_name_is_not_a_time_is_refused(
    folder: Path, write: Write, name: str
) -> None:
    write(name, "{}")
    assert "the name is not a time; name it YYYYMMDDTHHMMSSZ" in refusal(folder)


def test_kubernetes_answers_outside_a_time_folder_are_refused(folder: Path, write: Write) -> None:
    # The contract gives only sagemaker/ and eks/ an optional <time>.
    write("kubernetes/pods.json", {"items": []})
    assert "move it to kubernetes/YYYYMMDDTHHMMSSZ/" in refusal(folder)


def test_hidden_files_that_a_desktop_left_are_passed_over(folder: Path, write: Write) -> None:
    write("kubernetes/.DS_Store", "\0")
    write("kubernetes/.cache/pods.json", "{")
    write("events/._a.json", "\0")
    assert Recording.open(folder).events() == []


def test_opening_and_reading_writes_nothing(folder: Path, write: Write) -> None:
    write("kubernetes/20261102T090000Z/pods.json", {"items": []})
    write("events/a.json", {"time": "2026-11-02T09:00:00Z"})

    def state() -> list[tuple[Path, int]]:
        return sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*"))

    before = state()
    recording = Recording.open(folder)
    recording.kubernetes("pods", NINE)
    recording.events()
    assert state() == before


# --- moments


@given(
    st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2100, 1, 1)),  # noqa: DTZ001 - hypothesis wants naive bounds
    st.integers(-14 * 60, 14 * 60),
)
def test_a_moment_is_the_same_however_it_was_written(when: datetime, offset: int) -> None:
    aware = when.replace(microsecond=0, tzinfo=UTC)
    local = aware.astimezone(timezone(timedelta(minutes=offset)))
    assert moment(local.isoformat()) == aware
    assert moment(aware.timestamp()) == aware


@pytest.mark.parametrize("value", [None, True, [], "", "2026-11-02", 1e20, float("nan")])
def test_what_is_no_moment_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"time|offset"):
        moment(value)
