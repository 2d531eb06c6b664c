"""Accelerator metrics from CloudWatch Container Insights."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from steward.cluster.kueue import KueueMetrics
from steward.ports import DeviceName, DeviceReading, MetricsReading, Samples, Signal
from steward.sources.container_insights import kueue, windows
from steward.sources.container_insights.api import Asked, CloudWatchApi
from steward.sources.container_insights.devices import Devices
from steward.sources.container_insights.naming import CLUSTER
from steward.sources.container_insights.readings import Need, Tick, measured, named

if TYPE_CHECKING:
    import boto3

_COARSE = 300
"""Seconds of a period where only "was there anything" is asked."""


class ContainerInsightsMetrics:
    """The `MetricsReader` of one cluster.

    Parameters
    ----------
    eks_name : str
        `ClusterName` of its metrics: the name of the EKS cluster, not HyperPod's.
    region : str
        Region of the metrics.
    session : callable
        Gives the session to make the client from; asked once, when the first call is made.
    interval_seconds : int
        How often the agent sends a value; a minute holds one sample at most.
    need : Need
        Must reach what the policy calls idle and hanging, or more: see :class:`Need`.
    deadline_seconds : float
        What one call of a method may take, over all its calls of CloudWatch.
    monotonic : callable
        Seconds of a clock that never goes back.

    Notes
    -----
    A tick asks for the activity of every device seen in the last three hours, then for the memory of
    idle candidates and for tensor activity and power of busy ones: 500 metrics a call, and a price
    for each metric (docs/metrics.md). No series tells a UUID, a MIG slice, a node, a model or a
    power limit.
    """

    def __init__(
        self,
        eks_name: str,
        region: str,
        session: Callable[[], boto3.Session],
        *,
        interval_seconds: int = 60,
        need: Need = Need(),  # noqa: B008 - immutable
        deadline_seconds: float = 60.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = CloudWatchApi(f"{eks_name} in {region}", region, session, monotonic)
        self._cluster = eks_name
        self._interval = interval_seconds
        self._need = need
        self._deadline_seconds = deadline_seconds
        self._devices = Devices(self._api, eks_name)

    @property
    def part(self) -> str:
        """Name of the part that tells what became of this source."""
        return "cloudwatch/GetMetricData"

    def read(
        self, end: datetime, minutes: Sequence[int], signal_minutes: Sequence[int] = ()
    ) -> MetricsReading:
        """Read window statistics for every device, for windows that end at `end`.

        Tensor activity and power are empty for devices that do not need them.

        Raises
        ------
        DeniedError, RetryableError, PermanentError
            CloudWatch refused, did not answer in time, or answered incompletely.
        """
        deadline = self._api.deadline(self._deadline_seconds)
        tick = Tick(
            end=end,
            minutes=sorted(set(minutes)),
            signal_minutes=sorted(set(signal_minutes)),
            interval_seconds=self._interval,
            need=self._need,
        )
        listed = self._devices.recent(deadline)
        read = self._devices.minutes(
            ((device, device.kind.activity, tick.activity_periods) for device in listed), deadline
        )
        more = [
            (device, family, tick.periods(device, family))
            for (device, _), activity in read.items()
            for family in tick.needed(device, activity)
        ]
        read |= self._devices.minutes(more, deadline)
        return MetricsReading(
            devices=tuple(tick.readings(read)),
            invalid=windows.tally((family.metric, found) for (_, family), found in read.items()),
        )

    def samples(
        self,
        end: datetime,
        span_seconds: float,
        devices: Collection[DeviceName],
        signals: Sequence[Signal] = (Signal.ACTIVITY,),
    ) -> tuple[Samples, ...]:
        """Fetch the valid minutes in (end - span, end] of some devices.

        Every device asked for is in the answer for every signal, one without minutes with none.

        Raises
        ------
        DeniedError, RetryableError, PermanentError
            CloudWatch refused, did not answer in time, or answered incompletely.
        """
        if not devices:
            return ()
        deadline = self._api.deadline(self._deadline_seconds)
        found = self._devices.named(devices, deadline)
        asked = {
            (name, signal): (device, family)
            for name in devices
            for signal in signals
            if name.mig is None
            and (device := found.get(name.uuid))
            and (family := device.kind.family(signal))
        }
        periods = windows.span(end, span_seconds)
        read = self._devices.minutes(((*pair, periods) for pair in asked.values()), deadline)
        answer = []
        for name in sorted(devices, key=lambda n: (n.uuid, n.mig or "", n.namespace, n.pod)):
            for signal in signals:
                pair = asked.get((name, signal))
                points = list(windows.scaled(read[pair], pair[1])) if pair else []
                answer.append(
                    Samples(
                        device=name,
                        signal=signal,
                        times=tuple(at for at, _ in points),
                        values=tuple(value for _, value in points),
                    )
                )
        return tuple(answer)

    def seen(
        self, end: datetime, span_seconds: float, pods: Collection[tuple[str, str]]
    ) -> tuple[DeviceReading, ...]:
        """Find devices that were attributed to pods (namespace, name) within the span before `end`.

        CloudWatch lists what had points in the last two weeks; when they were is asked of it.

        Raises
        ------
        DeniedError, RetryableError, PermanentError
            CloudWatch refused, did not answer in time, or answered incompletely.
        """
        if not pods:
            return ()
        deadline = self._api.deadline(self._deadline_seconds)
        listed = self._devices.of_pods(pods, deadline)
        periods = windows.span(end, span_seconds, _COARSE)
        read = self._devices.minutes(((d, d.kind.activity, periods) for d in listed), deadline)
        return tuple(
            named(device) for (device, _), found in read.items() if measured(found, periods)
        )

    def kueue(self, end: datetime) -> KueueMetrics:
        """Read Kueue's own metrics; empty where the cluster exports none.

        Raises
        ------
        DeniedError, RetryableError, PermanentError
            CloudWatch refused, did not answer in time, or answered incompletely.
        """
        deadline = self._api.deadline(self._deadline_seconds)
        listed = [
            metric
            for name, dimensions in kueue.SETS.items()
            for metric in self._api.listed(
                kueue.NAMESPACE,
                name,
                {CLUSTER: self._cluster} | dict.fromkeys(sorted(dimensions - {CLUSTER})),
                deadline,
                recent=True,
            )
        ]
        periods = windows.span(end, kueue.SPAN.total_seconds())
        wanted = {m: Asked(kueue.statistic(m), periods) for m in kueue.wanted(listed)}
        return kueue.metrics(self._api.points(wanted, deadline), end)
