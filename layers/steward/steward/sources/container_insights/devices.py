"""Which devices CloudWatch has series of: listed at each tick, looked up by pod where that is past."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from steward.sources.container_insights import windows
from steward.sources.container_insights.api import Asked, CloudWatchApi
from steward.sources.container_insights.naming import (
    CLUSTER,
    KINDS,
    NAMESPACE,
    POD,
    PODS_NAMESPACE,
    Device,
    Family,
    Strands,
    devices,
)

if TYPE_CHECKING:
    from steward.ports import DeviceName
    from steward.sources.container_insights.windows import Minutes

BY_NAME = 10
"""Pods up to which each is looked up by its name; for more the whole cluster is listed."""


class Devices:
    """The devices of a cluster as far as they were listed, and their minutes.

    Parameters
    ----------
    api : CloudWatchApi
        Where they are listed.
    cluster : str
        `ClusterName` of their series.
    """

    def __init__(self, api: CloudWatchApi, cluster: str) -> None:
        self._api = api
        self._cluster = cluster
        self._known: Strands = {}

    def recent(self, deadline: float) -> Collection[Device]:
        """List the devices with points in the last three hours; forget those known before."""
        self._known = self._listed({}, deadline, recent=True)
        return tuple(self._known)

    def of_pods(self, pods: Collection[tuple[str, str]], deadline: float) -> Collection[Device]:
        """List the devices that pods (namespace, name) had in the last two weeks."""
        found: Strands = {}
        if len(pods) > BY_NAME:
            found = self._listed({}, deadline, recent=False)
        else:
            for namespace, pod in pods:
                named = {PODS_NAMESPACE: namespace, POD: pod}
                found |= self._listed(named, deadline, recent=False)
        theirs = {d: some for d, some in found.items() if (d.namespace, d.pod) in set(pods)}
        self._known = {**self._known, **theirs}
        return tuple(theirs)

    def named(self, names: Collection[DeviceName], deadline: float) -> dict[str, Device]:
        """Find devices by their names, looking up those that are not known; others are left out."""
        known = {device.uuid for device in self._known}
        pods = {(name.namespace, name.pod) for name in names if name.uuid not in known}
        if pods:
            self.of_pods(sorted(pods), deadline)
        wanted = {name.uuid for name in names}
        return {device.uuid: device for device in self._known if device.uuid in wanted}

    def minutes(
        self, wanted: Iterable[tuple[Device, Family, range]], deadline: float
    ) -> dict[tuple[Device, Family], Minutes]:
        """Get the minutes of families of listed devices."""
        pairs = {(device, family): periods for device, family, periods in wanted}
        points = self._api.points(
            {
                strand.of(family): Asked("Maximum", periods)
                for (device, family), periods in pairs.items()
                for strand in self._known[device]
            },
            deadline,
        )
        return {
            (device, family): windows.merge(
                [(strand, points[strand.of(family)]) for strand in self._known[device]],
                family,
                add=family is device.kind.memory,
            )
            for device, family in pairs
        }

    def _listed(
        self, dimensions: Mapping[str, str | None], deadline: float, *, recent: bool
    ) -> Strands:
        found: Strands = {}
        for kind in KINDS:
            named = {CLUSTER: self._cluster, POD: None, kind.device: None, **dimensions}
            metric = kind.activity.metric
            listed = self._api.listed(NAMESPACE, metric, named, deadline, recent=recent)
            found |= devices(kind, listed)
        return found
