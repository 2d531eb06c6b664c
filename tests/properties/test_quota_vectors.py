"""Quota arithmetic against decisions and replays that were recorded from Kueue's own scheduler.

The recordings (v0.19.2) are read from a folder beside the checkout and are not part of the project;
without it the tests skip and say so. They say who was admitted and who was preempted, never what was
available, so each test names what follows from that for the arithmetic, and no more.
"""

import gzip
import json
import os
import re
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from steward.cluster.kueue import ClusterQueue, Cohort, QuotaRow
from steward.cluster.quota import QuotaTree

ROOT = Path(__file__).resolve().parents[2]
VECTORS = Path(os.environ.get("GPU_STEWARD_KUEUE_VECTORS", ROOT.parent / "shared/kueue-vectors"))

pytestmark = pytest.mark.skipif(
    not VECTORS.is_dir(), reason=f"{VECTORS}: not there; set GPU_STEWARD_KUEUE_VECTORS to it"
)


def lines(*names):
    for name in names:
        with gzip.open(VECTORS / f"{name}.jsonl.gz", "rt") as file:
            yield from map(json.loads, file)


def rows(quotas):
    return tuple(
        QuotaRow(
            flavor=q.get("flavor", "default"),
            resource=q.get("resource", "nvidia.com/gpu"),
            nominal=q["nominal"],
            borrowing_limit=q["borrowingLimit"],
            lending_limit=q["lendingLimit"],
            reserved=None,
            used=None,
            borrowed=None,
        )
        for q in quotas
    )


def nouns(queues, cohorts):
    """Both recordings' objects; a replay has one quota an object, a decision a list of them."""

    def quotas(one):
        return one.get("quotas") or ([one["quota"]] if one.get("quota") else [])

    return (
        [
            ClusterQueue(
                name=q["name"], cohort=q["cohort"] or None, rows=rows(quotas(q)), conditions=()
            )
            for q in queues
        ],
        [
            Cohort(name=c["name"], parent=c["parent"] or None, rows=rows(quotas(c)))
            for c in cohorts or ()
        ],
    )


class Case:
    """A decision: the state it was taken in, the request, and the workloads it chose."""

    def __init__(self, line):
        self.queues, self.cohorts = nouns(line["clusterQueues"], line["cohorts"])
        self.flat = not line["cohorts"]
        self.fair = line["fairSharingStrategies"] is not None
        self.queue = line["incoming"]["clusterQueue"]
        self.policy = next(q for q in line["clusterQueues"] if q["name"] == self.queue)[
            "preemption"
        ]
        self.incoming = line["incoming"]
        self.request, self.short = Counter(), set()
        for one in line["assignment"]:
            key = (one["flavor"], one["resource"])
            self.request[key] += one["quantity"]
            if one["mode"] == "Preempt":
                self.short.add(key)
        self.admitted = {one["name"]: one for one in line["admitted"] or ()}
        self.victims = {one["workload"]: one["reason"] for one in line["wantPreempted"] or ()}

    def used(self, key, without=()):
        """Queue to what its admitted workloads use of a flavor and resource."""
        usage = Counter()
        for name, one in self.admitted.items():
            if name not in without:
                for held in one["usage"] or ():
                    if (held["flavor"], held["resource"]) == key:
                        usage[one["clusterQueue"]] += held["quantity"]
        return usage

    def tree(self, key, without=()):
        return QuotaTree(self.queues, self.cohorts, *key, self.used(key, without))

    def fits(self, without=()):
        return all(
            need <= self.tree(key, without).available(self.queue)
            for key, need in self.request.items()
        )

    def borrows(self, without=()):
        """Whether the queue would borrow with the request added."""
        return any(
            self.tree(key, without).usage(self.queue) + need
            > self.tree(key, without).nominal(self.queue)
            for key, need in self.request.items()
        )

    def over(self, queue, without=()):
        """Whether a queue borrows anything that the request is short of."""
        return any(self.tree(key, without).borrowed(queue) > 0 for key in self.short)

    def of_queue(self, queue):
        return {name for name in self.victims if self.admitted[name]["clusterQueue"] == queue}

    def may_evict(self, one):
        """The policy of the queue itself, by priority and by time of creation."""
        policy = self.policy.get("withinClusterQueue", "Never")
        mine, other = self.incoming, one
        lower = other["priority"] < mine["priority"]
        newer = other["priority"] == mine["priority"] and other["created"] > mine["created"]
        return lower if policy == "LowerPriority" else policy != "Never" and (lower or newer)


def test_what_was_preempted_makes_room_and_nothing_less_would_have():
    seen = Counter()
    for case in map(Case, lines("decisions", "upstream-preemption")):
        seen["decisions"] += 1
        if not case.victims:
            # Workloads of its own queue may be evicted whether it borrows or not: with none chosen,
            # not even all of them that the policy gives up would have made room.
            own = {
                name
                for name, one in case.admitted.items()
                if one["clusterQueue"] == case.queue and case.may_evict(one)
            }
            if own and not case.fits():
                assert not case.fits(own), case.incoming
                seen["own queue does not suffice"] += 1
            continue
        # The search ends when the request fits, and puts back only what may stay.
        assert case.fits(case.victims), case.incoming
        seen["room is made"] += 1
        # Already evicted ones are free to go, so a state in which the request fits is recorded too;
        # there the first victim is chosen before anything is tested.
        if case.fits():
            seen["would have fit as it was"] += 1
            continue
        # Before the last one was taken it did not fit, and each of the others was tried to be put
        # back; more is in use now than at either moment. In an attempt that forbids borrowing it
        # may also be the nominal quota that stops it.
        may_borrow = case.fair or case.borrows(case.victims)
        for name in case.victims:
            rest = case.victims.keys() - {name}
            assert not case.fits(rest) or (not may_borrow and case.borrows(rest)), name
            seen["none could stay" if may_borrow else "none could stay, or it would borrow"] += 1
    print(dict(seen))
    assert seen["decisions"] >= 1586
    assert seen["room is made"] >= 901
    assert seen["none could stay"] >= 852
    assert seen["none could stay, or it would borrow"] >= 355
    assert seen["own queue does not suffice"] >= 174


def test_only_queues_that_borrow_give_back():
    seen = Counter()
    for case in map(Case, lines("decisions", "upstream-preemption")):
        for name, reason in case.victims.items():
            queue = case.admitted[name]["clusterQueue"]
            assert (reason == "InClusterQueue") == (queue == case.queue)
            if queue != case.queue:
                assert case.over(queue), name
                seen["victims of a queue that borrows"] += 1
        for queue in {case.admitted[name]["clusterQueue"] for name in case.victims} - {case.queue}:
            # The last one taken from a queue was taken while it still borrowed.
            mine = case.of_queue(queue)
            assert any(case.over(queue, mine - {name}) for name in mine), queue
            seen["queues that borrowed to the last"] += 1
        if not case.flat or "InCohortReclamation" not in case.victims.values():
            continue
        # Reclaiming is for one's own quota: by an owner within it, or with borrowing forbidden.
        # (Fair sharing judges it before workloads of the queue itself are put back.)
        if not case.fair or not case.of_queue(case.queue):
            assert not case.borrows(case.victims), case.incoming
            seen["owners within their nominal quota"] += 1
    print(dict(seen))
    assert seen["victims of a queue that borrows"] >= 545
    assert seen["queues that borrowed to the last"] >= 477
    assert seen["owners within their nominal quota"] >= 196


class Run:
    """A replay: what holds quota at every moment at which something happens."""

    def __init__(self, line):
        scenario = line["scenario"]
        self.queues, self.cohorts = nouns(scenario["clusterQueues"], scenario["cohorts"])
        self.strict = {
            q["name"] for q in scenario["clusterQueues"] if q["queueingStrategy"] == "StrictFIFO"
        }
        self.workloads = {w["name"]: w for w in scenario["workloads"]}
        self.delay = scenario["evictDelaySeconds"]
        self.messages = line["pendingAtEnd"] or {}
        self.admitted, self.decided, self.freed = (defaultdict(list) for _ in range(3))
        for name, segments in line["runs"].items():
            for one in segments:
                evicted = one["how"] == "preempted"
                self.admitted[one["admit"]].append(name)
                self.freed[one["end"] + self.delay * evicted].append((name, one["admit"]))
                if evicted:
                    self.decided[one["end"]].append(name)
        submits = {w["submit"] for w in self.workloads.values()}
        self.instants = sorted({*submits, *self.admitted, *self.freed, *self.decided})

    def tree(self, held):
        usage = Counter()
        for name, count in held.items():
            usage[self.workloads[name]["clusterQueue"]] += count * self.workloads[name]["gpus"]
        return QuotaTree(self.queues, self.cohorts, "default", "nvidia.com/gpu", usage)

    def fits(self, name, held):
        one = self.workloads[name]
        return one["gpus"] <= self.tree(held).available(one["clusterQueue"])

    def states(self):
        """Time, what held quota before its cycles, and after them."""
        held = Counter()
        for when in self.instants:
            # What was admitted at this very instant cannot have been freed before its cycles.
            before = held - Counter(n for n, admit in self.freed[when] if admit < when)
            after = before + Counter(self.admitted[when])
            after -= Counter(n for n, admit in self.freed[when] if admit == when)
            if self.delay == 0:
                before = before + Counter(n for n in self.decided[when] if held[n] > before[n])
            yield when, before, after
            held = after


def in_some_order(run, before, admitted):
    """Whether all fit one after the other; one that fits beside all the others may come last."""
    held, left = before + Counter(admitted), list(admitted)
    while left:
        last = next((n for n in left if run.fits(n, held - Counter([n]))), None)
        if last is None:
            return False
        left.remove(last)
        held -= Counter([last])
    return True


def test_every_admission_of_a_replay_fit_and_what_waited_did_not():
    seen = Counter()
    for run in map(Run, lines("replays")):
        waiting = set()
        for when, before, after in run.states():
            waiting |= {n for n, w in run.workloads.items() if w["submit"] == when}
            admitted = run.admitted[when]
            # Victims that are gone at once make room between the cycles of one instant.
            moved = run.delay == 0 and bool(run.decided[when])
            if moved:
                least = before - Counter(run.decided[when])
                for name in set(admitted):
                    assert run.fits(name, least), (when, name)
                    seen["admissions in the most room there was"] += 1
            elif admitted:
                assert in_some_order(run, before, admitted), (when, admitted)
                seen["admissions in the room there was"] += len(admitted)
            tree = run.tree(after)
            for queue in run.queues:
                assert tree.usage(queue.name) <= tree.potential(queue.name), (when, queue.name)
                seen["usages within what is possible"] += 1
            waiting -= set(admitted)
            waiting |= {n for n in run.decided[when] if after[n] == 0}
            # Without a strict queue, whose head keeps room for itself, without workloads on their
            # way out and without a preemption at the instant, everything that would fit is admitted.
            if not run.strict and run.delay == 0 and not moved:
                for name in sorted(waiting):
                    assert not run.fits(name, after), (when, name)
                    seen["waiting ones that did not fit"] += 1
    print(dict(seen))
    assert seen["admissions in the room there was"] >= 1788
    assert seen["admissions in the most room there was"] >= 228
    assert seen["usages within what is possible"] >= 14434
    assert seen["waiting ones that did not fit"] >= 1666


CAPACITY = re.compile(r"podset request \((\d+)\) > maximum capacity \((\d+)\)")
MISSING = re.compile(r"insufficient unused quota for \S+ in flavor \S+, (\d+) more needed")


def last_seen(run, name):
    """What held quota when the head of a strict queue was last looked at, as it lost its place."""
    one = run.workloads[name]
    ahead = [
        w["submit"]
        for n, w in run.workloads.items()
        if n in run.messages
        and w["clusterQueue"] == one["clusterQueue"]
        and w["submit"] > one["submit"]
        and w["priority"] > one["priority"]
    ]
    states = [*run.states(), (float("inf"), None, None)]
    lost = min(ahead, default=float("inf"))
    return next(after for (_, _, after), (when, _, _) in pairwise(states) if when >= lost)


def test_messages_name_the_capacity_and_what_is_missing():
    seen = Counter()
    for run in map(Run, lines("replays")):
        for name, message in run.messages.items():
            one = run.workloads[name]
            if found := CAPACITY.search(message):
                most = run.tree(Counter()).potential(one["clusterQueue"])
                assert (one["gpus"], most) == tuple(map(int, found.groups())), name
                seen["maximum capacity"] += 1
            elif found := MISSING.search(message):
                # The head of a strict queue is looked at whenever anything happens, until a
                # workload that will stay takes its place.
                assert one["clusterQueue"] in run.strict
                left = run.tree(last_seen(run, name)).available(one["clusterQueue"])
                assert one["gpus"] - left == int(found[1]), name
                seen["more needed"] += 1
    print(dict(seen))
    assert seen["maximum capacity"] >= 44
    assert seen["more needed"] >= 2
