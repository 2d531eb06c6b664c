"""The pending detector over worlds at random: the same facts, the same answer, in every order."""

import random
from copy import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.cluster.memory import Memory
from steward.cluster.pending.messages import read_message
from steward.cluster.pending.reasons import Reason, settle
from steward.detect.pending import detect
from tests.builders import NOON, a_cluster, a_holder, an_accelerator
from tests.pending_cases import (
    GPU,
    LOCAL,
    P5,
    a_condition,
    a_local_queue,
    a_node,
    a_queue,
    a_row,
    a_workload,
    a_world,
    an_admitted,
    hours_ago,
    in_use,
    refused_with,
)

CLUSTER = a_cluster()
EMPTY = Memory(cluster="ml-shared-01")
RELAXED = settings(max_examples=60, deadline=None)

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
LABEL = st.text(LETTERS, min_size=1, max_size=8)
NAMES = st.lists(LABEL, min_size=1, max_size=3).map("-".join)
FLAVORS = st.lists(LABEL, min_size=1, max_size=3).map(".".join)
RESOURCES = st.sampled_from(
    [GPU, "cpu", "memory", "nvidia.com/mig-3g.40gb", "vpc.amazonaws.com/efa"]
)
SUFFIXES = st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi"])
AMOUNTS = st.builds(lambda n, s: f"{n}{s}", st.integers(1, 10**6), SUFFIXES)


# Messages.

NEVER_FACTS = (
    "insufficient quota for {r} in flavor {f}, request > maximum capacity ({a} > {b})",
    "insufficient quota for {r} in flavor {f}, previously considered podsets requests (0) + current podset request ({a}) > maximum capacity ({b})",
    "insufficient quota for {r} in flavor {f}, previously considered podsets requests ({b}) + current podset request ({a}) > maximum capacity ({b})",
    "insufficient quota for {r} in flavor {f} in ClusterQueue",
)
LACKING_FACTS = (
    "insufficient unused quota for {r} in flavor {f}, {a} more needed",
    "insufficient unused quota in cohort for {r} in flavor {f}, {a} more needed",
)
MISMATCHES = (
    "flavor {f} not found",
    "flavor {f} doesn't match node affinity",
    "untolerated taint {{{q} {f} NoSchedule <nil>}} in flavor {f}",
    "untolerated taint &Taint{{Key:{q},Value:{f},Effect:NoExecute,TimeAdded:<nil>,}} in flavor {f}",
)
LIMITS = ("borrowing limit for {r} in flavor {f} exceeded",)
WHOLE = (
    ("LocalQueue {q} doesn't exist", Reason.MISSING_QUEUE),
    ("ClusterQueue {q} doesn't exist", Reason.MISSING_QUEUE),
    ("ClusterQueue {q} not found", Reason.MISSING_QUEUE),
    ("LocalQueue {q} is inactive", Reason.QUEUE_INACTIVE),
    ("ClusterQueue {q} is inactive", Reason.QUEUE_INACTIVE),
    ("ClusterQueue {q} is stopped", Reason.QUEUE_INACTIVE),
    ("ClusterQueue {q} is terminating or missing", Reason.QUEUE_INACTIVE),
)
OF_FACTS = (
    (NEVER_FACTS, Reason.EXCEEDS_CAPACITY),
    (LACKING_FACTS, Reason.WAITING_FOR_QUOTA),
    (MISMATCHES, Reason.UNKNOWN_FLAVOR),
    (LIMITS, Reason.BORROW_LIMIT),
)


@st.composite
def refusals(draw):
    """A text of one pod set with one kind of reason for every flavor, and that kind."""
    templates, reason = draw(st.sampled_from(OF_FACTS))
    flavors = draw(st.lists(FLAVORS, min_size=1, max_size=4, unique=True))
    given = [
        draw(st.sampled_from(templates)).format(
            r=draw(RESOURCES), f=flavor, a=draw(AMOUNTS), b=draw(AMOUNTS), q=draw(NAMES)
        )
        for flavor in flavors
    ]
    name = draw(NAMES)
    return f"couldn't assign flavors to pod set {name}: {', '.join(sorted(given))}", reason, flavors


@RELAXED
@given(refusals())
def test_every_text_made_from_a_template_is_read_as_its_template_says(case):
    text, reason, flavors = case
    reading = read_message(text)
    assert reading.reason is reason
    assert sorted(fact.flavor for fact in reading.facts) == sorted(flavors)


@RELAXED
@given(refusals(), st.integers(1, 99), st.booleans())
def test_a_suffix_makes_a_wait_of_it_unless_it_never_can(case, victims, failed):
    text, reason, _ = case
    suffix = (
        f". Preempting {victims} workload(s) failed, will retry."
        if failed
        else f". Pending the preemption of {victims} workload(s)"
    )
    reading = read_message(text + suffix)
    never = reason in {Reason.EXCEEDS_CAPACITY, Reason.UNKNOWN_FLAVOR}
    assert reading.reason is (reason if never else Reason.WAITING_FOR_PREEMPTION)
    assert reading.victims == victims
    assert reading.facts == read_message(text).facts


@RELAXED
@given(st.sampled_from(WHOLE), NAMES)
def test_every_text_about_a_queue_is_read_whatever_its_name(case, name):
    template, reason = case
    assert read_message(template.format(q=name)).reason is reason


@RELAXED
@given(RESOURCES, FLAVORS, st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_old_and_new_wordings_of_a_refusal_are_the_same_fact(resource, flavor, now, earlier, most):
    head = f"couldn't assign flavors to pod set main: insufficient quota for {resource} in flavor {flavor}, "
    old = f"{head}request > maximum capacity ({earlier + now} > {most})"
    new = f"{head}previously considered podsets requests ({earlier}) + current podset request ({now}) > maximum capacity ({most})"
    assert read_message(old) == read_message(new)


@RELAXED
@given(st.text(max_size=200))
def test_any_text_at_all_is_read_without_an_error(text):
    read_message(text)
    assert read_message(f"couldn't assign flavors to pod set main: {text}") is not None


REASONS = st.none() | st.sampled_from(Reason)


@RELAXED
@given(REASONS, REASONS)
def test_what_is_told_is_one_of_the_two_and_the_messages_where_they_contradict(message, objects):
    reason, contradict = settle(message, objects)
    assert reason in {message, objects}
    assert (reason is None) == (message is None and objects is None)
    if contradict:
        assert reason is message
        assert None not in {message, objects}
        assert message is not objects


# The detector.


@st.composite
def worlds(draw):
    """A queue or two, some nodes, and workloads in every state."""
    message = f"couldn't assign flavors to pod set worker: insufficient unused quota for {GPU} in flavor {P5}, 2 more needed"
    workloads = []
    for index in range(draw(st.integers(1, 6))):
        name = f"w{index}"
        common = {
            "priority": draw(st.sampled_from([0, 75])),
            "created": hours_ago(draw(st.sampled_from([0, 1, 3, 5]))),
            "gpus": draw(st.sampled_from([1, 4, 8, 40])),
        }
        kind = draw(st.sampled_from(["none", "message", "admitted", "typo", "evicted", "twin"]))
        if kind == "admitted":
            workloads.append(an_admitted(name, **common))
            continue
        conditions = ()
        if kind in {"message", "twin"}:
            conditions = (refused_with(message),)
        if kind == "evicted":
            since = hours_ago(draw(st.sampled_from([1, 4])))
            conditions = (a_condition("Evicted", reason="Preempted", since=since),)
        queue = f"{LOCAL}s" if kind == "typo" else LOCAL
        made = a_workload(name, queue=queue, conditions=conditions, **common)
        if kind == "twin":
            owner = replace(made.owner, kind="JobSet", name="shared")
            made = replace(made, owner_chain=(made.owner, owner))
        workloads.append(made)
    holders = draw(st.lists(st.sampled_from(range(6)), max_size=2, unique=True))
    queues = a_queue(
        a_row(
            draw(st.sampled_from([4, 16])),
            draw(st.sampled_from([0.0, 4.0])),
            borrowing_limit=draw(st.sampled_from([None, 0.0, 2.0])),
        ),
        cohort="pool",
        strategy=draw(st.sampled_from(["StrictFIFO", "BestEffortFIFO"])),
    )
    return a_world(
        *workloads,
        nodes=(a_node("a"), a_node("b"), a_node("c", gpus=4)),
        cluster_queues=(queues, a_queue(a_row(8), name="lender", cohort="pool")),
        local_queues=(a_local_queue(), a_local_queue("other"), a_local_queue("third", "x")),
        accelerators=(
            *in_use("a", draw(st.integers(0, 8))),
            *in_use("b", draw(st.integers(0, 8))),
            *(
                an_accelerator(f"h{index}", node="b", holder=a_holder(f"w{index}"))
                for index in holders
            ),
        ),
    )


def shuffled(snapshot, seed):
    order = random.Random(seed)

    def mixed(items):
        return tuple(order.sample(items, len(items)))

    names = ("workloads", "nodes", "cluster_queues", "local_queues", "accelerators", "parts")
    return replace(snapshot, **{name: mixed(getattr(snapshot, name)) for name in names})


@RELAXED
@given(worlds(), st.integers(0, 1000))
def test_the_order_of_objects_changes_nothing(snapshot, seed):
    one, other = detect(snapshot, EMPTY, CLUSTER), detect(shuffled(snapshot, seed), EMPTY, CLUSTER)
    assert (one.findings, one.memory, one.cleared) == (other.findings, other.memory, other.cleared)
    assert list(one.memory.pending.pods_seen) == list(other.memory.pending.pods_seen)
    assert sorted(map(repr, one.unknown)) == sorted(map(repr, other.unknown))


@RELAXED
@given(worlds())
def test_a_snapshot_that_comes_again_changes_nothing(snapshot):
    first = detect(snapshot, EMPTY, CLUSTER)
    again = detect(snapshot, first.memory, CLUSTER)
    assert (again.findings, again.cleared, again.memory) == (first.findings, (), first.memory)


@RELAXED
@given(worlds(), st.sets(st.integers(1, 179), max_size=6))
def test_more_ticks_change_nothing(snapshot, between):
    # Nothing moves but the clock: what is found three hours later does not depend on who looked.
    last = NOON + timedelta(minutes=180)

    def run(minutes):
        memory = detect(snapshot, EMPTY, CLUSTER).memory
        for minute in sorted(minutes):
            tick = replace(snapshot, at=NOON + timedelta(minutes=minute))
            memory = detect(tick, memory, CLUSTER).memory
        return detect(replace(snapshot, at=last), memory, CLUSTER)

    few, many = run(()), run(between)
    assert few.findings == many.findings
    assert few.memory.pending.pods_seen == many.memory.pending.pods_seen


@RELAXED
@given(worlds())
def test_every_workload_that_waits_is_found_unknown_or_not_due_yet(snapshot):
    # Three hours later everything is due: each job that waits has its finding.
    later = replace(snapshot, at=NOON + timedelta(hours=3))
    detection = detect(later, EMPTY, CLUSTER)
    waiting = {
        (one.owner_chain or (one.owner,))[-1].subject
        for one in snapshot.workloads
        if not one.holds("QuotaReserved")
    }
    told = {finding.subject for finding in detection.findings}
    assert waiting <= told
    assert len(told) == len(detection.findings)
