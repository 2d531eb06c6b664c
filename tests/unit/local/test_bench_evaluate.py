"""The hard snapshot that the evaluation's bench measures gives every detector something to find."""

from local.bench_evaluate import Evaluated, evaluate, goals
from local.bench_snapshot import TICKS, take
from local.generated.cluster import GeneratedCluster
from local.generated.hardship import BORROWED, GPU, hardened
from local.generated.server import serving
from local.twins import InMemoryObjects
from steward.cluster.workloads import pending, reserves
from steward.stores.bucket import Snapshots

GPUS = 512


def test_a_hard_snapshot_is_consistent_and_every_detector_finds_something_in_it(tmp_path):
    kept = {}
    with serving(GeneratedCluster(gpus=GPUS), tmp_path) as (url, _):
        take(url, GPUS, TICKS["first"], kept)
    read = InMemoryObjects()
    read.objects.update(kept)
    (key,) = (name for name in kept if name.startswith("snapshots/"))
    easy = Snapshots(read).get(key)
    hard = hardened(easy)
    assert hard == hardened(easy)
    # A queue's reservation is what its workloads hold, and never above nominal quota and limit.
    held = dict.fromkeys((queue.name for queue in hard.cluster_queues), 0.0)
    for workload in filter(reserves, hard.workloads):
        for amounts in workload.assigned.values():
            held[workload.cluster_queue] += amounts.get(GPU, 0)
    rows = [(q.name, row) for q in hard.cluster_queues for row in q.rows if row.resource == GPU]
    for name in held:
        assert sum(row.reserved for owner, row in rows if owner == name) == held[name]
    assert all(row.reserved <= row.nominal + row.borrowing_limit for _, row in rows)
    assert any(row.borrowed == BORROWED == row.borrowing_limit for _, row in rows)
    # Two wait for each team in the easy one; each is five deep in the hard one.
    waiting = [sum(map(pending, one.workloads)) for one in (easy, hard)]
    assert waiting[0] == 2 * 15
    assert waiting[1] >= 5 * waiting[0]
    stored = InMemoryObjects()
    Snapshots(stored).put(hard)
    done = evaluate(GPUS, "first", dict(stored.objects))
    assert done.failed == ()
    found = {"idle_gpus", "borrowing", "preemptions", "pending", "capacity"}
    assert {name for name, count in done.findings.items() if count} >= found
    assert set(done.shares) == found | {"telemetry"}
    assert 0 < sum(done.shares.values()) <= done.cpu


def test_a_goal_that_is_missed_is_said_to_be():
    def row(gpus, cpu, **changes):
        given = {
            "gpus": gpus,
            "tick": "first",
            "cpu": cpu,
            "peak_mb": 200.0,
            "shares": {},
            "findings": dict.fromkeys(
                ("idle_gpus", "borrowing", "preemptions", "pending", "capacity"), 1
            ),
            "failed": (),
        }
        return Evaluated(**(given | changes))

    # 0.2 s to 2 s for ten times the size is an exponent of 1.
    assert all(met for _, met in goals([row(1_000, 0.2), row(10_000, 2.0)]))
    # 0.2 s to 4 s is 1.3, and above 3 s.
    missed = [text for text, met in goals([row(1_000, 0.2), row(10_000, 4.0)]) if not met]
    assert missed == [
        "first evaluation at 10,000 GPUs: CPU 4.00 s of 3 s",
        "first evaluation: CPU grows by size^1.30 of 1.1",
    ]
    assert not all(met for _, met in goals([row(1_000, 0.2, failed=("pending",))]))
    assert not all(met for _, met in goals([row(1_000, 0.2, findings={})]))
