"""Idle jobs of which some accelerators wake, go dark or began at an unknown time."""

from copy import replace

from steward.cluster.accelerators import UnknownReason
from steward.cluster.findings import Resolution
from steward.cluster.memory import Memory
from steward.cluster.policy import IdleLimits, Severity, Thresholds
from steward.cluster.snapshot import IdleEnd
from steward.detect.idle import detect
from tests.builders import a_cluster, a_snapshot, a_window, an_accelerator, at, at_time
from tests.unit.detect.test_idle import CLUSTER, EMPTY, idle_from

DARK = {"windows": (a_window(None, present=0),), "last_sample": None, "idle_since": None}
BUSY = (a_window(0.9),)


def test_one_that_woke_and_one_that_went_dark_end_nothing():
    first = detect(
        a_snapshot(idle_from(at("8:58")), idle_from(at("8:58"), "GPU-2")), EMPTY, CLUSTER
    )
    woke = an_accelerator(windows=BUSY)
    dark = replace(idle_from(at("8:58"), "GPU-2"), **DARK)
    second = detect(a_snapshot(woke, dark, at=at("12:05")), first.memory, CLUSTER)
    assert (second.findings, second.cleared) == ((), ())
    assert [u.reason for u in second.unknown] == [UnknownReason.TELEMETRY_LOST]


def test_one_unknown_beginning_makes_the_whole_an_at_least():
    known, unknown = idle_from(at("8:58")), an_accelerator("GPU-2")
    (finding,) = detect(a_snapshot(known, unknown), EMPTY, CLUSTER).findings
    assert finding.evidence["at_least"] is True
    (finding,) = detect(a_snapshot(known), EMPTY, CLUSTER).findings
    assert finding.evidence["at_least"] is False


def test_the_last_word_is_the_accelerators_that_idled_longest():
    # GPU-1 woke at 12:00; GPU-2 idled on until its pod was deleted at 12:30: released.
    first = detect(
        a_snapshot(idle_from(at("8:58")), idle_from(at("8:58"), "GPU-2")), EMPTY, CLUSTER
    )
    quiet = replace(idle_from(at("8:58"), "GPU-2"), idle_since=None)
    woke = an_accelerator(windows=BUSY)
    ends = (IdleEnd(key=woke.key, last=at("12:00"), observed_seconds=120),)
    second = detect(
        a_snapshot(woke, at_time(quiet, at("12:05")), at=at("12:05"), idle_ends=ends),
        first.memory,
        CLUSTER,
    )
    ends = (IdleEnd(key=quiet.key, last=at("12:30"), observed_seconds=27 * 60),)
    third = detect(a_snapshot(at=at("12:35"), idle_ends=ends), second.memory, CLUSTER)
    (cleared,) = third.cleared
    assert cleared.resolution is Resolution.RELEASED
    assert cleared.finding.evidence["idle_until"] == "2026-11-05T12:30:00Z"
    # 08:58 to 12:00 and 08:58 to 12:30.
    assert cleared.finding.gpu_hours == round((182 + 212) / 60, 6)


def test_the_commonest_reason_speaks_for_a_job_in_the_dark():
    lost = replace(an_accelerator("GPU-1"), **DARK)
    never = [replace(an_accelerator(None, ordinal=n), **DARK, ever_seen=False) for n in (0, 1)]
    (unknown,) = detect(a_snapshot(lost, *never), EMPTY, CLUSTER).unknown
    assert (unknown.reason, unknown.gpus) == (UnknownReason.NO_TELEMETRY, 3)


def test_zero_page_accelerators_means_that_nothing_pages():
    limits = Thresholds(idle=IdleLimits(page_accelerators=0))
    cluster = a_cluster(thresholds=limits)
    gpus = [idle_from(at("1:00"), f"GPU-{n}") for n in range(9)]
    (finding,) = detect(a_snapshot(*gpus), EMPTY, cluster).findings
    assert finding.severity is Severity.WARN


def test_a_window_that_is_only_covered_in_part_counts_that_part():
    # 54 of 60 samples and no look-back: at least 0.9 of the hour from 10:58 to 11:58.
    partial = an_accelerator(windows=(a_window(0.0, present=54),))
    (finding,) = detect(a_snapshot(partial), EMPTY, CLUSTER).findings
    assert finding.gpu_hours == 0.9
    assert finding.evidence["coverage"] == 0.9


def test_nothing_idle_leaves_no_memory():
    found = detect(a_snapshot(an_accelerator(windows=BUSY)), Memory(cluster="ml"), CLUSTER)
    assert found.memory.idle == ()
