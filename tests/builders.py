"""Builders with defaults: a test names only what its case is about."""

from copy import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from steward.cluster.accelerators import Accelerator, Holder, Owner, Window
from steward.cluster.control_plane import ControlPlane
from steward.cluster.policy import (
    Channel,
    ClusterPolicy,
    MetricsSource,
    Price,
    SharingStrategy,
    Team,
    Thresholds,
)
from steward.cluster.snapshot import Part, PartStatus, Snapshot

NOON = datetime(2026, 11, 5, 12, 0, tzinfo=UTC)
DELAY = timedelta(minutes=2)


def at(text: str) -> datetime:
    """A time of 5 November 2026, such as "11:58"."""
    hours, minutes = text.split(":")
    return NOON.replace(hour=int(hours), minute=int(minutes))


def a_team(name: str = "research", **changes: Any) -> Team:
    given: dict[str, Any] = {
        "name": name,
        "namespaces": (f"hyperpod-ns-{name}",),
        "accelerators": 14,
        "strategy": SharingStrategy.LEND_AND_BORROW,
        "borrow_limit_percent": 50,
        "fair_share_weight": 0,
        "owners": (f"{name}@example.com",),
        "channel": Channel(id=f"C0{name.upper().replace('-', '')[:8]:0<8}", name=f"gpu-{name}"),
        "checkpoints": (),
    }
    return Team(**(given | changes))


def a_cluster(**changes: Any) -> ClusterPolicy:
    given: dict[str, Any] = {
        "name": "ml-shared-01",
        "eks_name": "ml-shared-01-eks",
        "region": "us-east-1",
        "account": None,
        "role_arn": None,
        "time_zone": "UTC",
        "tick_minutes": 5,
        "digest_day": "monday",
        "digest_time": "09:00",
        "metrics": MetricsSource(endpoint="https://aps.example.com/workspaces/ws-1", sigv4=True),
        "prices": (
            Price(
                instance_type="ml.p5.48xlarge",
                usd_per_hour=64.0,
                source="a list",
                date="2026-09-01",
            ),
        ),
        "capacity": (),
        "buffer_accelerators": 4,
        "fair_share": True,
        "priority_classes": (),
        "teams": (a_team(),),
        "platform_channel": Channel(id="C0PLATFORM1", name="gpu-platform"),
        "thresholds": Thresholds(),
        "overrides": (),
    }
    return ClusterPolicy(**(given | changes))


def a_holder(name: str = "sweep", **changes: Any) -> Holder:
    given: dict[str, Any] = {
        "namespace": "hyperpod-ns-research",
        "pod": f"{name}-0",
        "pod_uid": f"uid-{name}",
        "since": NOON - timedelta(days=1),
        "owner": Owner(kind="PyTorchJob", namespace="hyperpod-ns-research", name=name),
        "workload": f"pytorchjob-{name}-a1b2c",
    }
    return Holder(**(given | changes))


def a_window(
    maximum: float | None = 0.0, *, present: int = 60, minutes: int = 60, **changes: Any
) -> Window:
    given: dict[str, Any] = {
        "minutes": minutes,
        "expected": minutes,
        "present": present,
        "maximum": maximum,
        "mean": maximum,
    }
    return Window(**(given | changes))


def an_accelerator(uuid: str | None = "GPU-1", **changes: Any) -> Accelerator:
    given: dict[str, Any] = {
        "node": "hyperpod-i-0a",
        "uuid": uuid,
        "holder": a_holder(),
        "instance_type": "ml.p5.48xlarge",
        "usd_per_hour": 8.0,
        "activity_metric": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "windows": (a_window(),),
        "last_sample": NOON - DELAY,
        "held_bytes": 0,
        "ever_seen": True,
    }
    return Accelerator(**(given | changes))


def a_part(name: str, status: PartStatus = PartStatus.OK) -> Part:
    return Part(name=name, status=status, at=NOON)


def a_snapshot(*accelerators: Accelerator, **changes: Any) -> Snapshot:
    taken = changes.pop("at", NOON)
    refused = changes.pop("refused", {})
    names = ("kubernetes/pods", "kubernetes/nodes", "kubernetes/workloads", "prometheus")
    given: dict[str, Any] = {
        "cluster": "ml-shared-01",
        "scope": "tick",
        "at": taken,
        "window_end": taken - DELAY,
        "parts": tuple(a_part(name, refused.get(name, PartStatus.OK)) for name in names),
        "control_plane": ControlPlane(),
        "nodes": (),
        "namespaces": ("hyperpod-ns-research",),
        "workloads": (),
        "cluster_queues": (),
        "local_queues": (),
        "accelerators": accelerators,
    }
    return Snapshot(**(given | changes))


def at_time(accelerator: Accelerator, when: datetime) -> Accelerator:
    """The same accelerator as a later tick sees it: its newest sample moved along."""
    return replace(accelerator, last_sample=when - DELAY)
