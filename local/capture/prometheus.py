"""One piece of metrics from Prometheus (AMP): raw samples as they were stored, as OpenMetrics."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import chain

import msgspec

from local.capture.aws_scrub import scrub_labels
from local.capture.chunks import Chunk
from local.capture.names import Pseudonyms
from local.live import Live
from local.metrics.openmetrics import Series, write
from steward.errors import DeniedError, PermanentError, RetryableError
from steward.sources.prometheus import promql

_SECONDS = 120.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_labels = msgspec.json.Decoder(dict[str, str])

type Samples = tuple[list[int], list[float]]
"""Milliseconds since the epoch, ascending, and as many values."""


class RawSamples:
    """Fetches pieces with instant queries for ranges: a range query would repeat and drop samples."""

    def __init__(self, live: Live, names: Pseudonyms) -> None:
        self._api = live.queries()
        self._matchers = live.matchers()
        self._names = names

    def __call__(self, chunk: Chunk) -> str:
        """Fetch a piece.

        Raises
        ------
        DeniedError, RetryableError, PermanentError
            Refused, not answered in time, or an answer of something else.
        """
        found: dict[tuple[tuple[str, str], ...], Series] = {}
        for labels, (times, values) in self._read(chunk):
            if not times:
                continue
            kept = scrub_labels(labels, self._names)
            key = tuple(sorted(kept.items()))
            # Halves of a piece come in order and have no sample in common.
            series = found.setdefault(key, Series(kept, array("q"), array("d")))
            series.times.extend(times)
            series.values.extend(values)
        text = StringIO()
        write((found[key] for key in sorted(found)), text)
        return text.getvalue()

    def _read(self, chunk: Chunk) -> Iterator[tuple[dict[str, str], Samples]]:
        try:
            return iter(list(self._ask(chunk)))
        except DeniedError:
            raise
        except (PermanentError, RetryableError):
            # A server limits the samples and the time of a query: less of them may pass.
            halves = chunk.halves()
            if len(halves) == 1:
                raise
            return chain.from_iterable(self._read(half) for half in halves)

    def _ask(self, chunk: Chunk) -> Iterator[tuple[dict[str, str], Samples]]:
        start, end = _ms(chunk.start), _ms(chunk.end)
        # The whole range: which of its edges count depends on Prometheus' version, so what is
        # outside of the piece is cut off here.
        text = f"{promql.selector(chunk.metrics, self._matchers)}[{end - start}ms]"
        deadline = self._api.deadline(_SECONDS)
        for labels, points in self._api.matrix(text, chunk.end, deadline, _labels.decode):
            first, last = bisect_right(points.times, start), bisect_right(points.times, end)
            yield labels, (list(points.times[first:last]), list(points.values[first:last]))


def _ms(when: datetime) -> int:
    return (when - _EPOCH) // timedelta(milliseconds=1)
