"""A pod that holds MIG slices, where series tell of the whole card only (Container Insights)."""

import pytest

from steward.cluster.accelerators import Owner, UnknownReason, judge
from steward.cluster.memory import Memory
from steward.cluster.pods import GpuPod
from steward.ports import DeviceName
from steward.usecases.read_cluster import read_cluster
from tests.builders import NOON, a_cluster, at
from tests.fakes import FakeKubernetes, FakeMetrics, FakeSources, FixedTime

CLUSTER = a_cluster()
NS = "hyperpod-ns-research"


def accelerators(resource, mig):
    owner = Owner(kind="Job", namespace=NS, name="train")
    pod = GpuPod(
        namespace=NS,
        name="train-0",
        uid="uid-train-0",
        node="hyperpod-i-0a",
        accelerators=1,
        resource=resource,
        since=at("6:00"),
        owner=owner,
        owner_chain=(owner,),
        labels={},
    )
    card = DeviceName(namespace=NS, pod="train-0", uuid=f"{NS}/train-0/nvidia0", mig=mig)
    zeros = [(at("9:00").replace(hour=h, minute=m), 0.0) for h in (9, 10, 11) for m in range(60)]
    sources = FakeSources(FakeKubernetes(pods=(pod,)), FakeMetrics(series={card: zeros}))
    snapshot, _ = read_cluster(CLUSTER, Memory(cluster="ml-shared-01"), sources, FixedTime(NOON))
    return snapshot.accelerators, snapshot.window_end


@pytest.mark.parametrize(
    ("resource", "mig", "idle"),
    [
        ("nvidia.com/gpu", None, True),
        ("nvidia.com/mig-3g.40gb", "3g.40gb/1", True),
        # Utilisation is 0 or garbage on a partitioned card: that is no idle slice.
        ("nvidia.com/mig-3g.40gb", None, False),
    ],
)
def test_a_slice_is_told_by_its_own_series_only(resource, mig, idle):
    ((gpu,), end) = accelerators(resource, mig)
    verdict = judge(gpu, CLUSTER.thresholds.idle, end, readable=True)
    assert verdict.idle is idle
    assert verdict.reason is (None if idle else UnknownReason.NO_TELEMETRY)
    assert gpu.fraction == (1 if resource == "nvidia.com/gpu" else 3 / 7)


@pytest.mark.parametrize(
    ("resource", "mig", "fraction"),
    [
        ("nvidia.com/gpu", "3g.40gb/1", 3 / 7),  # every card alike: the slice says its size
        ("nvidia.com/mig-1c.3g.40gb", "1c.3g.40gb/1", 1 / 7),  # one of a slice's three
        ("nvidia.com/mig-3g.40gb", "/1", 3 / 7),  # no profile on the series: the request's
        ("nvidia.com/mig-1g.10gb.me", "1g.10gb+me/1", 1 / 7),
    ],
)
def test_a_slice_is_the_share_that_its_profile_says(resource, mig, fraction):
    ((gpu,), _) = accelerators(resource, mig)
    assert gpu.fraction == fraction
