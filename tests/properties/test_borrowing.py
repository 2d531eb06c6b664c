"""The borrowing detector on clusters of any shape: order, repetition and ticks change nothing."""

from copy import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.cluster.borrowing.memory import IdleStep, climb, go_on, idle_since
from steward.cluster.memory import Memory
from steward.codec import dump, load
from steward.detect.borrowing import detect
from tests.builders import NOON, at
from tests.unit.cluster.quotas import GPU, P5, cohort, queue, row
from tests.unit.detect.borrowing_cluster import CLUSTER, EMPTY, a_view, holds, waits

TEAMS = ("research", "platform-mlops", "product-genai")
LIMIT = st.none() | st.integers(0, 8)
MINUTES = st.integers(0, 170)


@st.composite
def states(draw):
    """Queues, cohorts and workloads; what a queue says is reserved is what its workloads hold."""
    cohorts = [cohort("root")]
    if draw(st.booleans()):
        cohorts.append(cohort("half", row(draw(st.integers(0, 4)), draw(LIMIT)), parent="root"))
    queues, workloads = [], []
    for team in TEAMS:
        held = {GPU: 0, "cpu": 0}
        for n in range(draw(st.integers(0, 3))):
            wants = {GPU: draw(st.integers(0, 6)), "cpu": draw(st.integers(0, 20))}
            since = at("09:00") + timedelta(minutes=draw(MINUTES))
            workloads.append(holds(f"{team}-{n}", wants, since, team=team))
            held = {resource: held[resource] + wants[resource] for resource in held}
        for n in range(draw(st.integers(0, 3))):
            wants = {GPU: draw(st.integers(0, 8)), "cpu": draw(st.integers(0, 20))}
            created = at("09:00") + timedelta(minutes=draw(MINUTES))
            priority = draw(st.integers(0, 2))
            workloads.append(
                waits(f"{team}-w{n}", wants, team=team, created=created, priority=priority)
            )
        rows = (
            row(draw(st.integers(0, 8)), draw(LIMIT), draw(LIMIT), reserved=float(held[GPU])),
            row(draw(st.integers(0, 40)), draw(LIMIT), reserved=float(held["cpu"]), resource="cpu"),
        )
        queues.append(
            queue(
                f"hyperpod-ns-{team}-clusterqueue",
                *rows,
                cohort=draw(st.sampled_from([c.name for c in cohorts])),
                strategy=draw(st.sampled_from(("StrictFIFO", "BestEffortFIFO"))),
            )
        )
    return a_view(*queues, cohorts=tuple(cohorts), workloads=tuple(workloads))


def later(view, minutes):
    return replace(view, at=view.at + timedelta(minutes=minutes))


def fold(view, ticks, memory=EMPTY):
    """The last of some looks at a state that does not change."""
    found = None
    for minutes in ticks:
        found = detect(later(view, minutes), memory, CLUSTER)
        memory = found.memory
    return found


def spoken(found):
    """Everything that is said, as bytes."""
    return dump((found.findings, found.cleared, found.unknown))


@settings(max_examples=80, deadline=None)
@given(states(), st.randoms())
def test_the_order_of_the_objects_changes_nothing(view, random):
    def shuffled(objects):
        return tuple(random.sample(objects, len(objects)))

    other = replace(
        view,
        cluster_queues=shuffled(view.cluster_queues),
        cohorts=shuffled(view.cohorts),
        local_queues=shuffled(view.local_queues),
        workloads=shuffled(view.workloads),
        parts=shuffled(view.parts),
    )
    one, two = detect(view, EMPTY, CLUSTER), detect(other, EMPTY, CLUSTER)
    assert spoken(one) == spoken(two)
    assert dump(one.memory) == dump(two.memory)


@settings(max_examples=80, deadline=None)
@given(states())
def test_looking_again_at_the_same_moment_changes_nothing(view):
    first = detect(view, EMPTY, CLUSTER)
    again = detect(view, first.memory, CLUSTER)
    assert spoken(again) == spoken(first)
    assert again.memory == first.memory


@settings(max_examples=30, deadline=None)
@given(states(), st.sets(st.integers(1, 59), max_size=8))
def test_more_ticks_in_between_change_nothing(view, more):
    every_five = range(0, 61, 5)
    some = fold(view, every_five)
    many = fold(view, sorted({*every_five, *more}))
    assert spoken(many) == spoken(some)
    assert many.memory == some.memory


@settings(max_examples=40, deadline=None)
@given(states())
def test_the_memory_survives_being_stored(view):
    memory = fold(view, (0, 5)).memory
    assert load(Memory, dump(memory), "memory") == memory


@settings(max_examples=80, deadline=None)
@given(states())
def test_each_reason_means_what_it_says(view):
    by_name = {q.name: q for q in view.cluster_queues}
    subjects = set()
    for finding in detect(view, EMPTY, CLUSTER).findings:
        evidence = finding.evidence
        told = next(
            r for r in by_name[evidence["queue"]].rows if r.resource == evidence["resource"]
        )
        assert evidence["borrowed"] == max(0, told.reserved - told.nominal)
        assert view.at - finding.since >= timedelta(minutes=30) or finding.reason == "unbounded"
        if finding.reason in {"limit_binding", "at_limit"}:
            assert told.borrowing_limit > 0
            assert evidence["borrowed"] >= 0.95 * told.borrowing_limit
        if finding.reason == "limit_binding":
            (admitted,) = evidence["admits"]
            assert evidence["raise_by"] > 0
            # What others still lend, and what is left of its own, is enough for it.
            lent = sum(one["idle"] for one in evidence["lenders"])
            assert admitted["need"] <= lent + max(0, told.nominal - told.reserved)
        else:
            assert (evidence["raise_by"], evidence["admits"]) == (None, [])
        if finding.reason == "cluster_full":
            lent = sum(one["idle"] for one in evidence["lenders"])
            assert evidence["waits"]["need"] > lent + max(0, told.nominal - told.reserved)
        if finding.one_reason:
            assert finding.subject not in subjects
            subjects.add(finding.subject)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=12))
def test_a_staircase_knows_since_when_at_least_so_much_was_idle(amounts):
    steps = ()
    for n, amount in enumerate(amounts):
        steps = climb(steps, float(amount), None, NOON + timedelta(minutes=n))
    for wanted in range(1, 7):
        # Straight from the definition: the longest run, up to now, of at least as much.
        run = 0
        while run < len(amounts) and amounts[-1 - run] >= wanted:
            run += 1
        found = idle_since(steps, wanted)
        if run == 0:
            assert found is None
        else:
            assert found.since == NOON + timedelta(minutes=len(amounts) - run)


def test_a_release_is_when_it_began():
    steps = climb((), 4.0, at("11:30"), NOON)
    assert steps == (IdleStep(amount=4.0, since=at("11:30"), at_least=False),)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 15), min_size=1, max_size=10), st.none() | st.integers(-60, 0))
def test_a_condition_lasts_from_its_proof_or_from_the_last_gap(gaps, proven):
    proof = None if proven is None else NOON + timedelta(minutes=proven)
    when, lasting, began = NOON, None, NOON
    for gap in (0, *gaps):
        when += timedelta(minutes=gap)
        began = when if gap > 10 else began
        lasting = go_on(lasting, proof, when, timedelta(minutes=10))
    assert lasting.since == (began if proof is None else proof)
    assert lasting.seen == when


def test_a_proof_that_reaches_back_to_the_last_look_closes_the_gap():
    seen = go_on(None, at("09:00"), at("11:00"), timedelta(minutes=10))
    # Jobs that run since 10:30 prove the hour that nobody watched; what came before was seen.
    assert go_on(seen, at("10:30"), NOON, timedelta(minutes=10)).since == at("09:00")
    assert go_on(seen, at("11:01"), NOON, timedelta(minutes=10)).since == at("11:01")


def test_a_staircase_stays_small():
    steps = ()
    for n in range(30):
        steps = climb(steps, float(n + 1), None, NOON + timedelta(minutes=n))
    # The highest are kept: they are what lies idle now, and began last.
    assert [step.amount for step in steps] == [float(n) for n in range(15, 31)]


def test_flavor_and_resource_of_the_builders_are_the_ones_named():
    # The states above rest on it.
    made = row(1)
    assert (made.flavor, made.resource) == (P5, GPU)
