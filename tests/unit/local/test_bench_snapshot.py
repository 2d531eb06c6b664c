"""The generated cluster that the bench measures is read right; how fast is the bench's business."""

import math
import re

import pytest

from local.bench_goals import growth
from local.bench_snapshot import TICKS, take
from local.generated.cluster import NOW, GeneratedCluster, gpu_uuid
from local.generated.objects import Objects
from local.generated.series import Series, UnansweredError
from local.generated.server import serving
from local.twins import InMemoryObjects
from steward.errors import ConfigError
from steward.stores.bucket import Memories, Snapshots

CLUSTER = "ml-shared-01"


@pytest.fixture
def ticks(tmp_path):
    """Take both ticks of a cluster: what each asked for, its snapshot, and the memory at the end."""

    def run(gpus):
        folder = tmp_path / str(gpus)
        folder.mkdir()
        kept, asked, taken = {}, [], []
        with serving(GeneratedCluster(gpus=gpus), folder) as (url, app):
            for at in TICKS.values():
                taken.append(take(url, gpus, at, kept))
                asked.append(dict(app.asked))
                app.asked.clear()
        objects = InMemoryObjects()
        objects.objects.update(kept)
        keys = sorted(key for key in kept if key.startswith("snapshots/"))
        snapshots = [Snapshots(objects).get(key) for key in keys]
        return taken, asked, snapshots, Memories(objects).load(CLUSTER)[0]

    return run


def test_a_cluster_of_64_gpus_is_read_as_it_was_made(ticks):
    taken, _, (first, second), memory = ticks(64)
    assert [one.refused for one in taken] == [{}, {}]
    # Eight nodes: six train, in gangs of four and two; two serve, with eight one-GPU pods each.
    for snapshot in (first, second):
        holders = {a.holder.pod for a in snapshot.accelerators}
        assert (len(snapshot.nodes), len(holders), len(snapshot.accelerators)) == (8, 22, 64)
        assert len(snapshot.control_plane.nodes) == 8
        # 2 jobs and 16 pods are live. Four finished for each are 72, a quarter of them less than
        # seven days ago: 18. Two wait for each of 15 teams.
        assert len(snapshot.workloads) == 18 + 18 + 30
        assert len(snapshot.cluster_queues) == len(snapshot.local_queues) == 15
        assert len(snapshot.namespaces) == 15 + 6
        # Of the last hour: one event for each Workload that is not finished, none about pods.
        assert len(snapshot.kueue_events) == 18 + 30
        assert snapshot.kueue_metrics.version == "v0.19.2"
        assert len(snapshot.kueue_metrics.queues) == 15
    # The first gang (four nodes) and the first Deployment (four pods) are idle, for four hours.
    assert {i.subject: len(i.stretches) for i in memory.idle} == {
        "PyTorchJob/hyperpod-ns-team-000/pretrain-0": 32,
        "Deployment/hyperpod-ns-team-000/serve-0": 4,
    }
    # One reading in the window is a blank constant.
    assert {(line.accelerators, line.metric) for line in first.invalid} >= {
        (1, "DCGM_FI_DEV_GPU_UTIL"),
        (1, "DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
    }


def test_the_number_of_queries_does_not_grow_with_the_cluster(ticks):
    small, large = (ticks(gpus)[1] for gpus in (64, 128))
    for one, other in zip(small, large, strict=True):
        assert one["prometheus"] == other["prometheus"]
        assert 0 < one["prometheus"] <= 12


@pytest.mark.parametrize("url", ["", "https://sagemaker.us-east-1.amazonaws.com"])
def test_the_readers_are_let_loose_on_loopback_only(url):
    with pytest.raises(ConfigError, match="loopback"):
        take(url, 8, NOW, {})


def test_objects_carry_a_real_ones_baggage():
    cluster = GeneratedCluster(gpus=64)
    pods = Objects(cluster).of("pods")
    assert len(pods) == 22 + 8 * 12
    texts = [pod.text() for pod in pods]
    # A pod of a real cluster is 5 to 15 kB, a quarter of it or more managed fields.
    assert all(5_000 < len(text) < 15_000 for text in texts)
    assert all(len(text.partition('"managedFields"')[2]) > len(text) / 4 for text in texts)
    assert not any(re.search(r"\$[a-z]", text) for text in texts)


def test_a_query_of_a_new_form_is_refused():
    series = Series(GeneratedCluster(gpus=8))
    with pytest.raises(UnansweredError, match="rate"):
        series.answer("rate(DCGM_FI_DEV_GPU_UTIL{}[59999ms])", NOW.timestamp())


def test_raw_samples_are_of_the_devices_asked_for_only():
    cluster = GeneratedCluster(gpus=16)
    wanted = gpu_uuid(cluster.nodes[1], 5)  # of the second Deployment, which is busy
    query = f'DCGM_FI_DEV_GPU_UTIL{{UUID=~"{wanted}|",uuid=~"{wanted}|"}}[599999ms]'
    answer = Series(cluster).answer(query, NOW.timestamp()).decode()
    assert answer.count('"UUID"') == answer.count(wanted) == 1
    assert answer.count('"91.0"') == 10


@pytest.mark.parametrize("power", [0.5, 1.0, 1.4])
def test_the_exponent_is_the_slope_of_the_logarithms(power):
    costs = [(gpus, 0.003 * math.pow(gpus, power)) for gpus in (1_000, 10_000, 50_000)]
    assert growth(costs) == pytest.approx(power)
