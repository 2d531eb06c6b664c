"""Kueue's texts, each as the named version writes it (pkg/scheduler at that tag)."""

import pytest

from steward.cluster.kueue import Condition
from steward.cluster.pending.messages import read_condition, read_message
from steward.cluster.pending.reasons import Reason

GPU, P5 = "nvidia.com/gpu", "ml.p5.48xlarge"
REFUSED = "couldn't assign flavors to pod set main: "


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(text, reason, id=f"{version}-{reason}-{index}")
        for index, (version, text, reason) in enumerate(
            [
                (
                    "0.12",
                    f"{REFUSED}insufficient unused quota for {GPU} in flavor {P5}, 8 more needed",
                    Reason.WAITING_FOR_QUOTA,
                ),
                (
                    "0.5",
                    f"{REFUSED}insufficient unused quota in cohort for {GPU} in flavor {P5}, 8 more needed",
                    Reason.WAITING_FOR_QUOTA,
                ),
                (
                    "0.4",
                    f"{REFUSED}insufficient unused quota in cohort for {GPU} flavor {P5}, 8 more needed",
                    Reason.WAITING_FOR_QUOTA,
                ),
                (
                    "0.8",
                    "Workload no longer fits after processing another workload",
                    Reason.WAITING_FOR_QUOTA,
                ),
                (
                    "0.5",
                    f"{REFUSED}borrowing limit for {GPU} in flavor {P5} exceeded",
                    Reason.BORROW_LIMIT,
                ),
                (
                    "0.5",
                    f"{REFUSED}insufficient quota for {GPU} in flavor {P5} in ClusterQueue",
                    Reason.EXCEEDS_CAPACITY,
                ),
                (
                    "0.12",
                    f"{REFUSED}insufficient quota for {GPU} in flavor {P5}, request > maximum capacity (20 > 16)",
                    Reason.EXCEEDS_CAPACITY,
                ),
                (
                    "0.19",
                    f"{REFUSED}insufficient quota for {GPU} in flavor {P5}, previously considered podsets requests (4) + current podset request (16) > maximum capacity (16)",
                    Reason.EXCEEDS_CAPACITY,
                ),
                (
                    "0.20",
                    f"{REFUSED}insufficient quota for {GPU} in flavor {P5}, one pod per zero-count podset request (20) > maximum capacity (16)",
                    Reason.EXCEEDS_CAPACITY,
                ),
                (
                    "0.12",
                    f"{REFUSED}resource {GPU} unavailable in ClusterQueue",
                    Reason.UNKNOWN_FLAVOR,
                ),
                ("0.5", f"{REFUSED}flavor {P5} not found", Reason.UNKNOWN_FLAVOR),
                (
                    "0.19",
                    f"{REFUSED}flavor {P5} doesn't match node affinity",
                    Reason.UNKNOWN_FLAVOR,
                ),
                (
                    "0.12",
                    f"{REFUSED}untolerated taint {{nvidia.com/gpu true NoSchedule <nil>}} in flavor {P5}",
                    Reason.UNKNOWN_FLAVOR,
                ),
                (
                    "0.19",
                    f"{REFUSED}untolerated taint &Taint{{Key:spot,Value:,Effect:NoSchedule,TimeAdded:<nil>,}} in flavor {P5}",
                    Reason.UNKNOWN_FLAVOR,
                ),
                (
                    "0.12",
                    f'{REFUSED}Flavor "{P5}" does not support TopologyAwareScheduling',
                    Reason.UNKNOWN_FLAVOR,
                ),
                (
                    "0.12",
                    f'{REFUSED}topology "default" doesn\'t allow to fit any of 2 pod(s)',
                    Reason.FRAGMENTATION,
                ),
                (
                    "0.19",
                    f'{REFUSED}topology "default" allows to fit only 1 out of 2 slice(s). Total nodes: 4; excluded: resource "{GPU}": 2, taint "a=b:NoSchedule": 1',
                    Reason.FRAGMENTATION,
                ),
                (
                    "0.12",
                    f"{REFUSED}insufficient unused quota for {GPU} in flavor {P5}, 8 more needed. Pending the preemption of 2 workload(s)",
                    Reason.WAITING_FOR_PREEMPTION,
                ),
                (
                    "0.19",
                    f"{REFUSED}insufficient unused quota for {GPU} in flavor {P5}, 8 more needed. Preempting 2 workload(s) failed, will retry.",
                    Reason.WAITING_FOR_PREEMPTION,
                ),
                (
                    "0.8",
                    "Workload has overlapping preemption targets with another workload",
                    Reason.WAITING_FOR_PREEMPTION,
                ),
                (
                    "0.5",
                    "other workloads in the cohort were prioritized",
                    Reason.WAITING_FOR_PREEMPTION,
                ),
                ("0.12", "LocalQueue team-queue doesn't exist", Reason.MISSING_QUEUE),
                ("0.19", "ClusterQueue team.queue doesn't exist", Reason.MISSING_QUEUE),
                ("0.5", "ClusterQueue team-queue not found", Reason.MISSING_QUEUE),
                ("0.12", "LocalQueue team-queue is inactive", Reason.QUEUE_INACTIVE),
                ("0.12", "ClusterQueue team-queue is inactive", Reason.QUEUE_INACTIVE),
                ("0.19", "ClusterQueue team-queue is stopped", Reason.QUEUE_INACTIVE),
                (
                    "0.19",
                    "ClusterQueue team-queue is terminating or missing",
                    Reason.QUEUE_INACTIVE,
                ),
                (
                    "0.5",
                    "Workload namespace doesn't match ClusterQueue selector",
                    Reason.QUEUE_INACTIVE,
                ),
                (
                    "0.12",
                    "The workload has failed admission checks",
                    Reason.QUEUE_INACTIVE,
                ),
                ("0.19", "Waiting for all admitted workloads to be in PodsReady condition", None),
                (
                    "0.15",
                    "Preempted to accommodate a workload (UID: 9d, JobUID: 31) due to reclamation within the cohort; preemptor path: /a/b; preemptee path: /a/c",
                    None,
                ),
                ("any", "", None),
            ]
        )
    ],
)
def test_every_wording_has_its_reason(text, reason):
    assert read_message(text).reason is reason


def test_the_same_refusal_reads_alike_in_every_wording():
    # 20 GPUs asked for where the queue can hold 16: 0.8.4 to 0.12, and 0.13 onwards, where the pods
    # of an earlier set (4) are counted apart.
    old = read_message(
        f"{REFUSED}insufficient quota for {GPU} in flavor {P5}, request > maximum capacity (20 > 16)"
    )
    new = read_message(
        f"{REFUSED}insufficient quota for {GPU} in flavor {P5}, previously considered podsets requests (4) + current podset request (16) > maximum capacity (16)"
    )
    assert old == new
    assert (old.facts[0].need, old.facts[0].capacity) == (20, 16)
    assert (old.facts[0].resource, old.facts[0].flavor) == (GPU, P5)


def test_amounts_are_read_in_base_units():
    (fact,) = read_message(
        f"{REFUSED}insufficient unused quota for memory in flavor {P5}, 1953125Ki more needed"
    ).facts
    assert fact.missing == 2_000_000_000  # 1953125 x 1024 bytes
    (fact,) = read_message(
        f"{REFUSED}insufficient unused quota for cpu in flavor {P5}, 1500m more needed"
    ).facts
    assert fact.missing == 1.5


def test_a_suffix_is_no_part_of_the_last_reason():
    reading = read_message(
        f"{REFUSED}insufficient unused quota for {GPU} in flavor {P5}, 8 more needed. Pending the preemption of 2 workload(s)"
    )
    assert (reading.facts[0].missing, reading.victims) == (8, 2)


EXCEEDS = "insufficient quota for {} in flavor {}, request > maximum capacity (20 > 16)"
LACKS = "insufficient unused quota for {} in flavor {}, 4 more needed"
TAINTED = "untolerated taint {{gpu true NoSchedule <nil>}} in flavor {}"


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        # One flavor can never serve it, the other may: it waits for the other.
        ([EXCEEDS.format(GPU, "p4"), LACKS.format(GPU, "p5")], Reason.WAITING_FOR_QUOTA),
        ([LACKS.format(GPU, "p5"), TAINTED.format("spot")], Reason.WAITING_FOR_QUOTA),
        # Neither can: it never runs. The one with numbers is told.
        ([EXCEEDS.format(GPU, "p4"), TAINTED.format("spot")], Reason.EXCEEDS_CAPACITY),
        # One flavor, two resources: both must pass, and one never does.
        ([EXCEEDS.format(GPU, "p5"), LACKS.format("cpu", "p5")], Reason.EXCEEDS_CAPACITY),
        # A limit on one flavor, other workloads on the next: quota that frees helps at once.
        (
            [f"borrowing limit for {GPU} in flavor p4 exceeded", LACKS.format(GPU, "p5")],
            Reason.WAITING_FOR_QUOTA,
        ),
        # No flavor of the queue has one of the resources: nothing that frees up helps.
        (
            [LACKS.format("cpu", "p5"), f"resource {GPU} unavailable in ClusterQueue"],
            Reason.UNKNOWN_FLAVOR,
        ),
        # Beside words that nobody knows, nothing is impossible for ever.
        ([EXCEEDS.format(GPU, "p4"), "flavor p5 is being considered"], None),
        ([LACKS.format(GPU, "p4"), "flavor p5 is being considered"], Reason.WAITING_FOR_QUOTA),
    ],
)
def test_of_several_reasons_the_flavor_that_may_open_first_counts(reasons, expected):
    assert read_message(REFUSED + ", ".join(sorted(reasons))).reason is expected


def test_a_pod_set_that_can_never_run_decides_for_all_of_them():
    # All pod sets start together or none does.
    text = f"couldn't assign flavors to pod set head: {LACKS.format('cpu', 'p5')}; couldn't assign flavors to pod set worker: {EXCEEDS.format(GPU, 'p5')}"
    reading = read_message(text)
    assert reading.reason is Reason.EXCEEDS_CAPACITY
    assert [fact.resource for fact in reading.facts] == ["cpu", GPU]


def test_an_error_is_read_like_a_refusal():
    text = "failed to assign flavors to pod set main: flavor spot not found"
    assert read_message(text).reason is Reason.UNKNOWN_FLAVOR
    assert read_message("failed to assign flavors to pod set main: oops").reason is None


def test_a_topology_tells_how_many_pods_fit():
    one = read_message(f'{REFUSED}topology "default" allows to fit only 3 out of 4 pod(s)')
    none = read_message(f'{REFUSED}topology "default" doesn\'t allow to fit any of 4 pod(s)')
    # Kueue 0.9.0 printed -3 where nothing fitted.
    odd = read_message(f'{REFUSED}topology "default" allows to fit only -3 out of 4 pod(s)')
    assert [(r.facts[0].fitting, r.facts[0].pods) for r in (one, none, odd)] == [
        (3, 4),
        (0, 4),
        (0, 4),
    ]


def test_quota_that_lacks_comes_before_a_topology():
    text = f'{REFUSED}{LACKS.format(GPU, "p5")}, topology "default" doesn\'t allow to fit any of 4 pod(s)'
    assert read_message(text).reason is Reason.WAITING_FOR_QUOTA


@pytest.mark.parametrize(
    ("named", "text", "reason"),
    [
        # The words of a version to come, and the reasons that 0.18.5 began to write.
        ("NoMatchingFlavor", "new words", Reason.UNKNOWN_FLAVOR),
        ("WaitingForQuota", "new words", Reason.WAITING_FOR_QUOTA),
        ("ExceedsMaxQuota", "", Reason.EXCEEDS_CAPACITY),
        ("TopologyPlacementFailed", "new words", Reason.FRAGMENTATION),
        ("WaitingForPreemptedWorkloads", "new words", Reason.WAITING_FOR_PREEMPTION),
        # What may be many things is left to the objects.
        ("Pending", "new words", None),
        ("Misconfigured", "new words", None),
        # A text has the numbers, so it comes first.
        ("WaitingForQuota", f"{REFUSED}flavor {P5} not found", Reason.UNKNOWN_FLAVOR),
    ],
)
def test_where_no_wording_is_known_the_reason_of_the_condition_speaks(named, text, reason):
    refused = Condition(type="QuotaReserved", status=False, reason=named, message=text, since=None)
    assert read_condition(refused).reason is reason


def test_a_reservation_and_no_condition_at_all_say_nothing_of_a_wait():
    text = f"{REFUSED}flavor {P5} not found"
    held = Condition(type="QuotaReserved", status=True, reason="", message=text, since=None)
    assert read_condition(held).reason is None
    assert read_condition(None).reason is None
