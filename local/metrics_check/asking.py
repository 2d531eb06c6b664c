"""Asks a cluster's backend which metrics it has, and EKS how the add-ons behind them are set."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from local.capture.insights import list_metrics
from local.live import Live
from local.metrics_check.judging import Sighting
from local.metrics_check.needs import Need, metric_names
from steward.cluster.control_plane import AddOn
from steward.errors import PermanentError, StewardError
from steward.sources.control_plane.add_ons import read_add_on
from steward.sources.prometheus import promql

EXPORTERS = "(?s:.*(dcgm|exporter|neuron-monitor).*)"
"""Pods of exporters: a series that names one as its pod was not attributed to who holds the card."""

_SECONDS = 60.0
_DAY = timedelta(days=1)


class _Named(msgspec.Struct):
    name: str = msgspec.field(name="__name__", default="")


_named = msgspec.json.Decoder(_Named)


def see_prometheus(live: Live, needs: Iterable[Need], now: datetime) -> dict[str, Sighting]:
    """Count series, and those without a label, on the server: a handful of queries.

    Raises
    ------
    DeniedError, RetryableError, PermanentError
        Refused, not answered, or an answer of something else.
    """
    needs = tuple(needs)
    names = metric_names(needs)
    end = now - timedelta(seconds=live.cluster.metrics.delay_seconds)
    groups = {labels for need in needs for labels in (*need.on_every, *need.on_some)}
    groups |= {(need.when,) for need in needs if need.when}
    counts = _Counts(live, names, end)
    series = counts({})
    lacking = {labels[0]: counts(dict.fromkeys(labels, '""')) for labels in sorted(groups)}
    exporters = counts({"exported_pod": '""', "pod": json.dumps(EXPORTERS)})
    try:
        recent = set(live.label_values("__name__", now - _DAY, now))
    except StewardError:
        recent = set()  # only tells *stopped* from *missing*
    return {
        name: Sighting(
            series=series.get(name, 0),
            lacking={label: found.get(name, 0) for label, found in lacking.items()},
            exporters=exporters.get(name, 0),
            recently=name in recent,
        )
        for name in names
    }


class _Counts:
    """Counts the series of each metric that match."""

    def __init__(self, live: Live, names: tuple[str, ...], end: datetime) -> None:
        self._api = live.queries()
        self._matchers = live.matchers()
        self._names = names
        self._end = end

    def __call__(self, matchers: Mapping[str, str]) -> dict[str, int]:
        text = promql.selector(self._names, self._matchers | dict(matchers))
        deadline = self._api.deadline(_SECONDS)
        asked = self._api.vector(
            f"count by (__name__) ({text})", self._end, deadline, _named.decode
        )
        return {about.name: int(value) for about, value in asked}


def see_insights(live: Live, needs: Iterable[Need]) -> dict[str, Sighting]:
    """Count the metrics of the cluster that have the dimensions a need asks for.

    Raises
    ------
    StewardError
        Refused (`cloudwatch:ListMetrics`) or not answered.
    """
    client: Any = live.session.client("cloudwatch", region_name=live.cluster.region)
    found: dict[str, Sighting] = {}
    for need in needs:
        whole = list(list_metrics(client, need, live.cluster.eks_name))
        # Sums over pods and the like are there as well: only the finest series are of a device.
        anything = msgspec.structs.replace(need, on_every=need.on_every[:1])
        every = whole or list(list_metrics(client, anything, live.cluster.eks_name))
        for metric in need.metrics:
            own = [one for one in every if one["MetricName"] == metric]
            short = {} if whole else {names[0]: len(own) for names in need.on_every[1:]}
            found[metric] = Sighting(series=len(own), lacking=short)
    return found


def read_add_ons(live: Live, needs: Iterable[Need]) -> dict[str, AddOn | str]:
    """Ask EKS for the add-ons behind some needs; where it does not tell, why in words."""
    client: Any = live.session.client("eks", region_name=live.cluster.region)
    found: dict[str, AddOn | str] = {}
    for name in dict.fromkeys(need.add_on for need in needs):
        try:
            answer = client.describe_addon(clusterName=live.cluster.eks_name, addonName=name)
            found[name] = read_add_on(answer, name)[0]
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            absent = code == "ResourceNotFoundException"
            found[name] = "not installed" if absent else f"not known: eks:DescribeAddon: {code}"
        except (BotoCoreError, PermanentError) as error:
            found[name] = f"not known: {error}"
    return found
