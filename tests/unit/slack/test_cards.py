"""Cards as a reader sees them: story first, every figure with its source, no name that acts."""

import json
import re
from copy import replace
from datetime import timedelta
from typing import Any

import pytest

from local.standins.slack_blocks import check
from steward.alerts.facts import facts
from steward.cluster.findings import Evaluation, Finding
from steward.cluster.policy import Severity
from steward.slack.cards import render, render_text
from tests.builders import a_cluster, a_team, at
from tests.unit.alerts.nouns import (
    KEY,
    SUBJECT,
    a_finding,
    an_evaluation,
    ended,
    failed,
    fold,
    lost_telemetry,
)
from tests.unit.slack.told import UNTOUCHED, card_of

SEEN = an_evaluation("12:00", a_finding())


def content(*evaluations: Evaluation, key: str = KEY, **told: Any) -> dict[str, Any]:
    return card_of(fold(evaluations or (SEEN,)).alerts[key], **told)


def header(message: dict[str, Any]) -> str:
    text: str = message["blocks"][0]["text"]["text"]
    return text


def words(message: dict[str, Any]) -> str:
    """Everything a reader sees, block after block."""
    seen = []
    for block in message["blocks"]:
        if block["type"] == "actions":
            continue
        texts = [block["text"]] if "text" in block else block.get("fields", block.get("elements"))
        seen += [text["text"] for text in texts]
    return "\n".join(seen)


def test_the_first_line_tells_the_story() -> None:
    message = render(content())
    assert header(message) == ":warning: 1 of 8 GPUs idle · research · job sweep-a"
    assert message["text"] == (
        ":warning: 1 of 8 GPUs idle · research · job sweep-a · $24.00 · 3.0 GPU-h"
        " · since 2026-11-05 09:00 UTC"
    )


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {"severity": Severity.PAGE, "gpus": 8},
            ":rotating_light: 8 GPUs idle · research · job sweep-a",
        ),
        (
            {"severity": Severity.INFO},
            ":information_source: 1 of 8 GPUs idle · research · job sweep-a",
        ),
        (
            {"reason": "idle_held"},
            ":warning: 1 of 8 GPUs idle, memory held · research · job sweep-a",
        ),
        ({"team": None}, ":warning: 1 of 8 GPUs idle · job sweep-a"),
        (
            {"subject": "Deployment/ml/chat", "gpus": 3 / 7, "evidence": {}},
            ":warning: 0.43 GPU idle · research · deployment chat",
        ),
        (
            {
                "subject": "ClusterQueue/a/b/nvidia.com/gpu",
                "reason": "limit_binding",
                "evidence": {},
            },
            (
                ":warning: Borrowing limit binds while others leave quota idle: 1 GPU borrowed"
                " · research · nvidia.com/gpu on b"
            ),
        ),
    ],
)
def test_the_first_line_fits_what_is_found(change: dict[str, Any], line: str) -> None:
    finding = a_finding(**change)
    assert header(render(content(an_evaluation("12:00", finding), key=finding.key))) == line


def test_a_card_says_who_what_how_long_and_what_it_costs() -> None:
    blocks = render(content())["blocks"]
    who, what, how_long, cost = (f["text"] for f in blocks[1]["fields"])
    gpus = blocks[-2]["text"]["text"]
    assert gpus == "*Which GPUs*\n• `hyperpod-i-0a` `GPU-1` · 3.0 GPU-h"
    assert who.splitlines() == [
        "*Who*",
        "team `research`",
        "owner `alice`",
        "queue `hyperpod-ns-research-localqueue`",
        "priority `experimentation`",
    ]
    assert what.splitlines() == [
        "*What*",
        f"`{SUBJECT}`",
        "workload `pytorchjob-sweep-a-a1b2c`",
        "instance type `ml.p5.48xlarge`",
    ]
    assert how_long.startswith("*How long*\n3 h 00 min, as of <!date^1793880000^")  # noon
    assert "\nsince <!date^1793869200^" in how_long
    assert how_long.endswith("(2026-11-05 09:00 UTC)")
    assert cost.splitlines() == ["*Cost*", "$24.00 · 3.0 GPU-h", "at $8.00 a GPU-hour"]
    assert blocks[-1]["elements"][0]["text"].endswith(" · price: a list, 2026-09-01")


def test_the_evidence_speaks_for_and_against() -> None:
    blocks = [b["text"]["text"] for b in render(content())["blocks"][2:4]]
    assert blocks[0].splitlines() == [
        "*Why we think so*",
        "• `DCGM_FI_PROF_GR_ENGINE_ACTIVE` at most 0 % over 60 min, each GPU by itself",
        "• Coverage of that window 98.3 % (59 of 60 samples)",
        "• GPU memory held: 0 GiB",
    ]
    assert blocks[1].splitlines() == [
        "*Against it, or not seen*",
        "• 7 more of the job's GPUs: busy",
        "• CPU work was not measured: this speaks of the GPUs alone",
    ]


def test_what_was_not_measured_is_said() -> None:
    device = {**a_finding().evidence["accelerators"][0], "held_bytes": None}
    evidence = {**a_finding().evidence, "accelerators": [device], "at_least": True, "unknown": 2}
    seen = words(render(content(an_evaluation("12:00", a_finding(evidence=evidence)))))
    assert "GPU memory held was not measured" in seen
    assert "at least 3 h 00 min" in seen
    assert "It may have begun earlier" in seen
    assert "2 more of the job's GPUs: could not be judged: not counted as idle" in seen


def test_memory_held_is_shown_in_gibibytes() -> None:
    device = {**a_finding().evidence["accelerators"][0], "held_bytes": 13 * 2**30 + 2**29}
    evidence = {**a_finding().evidence, "accelerators": [device]}
    assert "GPU memory held: 13.5 GiB" in words(
        render(content(an_evaluation("12:00", a_finding(evidence=evidence))))
    )


def test_a_card_gives_the_command_and_who_may_run_it() -> None:
    head, command = (b["text"]["text"] for b in render(content())["blocks"][-5:-3])
    assert head == (
        "*Do this*\nMay be run by the owners of team `research` (research@example.com) or the "
        "platform team. GPU Steward itself changes nothing."
    )
    assert command == "```\nkubectl -n hyperpod-ns-research exec sweep-a-0 -- nvidia-smi\n```"


def test_without_a_price_there_are_no_dollars() -> None:
    evidence = {**a_finding().evidence, "price": None}
    message = render(content(an_evaluation("12:00", a_finding(cost_usd=None, evidence=evidence))))
    assert "no price, no dollars · 3.0 GPU-h" in words(message)
    assert "$" not in json.dumps(message)


def test_a_resolved_card_gives_the_reason_the_final_numbers_and_nothing_to_do() -> None:
    over = an_evaluation("12:10", cleared=(ended(gpu_hours=3.05, cost_usd=24.4),))
    message = render(content(SEEN, over))
    assert (
        header(message) == ":white_check_mark: Resolved: 1 of 8 GPUs idle · research · job sweep-a"
    )
    assert message["text"].endswith(
        "active again · $24.40 · 3.0 GPU-h · since 2026-11-05 09:00 UTC"
    )
    seen = words(message)
    assert re.search(r"\*Resolved\* <!date[^>]*\|2026-11-05 12:10 UTC>: active again", seen)
    assert "$24.40" in seen
    assert "kubectl" not in seen


def test_a_stale_card_says_since_when_it_could_not_be_judged() -> None:
    dark = [failed(t) for t in ("12:05", "12:10", "12:15", "12:20")]
    note = render(content(SEEN, *dark))["blocks"][1]["text"]["text"]
    assert "Could not be judged" in note
    assert "|2026-11-05 12:05 UTC>" in note
    assert note.endswith("|2026-11-05 12:00 UTC>.")  # the numbers' time


@pytest.mark.parametrize(
    ("delivered", "late"), [("12:02", None), ("12:11", "11 min late"), ("14:05", "2 h 05 min late")]
)
def test_a_late_card_says_how_late(delivered: str, late: str | None) -> None:
    message = render(content(delivered=f"2026-11-05T{delivered}:00Z"))
    foot = message["blocks"][-1]["elements"][0]["text"]
    assert (late in foot) if late else ("late" not in foot)


def test_a_rerouted_card_says_why_it_is_here() -> None:
    why = "Meant for #gpu-research, which cannot be reached: is_archived"
    note = render(content(rerouted=why))["blocks"][1]["text"]["text"]
    assert note == f":warning: {why}"


def test_what_the_incident_was_before_stays_on_the_card() -> None:
    held = a_finding(reason="idle_held", gpu_hours=3.5)
    state = fold([SEEN, an_evaluation("12:30", held)])
    seen = words(render(card_of(state.alerts[held.key], state.alerts[KEY])))
    assert re.search(r"idle since <[^>]*09:00 UTC>, ended <[^>]*12:30 UTC>", seen)
    assert "(goes on for another reason): 3.0 GPU-h · $24.00" in seen


def test_telemetry_says_what_to_check_and_whom_it_concerns() -> None:
    finding = replace(lost_telemetry(), damping_minutes=0)
    message = render(content(an_evaluation("12:00", finding), key=finding.key))
    assert header(message) == ":warning: Telemetry lost for 2 GPUs · cluster ml-shared-01"
    seen = words(message)
    assert "Series that were there have stopped." in seen
    assert "Cannot be judged: 2 of the 8 GPUs that are old enough" in seen  # a quarter of eight
    assert f"Concerns `{SUBJECT}`" in seen


def test_a_card_about_the_cluster_is_the_platform_teams_and_shows_nothing_that_ages() -> None:
    finding = lost_telemetry(damping_minutes=0)
    card = content(an_evaluation("12:00", finding), key=finding.key)
    who, _, how_long, cost = (f["text"] for f in render(card)["blocks"][1]["fields"])
    assert who == "*Who*\nthe platform team"
    assert re.fullmatch(r"\*How long\*\nsince <[^>]*> \(2026-11-05 09:00 UTC\)", how_long)
    assert cost == "*Cost*\nnot known while their telemetry fails"
    later = {**card, "running": {**card["running"], "as_of": "2026-11-05T19:00:00Z"}}
    assert render(later) == render(card)
    over = {**card, "state": "resolved", "resolved": "2026-11-05T12:10:00Z", "resolution": "fixed"}
    assert "\n3 h 00 min, until <" in words(render(over))


def test_evidence_of_a_detector_without_words_of_its_own_is_listed() -> None:
    finding = a_finding(detector="governance", evidence={"health": "<Reboot>", "events": [1, 2]})
    seen = words(render(content(an_evaluation("12:00", finding), key=finding.key)))
    assert "• health: `&lt;Reboot&gt;`" in seen


def test_the_text_only_form_keeps_title_owner_numbers_and_command() -> None:
    text = render_text(content())
    for part in (
        "1 of 8 GPUs idle",
        "`alice`",
        "$24.00 · 3.0 GPU-h",
        "nvidia-smi",
        "`GPU-1`",
        "a list, 2026-09-01",
    ):
        assert part in text


NAMES = {
    "mention": "<!channel>",
    "user": "<@U012345>",
    "entities": "a&b<c",
    "script": "研" * 63,
    "backticks": "q`whoami`",
    "lines": "two\nlines",
    "longest": "x" * 253,
    "emoji": "🙂" * 90,
}


def hostile(name: str) -> Finding:
    device = {"node": name, "uuid": name, "mig": name, "held_bytes": 1, "gpu_hours": 1.0}
    evidence = {
        **a_finding().evidence,
        "accelerators": [device] * 40,
        "activity_metric": name,
        "instance_type": name,
        "workload": name,
        "queue": name,
        "priority_class": name,
        "price": {"usd_per_gpu_hour": 8, "source": name, "date": name},
    }
    return a_finding(
        subject=f"PyTorchJob/{name}/{name}",
        team=name,
        owner=name,
        action=name * 40,
        evidence=evidence,
    )


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
@pytest.mark.parametrize("detector", ["idle_gpus", "telemetry", "capacity"])
def test_no_name_breaks_a_card_or_speaks_through_it(name: str, detector: str) -> None:
    finding = replace(
        hostile(name), detector=detector, evidence={**hostile(name).evidence, "what_to_check": name}
    )
    cluster = a_cluster(teams=(a_team(name, owners=(name,) * 9),))
    alert = fold([an_evaluation("12:00", finding)]).alerts[finding.key]
    told = {"delivered": "2026-11-05T12:20:00Z", "rerouted": f"Meant for {name}"}
    decision = {"user": "U1", "name": name, "at": "2026-11-05T12:02:00Z", "until": None}
    snoozed = decision | {"until": "2026-11-05T16:02:00Z"}
    told |= {"acknowledged": decision, "snoozed": snoozed}  # type: ignore[dict-item]
    card = {**UNTOUCHED, **facts(alert, [alert], cluster), **told}
    message = render(card)
    check(message)
    for text in (words(message), message["text"], render_text(card)):
        # Only our own date sequences may use what Slack gives a meaning to.
        foreign = re.sub(r"<!date\^\d+\^[^|<>]*\|[^<>]*>", "", text)
        assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", foreign)
        assert foreign.count("`") % 2 == 0
    assert length_of(render_text(card)) <= 4_000


def length_of(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def test_forty_devices_are_four_and_a_count_those_idle_the_longest_first() -> None:
    devices = [
        {
            "node": "n",
            "uuid": f"GPU-{n}",
            "mig": "1g.18gb/7" if n == 39 else None,
            "idle_since": f"2026-11-05T09:{59 - n}:00Z",
            "gpu_hours": n / 2,
        }
        for n in range(40)
    ]
    finding = a_finding(evidence={**a_finding().evidence, "accelerators": devices})
    assert words(render(content(an_evaluation("12:00", finding)))).partition("*Which GPUs*\n")[
        2
    ].splitlines()[:5] == [
        "• `n` `GPU-39` (MIG 1g.18gb/7) · 19.5 GPU-h",
        "• `n` `GPU-38` · 19.0 GPU-h",
        "• `n` `GPU-37` · 18.5 GPU-h",
        "• `n` `GPU-36` · 18.0 GPU-h",
        "• +36 more: press Show evidence",
    ]


def test_devices_that_no_series_has_named_are_told_by_their_pod() -> None:
    nameless = [{"node": "n", "uuid": None, "mig": None, "pod": p} for p in ("a", "b", "a")]
    devices = [*nameless, {**nameless[0], "node": None, "uuid": "GPU-1"}]
    finding = lost_telemetry(damping_minutes=0, evidence={"accelerators": devices})
    seen = words(render(content(an_evaluation("12:00", finding), key=finding.key)))
    assert "• `n` GPU of pod `a`, 2 of them\n• `n` GPU of pod `b`\n• node not known `GPU-1`" in seen


def test_a_duration_is_never_negative() -> None:
    # Clock skew between the metrics source and us: the first idle sample after the tick.
    finding = a_finding(since=at("12:00") + timedelta(minutes=1))
    assert "0 min, as of" in words(render(content(an_evaluation("12:00", finding))))
