"""The card of a suspected hang: looks busy, does nothing; looking and freeing are two blocks."""

from copy import replace
from typing import Any

from local.standins.slack_blocks import check
from steward.alerts.lifecycle import advance
from steward.alerts.model import Alert, ReconcilerState
from steward.cluster.findings import Cleared, Evaluation, Finding, Resolution
from steward.detect.idle import detect
from steward.slack.cards import render, render_text
from tests.builders import a_cluster, a_snapshot, at
from tests.unit.alerts.nouns import an_evaluation
from tests.unit.detect.test_hang import EMPTY, a_job, since
from tests.unit.slack.test_cards import header, words
from tests.unit.slack.told import card_of

KEY = "idle_gpus|PyTorchJob/hyperpod-ns-research/sweep|suspected_hang"


def alert_of(*evaluations: Evaluation) -> Alert:
    state = ReconcilerState(cluster="ml-shared-01")
    for evaluation in evaluations:
        state = advance(state, evaluation, a_cluster())
    return state.alerts[KEY]


def card(finding: Finding) -> dict[str, Any]:
    return render(card_of(alert_of(an_evaluation("12:00", finding))))


def a_hang(**changes: Any) -> Finding:
    job = a_job(hung_since=since(at("11:00")), **changes)
    (finding,) = detect(a_snapshot(*job), EMPTY, a_cluster()).findings
    return finding


def test_the_first_line_says_that_it_looks_busy_and_does_nothing() -> None:
    message = card(a_hang())
    check(message)
    assert header(message) == (
        ":warning: 4 GPUs look busy and do nothing: suspected hang · research · job sweep"
    )
    # 58 minutes of four GPUs are 3.9 GPU-hours, 30.93 USD.
    assert message["text"].endswith(" · $30.93 · 3.9 GPU-h · since 2026-11-05 11:00 UTC")


def test_the_evidence_speaks_for_and_against() -> None:
    told = words(card(a_hang()))
    for line in (
        "Looks busy: `DCGM_FI_PROF_GR_ENGINE_ACTIVE` at least 100 % over 30 min, all GPUs",
        "Does nothing: tensor activity at most 0 %",
        "Does nothing: power at most 95 W of a limit of 400 W",
        "Coverage of that window 100 % (120 of 120 samples)",
        "Work without tensor cores looks the same: only the stacks of the ranks tell",
    ):
        assert f"• {line}\n" in f"{told}\n"
    assert "tells nothing" not in told
    silent = words(card(a_hang(tensor=())))
    assert "• tensor activity tells nothing here" in silent
    assert "tensor activity at most" not in silent


def test_looking_comes_before_freeing_and_apart_from_it() -> None:
    blocks = [
        block["text"]["text"]
        for block in card(a_hang())["blocks"]
        if block["type"] == "section" and "text" in block
    ]
    place = next(n for n, block in enumerate(blocks) if block.startswith("*Do this*"))
    look, caution, free = blocks[place + 1 : place + 4]
    assert "py-spy dump" in look
    assert "patch" not in look
    assert caution == "*Only when the stacks show that it hangs*"
    assert "patch workloads.kueue.x-k8s.io pytorchjob-sweep-a1b2c" in free


def test_a_message_without_blocks_looks_and_frees_nothing() -> None:
    told = render_text(card_of(alert_of(an_evaluation("12:00", a_hang()))))
    assert "py-spy dump" in told
    assert "patch workloads" not in told


def test_a_hang_that_stopped_says_since_when_and_is_counted_to_there() -> None:
    finding = a_hang()
    stopped = replace(finding, evidence=finding.evidence | {"hung_until": "2026-11-05T11:58:00Z"})
    told = words(card(stopped))
    assert "• Not seen since <!date^1793879880^" in told
    assert "as of <!date^1793879880^" in told  # 11:58, not the tick's noon


def test_an_end_by_another_reason_shows_the_numbers_that_the_detector_told() -> None:
    # The hang was told at 12:00; the evaluation that brings the idleness closes it with its tail.
    hang = a_hang()
    final = replace(hang, gpu_hours=9.5, cost_usd=76.0)
    idle = replace(hang, reason="idle", since=at("12:30"))
    over = Cleared(resolution=Resolution.REASON_CHANGED, finding=final)
    ended = alert_of(an_evaluation("12:00", hang), an_evaluation("13:35", idle, cleared=(over,)))
    assert ended.resolution is Resolution.REASON_CHANGED
    assert (ended.finding.gpu_hours, ended.finding.cost_usd) == (9.5, 76.0)
    # What was told of an earlier incident is not this one's.
    stale = Cleared(resolution=Resolution.ACTIVE_AGAIN, finding=replace(final, since=at("6:00")))
    ended = alert_of(an_evaluation("12:00", hang), an_evaluation("13:35", idle, cleared=(stale,)))
    assert ended.finding.gpu_hours == hang.gpu_hours
