"""Accelerators of an instance type: who says so, and what a quota makes of it."""

from copy import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.cluster.control_plane import (
    ClusterNode,
    ComputeQuota,
    ControlPlane,
    InstanceGroupState,
    QuotaResource,
)
from steward.cluster.instance_types import (
    InstanceType,
    KnownFrom,
    accelerators_of,
    known_types,
    quota_accelerators,
    usd_per_accelerator,
    with_accelerators,
)
from steward.cluster.policy import InstanceGroup, Price
from steward.cluster.snapshot import Node
from tests.builders import a_cluster

P5, M5, NEW = "ml.p5.48xlarge", "ml.m5.large", "ml.p9.96xlarge"


def a_node(name: str, instance_type: str | None, accelerators: int | None) -> Node:
    return Node(
        name=name,
        instance_type=instance_type,
        accelerators=accelerators,
        ready=True,
        schedulable=True,
        health=None,
    )


def row(instance_type: str, accelerators: int) -> InstanceGroup:
    return InstanceGroup(
        instance_type=instance_type, count=1, accelerators_per_instance=accelerators
    )


@pytest.mark.parametrize(
    ("name", "capacity", "seen", "accelerators", "known_from"),
    [
        # A node before the policy before the table.
        (P5, (row(P5, 6),), (7,), 7, KnownFrom.NODE),
        (P5, (row(P5, 6),), (), 6, KnownFrom.POLICY),
        (P5, (), (), 8, KnownFrom.TABLE),
        (NEW, (), (), None, KnownFrom.UNKNOWN),
        (M5, (), (0, 0), 0, KnownFrom.TABLE),
        # A node that has lost some does not make the type smaller.
        (P5, (), (7, 8, 0, None), 8, KnownFrom.NODE),
        # Without its device plugin a node shows none: that is not what its type has.
        (P5, (), (0, 0), 8, KnownFrom.TABLE),
        (NEW, (), (0, None), None, KnownFrom.UNKNOWN),
        (NEW, (row(NEW, 16),), (0,), 16, KnownFrom.POLICY),
        (NEW, (row(P5, 16),), (), None, KnownFrom.UNKNOWN),
    ],
)
def test_who_says_how_many_accelerators_a_type_has(
    name: str,
    capacity: tuple[InstanceGroup, ...],
    seen: tuple[int | None, ...],
    accelerators: int | None,
    known_from: KnownFrom,
) -> None:
    nodes = [a_node(f"n{index}", name, count) for index, count in enumerate(seen)]
    nodes.append(a_node("other", "ml.trn1.32xlarge", 99))
    assert accelerators_of(name, capacity, nodes) == (accelerators, known_from)


def a_quota(*resources: QuotaResource) -> ComputeQuota:
    return ComputeQuota(
        id="q",
        name="q",
        team="research",
        status="Created",
        active=True,
        strategy=None,
        borrow_limit_percent=None,
        accelerators=dict.fromkeys(one.instance_type for one in resources),
        fair_share_weight=None,
        resources=resources,
    )


def a_group(*types: str) -> InstanceGroupState:
    return InstanceGroupState(
        name="g", status="InService", current=1, target=1, instance_types=types
    )


def an_instance(instance_id: str, instance_type: str) -> ClusterNode:
    return ClusterNode(
        instance_id=instance_id,
        group="g",
        instance_type=instance_type,
        status="Running",
        message="",
    )


WORLD = ControlPlane(
    groups=(a_group(P5, "ml.p5en.48xlarge"),),
    nodes=(an_instance("i-1", "ml.g6.xlarge"),),
    quotas=(a_quota(QuotaResource(instance_type="ml.trn1.32xlarge", count=1)),),
)


def test_every_type_that_anybody_names_is_there_by_name() -> None:
    nodes = [a_node("a", P5, 8), a_node("b", P5, 8), a_node("c", NEW, 4)]
    assert known_types(WORLD, nodes, replace(a_cluster(), capacity=())) == (
        InstanceType(name="ml.g6.xlarge", accelerators=1, known_from=KnownFrom.TABLE, nodes=0),
        InstanceType(name=P5, accelerators=8, known_from=KnownFrom.NODE, nodes=2),
        InstanceType(name="ml.p5en.48xlarge", accelerators=8, known_from=KnownFrom.TABLE, nodes=0),
        InstanceType(name=NEW, accelerators=4, known_from=KnownFrom.NODE, nodes=1),
        # A quota for a type that the cluster lacks.
        InstanceType(name="ml.trn1.32xlarge", accelerators=16, known_from=KnownFrom.TABLE, nodes=0),
    )


def test_nodes_that_could_not_be_listed_are_not_counted() -> None:
    types = known_types(WORLD, None, a_cluster())
    assert {one.nodes for one in types} == {None}
    assert P5 in {one.name for one in types}


def test_an_instance_tells_the_type_of_a_node_without_labels() -> None:
    nodes = [a_node("hyperpod-i-1", None, 1)]
    found = {one.name: one for one in known_types(WORLD, nodes, a_cluster())}
    assert (found["ml.g6.xlarge"].nodes, found["ml.g6.xlarge"].known_from) == (1, KnownFrom.NODE)
    assert found["ml.trn1.32xlarge"].nodes == 0


def test_a_node_of_unknown_type_leaves_open_whether_a_type_is_lacking() -> None:
    nodes = [a_node("a", P5, 8), a_node("stranger", None, 8)]
    found = {one.name: one.nodes for one in known_types(WORLD, nodes, a_cluster())}
    assert found[P5] == 1
    assert found["ml.trn1.32xlarge"] is None  # the stranger may be one


def test_a_cluster_that_names_nothing_has_no_types() -> None:
    assert known_types(ControlPlane(), (), a_cluster()) == ()


EIGHT = {P5: 8, M5: 0}.get


@pytest.mark.parametrize(
    ("rows", "accelerators"),
    [
        ([QuotaResource(instance_type=P5, count=2)], {P5: 16}),
        ([QuotaResource(instance_type=P5, count=0)], {P5: 0}),
        ([QuotaResource(instance_type=M5, count=3)], {M5: 0}),
        ([QuotaResource(instance_type=NEW, count=2)], {NEW: None}),
        ([QuotaResource(instance_type=NEW, count=0)], {NEW: 0}),  # none of whatever it has
        ([QuotaResource(instance_type=NEW, accelerators=5)], {NEW: 5}),
        ([QuotaResource(instance_type=P5, vcpu=4.0)], {P5: 0}),
        ([QuotaResource(instance_type=P5, memory_gib=16.0)], {P5: 0}),
        ([QuotaResource(instance_type=P5)], {P5: None}),  # a row that gives nothing
        ([QuotaResource(instance_type=P5, accelerators=4, vcpu=4.0)], {P5: 4}),
        # Both given: they agree, contradict each other, or cannot be compared.
        ([QuotaResource(instance_type=P5, count=2, accelerators=16)], {P5: 16}),
        ([QuotaResource(instance_type=P5, count=2, accelerators=10)], {P5: None}),
        ([QuotaResource(instance_type=NEW, count=2, accelerators=10)], {NEW: 10}),
        # Slices are no whole accelerators, whatever stands beside them.
        ([QuotaResource(instance_type=P5, partition="mig-1g.10gb", partition_count=7)], {P5: None}),
        (
            [
                QuotaResource(instance_type=P5, accelerators=3),
                QuotaResource(instance_type=P5, count=1),
                QuotaResource(instance_type=M5, vcpu=2.0),
            ],
            {P5: 11, M5: 0},
        ),
        (
            [
                QuotaResource(instance_type=P5, partition="mig-1g.10gb", partition_count=7),
                QuotaResource(instance_type=P5, count=1),
            ],
            {P5: None},
        ),
        ([], {}),
    ],
)
def test_a_quotas_accelerators_follow_from_its_rows(
    rows: list[QuotaResource], accelerators: dict[str, int | None]
) -> None:
    assert quota_accelerators(rows, EIGHT) == accelerators


@given(st.lists(st.integers(0, 50)), st.integers(1, 16))
def test_rows_of_one_type_add_up(counts: list[int], each: int) -> None:
    rows = [QuotaResource(instance_type=P5, count=count) for count in counts]
    total = each * sum(counts)
    assert quota_accelerators(rows, lambda _: each) == ({P5: total} if counts else {})


def test_a_node_tells_what_a_quota_of_a_new_type_is_worth() -> None:
    plane = ControlPlane(quotas=(a_quota(QuotaResource(instance_type=NEW, count=3)),))
    types = known_types(plane, [a_node("a", NEW, 4)], a_cluster())
    assert with_accelerators(plane, types).quotas[0].accelerators == {NEW: 12}
    unseen = known_types(plane, [], a_cluster())
    assert with_accelerators(plane, unseen).quotas[0].accelerators == {NEW: None}


PRICED = replace(
    a_cluster(),
    prices=tuple(
        Price(instance_type=name, usd_per_hour=64.0, source="s", date="2026-09-01")
        for name in (P5, M5, NEW)
    ),
)


@pytest.mark.parametrize(
    ("instance_type", "usd"),
    [
        (P5, 8.0),  # 64 over 8
        (M5, None),  # nothing to share the price out to
        (NEW, None),  # nobody knows over how many
        ("ml.g6.xlarge", None),  # no price
        (None, None),
    ],
)
def test_the_price_of_an_accelerator_is_its_share_of_the_instances(
    instance_type: str | None, usd: float | None
) -> None:
    known = {P5: 8, M5: 0, NEW: None, "ml.g6.xlarge": 1}
    assert usd_per_accelerator(instance_type, known, PRICED) == usd
