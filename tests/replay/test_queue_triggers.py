"""Events ask for a snapshot between two ticks, or do not; the template's own rules decide."""

import pytest

from tests.queues.scene import at
from tests.queues.told import Told, lines_of
from tests.queues.triggers import APART, CREATED, FIRST, TICKS, TRIGGERS, subject
from tests.recordings import iso

TIMES = [FIRST + number * APART for number in range(len(TRIGGERS))]
LOOKS = sorted(
    {at(tick) for tick in TICKS}
    | {when for one, when in zip(TRIGGERS, TIMES, strict=True) if one.asks}
)


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


@pytest.mark.parametrize("number", range(len(TRIGGERS)), ids=lambda n: TRIGGERS[n].name)
def test_what_is_true_at_an_event_is_told_at_once_if_it_asks_for_a_snapshot(number):
    # Its job is due a minute before the event. Without a snapshot the next look tells it.
    trigger, when = TRIGGERS[number], TIMES[number]
    found = Told("triggers", "pending").about(subject(trigger.name))
    told_at = next(look for look in LOOKS if look >= when)
    assert (told_at == when) is trigger.asks
    assert (found["at"], found["since"]) == (iso(told_at), iso(CREATED + number * APART))


def test_events_are_no_ticks():
    assert lines_of("triggers")[-1]["ticks"] == len(TICKS)


def test_every_kind_of_trigger_is_there_and_some_that_are_none():
    assert {one.source for one in TRIGGERS} == {"aws.cloudwatch", "aws.sagemaker", "gpu-steward"}
    assert len({one.kind for one in TRIGGERS if one.asks}) == 6
    assert sum(not one.asks for one in TRIGGERS) == 5
