"""The answers of one tick's instant queries, by series, and what of them is in doubt. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from steward.sources.prometheus.asked import COUNT, MAXIMUM, MEAN, MINIMUM, Asked, column
from steward.sources.prometheus.families import ACTIVITY, LEVELS, Family
from steward.sources.prometheus.labels import Device, Owned, attribute
from steward.sources.prometheus.series import Key, SeriesTable

_PLACES = {COUNT: 0, MEAN: 1, MINIMUM: 2, MAXIMUM: 3}

_ROUNDING = 1e-9
"""A mean is added up: by so much of the range it may lie outside of what it is the mean of."""

type Row = list[float | None]
"""Count, mean, minimum and maximum of one series over one window; None: not answered."""

type Parts = Mapping[str, Sequence[int]]
"""Numbers of a device's series by the part of it that they tell of."""


class Channel(NamedTuple):
    """One metric of one part of a device: what series are merged within."""

    device: Device
    part: str
    metric: str


class Answers:
    """The answers of one tick's instant queries.

    Parameters
    ----------
    asked : Asked
        What was asked.

    Attributes
    ----------
    asked : Asked
        What was asked.
    series : SeriesTable
        The series that answered.
    """

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.series = SeriesTable()
        self._rows: dict[str, dict[int, Row]] = defaultdict(dict)
        self._newest: dict[str, dict[int, float]] = {column(family, 0): {} for family in ACTIVITY}
        self._levels: dict[str, dict[int, float]] = defaultdict(dict)

    def add_statistic(self, function: str, said: Iterable[tuple[Key, float]]) -> None:
        """Take the answer to one function over every family and window.

        With the counts come the times, in seconds, of the newest activity samples.
        """
        place = _PLACES[function]
        for (name, number), value in said:
            if name in self._newest:
                self._newest[name][number] = value
                continue
            rows = self._rows[name]
            if number not in rows:
                rows[number] = [None] * len(_PLACES)
            rows[number][place] = value

    def add_levels(self, said: Iterable[tuple[Key, float]]) -> None:
        """Take the newest values."""
        for (name, number), value in said:
            self._levels[name][number] = value

    @cached_property
    def owned(self) -> Sequence[Owned | None]:
        """Whose each series is."""
        return attribute(self.series.labels)

    @cached_property
    def devices(self) -> Mapping[Device, Parts]:
        """Every device, sorted, with its series.

        Under MIG each slice is a device, and the card itself is none.
        """
        found: dict[Device, dict[str, list[int]]] = {}
        partitioned = self._partitioned()
        for number, owned in enumerate(self.owned):
            if owned and (owned.device.mig or owned.device.uuid not in partitioned):
                parts = found.setdefault(owned.device, {})
                parts.setdefault(owned.part, []).append(number)
        return {device: found[device] for device in sorted(found, key=lambda d: d.order)}

    @cached_property
    def doubtful(self) -> Collection[Channel]:
        """What only raw samples can tell the truth about.

        That is where a value is out of range (a mean is NaN where any sample is), where answers do
        not fit together (a sample arrived between two queries), where series tell several levels,
        and where several series tell a signal and none spans its longest window: counts alone
        cannot tell a succession from a duplicate.
        """
        return {
            Channel(device, part, family.metric)
            for device, parts in self.devices.items()
            for part, series in parts.items()
            for family in self._doubts(device, series)
        }

    def rows(self, family: Family, minutes: int) -> Mapping[int, Row]:
        """Give the statistics of a family over a window, by series."""
        return self._rows[column(family, minutes)]

    def longest(self, family: Family) -> Mapping[int, Row]:
        """Give the rows of the family's longest window: a series without one has no sample."""
        minutes = self.asked.minutes_of(family)
        return self.rows(family, minutes[-1]) if minutes else {}

    def newest(self, family: Family) -> Mapping[int, float]:
        """Give the times, in seconds, of a family's newest samples, by series."""
        return self._newest[column(family, 0)]

    def levels(self, metric: str) -> Mapping[int, float]:
        """Give the newest values of a metric, by series."""
        return self._levels[metric]

    def _partitioned(self) -> set[str]:
        """Find the cards that are partitioned: of card and slices, what has samples still counts."""
        living = set[int]().union(*self._newest.values())
        slices: dict[bool, set[str]] = {True: set(), False: set()}
        cards = set[str]()
        for number, owned in enumerate(self.owned):
            if owned and owned.device.mig:
                slices[number in living].add(owned.device.uuid)
            elif owned and number in living:
                cards.add(owned.device.uuid)
        return slices[True] | (slices[False] - cards)

    def _doubts(self, device: Device, series: Sequence[int]) -> Iterator[Family]:
        told = False
        for family in device.families:
            if family in LEVELS:
                levels = self._levels[family.metric]
                said = {levels[number] for number in series if number in levels}
                if len(said) > 1 or not all(family.valid(value) for value in said):
                    yield family
                continue
            rows = [self._rows[name] for name in self.asked.columns_of(family)]
            # A second activity metric decides nothing: only what is wrong with it is of interest.
            second = told and family in device.activity
            if any(self._bad(family, rows, number) for number in series) or (
                not second and self._scattered(family, series)
            ):
                yield family
            told = told or (bool(rows) and any(number in rows[-1] for number in series))

    def _bad(self, family: Family, rows: Sequence[Mapping[int, Row]], number: int) -> bool:
        whole = bool(rows) and number in rows[-1]
        for window in rows:
            row = window.get(number)
            if row is not None and not (whole and _fits(family, row)):
                return True
        return False

    def _scattered(self, family: Family, series: Sequence[int]) -> bool:
        if len(series) == 1:
            return False
        rows = self.longest(family)
        counts = [rows[number][0] or 0 for number in series if number in rows]
        expected = self.asked.expected(self.asked.minutes_of(family)[-1]) if counts else 0
        return len(counts) > 1 and max(counts) < expected


def _fits(family: Family, row: Row) -> bool:
    """Whether all was answered, can be true, and is the same samples' (NaN compares as false)."""
    count, mean, low, high = row
    if count is None or mean is None or low is None or high is None:
        return False
    slack = _ROUNDING * family.highest
    return count > 0 and 0 <= low <= mean + slack and mean - slack <= high <= family.highest
