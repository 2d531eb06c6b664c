"""Requests held against their queue: which flavor, what is missing, and what stands in the way."""

from datetime import UTC, datetime

import pytest

from steward.cluster.kueue import Workload
from steward.cluster.quota import Limit, NodeKind
from steward.cluster.weighing import Quotas
from tests.unit.cluster.quotas import GPU, P5, cohort, queue, row

G6 = "ml.g6.xlarge"


def weigh(queues, requests, name="a", cohorts=(), **options):
    return Quotas(queues, cohorts).weigh(name, requests, **options)


def test_what_fits_lacks_nothing():
    found = weigh([queue("a", row(8, reserved=5.0))], {GPU: 3})
    (check,) = found.checks
    assert (check.flavor, check.resource, check.need) == (P5, GPU, 3)
    assert (check.nominal, check.reserved, check.available, check.potential) == (8, 5, 3, 8)
    assert (check.fits, check.ever, check.limited, check.missing) == (True, True, False, 0)
    assert (found.fits, found.lacking, found.limited, found.within_nominal) == (
        True,
        (),
        False,
        True,
    )


def test_one_more_than_is_left_is_missing_one():
    found = weigh([queue("a", row(8, reserved=5.0))], {GPU: 4})
    assert (found.fits, found.limited, found.within_nominal) == (False, False, False)
    assert [check.missing for check in found.lacking] == [1]


def test_a_limit_is_all_that_stands_in_the_way_where_others_have_enough():
    # 4 + 6 in use up to the limit; b has 5 of its 11 left, as 6 are lent.
    queues = [queue("a", row(4, borrow=6, reserved=10.0)), queue("b", row(11, reserved=0.0))]
    found = weigh(queues, {GPU: 4})
    (check,) = found.checks
    assert (check.available, check.unlimited, check.missing) == (0, 5, 4)
    assert (found.limited, check.limits) == (
        True,
        (Limit(kind=NodeKind.QUEUE, name="a", limit=6, needed=10),),
    )
    # With 6 wanted nobody has enough, limit or not.
    assert not weigh(queues, {GPU: 6}).limited


def test_every_resource_must_fit_and_accelerators_come_first():
    rows = (row(8, reserved=0.0), row(10, resource="cpu", reserved=8.0))
    found = weigh([queue("a", *rows)], {"cpu": 4, GPU: 8})
    assert [check.resource for check in found.checks] == [GPU, "cpu"]
    assert [check.resource for check in found.lacking] == ["cpu"]
    assert not found.within_nominal  # 8 + 4 cores are above 10


def test_a_limit_on_one_resource_does_not_excuse_what_another_lacks():
    rows = (row(4, borrow=0, reserved=4.0), row(10, resource="cpu", reserved=10.0))
    other = queue("b", row(8, reserved=0.0), row(0, resource="cpu", reserved=0.0))
    found = weigh([queue("a", *rows), other], {GPU: 1, "cpu": 1})
    assert [(c.resource, c.limited) for c in found.lacking] == [(GPU, True), ("cpu", False)]
    assert not found.limited


def test_its_own_quota_may_be_out_at_others():
    # b has borrowed 6 of a's 8, of which a wants 4: within its nominal quota, and only 2 left.
    queues = [queue("a", row(8, reserved=0.0)), queue("b", row(4, reserved=10.0))]
    found = weigh(queues, {GPU: 4})
    assert (found.within_nominal, found.fits, found.limited) == (True, False, False)
    assert found.checks[0].missing == 2


def test_a_resource_that_no_group_covers_never_fits():
    found = weigh([queue("a", row(8, reserved=0.0))], {GPU: 1, "vpc.amazonaws.com/efa": 1})
    assert found.uncovered == ("vpc.amazonaws.com/efa",)
    assert (found.fits, found.limited, found.within_nominal) == (False, False, False)
    assert found.lacking == ()


def test_nothing_wanted_of_a_resource_asks_nothing_of_it():
    found = weigh([queue("a", row(8, reserved=8.0))], {GPU: 0, "cpu": 0})
    assert (found.checks, found.uncovered, found.fits) == ((), (), True)


@pytest.mark.parametrize(
    ("rows", "flavor"),
    [
        # Both fit: the first, in the queue's own order.
        ((row(8, reserved=0.0), row(8, flavor=G6, reserved=0.0)), P5),
        # Only the second fits.
        ((row(8, reserved=8.0), row(8, flavor=G6, reserved=0.0)), G6),
        # Neither fits; the second but for its limit (b lends 8 of it).
        ((row(8, reserved=8.0), row(2, 0, flavor=G6, reserved=0.0)), G6),
        # Neither fits now; only the second ever could.
        ((row(2, 0, reserved=0.0), row(4, 0, flavor=G6, reserved=4.0)), G6),
        # Neither ever could: the larger quota.
        ((row(1, 0, reserved=0.0), row(2, 0, flavor=G6, reserved=0.0)), G6),
    ],
    ids=["first", "fits", "limited", "ever", "largest"],
)
def test_the_flavor_nearest_to_serving_is_taken(rows, flavor):
    lends = 8 if flavor == G6 and rows[1].nominal == 2 and rows[0].nominal == 8 else 0
    queues = [queue("a", *rows), queue("b", row(lends, flavor=G6, reserved=0.0))]
    (check,) = weigh(queues, {GPU: 4}).checks
    assert check.flavor == flavor


def test_a_flavor_that_is_known_to_be_meant_is_taken():
    rows = (row(8, reserved=0.0), row(1, flavor=G6, reserved=0.0))
    (check,) = weigh([queue("a", *rows)], {GPU: 4}, flavors={GPU: G6}).checks
    assert (check.flavor, check.missing) == (G6, 3)


def test_one_that_the_queue_does_not_have_is_passed_over():
    (check,) = weigh([queue("a", row(8, reserved=0.0))], {GPU: 4}, flavors={GPU: "gone"}).checks
    assert check.flavor == P5


def test_groups_choose_their_flavors_apart():
    rows = (
        row(8, reserved=8.0),
        row(8, flavor=G6, reserved=0.0),
        row(4, resource="licence", flavor="any", reserved=0.0, group=1),
    )
    found = weigh([queue("a", *rows)], {GPU: 4, "licence": 1})
    assert [(check.resource, check.flavor) for check in found.checks] == [
        (GPU, G6),
        ("licence", "any"),
    ]


def test_a_group_has_one_flavor_for_all_its_resources():
    # GPUs are left of the first flavor, cores are not: the whole request goes to the second.
    rows = (
        row(8, reserved=0.0),
        row(10, resource="cpu", reserved=10.0),
        row(8, flavor=G6, reserved=0.0),
        row(10, flavor=G6, resource="cpu", reserved=0.0),
    )
    found = weigh([queue("a", *rows)], {GPU: 4, "cpu": 4})
    assert {check.flavor for check in found.checks} == {G6}


def a_workload(name, cluster_queue, gpus):
    return Workload(
        namespace="n",
        name=name,
        uid=name,
        created=datetime(2026, 11, 5, tzinfo=UTC),
        queue="q",
        priority=0,
        priority_class=None,
        active=True,
        owner=None,
        cluster_queue=cluster_queue,
        requests={GPU: gpus},
        assigned={P5: {GPU: gpus}} if cluster_queue else {},
        conditions=(),
    )


def test_reservations_of_workloads_stand_in_for_a_status_that_does_not_say():
    workloads = [a_workload("x", "a", 2.0), a_workload("y", "a", 3.0), a_workload("z", None, 1.0)]
    quotas = Quotas([queue("a", row(8))], (), workloads)
    assert quotas.tree(P5, GPU).usage("a") == 5
    # A status that says is believed.
    quotas = Quotas([queue("a", row(8, reserved=1.0))], (), workloads)
    assert quotas.tree(P5, GPU).usage("a") == 1


def test_limits_of_cohorts_are_among_those_of_the_request():
    queues = [
        queue("a", row(4, reserved=4.0), cohort="research"),
        queue("b", row(8, reserved=0.0), cohort="root"),
    ]
    cohorts = [cohort("research", row(0, borrow=1), parent="root")]
    found = weigh(queues, {GPU: 3}, cohorts=cohorts)
    assert found.limited
    assert found.checks[0].limits == (
        Limit(kind=NodeKind.COHORT, name="research", limit=1, needed=3),
    )
