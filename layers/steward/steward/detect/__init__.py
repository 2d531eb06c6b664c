"""The detectors: pure functions of a snapshot, a small memory and the policy, one a file."""

from collections.abc import Callable

from steward.cluster.memory import Detection, Memory
from steward.cluster.policy import ClusterPolicy
from steward.cluster.snapshot import Snapshot
from steward.detect import borrowing, capacity, idle, pending, preemption, telemetry

type Detector = Callable[[Snapshot, Memory, ClusterPolicy], Detection]

DETECTORS: tuple[tuple[str, Detector], ...] = (
    (idle.NAME, idle.detect),
    (borrowing.NAME, borrowing.detect),
    (preemption.NAME, preemption.detect),
    (pending.NAME, pending.detect),
    (telemetry.NAME, telemetry.detect),
    (capacity.NAME, capacity.detect),
)
"""Every detector by its name, in the order in which they run."""
