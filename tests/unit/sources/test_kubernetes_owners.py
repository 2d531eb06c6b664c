"""Chains of owners over what was listed."""

from copy import replace
from datetime import UTC, datetime

import pytest

from steward.cluster.accelerators import Owner
from steward.cluster.pods import GpuPod
from steward.sources.kubernetes.objects import BoundPod, Reference
from steward.sources.kubernetes.owners import (
    DEPTH,
    OWNER_KINDS,
    Link,
    Links,
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


def kinds(*pods: BoundPod, links: Links | None = None) -> list[str]:
    owned = [(one.controller, one.pod.namespace) for one in pods]
    return [one.kind for one in missing(owned, links or {}, set())]


def test_only_kinds_that_lead_further_up_are_missing() -> None:
    volcano = Reference("batch.volcano.sh", "Job", "other")  # another group's Job is another kind
    assert kinds(pod(None), pod(volcano)) == []
    assert kinds(pod(JOB), pod(JOB)) == ["Job"]


def test_what_was_listed_leads_to_the_next_kind() -> None:
    assert kinds(pod(JOB), links={(JOB, "ml"): Link(JOB_SET)}) == ["JobSet"]
    assert kinds(pod(JOB), links={(JOB, "ml"): Link(JOB_SET), (JOB_SET, "ml"): Link(None)}) == []


def test_a_kind_is_listed_once_even_if_the_owner_was_not_in_it() -> None:
    # Deleted meanwhile, or refused: the list will not have it the second time either.
    job = next(one for one in OWNER_KINDS if one.kind == "Job")
    assert missing([(JOB, "ml")], {}, {job}) == []


def test_the_chain_goes_from_the_direct_owner_to_the_top() -> None:
    found = attach(pod(JOB), {(JOB, "ml"): Link(JOB_SET), (JOB_SET, "ml"): Link(None)})
    assert [one.subject for one in found.owner_chain] == ["Job/ml/sweep-a", "JobSet/ml/sweep"]
    assert found.owner.subject == "JobSet/ml/sweep"


def test_a_namesake_in_another_namespace_is_not_the_owner() -> None:
    found = attach(pod(JOB, namespace="other"), {(JOB, "ml"): Link(JOB_SET)})
    assert found.owner.subject == "Job/other/sweep-a"


def test_an_owner_that_is_not_known_is_the_top_as_it_is_named() -> None:
    assert attach(pod(JOB), {}).owner.subject == "Job/ml/sweep-a"


def test_a_pod_that_nobody_controls_is_its_own_owner() -> None:
    found = attach(pod(None), {})
    assert (found.owner.subject, found.owner_chain) == ("Pod/ml/p", ())


@pytest.mark.parametrize(
    ("job", "job_set", "expected"),
    [("mira", "lee", "mira"), (None, "lee", "lee"), (None, None, None)],
)
def test_the_nearest_owner_that_names_a_maker_is_believed(
    job: str | None, job_set: str | None, expected: str | None
) -> None:
    links = {(JOB, "ml"): Link(JOB_SET, job), (JOB_SET, "ml"): Link(None, job_set)}
    assert attach(pod(JOB), links).created_by == expected
    named = pod(JOB)
    own = replace(named, pod=replace(named.pod, created_by="pod"))
    assert attach(own, links).created_by == "pod"


@pytest.mark.parametrize("length", [2, 50])
def test_a_chain_ends_where_it_bites_its_tail_or_at_its_greatest_depth(length: int) -> None:
    ring = [Reference("batch", "Job", f"j{number}") for number in range(length)]
    links = {(one, "ml"): Link(ring[(i + 1) % length]) for i, one in enumerate(ring)}
    assert len(attach(pod(ring[0]), links).owner_chain) == min(length, DEPTH)
