"""Why workloads wait, in the words of three Kueue versions; right by hand.

At 12:00 and 12:05 the same cluster is looked at. Each namespace holds one case, and each case says
in tests/queues/pending.py what is wrong there.
"""

import pytest

from tests.queues.pending import MIDDLE, SMALL, subject
from tests.queues.scene import machine_name, stamp
from tests.queues.told import Told

GPU, P5 = "nvidia.com/gpu", "ml.p5.48xlarge"
NOON, FIVE_PAST = stamp("12:00"), stamp("12:05")
LATELY, EARLY = stamp("11:50"), stamp("09:00")
VERSIONS = ("0.12", "0.18", "0.19")


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


@pytest.fixture(params=VERSIONS)
def told(request):
    return Told(f"pending-{request.param}", "pending")


def one(case, reason, *, at=NOON, since=EARLY, gpus=4, name=None):
    severity = "warn" if reason in NEVER else "info"
    return (at, "firing", subject(case, name), reason, severity, since, gpus)


NEVER = {"missing_queue", "queue_inactive", "unknown_flavor", "exceeds_capacity"}
EXPECTED = [
    # Can never be admitted: 10 minutes after they came, at once.
    one("audio", "missing_queue", since=LATELY),
    one("halted", "queue_inactive", since=LATELY),
    one("parked", "queue_inactive", since=LATELY),
    one("neuron", "unknown_flavor", since=LATELY, gpus=16),
    one("tainted", "unknown_flavor", since=LATELY),
    # Two pods of 8 in a queue of 8.
    one("giant", "exceeds_capacity", since=LATELY, gpus=16),
    # May be admitted: they have waited for three hours.
    one("short", "waiting_for_quota"),
    one("cpus", "waiting_for_quota"),
    one("capped", "borrow_limit"),
    one("evictor", "waiting_for_preemption"),
    one("scattered", "fragmentation"),
    one("gang", "fragmentation", gpus=9),
    one("raced", "waiting_for_quota"),
    one("overlap", "waiting_for_preemption"),
    one("failing", "waiting_for_preemption"),
    one("either", "waiting_for_quota", gpus=8),
    one("strict", "waiting_for_quota", name="strict-first", gpus=8),
    one("strict", "behind_head", name="strict-second", since=stamp("09:05"), gpus=2),
    one("deep", "waiting_for_quota", name="deep-first", gpus=8),
    one("deep", "not_evaluated", name="deep-second", since=stamp("09:05"), gpus=8),
    # Its head came at 11:55 and is not due for two hours.
    one("classless", "no_priority_class", name="classless-second", gpus=2),
    # 130 minutes without a pod.
    one("hollow", "reserved_without_pods", since=stamp("09:50"), gpus=16),
    one("torn", "reserved_without_pods", since=stamp("10:30"), gpus=8),
    # What Kueue says is told, and that the objects say otherwise.
    one("stale", "exceeds_capacity", gpus=16),
    one("awake", "queue_inactive"),
    # At 12:00 it is 117 minutes, and at 12:05 122; 27 without pods, and 32.
    one("patient", "waiting_for_quota", at=FIVE_PAST, since=stamp("10:03")),
    one("fresh", "reserved_without_pods", at=FIVE_PAST, since=stamp("11:33"), gpus=8),
]


def test_every_reason_is_told_the_same_in_every_version(told):
    rows = told.rows("at", "status", "subject", "reason", "severity", "since", "gpus")
    others = [row for row in rows if row[2] != subject("vanished")]
    assert sorted(others) == sorted(EXPECTED)
    assert told.dark == []


def test_a_queue_that_is_inactive_for_want_of_its_flavor_has_an_unknown_flavor(told):
    # Kueue deactivates such a queue and says of its workloads no more than that it is inactive: the
    # queue's own condition (FlavorNotFound) says why. Text and objects agree.
    found = told.about(subject("vanished"))
    assert (found["at"], found["severity"], found["since"]) == (NOON, "warn", LATELY)
    assert found["reason"] == "unknown_flavor"
    assert found["evidence"]["flavors"] == ["ml.p4d.24xlarge"]
    assert "contradiction" not in found["evidence"]


@pytest.mark.parametrize(
    ("case", "resource", "flavor", "need", "available"),
    [
        ("audio", GPU, None, 4, None),  # without a queue there is nothing to be had
        ("halted", GPU, None, 4, None),
        ("neuron", "aws.amazon.com/neuron", None, 16, None),
        ("giant", GPU, P5, 16, 8),
        ("short", GPU, P5, 4, 2),  # 8 - 6
        ("cpus", "cpu", P5, 32, 6),  # 96 - 90: GPUs are free
        ("capped", GPU, P5, 4, 0),  # 4 lie idle next door, and it has borrowed its 4
        ("evictor", GPU, P5, 4, 0),
        ("scattered", GPU, SMALL, 4, 6),  # 12 - 6: the quota fits
        ("gang", GPU, MIDDLE, 9, 10),  # 12 - 2
        ("raced", GPU, P5, 4, 2),
        ("overlap", GPU, P5, 4, 0),
        ("failing", GPU, P5, 4, 0),
        ("either", GPU, P5, 8, 4),  # of the flavor that may yet open
    ],
)
def test_need_and_available_are_of_what_decides(told, case, resource, flavor, need, available):
    evidence = told.about(subject(case))["evidence"]
    keys = ("resource", "flavor", "need", "available")
    assert tuple(evidence[key] for key in keys) == (resource, flavor, need, available)


def test_kueues_own_words_are_shown_as_they_are(told):
    message = told.about(subject("giant"))["evidence"]["message"]
    assert message.startswith("couldn't assign flavors to pod set main: insufficient quota for")
    assert told.about(subject("strict", "strict-second"))["evidence"]["message"] is None


def test_the_nearest_queue_is_named_and_the_card_mends_the_label(told):
    found = told.about(subject("audio"))
    right = "hyperpod-ns-audio-localqueue"
    assert (found["evidence"]["nearest"], found["evidence"]["nearest_namespace"]) == (
        right,
        "hyperpod-ns-audio",
    )
    assert found["action"] == (
        "kubectl -n hyperpod-ns-audio label jobs.batch/audio "
        f"kueue.x-k8s.io/queue-name={right} --overwrite"
    )


def test_pieces_are_named_node_by_node(told):
    # 4 GPUs each, 2 of them in use.
    nodes = told.about(subject("scattered"))["evidence"]["nodes"]
    assert nodes == [{"node": machine_name(number), "free": 2} for number in (10, 11, 12)]


def test_a_gang_says_how_many_of_its_pods_find_room(told):
    found = told.about(subject("gang"))["evidence"]
    assert (found["pods"], found["fitting"]) == (3, 2)
    free = {machine_name(20): 4, machine_name(21): 4, machine_name(22): 2}
    assert {node["node"]: node["free"] for node in found["nodes"]} == free


def test_a_wait_counts_from_the_last_eviction_and_not_from_kueues_requeue(told):
    # 90 minutes, although it was created seven hours ago and first evicted six; and `off` waits
    # for nothing.
    known = {line["subject"] for line in told.found}
    assert not {subject("again"), subject("off")} & known


def test_a_limit_says_what_would_be_needed_of_it(told):
    # It borrows 4 of 4; with 4 more it would be 8.
    (limit,) = told.about(subject("capped"))["evidence"]["limits"]
    assert (limit["kind"], limit["limit"], limit["needed"]) == ("ClusterQueue", 4, 8)


def test_the_victims_are_named(told):
    victims = told.about(subject("evictor"))["evidence"]["victims"]
    assert victims == [subject("evictor", "victim")]


@pytest.mark.parametrize(
    ("case", "head_reason"),
    [("strict", "waiting_for_quota"), ("deep", "waiting_for_quota"), ("classless", None)],
)
def test_who_is_first_is_named_and_why_it_waits(told, case, head_reason):
    found = told.about(subject(case, f"{case}-second"))["evidence"]
    assert found["head"]["subject"] == subject(case, f"{case}-first")
    assert head_reason in {None, found["head"]["reason"]}
    assert (found["position"], found["ahead"]) == (2, 1)


def test_quota_held_in_vain_is_counted_in_gpu_hours(told):
    # 16 GPUs for 130 minutes.
    assert told.about(subject("hollow"))["gpu_hours"] == round(16 * 130 / 60, 6)
    evidence = told.about(subject("torn"))["evidence"]
    assert evidence["conditions"] == ["Admitted", "Evicted", "QuotaReserved"]
    assert "conditions" not in told.about(subject("hollow"))["evidence"]


@pytest.mark.parametrize(
    ("case", "message"), [("stale", "exceeds_capacity"), ("awake", "queue_inactive")]
)
def test_a_text_that_the_objects_contradict_is_told_with_what_they_say(told, case, message):
    evidence = told.about(subject(case))["evidence"]
    # All of the quota is free and nobody is ahead: by the objects Kueue has yet to look.
    assert (evidence["message_class"], evidence["objects_class"]) == (message, "not_evaluated")
    assert message in evidence["contradiction"]
    said = [f["subject"] for f in told.found if "contradiction" in f["evidence"]]
    assert {subject("stale"), subject("awake")} <= set(said)
    assert set(said) <= {subject("stale"), subject("awake"), subject("vanished")}


def test_the_three_versions_say_the_same_but_for_kueues_own_words():
    wordings = {"message", "sentence", "contradiction", "same_as", "head", "capacity"}

    def told(version):
        return [
            line | {"evidence": {k: v for k, v in line["evidence"].items() if k not in wordings}}
            for line in Told(f"pending-{version}", "pending").found
        ]

    assert told("0.12") == told("0.18") == told("0.19")


@pytest.fixture
def endings():
    return Told("pending-ends", "pending")


def test_a_wait_ends_as_admitted_finished_or_released(endings):
    # Seen last at 12:05, and unseen for ten minutes at 12:15.
    ended = endings.rows("status", "at", "subject", "resolution")
    assert sorted(row for row in ended if row[0] != "firing" and row[2] != subject("cut")) == [
        ("resolved", stamp("12:15"), subject("ends"), "finished"),
        ("resolved", stamp("12:15"), subject("leaves"), "released"),
        # It waits on, for something else: for 25 minutes, which is no finding yet.
        ("resolved", stamp("12:15"), subject("mended"), "reason_changed"),
        ("resolved", stamp("12:15"), subject("starts"), "admitted"),
    ]


def test_another_reason_is_an_end_and_a_beginning_at_the_same_tick(endings):
    rows = endings.rows("subject", "at", "status", "reason", "severity", "since", "resolution")
    assert [row[1:] for row in rows if row[0] == subject("cut")] == [
        (NOON, "firing", "waiting_for_quota", "info", EARLY, None),
        (stamp("12:10"), "resolved", "waiting_for_quota", "info", EARLY, "reason_changed"),
        (stamp("12:10"), "firing", "exceeds_capacity", "warn", EARLY, None),
    ]
    assert [line["subject"] for line in endings.open] == [subject("cut")]
