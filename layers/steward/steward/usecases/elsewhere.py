"""GPU pods outside governed namespaces: listed hourly, and at once when telemetry says they changed.

Most pods of a cluster are outside and hold no GPU; listing them all at every tick would cost more
than everything else that a tick reads.
"""

from __future__ import annotations

from copy import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from steward.cluster.memory import Memory
from steward.cluster.namespaces import governed
from steward.cluster.pods import Hourly

if TYPE_CHECKING:
    from collections.abc import Collection

    from steward.ports import KubernetesReading, MetricsReading

EVERY = timedelta(hours=1)
"""How often pods of every namespace are listed where nothing asks for it earlier."""

type PodName = tuple[str, str]


def listing_due(
    last: Hourly | None,
    metrics: MetricsReading | None,
    memory: Memory,
    policy: Collection[str],
    at: datetime,
) -> bool:
    """Tell whether this tick has to list the pods of every namespace.

    Parameters
    ----------
    last : Hourly or None
        What the last such list showed.
    metrics : MetricsReading or None
        Series of this tick: one that names a pod unknown outside governed namespaces, or none any
        more for a pod that had some since that list, is a change. What that list could not explain
        (an exporter that goes on naming a dead pod) is none.
    memory : Memory
        When each device was seen last.
    policy : collection of str
        Namespaces of the policy's teams.
    at : datetime
        Now.
    """
    if last is None or at - last.at >= EVERY:
        return True
    if metrics is None:
        return False
    named = _named(metrics, frozenset(last.governed) | frozenset(policy))
    held = {(pod.namespace, pod.name): pod.uid for pod in last.pods}
    if named - held.keys() - set(last.strangers):
        return True
    silent = {uid for name, uid in held.items() if name not in named}
    return any(d.pod_uid in silent and d.seen >= last.at for d in memory.devices)


def with_elsewhere(
    kubernetes: KubernetesReading,
    last: Hourly | None,
    metrics: MetricsReading | None,
    policy: Collection[str],
    at: datetime,
) -> tuple[KubernetesReading, Hourly | None]:
    """Complete a reading that covers governed namespaces only, or keep what a full one showed.

    Returns
    -------
    KubernetesReading
        With the pods elsewhere.
    Hourly or None
        To be kept for the next tick.
    """
    if kubernetes.governed is not None:
        known = {(pod.namespace, pod.name) for pod in kubernetes.pods}
        carried = tuple(
            pod
            for pod in (last.pods if last else ())
            if pod.namespace not in kubernetes.governed and (pod.namespace, pod.name) not in known
        )
        return replace(kubernetes, pods=kubernetes.pods + carried), last
    ours = governed(kubernetes.namespaces, policy)
    pods = tuple(pod for pod in kubernetes.pods if pod.namespace not in ours)
    named = _named(metrics, ours) if metrics else set()
    strangers = named - {(pod.namespace, pod.name) for pod in pods}
    return kubernetes, Hourly(
        at=at, governed=tuple(sorted(ours)), pods=pods, strangers=tuple(sorted(strangers))
    )


def _named(metrics: MetricsReading, ours: Collection[str]) -> set[PodName]:
    """Pods outside that living series name."""
    return {
        (device.namespace, device.pod)
        for device in metrics.devices
        if device.last_sample is not None
        and device.namespace is not None
        and device.pod is not None
        and device.namespace not in ours
    }
