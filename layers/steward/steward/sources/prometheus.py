"""Accelerator metrics from Prometheus: Amazon Managed Prometheus, or one's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from steward.sources import promql
from steward.sources.dcgm import ACTIVITY, NEWEST, TIMESTAMP, Column, Labels, columns
from steward.sources.dcgm_samples import Raw, samples_of, seen_devices
from steward.sources.dcgm_windows import Answers, Span
from steward.sources.prometheus_api import CredentialsSource, QueryApi

if TYPE_CHECKING:
    from steward.ports import DeviceName, DeviceReading, MetricsReading, Samples

_ACTIVITY_METRICS = tuple(family.metric for family in ACTIVITY)


class PrometheusMetrics:
    """The `MetricsReader` of one cluster.

    Parameters
    ----------
    base_url : str
        What `/api/v1/query` is appended to.
    sigv4_region : str or None
        Region of the AMP workspace; None sends unsigned requests.
    credentials : callable
        Where SigV4 gets its credentials from.
    cluster_label : str or None
        Leaves out series that carry another `cluster_name`; series without the label stay.
    scrape_interval_seconds : int
        How often a device is sampled.
    deadline_seconds : float
        What one call of a method may take, over all its queries.
    monotonic : callable
        Seconds of a clock that never goes back.

    Notes
    -----
    `read` makes eight queries a window and five more, and one more where samples are in doubt;
    `samples` makes one, `seen` two. None of these numbers grows with the cluster.
    """

    def __init__(
        self,
        base_url: str,
        *,
        sigv4_region: str | None = None,
        credentials: CredentialsSource = lambda: None,
        cluster_label: str | None = None,
        scrape_interval_seconds: int = 60,
        deadline_seconds: float = 30.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = QueryApi(base_url, sigv4_region, credentials, monotonic)
        self._cluster = (
            {"cluster_name": promql.one_of([cluster_label], or_absent=True)}
            if cluster_label is not None
            else {}
        )
        self._interval = scrape_interval_seconds
        self._deadline_seconds = deadline_seconds

    def close(self) -> None:
        """Close the connections kept for the next query."""
        self._api.close()

    def read(self, end: datetime, minutes: Sequence[int]) -> MetricsReading:
        """Read window statistics for every device, for windows that end at `end`.

        Raises
        ------
        DeniedError, RetryableError, PermanentError
            The source refused, did not answer in time, or answered nonsense.
        """
        deadline = self._api.deadline(self._deadline_seconds)
        span = Span(end=end, minutes=tuple(sorted(set(minutes))), interval_seconds=self._interval)
        rows: dict[Labels, dict[Column, float]] = {}
        for column in columns(span.minutes):
            for _, labels, value in self._api.vector(self._text(column), end, deadline):
                rows.setdefault(labels, {})[column] = value
        answers = Answers(rows, span)
        raw: Iterable[Raw] = ()
        if doubtful := answers.doubtful:
            metrics = sorted(frozenset[str]().union(*doubtful.values()))
            uuids = {device.uuid for device in doubtful}
            raw = self._raw(metrics, uuids, end, span.longest * 60, deadline)
        return answers.reading(raw)

    def samples(
        self, end: datetime, span_seconds: float, devices: Collection[DeviceName]
    ) -> tuple[Samples, ...]:
        """Fetch raw activity samples in (end - span, end] for some devices, in one batched query.

        Every device asked for is in the answer, one without samples with none.

        Raises
        ------
        DeniedError, RetryableError, PermanentError
            The source refused, did not answer in time, or answered nonsense.
        """
        if not devices:
            return ()
        deadline = self._api.deadline(self._deadline_seconds)
        uuids = {device.uuid for device in devices}
        raw = self._raw(_ACTIVITY_METRICS, uuids, end, span_seconds, deadline)
        return samples_of(raw, devices, self._interval)

    def seen(
        self, end: datetime, span_seconds: float, pods: Collection[tuple[str, str]]
    ) -> tuple[DeviceReading, ...]:
        """Find devices that were attributed to pods (namespace, name) within the span before `end`.

        Raises
        ------
        DeniedError, RetryableError, PermanentError
            The source refused, did not answer in time, or answered nonsense.
        """
        if not pods:
            return ()
        deadline = self._api.deadline(self._deadline_seconds)
        found: list[tuple[str, Labels]] = []
        for label in ("pod", "exported_pod"):
            named = self._cluster | {label: promql.one_of(name for _, name in pods)}
            # The one function that keeps the metric's name, so that one query asks for both.
            text = promql.over_time(
                NEWEST, promql.selector(_ACTIVITY_METRICS, named), _milliseconds(span_seconds)
            )
            found += [
                (metric, labels) for metric, labels, _ in self._api.vector(text, end, deadline)
            ]
        return seen_devices(found, pods)

    def _text(self, column: Column) -> str:
        selected = promql.selector([column.metric], self._cluster)
        if column.function == TIMESTAMP:
            return f"{TIMESTAMP}({selected})"
        return promql.over_time(column.function, selected, _milliseconds(column.minutes * 60))

    def _raw(
        self,
        metrics: Sequence[str],
        uuids: Collection[str],
        end: datetime,
        span_seconds: float,
        deadline: float,
    ) -> Iterable[Raw]:
        # Two spellings of one label: each matcher lets the series with the other spelling pass.
        pattern = promql.one_of(uuids, or_absent=True)
        named = self._cluster | {"UUID": pattern, "uuid": pattern}
        text = promql.ranged(promql.selector(metrics, named), _milliseconds(span_seconds))
        return self._api.matrix(text, end, deadline)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
