"""BorrowLimit as the API gives it, both readings of it, and where three sources disagree."""

import pytest

from steward.cluster.borrowing.places import Place, Scene
from steward.cluster.borrowing.sources import differences, quota_of, told_by_api, told_by_policy
from steward.cluster.control_plane import ComputeQuota, ControlPlane, QuotaResource
from steward.cluster.policy import SharingStrategy
from tests.builders import a_cluster, a_team
from tests.unit.cluster.quotas import GPU, P5, row
from tests.unit.detect.borrowing_cluster import a_view, mlops, research

ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"


def a_quota(**changes):
    given = {
        "id": "quota0000001",
        "name": "research",
        "team": "research",
        "status": "Created",
        "active": True,
        "strategy": "LendAndBorrow",
        "borrow_limit_percent": 25,
        "accelerators": {P5: 12},
        "fair_share_weight": 0,
    }
    return ComputeQuota(**(given | changes))


def a_place(*quotas, rows=None, percent=25, **team):
    rows = rows or (row(12, 3, reserved=15.0),)
    control_plane = ControlPlane(quotas=quotas, arn=ARN)
    view = a_view(research(*rows), mlops(), control_plane=control_plane)
    given = {"accelerators": 12, "borrow_limit_percent": percent}
    cluster = a_cluster(teams=(a_team(**(given | team)), a_team("platform-mlops")))
    queue = view.cluster_queues[0]
    return Place(queue, queue.rows[0], Scene(view, cluster)), view


def test_twenty_five_percent_of_twelve_are_three_or_a_quarter_of_what_is_idle():
    place, view = a_place(a_quota())
    assert told_by_api(place, quota_of(place, view), idle=8) == {
        "id": "quota0000001",
        "strategy": "LendAndBorrow",
        "borrow_limit_percent": 25,
        "absolute": None,
        "quota": 12,
        "reading_own_quota": 3,
        "reading_idle": 2,
        "agrees": True,
    }
    assert differences(place, quota_of(place, view)) == []


def test_a_limit_that_kueue_has_otherwise_is_said_in_a_sentence():
    place, view = a_place(a_quota(), rows=(row(12, 6, reserved=18.0),))
    assert told_by_api(place, quota_of(place, view), idle=8)["agrees"] is False
    assert differences(place, quota_of(place, view)) == [
        "the quota in SageMaker says 25 % of 12 = 3, Kueue has a limit of 6",
        "the policy lets research borrow 25 % of 12 = 3, Kueue has a limit of 6",
    ]


def test_no_limit_in_kueue_is_a_difference_too():
    place, view = a_place(a_quota(), rows=(row(12, None, reserved=18.0),))
    assert differences(place, quota_of(place, view))[0] == (
        "the quota in SageMaker says 25 % of 12 = 3, Kueue has no limit"
    )


def test_the_policys_accelerators_are_all_flavors_together():
    rows = (row(12, 3, reserved=0.0), row(2, 0, flavor="ml.g6.xlarge", reserved=0.0))
    place, view = a_place(a_quota(), rows=rows, accelerators=14)
    assert differences(place, quota_of(place, view)) == []
    place, view = a_place(a_quota(), rows=rows)
    assert differences(place, quota_of(place, view)) == [
        "the policy gives research 12, Kueue's nominal quota is 14"
    ]


@pytest.mark.parametrize(("limit", "agrees"), [(1, False), (2, True), (3, True), (4, False)])
def test_a_fraction_may_have_been_rounded_either_way(limit, agrees):
    # 25 % of 10 are 2.5.
    place, view = a_place(a_quota(accelerators={P5: 10}), rows=(row(10, limit, reserved=0.0),))
    assert told_by_api(place, quota_of(place, view), idle=0)["agrees"] is agrees


def test_quotas_policies_and_strategies_that_differ_are_named():
    place, view = a_place(
        a_quota(strategy="Lend", borrow_limit_percent=None, accelerators={P5: 14}), percent=50
    )
    assert differences(place, quota_of(place, view)) == [
        "the quota in SageMaker says 14, Kueue's nominal quota is 12",
        "the quota in SageMaker says 0, Kueue has a limit of 3",
        "the policy says LendAndBorrow, the quota in SageMaker Lend",
        "the policy lets research borrow 50 % of 12 = 6, Kueue has a limit of 3",
    ]
    place, view = a_place(a_quota(), percent=50)
    assert differences(place, quota_of(place, view))[0] == (
        "the policy lets research borrow 50 %, the quota in SageMaker 25 %"
    )


def test_a_limit_in_amounts_counts_whatever_the_percentage():
    absolute = (QuotaResource(instance_type=P5, accelerators=5),)
    place, view = a_place(a_quota(absolute_borrow_limits=absolute))
    told = told_by_api(place, quota_of(place, view), idle=8)
    assert (told["absolute"], told["reading_own_quota"], told["agrees"]) == (5, 5, False)
    assert differences(place, quota_of(place, view)) == [
        "the quota in SageMaker says 5, Kueue has a limit of 3"
    ]


@pytest.mark.parametrize(
    "changes",
    [{"accelerators": {P5: None}}, {"borrow_limit_percent": None}],
    ids=["accelerators not known", "no limit given"],
)
def test_what_the_api_does_not_say_agrees_with_nothing_and_contradicts_nothing(changes):
    place, view = a_place(a_quota(**changes))
    told = told_by_api(place, quota_of(place, view), idle=8)
    assert (told["reading_own_quota"], told["agrees"]) == (None, None)
    assert differences(place, quota_of(place, view)) == []


def test_vcpu_and_memory_are_not_compared():
    rows = (row(96, 50, resource="cpu", reserved=0.0),)
    place, view = a_place(a_quota(), rows=rows)
    told = told_by_api(place, quota_of(place, view), idle=8)
    assert (told["quota"], told["agrees"]) == (None, None)
    assert differences(place, quota_of(place, view)) == []


def test_the_quota_is_the_teams_own_of_that_instance_type_and_the_active_one():
    quotas = (
        a_quota(id="a", active=False),
        a_quota(id="c"),
        a_quota(id="b", accelerators={"ml.g6.xlarge": 1}),
        a_quota(id="d", team="platform-mlops"),
    )
    place, view = a_place(*quotas)
    assert quota_of(place, view).id == "c"
    place, view = a_place()
    assert quota_of(place, view) is None
    assert told_by_api(place, None, idle=1) is None


def test_the_policy_is_told_as_it_is_written():
    place, _ = a_place(percent=None, strategy=SharingStrategy.DONT_LEND)
    assert told_by_policy(place.team) == {
        "strategy": "DontLend",
        "borrow_limit_percent": None,
        "accelerators": 12,
    }
    assert told_by_policy(None) is None
    assert (place.row.resource, place.each) == (GPU, 1)
