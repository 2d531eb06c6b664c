"""Pods outside governed namespaces: listed hourly, at once on a change, and carried in between."""

from datetime import timedelta

from steward.cluster.memory import Device, Memory
from steward.cluster.pods import Hourly
from steward.cluster.snapshot import PartStatus
from steward.ports import DeviceName
from steward.usecases.read_cluster import read_cluster
from tests.builders import DELAY, NOON, a_cluster, at
from tests.fakes import FakeKubernetes, FakeMetrics, FakeSources, FixedTime
from tests.unit.usecases.test_take_snapshot import NODE, a_pod, minutes

CLUSTER = a_cluster()  # governs hyperpod-ns-research
NOTEBOOK = a_pod("notebook-0", namespace="default")
TRAIN = a_pod("train-0")


def series(*pods, stop=NOON - DELAY, start="6:00"):
    return {
        DeviceName(namespace=pod.namespace, pod=pod.name, uuid=f"GPU-{pod.name}"): minutes(
            0.5, start, stop
        )
        for pod in pods
    }


class World:
    """A cluster whose pods and series change between ticks."""

    def __init__(self, *pods, **labels):
        self.kube = FakeKubernetes(pods, (NODE,), labels=labels)
        self.metrics = FakeMetrics(series(*pods))
        self.memory = Memory(cluster="ml-shared-01")
        self.last = None

    def tick(self, when=NOON):
        """Names of the pods that hold GPUs, and whether every namespace was listed."""
        sources = FakeSources(self.kube, self.metrics)
        self.snapshot, self.last = read_cluster(
            CLUSTER, self.memory, sources, FixedTime(when), self.last
        )
        held = sorted({a.holder.pod for a in self.snapshot.accelerators})
        return held, self.kube.wanted[-1].everywhere


def test_the_first_tick_lists_every_namespace_and_the_next_ones_carry_what_it_showed():
    world = World(TRAIN, NOTEBOOK)
    assert world.tick() == (["notebook-0", "train-0"], True)
    assert world.last.pods == (NOTEBOOK,)
    # Five minutes later only governed namespaces are asked; the notebook is carried.
    assert world.tick(NOON + timedelta(minutes=5)) == (["notebook-0", "train-0"], False)


def test_add_ons_are_read_with_that_list_and_carried_like_its_pods():
    world = World(TRAIN)
    world.tick()
    (add_on,) = world.last.add_ons
    world.tick(NOON + timedelta(minutes=5))
    assert world.snapshot.control_plane.add_ons == (add_on,)  # though nobody was asked
    assert world.last.add_ons == (add_on,)


def test_after_an_hour_every_namespace_is_listed_again():
    world = World(TRAIN, NOTEBOOK)
    world.tick()
    world.metrics = FakeMetrics(series(TRAIN, NOTEBOOK, stop=NOON + timedelta(hours=2)))
    assert world.tick(NOON + timedelta(minutes=55))[1] is False
    assert world.tick(NOON + timedelta(minutes=60))[1] is True


def test_a_series_that_names_a_new_pod_elsewhere_asks_for_the_list_at_once():
    world = World(TRAIN)
    world.tick()
    world.kube.pods = (TRAIN, NOTEBOOK)
    world.metrics = FakeMetrics(series(TRAIN, NOTEBOOK, stop=NOON + timedelta(minutes=3)))
    assert world.tick(NOON + timedelta(minutes=5)) == (["notebook-0", "train-0"], True)


def test_a_carried_pod_whose_series_ended_since_asks_for_the_list_once():
    world = World(TRAIN, NOTEBOOK)
    world.metrics = FakeMetrics(
        series(NOTEBOOK, stop=at("12:04")) | series(TRAIN, stop=at("13:00"))
    )
    world.tick()
    # Evaluation has meanwhile remembered the notebook's device, last seen at 12:04.
    seen = Device(
        node="hyperpod-i-0a",
        uuid="GPU-notebook-0",
        mig=None,
        pod_uid=NOTEBOOK.uid,
        seen=at("12:04"),
    )
    world.memory = Memory(cluster="ml-shared-01", devices=(seen,))
    world.kube.pods = (TRAIN,)
    # At 12:15 the window ends at 12:13: the last sample is nine minutes old, so nothing lives.
    assert world.tick(at("12:15")) == (["train-0"], True)
    # The list explained it: the same silence asks for no further list.
    assert world.tick(at("12:20")) == (["train-0"], False)


def test_a_series_that_goes_on_naming_a_dead_pod_asks_for_one_list_only():
    ghost = a_pod("ghost-0", namespace="default")
    world = World(TRAIN)
    world.metrics = FakeMetrics(series(TRAIN, ghost, stop=NOON + timedelta(minutes=30)))
    assert world.tick()[1] is True
    assert world.last.strangers == (("default", "ghost-0"),)
    assert world.tick(NOON + timedelta(minutes=5))[1] is False


def test_a_namespace_that_hyperpod_governs_by_label_is_not_elsewhere():
    managed = a_pod("managed-0", namespace="hyperpod-ns-new")
    world = World(TRAIN, managed)
    world.kube.labels = {"hyperpod-ns-new": {"sagemaker.amazonaws.com/quota-allocation-id": "new"}}
    assert world.tick() == (["managed-0", "train-0"], True)
    assert world.last.pods == ()
    assert world.last.governed == ("hyperpod-ns-new", "hyperpod-ns-research")


def test_while_pods_cannot_be_listed_what_is_known_of_elsewhere_is_kept():
    world = World(TRAIN, NOTEBOOK)
    world.tick()
    known = world.last
    world.kube.refused = {"pods": PartStatus.DENIED}
    assert world.tick(NOON + timedelta(minutes=5)) == ([], False)
    assert world.last is known


def test_without_metrics_only_the_hour_asks_for_the_list():
    world = World(TRAIN, NOTEBOOK)
    world.tick()
    world.metrics = FakeMetrics(broken={"read"})
    assert world.tick(NOON + timedelta(minutes=5)) == (["notebook-0", "train-0"], False)


def test_an_elsewhere_of_yesterday_is_no_reason_to_trust_it():
    world = World(TRAIN)
    world.last = Hourly(at=NOON - timedelta(days=1), pods=(NOTEBOOK,))
    assert world.tick() == (["train-0"], True)
