"""The metrics that the detectors read: the table `needs.toml`, and what its keys mean."""

import tomllib
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

_FILE = Path(__file__).with_name("needs.toml")


class Backend(StrEnum):
    """Where metrics are asked for."""

    PROMETHEUS = "prometheus"
    CONTAINER_INSIGHTS = "container_insights"


class Hardware(StrEnum):
    """Which accelerators a metric is of."""

    ANY = "any"
    GPU = "gpu"
    NEURON = "neuron"


class Need(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that detectors want to know, and the metrics that tell it.

    Attributes
    ----------
    metrics : tuple of str
        Any one of them is enough.
    on_every : tuple of tuple of str
        Labels (dimensions) that each series needs; each in its spellings, one of which is enough.
    on_some : tuple of tuple of str
        Labels that series of held accelerators need; those of free ones lack them rightly.
    when : str
        Label that shows that there is anything to measure; without it the need does not arise.
    required : bool
        Whether detectors say *unknown* without it.
    activity : bool
        Whether idleness is read from it, as far back as the beginning of an idle stretch.
    add_on, setting : str
        The EKS add-on that collects it, and which of its settings (empty: none of its own).
    """

    name: str
    backend: Backend
    hardware: Hardware = Hardware.ANY
    detectors: tuple[str, ...]
    metrics: tuple[str, ...]
    on_every: tuple[tuple[str, ...], ...] = ()
    on_some: tuple[tuple[str, ...], ...] = ()
    when: str = ""
    required: bool = False
    activity: bool = False
    add_on: str
    setting: str = ""
    remedy: str


def _table() -> Iterator[Need]:
    table = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    for group in table["groups"]:
        for one in group.pop("needs"):
            remedy = one["remedy"].format_map(table["texts"])
            yield msgspec.convert(group | one | {"remedy": remedy}, Need)


NEEDS = tuple(_table())
"""Every metric that a detector, a cross-check or a recording reads."""


def needs_of(backend: Backend, hardware: Iterable[Hardware]) -> tuple[Need, ...]:
    """Choose what a cluster with this backend and these accelerators needs."""
    wanted = {Hardware.ANY, *hardware}
    return tuple(one for one in NEEDS if one.backend is backend and one.hardware in wanted)


def metric_names(needs: Iterable[Need], *, activity: bool | None = None) -> tuple[str, ...]:
    """Name the metrics of some needs, each once; `activity`: only those of activity, or the rest."""
    needs = tuple(needs)
    active = {metric for need in needs if need.activity for metric in need.metrics}
    names = dict.fromkeys(metric for need in needs for metric in need.metrics)
    return tuple(one for one in names if activity is None or (one in active) is activity)
