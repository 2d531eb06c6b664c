"""How the answers of several queries become one reading where they do not fit together."""

from datetime import UTC, datetime

from steward.sources.dcgm import COUNT, ENGINE, MAXIMUM, MEAN, MINIMUM, Column, Labels
from steward.sources.dcgm_samples import Raw
from steward.sources.dcgm_windows import Answers, Span

END = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
END_MS = 1793620800_000
SPAN = Span(end=END, minutes=(30, 60), interval_seconds=60)
LABELS: Labels = frozenset({("UUID", "GPU-1"), ("namespace", "n"), ("pod", "p")})


def said(value: float, *functions: str, minutes: int) -> dict[Column, float]:
    return {Column(ENGINE.metric, function, minutes): value for function in functions}


def test_a_sample_that_arrives_between_two_queries_puts_its_series_in_doubt() -> None:
    # The maximum was asked for before the first sample arrived, the count after it.
    rows = {LABELS: said(1, COUNT, minutes=60)}
    answers = Answers(rows, SPAN)
    (device,) = answers.doubtful
    assert answers.doubtful[device] == {ENGINE.metric}
    raw = [Raw(ENGINE.metric, LABELS, [END_MS - 1000], [0.5])]
    (reading,) = answers.reading(raw).devices
    assert [(w.present, w.maximum) for w in reading.windows] == [(1, 0.5), (1, 0.5)]


def test_a_short_window_whose_answers_do_not_fit_is_doubted_as_well() -> None:
    whole = said(0.5, MAXIMUM, MINIMUM, MEAN, minutes=60) | said(20, COUNT, minutes=60)
    assert Answers({LABELS: whole}, SPAN).doubtful == {}
    partly = whole | said(0.5, MAXIMUM, MINIMUM, minutes=30)
    assert list(Answers({LABELS: partly}, SPAN).doubtful.values()) == [{ENGINE.metric}]


def test_raw_samples_that_nobody_asked_for_change_nothing() -> None:
    rows = {LABELS: said(0.5, MAXIMUM, MINIMUM, MEAN, minutes=60) | said(60, COUNT, minutes=60)}
    stray = [
        Raw(ENGINE.metric, LABELS, [END_MS], [0.9]),
        Raw(ENGINE.metric, frozenset({("UUID", "GPU-2")}), [END_MS], [0.9]),
    ]
    (reading,) = Answers(rows, SPAN).reading(stray).devices
    assert reading.windows[1].maximum == 0.5
