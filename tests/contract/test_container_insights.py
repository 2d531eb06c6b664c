"""What the Container Insights reader tells, over moto's CloudWatch and over recorded results."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from copy import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from boto3 import Session
from moto.server import ThreadedMotoServer

from steward.cluster.accelerators import Window
from steward.cluster.kueue import KueueMetrics, QueueMetrics
from steward.cluster.snapshot import InvalidSamples
from steward.ports import DeviceName, DeviceReading, MetricsReading, Signal
from tests.contract.cloudwatch import (
    KUEUE,
    CloudWatch,
    Series,
    core,
    gpu,
    minutes,
    put,
    record,
    reset,
    session,
    standin,
)

END = datetime(2026, 11, 5, 12, 0, tzinfo=UTC)
TENSOR, POWER, MEMORY = (
    "pod_gpu_tensor_core_utilization",
    "pod_gpu_power_draw",
    "pod_gpu_memory_used",
)
_NAMES = count()

type Given = Callable[..., CloudWatch]


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A moto server of its own: each question walks through everything that the server holds."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield session(f"http://{host}:{port}", tmp_path_factory.mktemp("moto"))
    server.stop()


@pytest.fixture(params=["moto", "recorded"])
def given(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[Callable[[str], Sequence[Series]]], CloudWatch]]:
    """Make a CloudWatch that holds some series of a cluster of its own."""
    cluster = f"eks-{next(_NAMES)}"
    with ExitStack() as stack:

        def build(series: Callable[[str], Sequence[Series]]) -> CloudWatch:
            if request.param == "moto":
                aws: Session = request.getfixturevalue("moto")
                stack.callback(reset, aws)
                put(aws, series(cluster))
                return CloudWatch(aws, cluster)
            record(tmp_path, series(cluster))
            now = END + timedelta(minutes=5)
            return CloudWatch(stack.enter_context(standin(tmp_path, now)), cluster)

        yield build


def only(reading: MetricsReading) -> DeviceReading:
    (device,) = reading.devices
    return device


def name(pod: str = "train-0", device: str = "nvidia0") -> DeviceName:
    namespace = "hyperpod-ns-research"
    return DeviceName(namespace=namespace, pod=pod, uuid=f"{namespace}/{pod}/{device}")


# --- windows -------------------------------------------------------------------------------------


def test_a_full_window_has_its_statistics_and_claims_no_more_than_is_known(given: Given) -> None:
    values = [25.0] * 45 + [75.0] * 15
    world = given(lambda c: [gpu(minutes(END, values), cluster=c)])
    reader = world.reader()
    assert reader.part == "cloudwatch/GetMetricData"
    device = only(reader.read(END, [60]))
    assert device == DeviceReading(
        node=None,  # no series of a pod's device names its node, nor a UUID
        namespace="hyperpod-ns-research",
        pod="train-0",
        uuid="hyperpod-ns-research/train-0/nvidia0",
        mig=None,
        activity_metric="pod_gpu_utilization",
        windows=(
            # (45 * 0.25 + 15 * 0.75) / 60 = 0.375
            Window(minutes=60, expected=60, present=60, minimum=0.25, maximum=0.75, mean=0.375),
        ),
        last_sample=END,
        held_bytes=None,
    )


def test_a_window_counts_the_minute_at_its_end_and_not_the_one_at_its_start(given: Given) -> None:
    # 63 minutes, END + 1 min the last: (END - 60 min, END] holds 60 of them.
    world = given(lambda c: [gpu(minutes(END + timedelta(minutes=1), [30.0] * 63), cluster=c)])
    (window,) = only(world.reader().read(END, [60])).windows
    assert window.present == 60


def test_an_end_between_two_minutes_takes_the_minutes_before_it(given: Given) -> None:
    world = given(lambda c: [gpu(minutes(END, [10.0] * 59 + [90.0]), cluster=c)])
    # (11:29:30, 11:59:30] holds 11:30 ... 11:59; the 90 % began at 12:00
    (window,) = only(world.reader().read(END - timedelta(seconds=30), [30])).windows
    assert (window.present, window.maximum) == (30, 0.1)


def test_several_windows_shortest_first_and_a_gap_is_not_filled(given: Given) -> None:
    values = [50.0] * 60 + [0.0 if n % 2 else None for n in range(60)]
    short, long = only(
        given(lambda c: [gpu(minutes(END, values), cluster=c)]).reader().read(END, [120, 30])
    ).windows
    assert (short.minutes, short.expected, short.present, short.maximum) == (30, 30, 15, 0)
    # 60 minutes at 50 % and every other one of the last 60: 90 of 120
    assert (long.minutes, long.expected, long.present, long.maximum) == (120, 120, 90, 0.5)
    assert long.mean == pytest.approx(30 / 90)


def test_several_samples_of_a_minute_are_one_and_the_highest_counts(given: Given) -> None:
    points = [(END - timedelta(seconds=s), 80.0 if s == 50 else 0.0) for s in range(10, 600, 10)]
    (window,) = only(given(lambda c: [gpu(points, cluster=c)]).reader().read(END, [60])).windows
    # Six samples a minute over ten minutes; the one at 80 % is in the last, 11:59.
    assert (window.present, window.expected) == (10, 60)
    assert (window.maximum, window.minimum) == (0.8, 0)
    assert window.mean == pytest.approx(0.08)


def test_impossible_values_are_dropped_and_counted(given: Given) -> None:
    values = [0.0] * 100 + [31400.0] + [0.0] * 100 + [9223372036854775792.0] + [0.0] * 98
    reading = given(lambda c: [gpu(minutes(END, values), cluster=c)]).reader().read(END, [300])
    assert only(reading).windows == (
        Window(minutes=300, expected=300, present=298, minimum=0, maximum=0, mean=0, invalid=2),
    )
    assert reading.invalid == (
        InvalidSamples(
            metric="pod_gpu_utilization",
            samples=2,
            accelerators=1,
            first=minutes(END, values)[100][0],
        ),
    )


def test_a_device_whose_values_are_all_impossible_is_there_without_statistics(
    given: Given,
) -> None:
    reading = given(lambda c: [gpu(minutes(END, [-1.0] * 60), cluster=c)]).reader().read(END, [60])
    assert only(reading).windows == (
        Window(minutes=60, expected=60, present=0, maximum=None, mean=None, invalid=60),
    )
    assert only(reading).last_sample is None


def test_a_series_that_stopped_has_no_last_sample(given: Given) -> None:
    world = given(lambda c: [gpu(minutes(END - timedelta(minutes=5), [0.0] * 30), cluster=c)])
    device = only(world.reader().read(END, [60]))
    assert (device.windows[0].present, device.last_sample) == (30, None)


def test_a_device_without_a_point_in_the_longest_window_is_not_in_the_reading(
    given: Given,
) -> None:
    # Listed, for its last point is an hour and a minute old; the signal windows are longer.
    old = minutes(END - timedelta(minutes=60), [0.0] * 30)
    reader = given(lambda c: [gpu(old, cluster=c)]).reader()
    assert reader.read(END, [60], [120]).devices == ()
    assert only(reader.read(END, [61], [120])).windows[0].present == 1


# --- whose it is ---------------------------------------------------------------------------------


def test_nothing_measured_is_an_empty_reading(given: Given) -> None:
    reader = given(lambda _: []).reader()
    assert reader.read(END, [60], [30]) == MetricsReading(devices=(), invalid=())
    assert reader.kueue(END) == KueueMetrics()
    assert reader.seen(END, 3600, [("hyperpod-ns-research", "train-0")]) == ()
    assert reader.samples(END, 3600, []) == ()


def test_sums_and_other_clusters_are_no_devices(given: Given) -> None:
    idle = minutes(END, [0.0] * 60)

    def series(cluster: str) -> list[Series]:
        whole = gpu(idle, cluster=cluster)
        some = list(whole.dimensions.items())
        sums = [replace(whole, dimensions=dict(some[:size])) for size in range(1, 5)]
        sums.append(replace(whole, dimensions=dict([some[0], *some[2:]])))  # in no namespace
        return [
            *sums,
            gpu(minutes(END, [60.0] * 60), cluster="another"),
            gpu(idle, cluster=cluster),
        ]

    assert only(given(series).reader().read(END, [60])).windows[0].maximum == 0


def test_one_number_on_two_nodes_is_two_devices(given: Given) -> None:
    idle, busy = minutes(END, [0.0] * 60), minutes(END, [70.0] * 60)
    world = given(lambda c: [gpu(idle, cluster=c), gpu(busy, cluster=c, pod="train-1")])
    found = world.reader().read(END, [60]).devices
    assert [(d.uuid, d.windows[0].maximum) for d in found] == [
        ("hyperpod-ns-research/train-0/nvidia0", 0.0),
        ("hyperpod-ns-research/train-1/nvidia0", 0.7),
    ]


def test_a_further_dimension_makes_no_further_device(given: Given) -> None:
    world = given(
        lambda c: [
            gpu(minutes(END, [0.0] * 60), cluster=c),
            gpu(minutes(END, [40.0] * 30), cluster=c, ContainerName="main"),
        ]
    )
    (window,) = only(world.reader().read(END, [60])).windows
    # Where two series of one device disagree, the higher value counts: (30 * 0 + 30 * 0.4) / 60.
    assert (window.present, window.maximum) == (60, 0.4)
    assert window.mean == pytest.approx(0.2)


def test_a_neuron_device_is_as_active_as_its_busiest_core(given: Given) -> None:
    held = "pod_neuroncore_memory_usage_total"
    world = given(
        lambda c: [
            core(minutes(END, [0.0] * 60), cluster=c, number=0),
            core(minutes(END, [3.0] * 50), cluster=c, number=1),
            core(minutes(END, [2.0**30] * 60), cluster=c, number=0, metric=held),
            core(minutes(END, [2.0**29] * 60), cluster=c, number=1, metric=held),
            core(minutes(END, [97.0] * 60), cluster=c, device="device1", number=2),
        ]
    )
    first, second = world.reader().read(END, [60], [30]).devices
    assert first.uuid == "hyperpod-ns-research/train-0/device0"
    assert first.activity_metric == "pod_neuroncore_utilization"
    # In the first ten minutes one core is not seen, which is not a core at 0.
    assert (first.windows[0].present, first.windows[0].maximum) == (50, 0.03)
    assert first.held_bytes == 2**30 + 2**29
    assert (second.windows[0].minimum, second.tensor, second.power) == (0.97, (), ())


# --- what is asked -------------------------------------------------------------------------------


def cluster_of_three(cluster: str) -> list[Series]:
    """An idle device, one that works every other minute, and one that is pinned at 100 %."""
    levels = {"nvidia0": [0.0, 0.0], "nvidia1": [0.0, 100.0], "nvidia2": [100.0, 100.0]}
    found = []
    for device, two in levels.items():
        measured = {"pod_gpu_utilization": two, MEMORY: [2.0**31], TENSOR: [0.0], POWER: [90.0]}
        for metric, values in measured.items():
            points = minutes(END, values * (60 // len(values)))
            found.append(gpu(points, cluster=cluster, device=device, metric=metric))
    return found


def test_only_who_needs_it_is_asked_for_more_than_activity(given: Given) -> None:
    world = given(cluster_of_three)
    idle, half, pinned = world.reader().read(END, [30, 60], [30]).devices
    # Memory over the longest window and signals over theirs: two calls, in whatever order.
    assert world.asked[0] == ["pod_gpu_utilization"] * 3
    assert sorted(world.asked[1:]) == [[MEMORY], [TENSOR, POWER]]
    assert (idle.held_bytes, idle.tensor, idle.power) == (2**31, (), ())
    assert (half.held_bytes, half.tensor, half.power) == (None, (), ())
    assert pinned.held_bytes is None
    shared = {"minutes": 30, "expected": 30, "present": 30}
    assert pinned.tensor == (Window(**shared, minimum=0, maximum=0, mean=0),)
    assert pinned.power == (Window(**shared, minimum=90, maximum=90, mean=90),)
    assert (pinned.power_limit_watts, pinned.model) == (None, None)


def test_without_signal_windows_no_signal_is_asked_for(given: Given) -> None:
    world = given(cluster_of_three)
    world.reader().read(END, [60])
    assert world.asked == [["pod_gpu_utilization"] * 3, [MEMORY]]


@pytest.mark.parametrize(
    ("recorded", "activity"),
    [
        (0.4, 0.4),  # a ratio, which is what the agent passes on
        (40.0, 0.4),  # a percentage, which is what the metric is documented as
        (0.0, 0.0),
    ],
)
def test_tensor_activity_is_read_as_a_ratio_or_as_a_percentage(
    given: Given, recorded: float, activity: float
) -> None:
    world = given(
        lambda c: [
            gpu(minutes(END, [100.0] * 60), cluster=c),
            gpu(minutes(END, [recorded] * 60), cluster=c, metric=TENSOR),
        ]
    )
    device = only(world.reader().read(END, [60], [30]))
    assert device.tensor[0].maximum == pytest.approx(activity)
    (samples,) = world.reader().samples(END, 600, [name()], [Signal.TENSOR])
    assert samples.values == pytest.approx([activity] * 10)


# --- looking back --------------------------------------------------------------------------------


def test_samples_are_the_valid_minutes_of_the_span_oldest_first(given: Given) -> None:
    values = [90.0, 50.0, 0.0, 31400.0, None, 10.0]
    world = given(lambda c: [gpu(minutes(END, values), cluster=c)])
    # 12:00 is the last; (11:55, 12:00] leaves the 90 % of 11:55 out
    found = world.reader().samples(END, 300, [name()])
    assert [(s.device, s.signal, s.values) for s in found] == [
        (name(), Signal.ACTIVITY, (0.5, 0.0, 0.1))
    ]
    ago = [(END - at).total_seconds() / 60 for at in found[0].times]
    assert ago == [4, 3, 0]


def test_samples_of_several_signals_and_of_nobody(given: Given) -> None:
    world = given(cluster_of_three)
    unknown = DeviceName(namespace="hyperpod-ns-research", pod="train-0", uuid="GPU-1")
    signals = [Signal.ACTIVITY, Signal.POWER]
    found = world.reader().samples(END, 120, [name(device="nvidia2"), unknown], signals)
    assert [(s.device.uuid, s.signal, s.values) for s in found] == [
        ("GPU-1", Signal.ACTIVITY, ()),
        ("GPU-1", Signal.POWER, ()),
        (name(device="nvidia2").uuid, Signal.ACTIVITY, (1.0, 1.0)),
        (name(device="nvidia2").uuid, Signal.POWER, (90.0, 90.0)),
    ]


def test_no_slice_is_known_by_its_card(given: Given) -> None:
    world = given(cluster_of_three)
    (found,) = world.reader().samples(END, 120, [replace(name(), mig="3g.40gb/1")])
    assert (found.times, found.values) == ((), ())


# Only recorded: moto walks through all that it holds for each of the week's 10,080 minutes.
@pytest.mark.parametrize("given", ["recorded"], indirect=True)
def test_a_week_is_fetched_in_answers_that_fit(given: Given) -> None:
    # 10,080 minutes a device: ten devices fill an answer of 100,800 points, the eleventh is another.
    devices = [f"nvidia{n}" for n in range(11)]
    ancient = END - timedelta(days=7)
    world = given(
        lambda c: [
            gpu(
                [(ancient, 1.0), (ancient + timedelta(minutes=1), 2.0), (END, 3.0)],
                cluster=c,
                device=device,
            )
            for device in devices
        ]
    )
    names = [name(device=device) for device in devices]
    found = world.reader().samples(END, 7 * 86400, names)
    assert [s.values for s in found] == [(0.02, 0.03)] * 11
    assert sorted(map(len, world.asked)) == [1, 10]


def test_seen_tells_pods_that_had_points_in_the_span_and_no_others(given: Given) -> None:
    def series(cluster: str) -> list[Series]:
        hours = (("early-0", 30), ("late-0", 5), ("other-0", 5))
        return [
            gpu(minutes(END - timedelta(hours=h), [0.0] * 60), cluster=cluster, pod=pod)
            for pod, h in hours
        ]

    pods = [("hyperpod-ns-research", pod) for pod in ("early-0", "late-0", "never-0")]
    (found,) = given(series).reader().seen(END, 86400, pods)
    assert (found.namespace, found.pod) == ("hyperpod-ns-research", "late-0")
    assert found.uuid == "hyperpod-ns-research/late-0/nvidia0"
    assert (found.windows, found.last_sample) == ((), None)


def test_many_pods_are_seen_at_once(given: Given) -> None:
    pods = [f"pod-{n}" for n in range(12)]
    world = given(
        lambda c: [gpu([(END - timedelta(hours=4), 0.0)], cluster=c, pod=pod) for pod in pods]
    )
    asked = [("hyperpod-ns-research", pod) for pod in pods[1:]]
    found = world.reader().seen(END, 86400, asked)
    assert {device.pod for device in found} == set(pods[1:])


# --- Kueue ---------------------------------------------------------------------------------------


def queue(
    cluster: str, metric: str, points: Sequence[tuple[datetime, float]], **said: str
) -> Series:
    return Series(metric, {"ClusterName": cluster, **said}, points, namespace=KUEUE)


def kueue_series(cluster: str) -> list[Series]:
    a = {"ClusterQueue": "queue-a"}
    gpus = {"Resource": "nvidia.com/gpu", "Flavor": "ml.p5.48xlarge"}
    evicted = [(END - timedelta(minutes=m), v) for m, v in ((61, 50.0), (59, 2.0), (30, 3.0))]
    # A second series (another underlying cause) on the same dimensions, in the same minute.
    evicted.append((END - timedelta(seconds=1795), 4.0))
    return [
        queue(cluster, "kueue_pending_workloads", minutes(END, [9.0, 3.0]), **a, Status="active"),
        queue(cluster, "kueue_pending_workloads", minutes(END, [1.0]), **a, Status="inadmissible"),
        queue(cluster, "kueue_pending_workloads", minutes(END, [99.0]), **a),
        queue(cluster, "kueue_admitted_active_workloads", minutes(END, [7.0]), **a),
        queue(cluster, "kueue_evicted_workloads_total", evicted, **a, Reason="Preempted"),
        queue(cluster, "kueue_cluster_queue_resource_usage", minutes(END, [12.0]), **a, **gpus),
        queue(cluster, "kueue_cluster_queue_nominal_quota", minutes(END, [8.0]), **a, **gpus),
        queue(
            cluster,
            "kueue_cluster_queue_resource_usage",
            minutes(END, [64.0]),
            **a,
            Resource="cpu",
            Flavor="ml.p5.48xlarge",
        ),
        queue(
            cluster,
            "kueue_pending_workloads",
            minutes(END, [77.0]),
            **a,
            Status="active",
            NodeName="one of many",
        ),
        # Its last value is ten minutes old: what it is now nobody says.
        queue(
            cluster,
            "kueue_admitted_active_workloads",
            minutes(END - timedelta(minutes=10), [5.0]),
            ClusterQueue="queue-b",
        ),
    ]


def test_kueues_five_metrics_by_queue(given: Given) -> None:
    world = given(kueue_series)
    assert world.reader().kueue(END) == KueueMetrics(
        version=None,
        queues=(
            QueueMetrics(
                cluster_queue="queue-a",
                pending={"active": 3.0, "inadmissible": 1.0},
                admitted=7.0,
                evicted={"Preempted": 9.0},  # 2 + (3 + 4) of the hour; the 50 are older
                usage={"ml.p5.48xlarge": {"nvidia.com/gpu": 12.0}},
                nominal={"ml.p5.48xlarge": {"nvidia.com/gpu": 8.0}},
            ),
        ),
    )
    # Neither the sums over statuses and nodes nor the metric about CPUs is asked for.
    assert list(map(len, world.asked)) == [7]
