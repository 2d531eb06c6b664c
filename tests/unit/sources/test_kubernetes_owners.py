"""Chains of owners over what was listed."""

from datetime import UTC, datetime

import pytest

from steward.cluster.accelerators import Owner
from steward.ports import GpuPod
from steward.sources.kubernetes_objects import BoundPod, Reference
from steward.sources.kubernetes_owners import (
    DEPTH,
    OWNER_KINDS,
    Controllers,
    attach,
    missing,
)

JOB = Reference("batch", "Job", "sweep-a")
JOB_SET = Reference("jobset.x-k8s.io", "JobSet", "sweep")


def pod(controller: Reference | None, namespace: str = "ml") -> BoundPod:
    itself = Owner(kind="Pod", namespace=namespace, name="p")
    noun = GpuPod(
        namespace=namespace,
        name="p",
        uid="u",
        node="n",
        accelerators=1,
        resource="nvidia.com/gpu",
        since=datetime(2026, 11, 2, tzinfo=UTC),
        owner=itself,
        owner_chain=(),
        labels={},
    )
    return BoundPod(noun, controller)


def kinds(*pods: BoundPod, controllers: Controllers | None = None) -> list[str]:
    return [one.kind for one in missing(pods, controllers or {}, set())]


def test_only_kinds_that_lead_further_up_are_missing() -> None:
    volcano = Reference("batch.volcano.sh", "Job", "other")  # another group's Job is another kind
    assert kinds(pod(None), pod(volcano)) == []
    assert kinds(pod(JOB), pod(JOB)) == ["Job"]


def test_what_was_listed_leads_to_the_next_kind() -> None:
    assert kinds(pod(JOB), controllers={(JOB, "ml"): JOB_SET}) == ["JobSet"]
    assert kinds(pod(JOB), controllers={(JOB, "ml"): JOB_SET, (JOB_SET, "ml"): None}) == []


def test_a_kind_is_listed_once_even_if_the_owner_was_not_in_it() -> None:
    # Deleted meanwhile, or refused: the list will not have it the second time either.
    job = next(one for one in OWNER_KINDS if one.kind == "Job")
    assert missing([pod(JOB)], {}, {job}) == []


def test_the_chain_goes_from_the_direct_owner_to_the_top() -> None:
    found = attach(pod(JOB), {(JOB, "ml"): JOB_SET, (JOB_SET, "ml"): None})
    assert [one.subject for one in found.owner_chain] == ["Job/ml/sweep-a", "JobSet/ml/sweep"]
    assert found.owner.subject == "JobSet/ml/sweep"


def test_a_namesake_in_another_namespace_is_not_the_owner() -> None:
    found = attach(pod(JOB, namespace="other"), {(JOB, "ml"): JOB_SET})
    assert found.owner.subject == "Job/other/sweep-a"


def test_an_owner_that_is_not_known_is_the_top_as_it_is_named() -> None:
    assert attach(pod(JOB), {}).owner.subject == "Job/ml/sweep-a"


def test_a_pod_that_nobody_controls_is_its_own_owner() -> None:
    found = attach(pod(None), {})
    assert (found.owner.subject, found.owner_chain) == ("Pod/ml/p", ())


@pytest.mark.parametrize("length", [2, 50])
def test_a_chain_ends_where_it_bites_its_tail_or_at_its_greatest_depth(length: int) -> None:
    ring = [Reference("batch", "Job", f"j{number}") for number in range(length)]
    controllers = {(one, "ml"): ring[(i + 1) % length] for i, one in enumerate(ring)}
    assert len(attach(pod(ring[0]), controllers).owner_chain) == min(length, DEPTH)
