"""From what a backend has to what the detectors can tell: pure."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from local.metrics_check.needs import Need
from steward.cluster.control_plane import AddOn


class State(StrEnum):
    """What became of a need."""

    FOUND = "found"
    MISSING = "missing"
    STOPPED = "stopped"
    WITHOUT_LABELS = "without labels"
    UNATTRIBUTED = "unattributed"
    NOT_USED = "not used"


BAD = frozenset({State.MISSING, State.STOPPED, State.WITHOUT_LABELS, State.UNATTRIBUTED})


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend has of one metric now.

    Attributes
    ----------
    lacking : dict of str to int
        By label, in its first spelling: series that have none of its spellings.
    exporters : int
        Series whose pod is the exporter's own.
    recently : bool
        Whether the metric was there within the last day.
    """

    series: int = 0
    lacking: dict[str, int] = msgspec.field(default_factory=dict)
    exporters: int = 0
    recently: bool = False


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a need."""

    need: Need
    state: State
    metric: str | None
    series: int
    detail: str
    setting: str
    advice: str

    @property
    def failed(self) -> bool:
        """Whether something that is required is not there."""
        return self.need.required and self.state in BAD


def judge(need: Need, seen: Mapping[str, Sighting], setting: str) -> Row:
    """Compare a need with what a backend has."""
    sightings = {metric: seen.get(metric, Sighting()) for metric in need.metrics}
    present = {metric: one for metric, one in sightings.items() if one.series}
    if not present:
        recently = sorted(metric for metric, one in sightings.items() if one.recently)
        state = State.STOPPED if recently else State.MISSING
        detail = f"{recently[0]} was there within the last day" if recently else ""
        return _row(need, state, None, 0, detail, setting)
    verdicts = [_of_metric(need, metric, one, setting) for metric, one in present.items()]
    return next((one for one in verdicts if one.state not in BAD), verdicts[0])


def _of_metric(need: Need, metric: str, one: Sighting, setting: str) -> Row:
    if need.when and one.lacking.get(need.when, 0) >= one.series:
        detail = f"no series has {need.when}: no card is partitioned"
        return _row(need, State.NOT_USED, metric, 0, detail, setting)
    short = {names[0]: one.lacking.get(names[0], 0) for names in need.on_every}
    gone = [label for label, lacking in short.items() if lacking >= one.series]
    if gone:
        detail = f"no series has {', '.join(gone)}"
        return _row(need, State.WITHOUT_LABELS, metric, one.series, detail, setting)
    named = one.series - max((one.lacking.get(names[0], 0) for names in need.on_some), default=0)
    held = max(0, named - one.exporters)
    if need.on_some and not held:
        who = "every pod named is the exporter's own" if named else "no series names a pod"
        detail = f"{who}: right only while no pod holds an accelerator"
        return _row(need, State.UNATTRIBUTED, metric, one.series, detail, setting)
    parts = [f"{lacking} lack {label}" for label, lacking in short.items() if lacking]
    parts += [f"{held} name a pod"] if need.on_some else []
    return _row(need, State.FOUND, metric, one.series, "; ".join(parts), setting)


def _row(
    need: Need, state: State, metric: str | None, series: int, detail: str, setting: str
) -> Row:
    advice = need.remedy if state in BAD else ""
    return Row(
        need=need,
        state=state,
        metric=metric,
        series=series,
        detail=detail,
        setting=setting,
        advice=advice,
    )


def setting_of(need: Need, add_ons: Mapping[str, AddOn | str]) -> str:
    """Say in words what the add-on behind a need is set to; a text stands for why it is not known."""
    found = add_ons.get(need.add_on, "not asked")
    if isinstance(found, str):
        return found
    told = f"{found.version or 'version unknown'}, {found.status or 'status unknown'}"
    if not need.setting:
        return told
    if not found.settings_known:
        return f"{told}; its settings cannot be read"
    steps = {path: path.split(".") for path in found.settings}
    values = [
        f"{path.rpartition('.')[2]} {value}"
        for path, value in found.settings.items()
        if need.setting in steps[path]
    ]
    return f"{told}; {need.setting}: {', '.join(values) or 'left at its default'}"


def summary(rows: Iterable[Row]) -> dict[str, int]:
    """Count the states."""
    counted: dict[str, int] = {}
    for row in rows:
        counted[row.state.value] = counted.get(row.state.value, 0) + 1
    return counted
