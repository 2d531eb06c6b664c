"""The capacity detector, whatever nodes, instances, groups, events and quotas there are."""

from collections.abc import Sequence
from copy import replace
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from steward import codec
from steward.cluster.control_plane import ClusterEvent, ControlPlane
from steward.cluster.findings import Finding
from steward.cluster.memory import Memory
from steward.cluster.snapshot import PartStatus, Snapshot
from steward.detect.capacity import detect
from tests.builders import NOON, a_part
from tests.unit.detect.capacity_cluster import (
    CLUSTER,
    EMPTY,
    P5,
    PARTS,
    event,
    group,
    instance,
    node,
    queue,
    row,
    taken,
)

NAMES = ("a", "b", "c")
STATUSES = (
    "Running",
    "Failure",
    "Pending",
    "ShuttingDown",
    "SystemUpdating",
    "DeepHealthCheckInProgress",
    "NotFound",
)
HEALTH = ("Schedulable", "Unschedulable", "UnschedulablePendingReboot", None)


@st.composite
def events(draw: Any, minute: int) -> tuple[ClusterEvent, ...]:
    """Some events, each perhaps more than once."""
    once = [
        event(
            number,
            NOON + timedelta(minutes=minute - draw(st.integers(0, 1500))),
            draw(st.sampled_from(["i-a", "i-x", None])),
            level=draw(st.sampled_from(["Error", "Error", "Warn", None])),
        )
        for number in range(draw(st.integers(0, 3)))
    ]
    return tuple(draw(st.lists(st.sampled_from(once), max_size=5))) if once else ()


@st.composite
def snapshots(draw: Any, minute: int = 0) -> Snapshot:
    """Any cluster of at most three nodes and four instances, some of it refused."""
    nodes = tuple(
        node(
            name,
            ready=draw(st.booleans()),
            schedulable=draw(st.booleans()),
            health=draw(st.sampled_from(HEALTH)),
        )
        for name in draw(st.sets(st.sampled_from(NAMES)).map(sorted))
    )
    instances = tuple(
        instance(name, draw(st.sampled_from(STATUSES)))
        for name in draw(st.sets(st.sampled_from((*NAMES, "x"))).map(sorted))
    )
    refused = draw(st.sets(st.sampled_from(PARTS), max_size=2))
    statuses = st.sampled_from([PartStatus.DENIED, PartStatus.UNREADABLE])
    parts = tuple(a_part(p, draw(statuses) if p in refused else PartStatus.OK) for p in PARTS)
    plane = ControlPlane(
        groups=()
        if "sagemaker/DescribeCluster" in refused
        else (group(draw(st.integers(0, 4)), draw(st.integers(0, 4))),),
        nodes=() if "sagemaker/ListClusterNodes" in refused else instances,
        events=() if "sagemaker/ListClusterEvents" in refused else draw(events(minute)),
    )
    quotas = (
        ()
        if "kubernetes/clusterqueues" in refused
        else (
            queue("research", float(draw(st.integers(0, 32)))),
            queue("product-genai", float(draw(st.integers(0, 8)))),
        )
    )
    return taken(
        () if "kubernetes/nodes" in refused else nodes,
        at=NOON + timedelta(minutes=minute),
        control_plane=plane,
        parts=parts,
        cluster_queues=quotas,
        resource_flavors=()
        if "kubernetes/resourceflavors" in refused
        else taken().resource_flavors,
    )


@st.composite
def histories(draw: Any) -> list[Snapshot]:
    return [draw(snapshots(5 * n)) for n in range(draw(st.integers(2, 5)))]


def shuffled(snapshot: Snapshot, draw: Any) -> Snapshot:
    def mixed[T](values: Sequence[T]) -> tuple[T, ...]:
        return tuple(draw(st.permutations(values)))

    plane = snapshot.control_plane
    return replace(
        snapshot,
        parts=mixed(snapshot.parts),
        nodes=mixed(snapshot.nodes),
        cluster_queues=mixed(snapshot.cluster_queues),
        local_queues=mixed(snapshot.local_queues),
        resource_flavors=mixed(snapshot.resource_flavors),
        control_plane=replace(
            plane, nodes=mixed(plane.nodes), groups=mixed(plane.groups), events=mixed(plane.events)
        ),
    )


@settings(max_examples=60, deadline=None)
@given(st.data(), histories())
def test_the_order_of_objects_means_nothing(data: st.DataObject, history: list[Snapshot]) -> None:
    memory = other = EMPTY
    for snapshot in history:
        one = detect(snapshot, memory, CLUSTER)
        two = detect(shuffled(snapshot, data.draw), other, CLUSTER)
        assert (one.findings, one.cleared) == (two.findings, two.cleared)
        assert sorted(map(repr, one.unknown)) == sorted(map(repr, two.unknown))
        assert codec.dump(one.memory) == codec.dump(two.memory)
        memory, other = one.memory, two.memory


def key(finding: Finding) -> str:
    return finding.key


@settings(max_examples=150, deadline=None)
@given(histories())
def test_nothing_that_was_told_disappears_without_a_word(history: list[Snapshot]) -> None:
    """What is no longer found has ended, or somebody says that it cannot be judged."""
    memory, before = EMPTY, tuple[Finding, ...]()
    for snapshot in history:
        found = detect(snapshot, memory, CLUSTER)
        there = {key(finding) for finding in found.findings}
        over = {key(one.finding) for one in found.cleared}
        unknown = {line.subject for line in found.unknown}
        blind = any(line.blind for line in found.unknown)
        for finding in before:
            assert blind or key(finding) in there | over or finding.subject in unknown
        assert there.isdisjoint(over)
        # one reason a subject
        assert len(there) == len({finding.subject for finding in found.findings})
        held = tuple(f for f in before if key(f) not in there | over)
        memory, before = found.memory, (*found.findings, *held)


@settings(max_examples=60, deadline=None)
@given(histories())
def test_a_running_finding_keeps_its_beginning_and_never_begins_in_the_future(
    history: list[Snapshot],
) -> None:
    memory, since = EMPTY, dict[str, Any]()
    for snapshot in history:
        found = detect(snapshot, memory, CLUSTER)
        for one in found.cleared:
            since.pop(key(one.finding), None)
        for finding in found.findings:
            assert finding.since <= min(snapshot.at, since.get(key(finding), snapshot.at))
            since[key(finding)] = finding.since
        memory = found.memory


@settings(max_examples=40, deadline=None)
@given(histories())
def test_an_evaluation_that_is_repeated_says_the_same(history: list[Snapshot]) -> None:
    memory = EMPTY
    for snapshot in history:
        found = detect(snapshot, memory, CLUSTER)
        again = detect(snapshot, memory, CLUSTER)
        stored = codec.load(Memory, codec.dump(found.memory), "memory")
        assert (again, stored) == (found, found.memory)
        memory = stored


ROWS = st.tuples(
    st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-3g.40gb", "cpu"]), st.integers(0, 20)
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 8)), max_size=4),
    st.lists(ROWS, max_size=4),
)
def test_what_is_missing_is_what_is_promised_less_what_is_usable(
    machines: list[tuple[bool, bool, int]], quotas: list[tuple[str, int]]
) -> None:
    nodes = tuple(
        node(
            f"n{n}",
            ready=ready,
            schedulable=schedulable,
            allocatable={"cpu": 1.0, "nvidia.com/gpu": float(offered)},
        )
        for n, (ready, schedulable, offered) in enumerate(machines)
    )
    queues = tuple(
        queue(f"team-{n}", 0.0, rows=(row(float(amount), resource),))
        for n, (resource, amount) in enumerate(quotas)
    )
    found = detect(taken(nodes, cluster_queues=queues), EMPTY, CLUSTER)
    # By definition: whole GPUs count one, a 3g slice 3/7, a core nothing.
    each = {"nvidia.com/gpu": 1.0, "nvidia.com/mig-3g.40gb": 3 / 7, "cpu": 0.0}
    promised = sum(each[resource] * amount for resource, amount in quotas)
    usable = sum(offered for ready, schedulable, offered in machines if ready and schedulable)
    told = [f.gpus for f in found.findings if f.subject == f"ResourceFlavor/{P5}"]
    if promised - usable > 1e-6:
        assert [round(one, 4) for one in told] == [round(promised - usable, 4)]
    else:
        assert told == []
