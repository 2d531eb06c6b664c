"""When it is told, how it ends, what is not known, and what is remembered."""

from copy import replace

from steward.cluster.accelerators import Owner, UnknownReason
from steward.cluster.findings import Resolution
from steward.cluster.policy import Severity
from steward.cluster.snapshot import PartStatus
from steward.detect.preemption import detect
from tests.builders import NOON
from tests.unit.detect.preemptions import (
    CLUSTER,
    DAY,
    EMPTY,
    HOUR,
    MINUTE,
    NS,
    ONCE,
    SUBJECT,
    TICK,
    Kueue,
    a_look,
    evidence,
    runs_of,
    seen,
    ticks,
    told,
    with_limits,
    written,
)


def test_lost_gpu_hours_fire_before_the_count_is_reached():
    job = Kueue(runs=runs_of(300, NOON))
    times = (NOON - HOUR, NOON)
    # Five hours on eight GPUs: 40.
    assert told(ticks(job, *times), cluster=with_limits(lost_gpu_hours=41)).findings == ()
    (finding,) = told(ticks(job, *times), cluster=with_limits(lost_gpu_hours=40)).findings
    assert (finding.evidence["count"], finding.gpu_hours) == (1, 40)


def test_no_limit_on_lost_gpu_hours_is_the_default():
    job = Kueue(runs=runs_of(3000, NOON), gpus=1024, created=NOON - 3 * DAY)
    assert told(ticks(job, NOON)).findings == ()


def test_severity_and_count_are_the_policy_s():
    ends = [NOON + n * 2 * HOUR for n in (1, 2)]
    cluster = with_limits(count=2, severity=Severity.INFO)
    (finding,) = told(ticks(Kueue(runs=runs_of(60, *ends)), *ends), cluster=cluster).findings
    assert finding.severity is Severity.INFO


def test_the_command_is_one_line_to_paste_with_every_name_quoted():
    job = Kueue(runs=runs_of(90, NOON), changes={"name": "a b; rm", "created_by": "jane"})
    (finding,) = told(ticks(job, NOON), cluster=ONCE).findings
    assert finding.action == (f"kubectl -n {NS} describe 'workloads.kueue.x-k8s.io/a b; rm'")
    assert finding.owner == "jane"


def three_times(**changes):
    ends = [NOON + n * 2 * HOUR for n in (1, 2, 3)]
    job = Kueue(runs=runs_of(60, *ends), **changes)
    detection = told(ticks(job, *ends))
    assert len(detection.findings) == 1
    return job, detection.memory, ends


def test_it_expires_when_the_first_preemption_is_older_than_the_period():
    job, memory, ends = three_times()
    week = 7 * DAY
    still = detect(seen(ends[0] + week, job.at(ends[2])), memory, CLUSTER)
    assert [f.evidence["count"] for f in still.findings] == [3]
    gone = detect(seen(ends[0] + week + MINUTE, job.at(ends[2])), memory, CLUSTER)
    assert gone.findings == ()
    (end,) = gone.cleared
    assert (end.resolution, end.finding.evidence["count"]) == (Resolution.EXPIRED, 3)


def test_a_job_that_finished_ends_as_finished():
    job, memory, ends = three_times()
    now = ends[2] + HOUR
    done = replace(job, finished=now)
    detection = detect(seen(now, done.at(now)), memory, CLUSTER)
    assert detection.findings == ()
    assert [end.resolution for end in detection.cleared] == [Resolution.FINISHED]


def test_a_job_that_is_gone_is_released_and_its_preemptions_wait_for_its_return():
    _, memory, ends = three_times()
    now = ends[2] + HOUR
    detection = detect(seen(now), memory, CLUSTER)
    assert [end.resolution for end in detection.cleared] == [Resolution.RELEASED]
    again = Kueue(uid="uid-2", created=now)
    back = detect(seen(now + TICK, again.at(now + TICK)), detection.memory, CLUSTER)
    assert [f.evidence["count"] for f in back.findings] == [3]


def test_without_workloads_nothing_is_said_and_nothing_ends():
    _, memory, ends = three_times()
    for status in (PartStatus.DENIED, PartStatus.UNREADABLE):
        refused = {"kubernetes/workloads": status}
        detection = detect(seen(ends[2] + HOUR, refused=refused), memory, CLUSTER)
        assert (detection.findings, detection.cleared) == ((), ())
        (line,) = detection.unknown
        assert (line.subject, line.blind) == ("kubernetes/workloads", True)
        assert detection.memory == memory


def test_without_kueue_there_is_nothing_to_say():
    snapshot = seen(NOON, refused={"kubernetes/workloads": PartStatus.ABSENT})
    assert detect(snapshot, EMPTY, CLUSTER).unknown == ()


def test_events_that_were_refused_are_a_line_of_their_own_that_blinds_nobody():
    job, memory, ends = three_times()
    refused = {"kubernetes/events": PartStatus.DENIED}
    detection = detect(seen(ends[2], job.at(ends[2]), refused=refused), memory, CLUSTER)
    assert len(detection.findings) == 1
    (line,) = detection.unknown
    assert (line.subject, line.reason, line.blind) == (
        "kubernetes/events",
        UnknownReason.DENIED,
        False,
    )


def test_a_workload_that_could_not_be_read_is_said_and_ends_nothing():
    job, memory, ends = three_times()
    now = ends[2] + HOUR
    name = f"{NS}/pytorchjob-train-uid-train"
    detection = detect(seen(now, hidden=(name,)), memory, CLUSTER)
    assert detection.cleared == ()
    (line,) = detection.unknown
    assert (line.subject, line.team, line.reason) == (SUBJECT, "research", UnknownReason.UNREADABLE)
    # It is read again, and nothing was missed.
    (finding,) = detect(seen(now + TICK, job.at(now)), detection.memory, CLUSTER).findings
    assert (finding.evidence["count"], finding.evidence["at_least"]) == (3, False)


def test_an_object_that_could_not_be_read_and_has_no_name_may_be_anybody():
    job, memory, ends = three_times()
    now = ends[2] + HOUR
    detection = detect(seen(now, hidden=("3",)), memory, CLUSTER)
    assert detection.cleared == ()
    assert [line.subject for line in detection.unknown] == ["kubernetes/workloads"]
    (finding,) = detect(seen(now + TICK, job.at(now)), detection.memory, CLUSTER).findings
    assert not finding.evidence["at_least"]


def test_while_owners_cannot_be_read_a_job_stays_who_it_was():
    top = Owner(kind="RayJob", namespace=NS, name="whole")
    below = Owner(kind="RayCluster", namespace=NS, name="part")
    ends = [NOON + n * 2 * HOUR for n in (1, 2, 3)]
    job = Kueue(runs=runs_of(60, *ends), changes={"owner": below, "owner_chain": (below, top)})
    memory = told(ticks(job, *ends)).memory
    hidden = replace(job, changes={"owner": below})
    refused = {"kubernetes/rayclusters": PartStatus.DENIED}
    now = ends[2] + TICK
    detection = detect(seen(now, hidden.at(now), refused=refused), memory, CLUSTER)
    assert [f.subject for f in detection.findings] == [f"RayJob/{NS}/whole"]
    assert detection.cleared == ()
    assert [line.subject for line in detection.unknown] == ["kubernetes/rayclusters"]


def test_a_change_of_reason_ends_the_old_one():
    ends = [NOON + n * 3 * HOUR for n in (1, 2, 3)]
    job = Kueue(runs=runs_of(60, *ends))
    memory = told(ticks(job, *ends)).memory
    late = evidence(job, ends[2], a_look(written(ends[2] - MINUTE)))
    now = ends[2] + TICK
    detection = detect(seen(now, job.at(now), checkpoints=(late,)), memory, CLUSTER)
    assert [f.reason for f in detection.findings] == ["with_checkpoint"]
    assert [(end.resolution, end.finding.reason) for end in detection.cleared] == [
        (Resolution.REASON_CHANGED, "without_checkpoint")
    ]


def test_memory_forgets_what_is_over():
    job, memory, ends = three_times()
    done = replace(job, finished=ends[2] + MINUTE)
    for days in range(1, 10):
        now = ends[2] + days * DAY
        there = (done.at(now),) if days < 2 else ()
        memory = detect(seen(now, *there), memory, CLUSTER).memory
    assert memory.preemptions.watched == ()
    assert memory.preemptions.evictions == ()
    assert memory.preemptions.told == ()


def test_pods_of_a_deployment_that_come_and_go_leave_one_trace_a_job():
    owner = Owner(kind="Deployment", namespace=NS, name="serve")
    memory = EMPTY
    for n in range(50):
        now = NOON + n * 2 * HOUR
        pod = Kueue(uid=f"uid-{n:02}", runs=[(now, None)], created=now, changes={"owner": owner})
        memory = told(ticks(pod, now), memory).memory
    assert len(memory.preemptions.watched) <= 3


def test_waiting_workloads_that_were_never_preempted_are_not_remembered():
    waiting = [Kueue(uid=f"uid-{n}").at(NOON) for n in range(5)]
    assert told([seen(NOON, *waiting)]).memory.preemptions.watched == ()


def test_a_job_preempted_without_end_is_counted_to_a_bound_and_says_at_least():
    memory = EMPTY
    ends = [NOON + n * 10 * MINUTE for n in range(1, 231)]
    job = Kueue(runs=runs_of(5, *ends))
    for end in ends:
        memory = told(ticks(job, end), memory).memory
    (finding,) = told(ticks(job, ends[-1] + TICK), memory).findings
    assert (finding.evidence["count"], finding.evidence["at_least"]) == (200, True)
    assert len(finding.evidence["evictions"]) == 20
