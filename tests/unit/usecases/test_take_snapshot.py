"""From pods and series to accelerators: neither side of the join is ever lost."""

from copy import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from local.twins import InMemoryObjects
from steward.cluster.accelerators import Owner
from steward.cluster.kueue import Workload
from steward.cluster.memory import Device, Memory
from steward.cluster.planning import SnapshotScope
from steward.cluster.pods import GpuPod
from steward.cluster.snapshot import Node, PartStatus
from steward.events import Request
from steward.ports import DeviceName
from steward.stores.bucket import Memories, Snapshots
from steward.stores.checkpoints import Checkpoints
from steward.usecases.evaluate_snapshot import fold
from steward.usecases.read_cluster import read_cluster
from steward.usecases.take_snapshot import clusters_wanted, take_snapshot
from tests.builders import DELAY, NOON, a_cluster, at
from tests.fakes import FakeKubernetes, FakeMetrics, FakeSources, FixedTime, Recorder

CLUSTER = a_cluster()
EMPTY = Memory(cluster="ml-shared-01")
NS = "hyperpod-ns-research"
NODE = Node(
    name="hyperpod-i-0a",
    instance_type="ml.p5.48xlarge",
    accelerators=8,
    ready=True,
    schedulable=True,
    health=None,
)


def a_pod(name="train-0", gpus=1, **changes):
    owner = Owner(kind="Job", namespace=NS, name=name.rpartition("-")[0] or name)
    given = {
        "namespace": NS,
        "name": name,
        "uid": f"uid-{name}",
        "node": "hyperpod-i-0a",
        "accelerators": gpus,
        "resource": "nvidia.com/gpu",
        "since": at("6:00"),
        "owner": owner,
        "owner_chain": (owner,),
        "labels": {},
    }
    return GpuPod(**(given | changes))


def a_workload(owner):
    return Workload(
        namespace=NS,
        name=f"w-{owner.name}",
        uid="uid-w",
        created=at("6:00"),
        queue="hyperpod-ns-research-localqueue",
        priority=25,
        priority_class="experimentation-priority",
        active=True,
        owner=owner,
        cluster_queue=None,
        requests={},
        assigned={},
        conditions=(),
    )


def device(uuid="GPU-1", pod="train-0"):
    return DeviceName(namespace=NS, pod=pod, uuid=uuid)


def minutes(value, start="6:00", stop=NOON - DELAY):
    """A sample every minute from `start` to `stop`, each of that value."""
    first = at(start)
    count = int((stop - first).total_seconds() // 60) + 1
    return [(first + timedelta(minutes=n), value) for n in range(count)]


def read(pods=(), metrics=None, memory=EMPTY, nodes=(NODE,), when=NOON, cluster=CLUSTER, **refused):
    sources = FakeSources(
        FakeKubernetes(tuple(pods), tuple(nodes), refused), metrics or FakeMetrics()
    )
    snapshot, _ = read_cluster(cluster, memory, sources, FixedTime(when))
    return snapshot


def test_an_allocated_gpu_meets_its_series_and_its_price():
    snapshot = read([a_pod()], FakeMetrics({device(): minutes(0.5)}))
    (gpu,) = snapshot.accelerators
    assert (gpu.uuid, gpu.node, gpu.instance_type) == ("GPU-1", "hyperpod-i-0a", "ml.p5.48xlarge")
    assert gpu.usd_per_hour == 8.0  # 64 USD an hour over 8 GPUs
    window = gpu.window(60)
    # (10:58, 11:58] holds the 60 samples 10:59 ... 11:58.
    assert (window.present, window.expected, window.maximum) == (60, 60, 0.5)
    assert snapshot.window_end == NOON - DELAY


def test_gpus_without_a_series_are_there_and_say_that_nobody_ever_saw_them():
    snapshot = read([a_pod(gpus=2)])
    assert [(a.uuid, a.ordinal, a.ever_seen) for a in snapshot.accelerators] == [
        (None, 0, False),
        (None, 1, False),
    ]


def test_a_pod_with_six_of_eight_series_keeps_two_nameless_gpus():
    series = {device(f"GPU-{n}"): minutes(0.5) for n in range(6)}
    snapshot = read([a_pod(gpus=8)], FakeMetrics(series))
    assert len(snapshot.accelerators) == 8
    assert [a.ever_seen for a in snapshot.accelerators if a.uuid is None] == [False, False]


def test_a_series_that_stopped_before_the_window_is_found_by_the_look_up():
    metrics = FakeMetrics({device(): minutes(0.5, stop=at("9:00"))})
    (gpu,) = read([a_pod()], metrics).accelerators
    assert (gpu.uuid, gpu.ever_seen, gpu.window(60).present) == ("GPU-1", True, 0)


def test_a_remembered_device_needs_no_look_up():
    known = Device(node=None, uuid="GPU-1", mig=None, pod_uid="uid-train-0", seen=at("9:00"))
    metrics = FakeMetrics()
    (gpu,) = read([a_pod()], metrics, replace(EMPTY, devices=(known,))).accelerators
    assert (gpu.uuid, gpu.ever_seen) == ("GPU-1", True)
    assert "seen" not in metrics.asked


def test_a_failed_look_up_claims_neither_and_is_noted():
    metrics = FakeMetrics(broken={"seen"})
    snapshot = read([a_pod()], metrics)
    assert snapshot.accelerators[0].ever_seen is None
    assert snapshot.part("prometheus").status is PartStatus.OK
    assert "seen: no answer" in snapshot.part("prometheus").detail


class SlowMetrics(FakeMetrics):
    """Takes a minute for every look-up."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def seen(self, end, span_seconds, pods):
        self.clock.sleep(60)
        return super().seen(end, span_seconds, pods)


def test_a_slow_metrics_source_is_not_asked_for_ever():
    # One minute is what it may take: the look-up is answered, and what comes after is not asked.
    clock = FixedTime(NOON)
    metrics = SlowMetrics(clock)
    sources = FakeSources(FakeKubernetes((a_pod(),), (NODE,)), metrics)
    snapshot, _ = read_cluster(CLUSTER, EMPTY, sources, clock)
    assert metrics.asked == ["read", "seen"]
    assert snapshot.kueue_metrics is None
    assert snapshot.accelerators[0].ever_seen is False
    assert snapshot.part("prometheus").status is PartStatus.OK
    assert "no time left" in snapshot.part("prometheus").detail


def test_an_unreadable_prometheus_is_a_part_and_the_allocation_stays():
    snapshot = read([a_pod(gpus=2)], FakeMetrics(broken={"read"}))
    assert snapshot.part("prometheus").status is PartStatus.UNREADABLE
    assert [a.windows for a in snapshot.accelerators] == [(), ()]


def test_a_series_of_a_finished_pod_is_nobodys():
    # The exporter keeps naming the old pod on the same device; only the successor lives.
    metrics = FakeMetrics({device(): minutes(0.91), device(pod="old-0"): minutes(0.0)})
    (gpu,) = read([a_pod()], metrics).accelerators
    assert (gpu.holder.pod, gpu.window(60).maximum, gpu.shared_with) == ("train-0", 0.91, ())


def test_one_device_attributed_to_two_live_pods_is_shared():
    metrics = FakeMetrics({device(): minutes(0.4), device(pod="other-0"): minutes(0.4)})
    found = read([a_pod(), a_pod("other-0")], metrics).accelerators
    assert {a.holder.pod: a.shared_with for a in found} == {
        "train-0": (f"{NS}/other-0",),
        "other-0": (f"{NS}/train-0",),
    }


def test_a_namesake_on_another_known_node_is_not_this_pod():
    metrics = FakeMetrics({device(): minutes(0.5)}, nodes={"GPU-1": "hyperpod-i-0b"})
    nodes = (NODE, replace(NODE, name="hyperpod-i-0b"))
    (gpu,) = read([a_pod()], metrics, nodes=nodes).accelerators
    assert gpu.uuid is None


def test_a_hostname_that_is_no_node_says_nothing_about_the_node():
    metrics = FakeMetrics({device(): minutes(0.5)}, nodes={"GPU-1": "dcgm-exporter-x7k2p"})
    (gpu,) = read([a_pod()], metrics).accelerators
    assert (gpu.uuid, gpu.node) == ("GPU-1", "hyperpod-i-0a")


def test_more_nameless_series_than_free_gpus_are_unattributed():
    # 8 GPUs, 2 allocated: 6 nameless series are the free ones; the seventh belongs to the pod.
    for count, expected in ((6, False), (7, True)):
        metrics = FakeMetrics(nameless=[("hyperpod-i-0a", f"GPU-{n}") for n in range(count)])
        found = read([a_pod(gpus=2)], metrics).accelerators
        assert [a.unattributed for a in found] == [expected, expected]


def test_a_mig_slice_has_its_fraction_even_without_a_series():
    (gpu,) = read([a_pod(resource="nvidia.com/mig-3g.40gb")]).accelerators
    assert gpu.fraction == pytest.approx(3 / 7)


def test_the_beginning_of_idleness_is_looked_up_once_for_those_that_need_it():
    points = minutes(0.9, stop=at("8:57")) + minutes(0.0, start="8:58")
    metrics = FakeMetrics({device(): points, device("GPU-2", "busy-0"): minutes(0.9)})
    found = {a.uuid: a for a in read([a_pod(), a_pod("busy-0")], metrics).accelerators}
    since = found["GPU-1"].idle_since
    assert (since.first, since.exact, since.observed_seconds) == (at("8:58"), True, 3 * 3600)
    assert found["GPU-2"].idle_since is None
    assert metrics.asked.count("samples") == 1


def test_idle_since_its_start_is_exact_because_the_pod_is_no_older():
    (gpu,) = read([a_pod()], FakeMetrics({device(): minutes(0.0)})).accelerators
    assert (gpu.idle_since.first, gpu.idle_since.exact) == (at("6:00"), True)


def test_idle_for_longer_than_the_look_back_is_at_least_seven_days():
    born = NOON - timedelta(days=9)
    points = [(born + timedelta(minutes=n), 0.0) for n in range(9 * 24 * 60)]
    (gpu,) = read([a_pod(since=born)], FakeMetrics({device(): points})).accelerators
    assert gpu.idle_since.exact is False
    # Half-open: the first sample after 11:58 seven days ago.
    assert gpu.idle_since.first == NOON - DELAY - timedelta(days=7) + timedelta(minutes=1)


def test_samples_of_a_predecessor_of_the_same_name_are_not_this_pods_idleness():
    metrics = FakeMetrics({device(): minutes(0.0)})
    (gpu,) = read([a_pod(since=at("9:30"))], metrics).accelerators
    assert gpu.idle_since.first == at("9:30")


def test_a_failed_look_back_leaves_the_beginning_open():
    metrics = FakeMetrics({device(): minutes(0.0)}, broken={"samples"})
    snapshot = read([a_pod()], metrics)
    assert snapshot.accelerators[0].idle_since is None
    assert "samples: no answer" in snapshot.part("prometheus").detail


def test_a_workload_that_kueue_made_for_the_pod_itself_is_found():
    owner = Owner(kind="StatefulSet", namespace=NS, name="notebook")
    pod = a_pod("notebook-0", owner=owner, owner_chain=(owner,))
    workload = a_workload(Owner(kind="Pod", namespace=NS, name="notebook-0"))
    sources = FakeSources(FakeKubernetes((pod,), (NODE,), workloads=(workload,)), FakeMetrics())
    snapshot, _ = read_cluster(CLUSTER, EMPTY, sources, FixedTime())
    (gpu,) = snapshot.accelerators
    assert (gpu.holder.workload, gpu.holder.priority_class) == (
        "w-notebook-0",
        "experimentation-priority",
    )


def take(metrics, pods, objects, when, asked=None, scope=SnapshotScope.TICK):
    sources = FakeSources(FakeKubernetes(tuple(pods), (NODE,)), metrics)
    bus = Recorder()
    outcome = take_snapshot(
        CLUSTER,
        asked or when,
        scope,
        sources=sources,
        snapshots=Snapshots(objects),
        memories=Memories(objects),
        bus=bus,
        clock=FixedTime(when),
        checkpoints=Checkpoints(objects),
    )
    return outcome, bus


def test_a_snapshot_is_stored_announced_and_read_back_whole():
    objects = InMemoryObjects()
    outcome, bus = take(FakeMetrics({device(): minutes(0.5)}), [a_pod()], objects, NOON)
    ((detail_type, detail),) = bus.published
    assert (detail_type, detail["key"]) == ("Snapshot Taken", outcome.key)
    assert datetime.fromisoformat(detail["at"]) == NOON
    stored = Snapshots(objects).get(outcome.key)
    assert stored == read([a_pod()], FakeMetrics({device(): minutes(0.5)}))


def test_a_request_not_newer_than_the_last_snapshots_start_is_already_answered():
    objects = InMemoryObjects()
    take(FakeMetrics(), [a_pod()], objects, NOON)
    later = NOON + timedelta(seconds=30)
    outcome, bus = take(FakeMetrics(), [a_pod()], objects, later, asked=NOON - timedelta(seconds=1))
    assert (outcome.key, outcome.reason, bus.published) == (None, "already answered", [])
    # Of the same moment: what was read was read after it.
    outcome, _ = take(FakeMetrics(), [a_pod()], objects, later, asked=NOON)
    assert outcome.reason == "already answered"
    newer = NOON + timedelta(seconds=1)
    outcome, _ = take(FakeMetrics(), [a_pod()], objects, later, asked=newer)
    assert outcome.reason == "taken"


def test_a_tick_does_not_answer_a_wish_for_an_audit_but_an_audit_answers_one_for_a_tick():
    objects = InMemoryObjects()
    seconds = [NOON + timedelta(seconds=n) for n in range(0, 60, 10)]

    def reason(when, asked, scope):
        return take(FakeMetrics(), [], objects, when, asked, scope)[0].reason

    assert reason(seconds[1], seconds[1], SnapshotScope.TICK) == "taken"
    # Asked before that tick began: it did not look at what an audit looks at.
    assert reason(seconds[2], seconds[0], SnapshotScope.AUDIT) == "taken"
    assert reason(seconds[3], seconds[1], SnapshotScope.AUDIT) == "already answered"
    assert reason(seconds[3], seconds[1], SnapshotScope.TICK) == "already answered"
    # A tick in between does not make anybody forget when the last audit was.
    assert reason(seconds[4], seconds[4], SnapshotScope.TICK) == "taken"
    assert reason(seconds[5], seconds[1], SnapshotScope.AUDIT) == "already answered"
    assert reason(seconds[5], seconds[3], SnapshotScope.AUDIT) == "taken"


def test_requests_resolve_to_clusters_by_name_arn_or_place():
    other = a_cluster(name="ml-eu", eks_name="ml-eu-eks", region="eu-west-1")
    both = (CLUSTER, other)

    def wanted(cluster=None, age=0, region=""):
        request = Request(cluster=cluster, region=region, at=NOON - timedelta(minutes=age))
        return [c.name for c in clusters_wanted(request, both, NOON)]

    assert wanted("ml-eu") == ["ml-eu"]
    assert wanted("arn:aws:sagemaker:us-east-1:111122223333:cluster/ml-shared-01") == [
        "ml-shared-01"
    ]
    assert wanted("ml-eu-eks") == ["ml-eu"]  # metrics and alarms know the EKS name only
    assert wanted(region="eu-west-1") == ["ml-eu"]
    assert wanted() == ["ml-shared-01", "ml-eu"]
    assert wanted("nobody") == []
    assert wanted("ml-eu", age=15) == ["ml-eu"]
    assert wanted("ml-eu", age=16) == []


def test_a_gap_longer_than_coverage_allows_is_looked_at_sample_by_sample():
    # A sample every 55 s, idle throughout, and a gap from 11:41 to 11:54 (13 min): the window still
    # has 80 %, but those thirteen minutes are nobody's.
    points = [(at("9:00") + timedelta(seconds=55 * n), 0.0) for n in range(200)]
    points = [(t, v) for t, v in points if not at("11:41") < t < at("11:54")]
    metrics = FakeMetrics({device(): points})
    before = read([a_pod()], metrics, when=at("11:40"))
    memory = fold("k1", before, EMPTY, CLUSTER)[1]
    snapshot = read([a_pod()], metrics, memory=memory, when=at("11:58"))
    (finding,) = fold("k2", snapshot, memory, CLUSTER)[0].findings
    seen = [t for t, _ in points if t <= at("11:56")]
    steps = [(b - a).total_seconds() for a, b in pairwise(seen)]
    assert max(steps) > 720
    assert finding.gpu_hours == round(sum(s for s in steps if s <= 720) / 3600, 6)


def test_a_slice_that_was_seen_earlier_only_counts_its_fraction():
    # The last sample is older than every window, and no memory knows the device.
    slice_ = replace(device("GPU-1"), mig="3g.40gb/1")
    metrics = FakeMetrics({slice_: minutes(0.0, stop=at("9:00"))})
    (gpu,) = read([a_pod()], metrics).accelerators
    assert (gpu.uuid, gpu.ever_seen, gpu.fraction) == ("GPU-1", True, 3 / 7)


class Elsewhere(FakeMetrics):
    """What was seen earlier was on another node."""

    def seen(self, *given):
        return tuple(replace(one, node="hyperpod-i-0b") for one in super().seen(*given))


def test_a_device_that_a_namesake_had_on_another_node_is_not_this_pods():
    metrics = Elsewhere({device("GPU-1"): minutes(0.0, stop=at("9:00"))})
    nodes = (NODE, replace(NODE, name="hyperpod-i-0b"))
    (gpu,) = read([a_pod()], metrics, nodes=nodes).accelerators
    assert (gpu.uuid, gpu.ever_seen) == (None, False)


def test_an_arn_that_ends_in_an_id_means_every_cluster_of_its_account_and_region():
    # HyperPod's ARNs end in an id that the policy does not know; one snapshot more costs nothing.
    far = a_cluster(name="ml-eu", eks_name="ml-eu-eks", region="eu-west-1")
    theirs = a_cluster(name="ml-theirs", eks_name="ml-theirs-eks", account="444455556666")

    def wanted(cluster):
        request = Request(cluster=cluster, account="111122223333", region="us-east-1", at=NOON)
        return [c.name for c in clusters_wanted(request, (CLUSTER, far, theirs), NOON)]

    sagemaker = "arn:aws:sagemaker:us-east-1:111122223333:cluster"
    assert wanted(f"{sagemaker}/a1b2c3d4e5f6") == ["ml-shared-01"]
    # What is a name is another cluster's name: its ARN's, or of the length of an id.
    assert wanted(f"{sagemaker}/ml-other") == []
    assert wanted("a1b2c3d4e5f6") == []
    assert wanted("arn:aws:eks:us-east-1:111122223333:cluster/a1b2c3d4e5f6") == []
