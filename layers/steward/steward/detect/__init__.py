"""The detectors: pure functions of a snapshot, a small memory and the policy, one a file."""

from collections.abc import Callable

from steward.cluster.memory import Detection, Memory
from steward.cluster.policy import ClusterPolicy
from steward.cluster.snapshot import Snapshot
from steward.detect import idle, telemetry

type Detector = Callable[[Snapshot, Memory, ClusterPolicy], Detection]

DETECTORS: tuple[tuple[str, Detector], ...] = (
    (idle.NAME, idle.detect),
    (telemetry.NAME, telemetry.detect),
)
"""Every detector by its name, in the order in which they run."""
