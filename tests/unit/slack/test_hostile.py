"""Whatever a cluster, a person or Slack calls itself: no name speaks through a message, or breaks it."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.standins.slack_blocks import check
from steward.slack.cards import render, render_text
from steward.slack.replies import reply
from tests.unit.slack.test_cards import content
from tests.unit.slack.test_queue_cards import REASONS
from tests.unit.slack.test_states import note

AT = "2026-11-05T12:03:00Z"
DETECTORS = {
    **REASONS,
    "idle_gpus": ("idle", "idle_held", "suspected_hang"),
    "telemetry": ("no_telemetry", "telemetry_lost", "invalid_samples", "unattributed"),
    "steward": ("cluster_unreachable", "detector_failed"),
    "governance": ("a-rule",),
}
KINDS = [(detector, reason) for detector, each in DETECTORS.items() for reason in each]
NOTES = (
    "reopened",
    "flapping",
    "acknowledged",
    "snoozed",
    "snooze_ended",
    "reminder",
    "escalated",
    "louder",
    "resolved",
    "handed_over",
)

SUBJECTS = ("{0}", "PyTorchJob/{0}/{0}", "ClusterQueue/{0}/{0}/{0}", "Node/{0}")

OURS = re.compile(
    r"<!date\^\d+\^\{date_short_pretty\} \{time\}\|\d{4}-\d\d-\d\d \d\d:\d\d UTC>"
    r"|<@U0OWNER>|<!subteam\^S0ONCALL>|<!here>|<#C0RESEARCH>"
)
"""What our own code writes with `<`, by the ids that these tests give to it; nothing else may."""

DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

names = st.one_of(
    st.sampled_from(
        [
            "<!channel>",
            "<@U012345>",
            "<https://evil.example|kubectl>",
            "a&b<c",
            "&lt;!here&gt;",
            "`",
            "```",
            "two\nlines\u2028three",
            "user\u202etxt.exe",
            "\u200f\u05e9\u05dc\u05d5\u05dd",
            "研" * 63,
            "x" * 253,
            "🙂" * 90,
            "",
            " ",
            "*bold* _it_ ~gone~",
            "{at}{name}",
            "a/b/c/d/e",
        ]
    ),
    st.text(
        alphabet=st.sampled_from("<>&|!@#^`\n/{}\u202e\u200fש1a ;") | st.characters(), max_size=70
    ),
)

strangers = names.filter(lambda name: not re.fullmatch("[UWS][A-Z0-9]+|here|channel", name))
"""Names that no policy can mention; those that it can are mentioned on purpose."""


@st.composite
def evidences(draw: st.DrawFn) -> dict[str, Any]:
    def each(**fixed: Any) -> list[dict[str, Any]]:
        given = ("subject", "team", "node", "uuid", "mig", "pod", "why", "description", "cohort")
        one = {key: draw(names) for key in given}
        return [one | fixed] * draw(st.integers(1, 6))

    words = (
        "activity_metric",
        "what_to_check",
        "sentence",
        "message",
        "contradiction",
        "status",
        "checkpoint",
        "instance_type",
        "workload",
        "queue",
        "priority_class",
        "release",
        "unheard_of",
    )
    told: dict[str, Any] = {key: draw(names) for key in words}
    return told | {
        "activity_min": 0.96,
        "activity_max": 0.0,
        "tensor_max": 0.0,
        "window_minutes": 60,
        "price": {"usd_per_gpu_hour": 8, "source": draw(names), "date": draw(names)},
        "accelerators": each(gpu_hours=1.0, held_bytes=None),
        "workloads": each(),
        "lenders": each(idle=1, since=AT),
        "borrowers": each(borrowed=1),
        "idle_not_lent": each(idle=1),
        "cohort_limits": each(limit=1, needed=2),
        "admits": each(),
        "raise_by": 1,
        "waits": {"subject": draw(names), "missing": 1},
        "preemptors": each(count=1),
        "jobs": each(),
        "events": each(),
        "not_usable": each(),
        "causes": {draw(names): 1},
        "silent": {draw(names): 1},
        "advice": [draw(names)],
        "differs": [draw(names)],
        "quota": 28,
        "usable": 24,
        "capacity": 32,
        "count": 3,
        "period_hours": 168,
    }


@st.composite
def cards(draw: st.DrawFn, detector: str, reason: str) -> dict[str, Any]:
    """A card on which every word that is not ours is foreign, in any state."""
    evidence = draw(evidences())
    if detector in {"capacity", "borrowing"}:
        evidence["why"] = [draw(names)] if detector == "capacity" else draw(names)
    decided = st.none() | names.map(
        lambda name: {"user": name, "name": name, "at": AT, "until": AT}
    )
    many = st.integers(0, 6)
    brief: dict[str, Any] = {key: draw(names) for key in ("subject", "owner", "detector")}
    brief |= {"reason": draw(names), "since": AT, "gpus": 4.0, "gpu_hours": 1.0, "cost_usd": 8.0}
    ended = brief | {"resolved": AT, "resolution": draw(names)}
    state = draw(st.sampled_from(["open", "resolved", "handed_over"]))
    over = state == "resolved"
    base = content()
    running = {
        **base["running"],
        "openings": 4,
        "device_gpu_hours": [1.0] * len(evidence["accelerators"]),
    }
    running |= {"activity_min": 0.96, "tensor_max": 0.0, "dropped": {draw(names): 1}}
    return base | {
        "detector": detector,
        "reason": reason,
        "evidence": evidence,
        "running": running,
        "state": state,
        "severity": draw(st.sampled_from(["info", "warn", "page"])),
        "subject": draw(st.sampled_from(SUBJECTS).flatmap(lambda shape: names.map(shape.format))),
        "team": draw(st.none() | names),
        "owner": draw(st.none() | names),
        "team_owners": [draw(names)] * draw(many),
        "action": draw(names.map(lambda name: name * 40)),
        "subjects": draw(st.integers(1, 200)),
        "group_gpus": 800.0,
        "members": [brief] * draw(many),
        "members_omitted": draw(many),
        "others": [ended, brief | {"resolved": None, "resolution": None}] * draw(many),
        "others_omitted": draw(many),
        "follows": [brief] * draw(many),
        "follows_omitted": draw(many),
        "acknowledged": draw(decided),
        "snoozed": draw(decided),
        "escalated": draw(st.sampled_from([None, AT])),
        "flapping": draw(st.sampled_from([None, {"since": AT}])),
        "held": draw(st.sampled_from([None, {"why": "daily_cap", "since": AT}])),
        "stale_since": draw(st.sampled_from([None, AT])),
        "resolved": AT if over else None,
        "resolution": draw(names) if over else None,
        "exempted": {"name": draw(names), "reason": draw(names), "until": AT} if over else None,
        "rerouted": draw(st.none() | names),
        "mentions": draw(st.lists(st.just("U0OWNER") | strangers, max_size=3)),
    }


def texts(message: Any) -> list[str]:
    """Give every text of a message, however deep it lies; ids are not shown."""
    if isinstance(message, dict):
        own = [message["text"]] if isinstance(message.get("text"), str) else []
        return own + [text for value in message.values() for text in texts(value)]
    return [text for item in message for text in texts(item)] if isinstance(message, list) else []


def assert_harmless(text: str) -> None:
    foreign = OURS.sub("", text)
    assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", foreign), text
    assert not DIRECTIONS.search(text), text
    assert text.count("```") % 2 == 0, text
    spans = re.sub("```.*?```", "", text, flags=re.DOTALL)  # one backtick in a block ends nothing
    assert spans.count("`") % 2 == 0, text
    text.encode()


@settings(deadline=None, max_examples=10)
@given(data=st.data())
@pytest.mark.parametrize(("detector", "reason"), KINDS)
def test_no_name_speaks_through_a_card_or_breaks_it(
    detector: str, reason: str, data: st.DataObject
) -> None:
    card = data.draw(cards(detector, reason))
    message = render(card)
    check(message)
    for text in [*texts(message), render_text(card)]:
        assert_harmless(text)
    assert len(render_text(card).encode("utf-16-le")) // 2 <= 4_000


@settings(deadline=None, max_examples=30)
@given(cards("pending", "missing_queue"))
def test_no_name_speaks_through_the_copy_of_a_card(card: dict[str, Any]) -> None:
    copied = card | {"note": "copy", "home": {"channel": "C0RESEARCH", "ts": "1.1"}}
    message = render(copied)
    check(message)
    for text in [*texts(message), render_text(copied)]:
        assert_harmless(text)


@settings(deadline=None, max_examples=60)
@given(
    cards("idle_gpus", "idle"),
    st.sampled_from(NOTES),
    names,
    st.sampled_from([None, "S0ONCALL", "here"]) | strangers,
)
def test_no_name_speaks_through_a_note(
    about: dict[str, Any], kind: str, name: str, mention: str | None
) -> None:
    message = render(note(kind, about=about, name=name, mention=mention, broadcast=True))
    check(message)
    for text in texts(message):
        assert_harmless(text)


@given(names)
@pytest.mark.parametrize(
    "kind",
    [
        "done_acknowledge",
        "done_snooze",
        "done_exempt",
        "already",
        "closed",
        "not_found",
        "not_permitted",
        "bad_span",
    ],
)
def test_no_name_speaks_through_an_answer(kind: str, name: str) -> None:
    facts = {"card": name, "name": name, "reason": name, "error": name, "who": [name] * 12}
    answer = reply(kind, **facts, at=AT, until=AT, since=AT)
    assert (answer["response_type"], answer["replace_original"]) == ("ephemeral", False)
    assert_harmless(answer["text"])
