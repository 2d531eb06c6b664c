"""Topology assignments of both forms, against one written out domain by domain."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.cluster.kueue import ResourceFlavor, Taint, Topology, WorkloadPriorityClass
from steward.sources.kubernetes.fields import MalformedError
from steward.sources.kueue.setup import (
    PriorityClassShape,
    ResourceFlavorShape,
    read_flavor,
    read_priority_class,
)
from steward.sources.kueue.topology import Assignment, TopologyShape, nodes_of, read_topology

type Json = dict[str, Any]

HOST, RACK = "kubernetes.io/hostname", "topology.k8s.aws/network-node-layer-3"


def nodes(assignment: Json) -> dict[str, int]:
    return nodes_of(msgspec.convert(assignment, Assignment))


def test_the_older_form_lists_its_domains() -> None:
    domains = [
        {"values": ["hyperpod-i-0a"], "count": 2},
        {"values": ["hyperpod-i-0b"], "count": 1},
    ]
    assert nodes({"levels": [HOST], "domains": domains}) == {"hyperpod-i-0a": 2, "hyperpod-i-0b": 1}


def test_the_lowest_level_is_the_node_where_higher_ones_are_named_too() -> None:
    domains = [{"values": ["rack-1", "hyperpod-i-0a"], "count": 2}]
    assert nodes({"levels": [RACK, HOST], "domains": domains}) == {"hyperpod-i-0a": 2}
    values = [{"universal": "rack-1"}, {"individual": {"roots": ["hyperpod-i-0a"]}}]
    one = {"domainCount": 1, "valuesPerLevel": values, "podCounts": {"universal": 2}}
    assert nodes({"levels": [RACK, HOST], "slices": [one]}) == {"hyperpod-i-0a": 2}


def test_the_later_form_is_unfolded() -> None:
    slices = [
        {
            "domainCount": 2,
            "valuesPerLevel": [
                {"individual": {"prefix": "hyperpod-i-", "suffix": "f", "roots": ["0a", "0b"]}}
            ],
            "podCounts": {"individual": [2, 1]},
        },
        {
            "domainCount": 1,
            "valuesPerLevel": [{"universal": "hyperpod-i-0c"}],
            "podCounts": {"universal": 4},
        },
    ]
    assert nodes({"levels": [HOST], "slices": slices}) == {
        "hyperpod-i-0af": 2,
        "hyperpod-i-0bf": 1,
        "hyperpod-i-0c": 4,
    }


@pytest.mark.parametrize(
    "assignment",
    [
        {},
        {"levels": []},
        {"levels": [HOST, RACK], "domains": [{"values": ["a", "b"], "count": 1}]},
        {"levels": [RACK], "domains": [{"values": ["rack-1"], "count": 1}]},
    ],
)
def test_an_assignment_that_does_not_reach_down_to_nodes_names_none(assignment: Json) -> None:
    assert nodes(assignment) == {}


def test_no_assignment_names_no_nodes() -> None:
    assert nodes_of(None) == {}


@pytest.mark.parametrize(
    ("assignment", "named"),
    [
        ({"domains": [{"count": 1}]}, "without values"),
        ({"slices": [{"domainCount": 1, "podCounts": {"universal": 1}}]}, "0 values of 1"),
        (
            {
                "slices": [
                    {
                        "domainCount": 2,
                        "valuesPerLevel": [{"individual": {"roots": ["a"]}}],
                        "podCounts": {"universal": 1},
                    }
                ]
            },
            "1 values of 2",
        ),
        (
            {
                "slices": [
                    {
                        "domainCount": 2,
                        "valuesPerLevel": [{"individual": {"roots": ["a", "b"]}}],
                        "podCounts": {"individual": [1, 2, 3]},
                    }
                ]
            },
            "3 pod counts of 2",
        ),
        (
            {
                "slices": [
                    {
                        "domainCount": 10**12,
                        "valuesPerLevel": [{"universal": "a"}],
                        "podCounts": {"universal": 1},
                    }
                ]
            },
            "1000000000000 domains",
        ),
    ],
)
def test_lists_that_are_not_as_long_as_they_say_are_not_guessed_at(
    assignment: Json, named: str
) -> None:
    with pytest.raises(MalformedError, match=named):
        nodes({"levels": [HOST]} | assignment)


placements = st.dictionaries(
    st.text("abc0123456789", min_size=1, max_size=6), st.integers(1, 9), min_size=1, max_size=8
)


@given(placements, st.text("xy-", max_size=3), st.text("xy-", max_size=3), st.data())
def test_both_forms_of_one_placement_are_the_same_nodes(
    placed: dict[str, int], prefix: str, suffix: str, data: st.DataObject
) -> None:
    # Expected without either form: what was placed, by the full name of each node.
    expected = {f"{prefix}{root}{suffix}": pods for root, pods in placed.items()}
    domains = [{"values": [name], "count": pods} for name, pods in expected.items()]
    cut = data.draw(st.integers(0, len(placed)))
    slices = []
    for part in (list(placed.items())[:cut], list(placed.items())[cut:]):
        if part:
            roots, counts = [root for root, _ in part], [pods for _, pods in part]
            values = {"individual": {"prefix": prefix, "suffix": suffix, "roots": roots}}
            same = {"universal": counts[0]} if len(set(counts)) == 1 else {"individual": counts}
            slices.append({"domainCount": len(part), "valuesPerLevel": [values], "podCounts": same})
    assert Counter(nodes({"levels": [HOST], "domains": domains})) == Counter(expected)
    assert Counter(nodes({"levels": [HOST], "slices": slices})) == Counter(expected)


# --- what queues refer to ------------------------------------------------------------------------


def test_a_topology_names_its_levels_from_the_widest_to_the_node() -> None:
    levels = [{"nodeLabel": RACK}, {"nodeLabel": HOST}]
    item = {"metadata": {"name": "hyperpod-default"}, "spec": {"levels": levels}}
    read = read_topology(msgspec.convert(item, TopologyShape))
    assert read == Topology(name="hyperpod-default", levels=(RACK, HOST))
    item["spec"] = {"levels": [{}]}
    with pytest.raises(MalformedError, match="nodeLabel"):
        read_topology(msgspec.convert(item, TopologyShape))


def test_a_flavor_tells_its_nodes_taints_and_topology() -> None:
    item = {
        "metadata": {"name": "ml.p5.48xlarge"},
        "spec": {
            "nodeLabels": {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"},
            "nodeTaints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}],
            "tolerations": [{"key": "spot", "operator": "Exists"}, {"operator": "Exists"}],
            "topologyName": "hyperpod-default",
        },
    }
    assert read_flavor(msgspec.convert(item, ResourceFlavorShape)) == ResourceFlavor(
        name="ml.p5.48xlarge",
        node_labels={"node.kubernetes.io/instance-type": "ml.p5.48xlarge"},
        taints=(Taint(key="spot", value="true", effect="NoSchedule"),),
        tolerations=(
            Taint(key="spot", value="", effect="", operator="Exists"),
            Taint(key="", value="", effect="", operator="Exists"),
        ),
        topology="hyperpod-default",
    )
    bare = msgspec.convert({"metadata": {"name": "cpu"}}, ResourceFlavorShape)
    assert read_flavor(bare) == ResourceFlavor(name="cpu")


@pytest.mark.parametrize("value", [0, 75, -5])
def test_a_priority_class_has_a_value(value: int) -> None:
    item = {"metadata": {"name": "training-priority"}, "value": value}
    read = read_priority_class(msgspec.convert(item, PriorityClassShape))
    assert read == WorkloadPriorityClass(name="training-priority", value=value)


def test_a_priority_class_without_value_is_not_one_of_zero() -> None:
    item = msgspec.convert({"metadata": {"name": "training-priority"}}, PriorityClassShape)
    with pytest.raises(MalformedError, match="value is missing"):
        read_priority_class(item)
