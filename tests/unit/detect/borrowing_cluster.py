"""A cluster that shares: research has 12 GPUs and a limit of 6, platform-mlops 11 of the same pool.

Everything is on one flavor and of one resource where a case says nothing else. Research has 12 of
its own and 6 borrowed in use since the morning; so platform-mlops has 5 of its 11 idle.
"""

from copy import replace
from datetime import timedelta

from steward.cluster.accelerators import Owner
from steward.cluster.kueue import Condition, LocalQueue, PodSet, Workload
from steward.cluster.memory import Memory
from steward.detect.borrowing import detect
from tests.builders import NOON, a_cluster, a_part, a_snapshot, a_team, at
from tests.unit.cluster.quotas import GPU, P5, queue, row

CLUSTER = a_cluster(
    teams=(
        a_team(accelerators=12),
        a_team("platform-mlops", accelerators=11),
        a_team("product-genai", accelerators=10),
    )
)
EMPTY = Memory(cluster="ml-shared-01")
RESEARCH = "hyperpod-ns-research-clusterqueue"
MLOPS = "hyperpod-ns-platform-mlops-clusterqueue"
GENAI = "hyperpod-ns-product-genai-clusterqueue"
SUBJECT = f"ClusterQueue/{RESEARCH}/{P5}/{GPU}"
PARTS = ("clusterqueues", "workloads", "cohorts", "localqueues")
MORNING = at("09:00")


def a_workload(name, requests, *, team="research", **changes):
    """A workload that waits since 11:00."""
    given = {
        "namespace": f"hyperpod-ns-{team}",
        "name": name,
        "uid": f"uid-{name}",
        "created": at("11:00"),
        "queue": "queue",
        "priority": 0,
        "priority_class": None,
        "active": True,
        "owner": Owner(kind="PyTorchJob", namespace=f"hyperpod-ns-{team}", name=name),
        "cluster_queue": None,
        "requests": {GPU: requests} if isinstance(requests, int) else requests,
        "assigned": {},
        "conditions": (),
    }
    return Workload(**(given | changes))


def waits(name="head", requests=4, **changes):
    return a_workload(name, requests, **changes)


def condition(kind, since, *, status=True, reason=""):
    return Condition(type=kind, status=status, reason=reason, message="", since=since)


def holds(name, requests, since=MORNING, *, team="research", flavor=P5, **changes):
    """One that has its quota since then."""
    requests = {GPU: requests} if isinstance(requests, int) else requests
    given = {
        "team": team,
        "created": since - timedelta(minutes=5),
        "cluster_queue": f"hyperpod-ns-{team}-clusterqueue",
        "assigned": {flavor: requests},
        "conditions": (condition("QuotaReserved", since), condition("Admitted", since)),
    }
    return a_workload(name, requests, **(given | changes))


def finished(name, requests, when, **changes):
    """One that has ended: its quota is free, and its admission says what it was of."""
    kept = (condition("QuotaReserved", MORNING), condition("Finished", when))
    main = PodSet(name="main", count=1, admitted=1, flavors={GPU: P5})
    given = {"conditions": kept, "assigned": {}, "pod_sets": (main,)}
    return holds(name, requests, **(given | changes))


def research(*rows, **changes):
    rows = rows or (row(12, 6, reserved=18.0, used=17.0),)
    return queue(RESEARCH, *rows, **changes)


def mlops(*rows, **changes):
    return queue(MLOPS, *(rows or (row(11, 6, reserved=0.0, used=0.0),)), **changes)


def local_queues(*names):
    return tuple(
        LocalQueue(
            namespace=name.removesuffix("-clusterqueue"),
            name="queue",
            cluster_queue=name,
            conditions=(),
        )
        for name in names
    )


def a_view(*queues, workloads=None, refused=(), left_out=None, when=NOON, **changes):
    """A snapshot: without workloads named, research's 18 and a head that needs 4 more."""
    queues = queues or (research(), mlops())
    workloads = (holds("big", 18), waits()) if workloads is None else workloads
    parts = {f"kubernetes/{name}": a_part(f"kubernetes/{name}") for name in PARTS}
    for name, status in dict(refused).items():
        parts[name] = a_part(name, status)
    for name, lost in (left_out or {}).items():
        parts[name] = replace(parts[name], left_out=lost)
    given = {
        "at": when,
        "parts": tuple(parts.values()),
        "cluster_queues": queues,
        "local_queues": local_queues(*(q.name for q in queues)),
        "workloads": tuple(workloads),
    }
    return a_snapshot(**(given | changes))


def look(*queues, memory=EMPTY, cluster=CLUSTER, **changes):
    return detect(a_view(*queues, **changes), memory, cluster)


def reasons(found):
    return {(finding.subject, finding.reason) for finding in found.findings}


def at_times(*times, memory=EMPTY, **changes):
    """The same state, looked at again and again; the last detection."""
    found = None
    for when in times:
        found = look(memory=memory, when=when, **changes)
        memory = found.memory
    return found
