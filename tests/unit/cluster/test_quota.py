"""Quota by hand: every line of Kueue's arithmetic, on pools small enough for mental sums."""

import math

import pytest

from steward.cluster.quota import Limit, NodeKind, QuotaTree, reservations
from tests.unit.cluster.quotas import GPU, P5, cohort, queue, row, tree

QUEUE, COHORT = NodeKind.QUEUE, NodeKind.COHORT


def test_a_queue_without_a_cohort_has_its_quota_and_nothing_else():
    lone = tree(queue("a", row(8), cohort=None), a=5)
    assert (lone.nominal("a"), lone.usage("a"), lone.borrowed("a")) == (8, 5, 0)
    assert (lone.available("a"), lone.potential("a")) == (3, 8)
    assert (lone.lenders("a"), lone.siblings("a")) == ({}, ())


def test_a_queue_without_a_row_has_no_quota_and_may_still_borrow():
    # Kueue's arithmetic asks only what the tree has left: 8, of which b uses 5.
    pool = tree(queue("a"), queue("b", row(8)), b=5)
    assert (pool.nominal("a"), pool.available("a"), pool.potential("a")) == (0, 3, 8)


def test_a_named_cohort_that_is_not_declared_joins_its_queues():
    pool = tree(queue("a", row(4)), queue("b", row(8)), a=4, b=3)
    # 12 in the pool, 7 in use.
    assert (pool.available("a"), pool.available("b"), pool.potential("a")) == (5, 5, 12)


def test_a_declared_cohort_adds_its_own_quota():
    pool = tree(queue("a", row(4)), cohort("pool", row(6)), a=4)
    assert (pool.available("a"), pool.potential("a")) == (6, 10)
    assert pool.lenders("a") == {(COHORT, "pool"): 6}


def test_a_borrowing_limit_counts_from_the_nominal_quota():
    # 4 + 6 = 10 at most; 8 are in use (4 borrowed), so 2 more, though the pool has 12 - 8 = 4.
    pool = tree(queue("a", row(4, borrow=6)), queue("b", row(8)), a=8)
    assert (pool.borrowed("a"), pool.available("a"), pool.potential("a")) == (4, 2, 10)
    assert pool.available("a", limits=False) == 4
    assert pool.potential("a", limits=False) == 12


def test_a_borrowing_limit_of_zero_allows_the_nominal_quota_and_no_more():
    pool = tree(queue("a", row(4, borrow=0)), queue("b", row(8)), a=1)
    assert (pool.available("a"), pool.potential("a")) == (3, 4)


def test_no_borrowing_limit_is_everything_that_others_lend():
    pool = tree(queue("a", row(4)), queue("b", row(8)), a=1)
    assert (pool.available("a"), pool.potential("a")) == (11, 12)


@pytest.mark.parametrize("limit", [math.inf, -math.inf, math.nan, -1.0])
def test_a_limit_that_is_no_amount_limits_nothing(limit):
    pool = tree(queue("a", row(4, borrow=limit)), queue("b", row(8, lend=limit)))
    assert (pool.available("a"), pool.potential("a")) == (12, 12)
    assert pool.path_limits("a", 5) == ()


def test_a_lending_limit_keeps_the_rest_at_home():
    # b keeps 8 - 3 = 5 to itself and uses them first: 4 in use take nothing from the pool.
    pool = tree(queue("a", row(4)), queue("b", row(8, lend=3)), a=4, b=4)
    assert (pool.available("a"), pool.potential("a")) == (3, 7)
    assert (pool.available("b"), pool.potential("b")) == (4, 12)
    # With 6 in use, one of them comes from what it lends.
    assert tree(queue("a", row(4)), queue("b", row(8, lend=3)), a=4, b=6).available("a") == 2
    assert pool.lenders("a") == {(QUEUE, "b"): 3}


def test_a_lending_limit_above_the_quota_keeps_nothing():
    assert tree(queue("a", row(4)), queue("b", row(8, lend=20))).potential("a") == 12


def test_who_does_not_lend_has_idle_quota_that_nobody_can_have():
    pool = tree(queue("a", row(4)), queue("b", row(10, lend=0)), a=4)
    assert (pool.available("a"), pool.lenders("a")) == (0, {})
    assert pool.available("b") == 10


def test_others_may_have_taken_more_than_there_is_left():
    # b has borrowed all of a's 4 and a's own 2 came on top (a quota was lowered): 14 of 12.
    pool = tree(queue("a", row(4)), queue("b", row(8)), a=2, b=12)
    assert pool.available("a") == 0
    assert pool.borrowed("b") == 4


def test_limits_of_cohorts_bind_like_those_of_queues():
    # research has 8 in two queues and may borrow 2 of the 8 that production leaves idle.
    pool = tree(
        queue("a", row(4), cohort="research"),
        queue("b", row(4), cohort="research"),
        queue("p", row(8), cohort="production"),
        cohort("root"),
        cohort("research", row(0, borrow=2), parent="root"),
        cohort("production", parent="root"),
        a=6,
        b=2,
    )
    # 8 + 2 - 8 in use.
    assert (pool.available("a"), pool.potential("a")) == (2, 10)
    assert pool.available("a", limits=False) == 8
    # 5 more would be 5 above the cohort's 8.
    assert pool.path_limits("a", 5) == (Limit(kind=COHORT, name="research", limit=2, needed=5),)
    assert pool.lenders("a") == {(QUEUE, "p"): 8}
    assert pool.siblings("a") == ("b", "p")


def test_every_limit_on_the_way_says_what_a_request_needs_of_it():
    pool = tree(
        queue("a", row(4, borrow=1), cohort="research"),
        queue("p", row(8), cohort="root"),
        cohort("research", row(3, borrow=2), parent="root"),
        a=4,
    )
    # Of 6 more, the queue borrows all 6; the cohort has 3 of its own and borrows 3.
    assert pool.path_limits("a", 6) == (
        Limit(kind=QUEUE, name="a", limit=1, needed=6),
        Limit(kind=COHORT, name="research", limit=2, needed=3),
    )


def test_what_a_queue_keeps_serves_its_requests_before_any_limit():
    # 4 of 6 are kept at home, 3 in use: 1 is left there and 2 in the pool; 5 more borrow 2.
    pool = tree(queue("a", row(6, borrow=1, lend=2)), queue("b", row(8)), a=3)
    assert pool.path_limits("a", 5) == (Limit(kind=QUEUE, name="a", limit=1, needed=2),)
    assert pool.path_limits("a", 3) == (Limit(kind=QUEUE, name="a", limit=1, needed=0),)


def test_a_cohort_lends_to_others_no_more_than_its_lending_limit():
    # b and c have 8 idle, of which their cohort lets out 3: two to one in proportion, 2 and 1.
    pool = tree(
        queue("a", row(2), cohort="root"),
        queue("b", row(5), cohort="kept"),
        queue("c", row(3), cohort="kept"),
        cohort("kept", row(0, lend=3), parent="root"),
        a=2,
    )
    assert (pool.available("a"), pool.potential("a")) == (3, 5)
    assert pool.lenders("a") == {(QUEUE, "b"): 2, (QUEUE, "c"): 1}
    # What it keeps is there for its own queues.
    assert pool.available("b") == 8


def test_cohorts_in_a_cycle_hang_on_nothing():
    pool = tree(
        queue("a", row(4), cohort="x"),
        queue("b", row(8), cohort="y"),
        queue("c", row(2), cohort="z"),
        cohort("x", parent="y"),
        cohort("y", parent="x"),
        cohort("z", parent="y"),
    )
    assert (pool.potential("a"), pool.siblings("a")) == (4, ())
    # Below a cycle is not in it.
    assert (pool.potential("c"), pool.siblings("c")) == (10, ("b",))


def test_what_is_lent_already_is_shared_out_over_the_lenders():
    # 5 + 5 + 2 idle, 5 of them borrowed by d: 7 left of 12. 7 x 5/12 = 2 11/12 twice, 1 2/12; the
    # largest remainders round up.
    pool = tree(
        queue("a", row(0)),
        queue("b", row(5)),
        queue("c", row(5)),
        queue("d", row(1)),
        queue("e", row(2)),
        d=6,
    )
    assert pool.available("a") == 7
    assert pool.lenders("a") == {(QUEUE, "b"): 3, (QUEUE, "c"): 3, (QUEUE, "e"): 1}


def test_a_queue_borrows_from_its_own_cohort_first():
    # Of the 2 that b leaves idle beside it a may have both, and of c's 4 whatever it likes.
    halves = (cohort("root"), cohort("x", parent="root"), cohort("y", parent="root"))
    queues = (queue("a", row(0), cohort="x"), queue("b", row(2), cohort="x"))
    far = queue("c", row(4), cohort="y")
    assert tree(*queues, far, *halves).lenders("a") == {(QUEUE, "b"): 2, (QUEUE, "c"): 4}
    # With 1 in use, it came from next door.
    assert tree(*queues, far, *halves, a=1).lenders("a") == {(QUEUE, "b"): 1, (QUEUE, "c"): 4}
    # c has used up its own 4 and 1 of the other half's: 1 is left for a.
    assert tree(*queues, far, *halves, c=5).lenders("a") == {(QUEUE, "b"): 1}


def test_what_is_idle_and_what_is_kept_of_it():
    # 10 of which 3 are lent out at most: 7 are kept, of which 5 are in use.
    pool = tree(queue("a", row(10, lend=3)), a=5)
    assert (pool.idle("a"), pool.kept("a")) == (3, 2)
    pool = tree(queue("a", row(10, lend=3)), a=8)
    assert (pool.idle("a"), pool.kept("a")) == (2, 0)


def test_equal_remainders_go_by_name():
    # 1 left of 1 + 1.
    pool = tree(queue("a", row(0)), queue("b", row(1)), queue("c", row(1)), queue("d", row(0)), d=1)
    assert pool.lenders("a") == {(QUEUE, "b"): 1}


def test_fractions_of_cores_stay_fractions():
    # 1.5 + 0.5 idle, 1 lent: half of each is left.
    pool = tree(
        queue("a", row(0)), queue("b", row(1.5)), queue("c", row(0.5)), queue("d", row(0)), d=1
    )
    assert pool.lenders("a") == {(QUEUE, "b"): 0.75, (QUEUE, "c"): 0.25}


def test_adding_tenths_does_not_lose_one():
    # 0.1 + 0.2 is not 0.3 in binary; in thousandths of a core it is.
    pool = tree(queue("a", row(0.1)), queue("b", row(0.2)))
    assert pool.available("a") == 0.3


def test_what_is_reserved_is_read_from_the_status():
    queues = [
        queue("a", row(4, reserved=3.0), row(4, resource="cpu", reserved=9.0)),
        queue("b", row(4)),
        queue("c", row(4, flavor="other", reserved=1.0)),
    ]
    assert reservations(queues, P5, GPU) == {"a": 3.0}


def test_a_tree_is_of_one_flavor_and_resource():
    rows = (row(4), row(7, flavor="ml.g6.xlarge"), row(9, resource="cpu"))
    assert QuotaTree([queue("a", *rows)], [], "ml.g6.xlarge", GPU, {}).potential("a") == 7
