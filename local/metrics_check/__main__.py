"""Which metrics a live cluster has: `make metrics-check CLUSTER=…` (docs/capture.md).

0: all that is required is there; 1: something required is not, or could not be asked; 2: bad input.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from local.live import Live, find, said, signed_in
from local.metrics_check.asking import read_add_ons, see_insights, see_prometheus
from local.metrics_check.judging import BAD, Row, State, judge, setting_of, summary
from local.metrics_check.needs import Backend, Hardware, needs_of
from steward.clock import SystemClock
from steward.errors import ConfigError, StewardError
from steward.ports import Clock

_COLOURS = {State.FOUND: "green", State.NOT_USED: "dim"}
_NEURON = ("ml.trn", "ml.inf")


def check(live: Live, clock: Clock) -> tuple[Row, ...]:
    """Ask a cluster's backend and compare it with the table of needs.

    Raises
    ------
    StewardError
        The backend refused, did not answer, or is something else.
    """
    backend = Backend.CONTAINER_INSIGHTS if live.insights else Backend.PROMETHEUS
    needs = needs_of(backend, hardware(live))
    seen = see_insights(live, needs) if live.insights else see_prometheus(live, needs, clock.now())
    add_ons = read_add_ons(live, needs)
    return tuple(judge(need, seen, setting_of(need, add_ons)) for need in needs)


def hardware(live: Live) -> set[Hardware]:
    """Tell which accelerators the policy counts on; GPUs where it names no capacity."""
    types = [group.instance_type for group in live.cluster.capacity]
    return {Hardware.NEURON if one.startswith(_NEURON) else Hardware.GPU for one in types} or {
        Hardware.GPU
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="metrics-check", description=__doc__.splitlines()[0])
    parser.add_argument("--cluster", required=True, help="its name in the policy")
    parser.add_argument("--governance", type=Path, default=Path("layers/policy/governance.yaml"))
    parser.add_argument("--metrics-url", default="", help="a forwarded Prometheus, unsigned")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    given = parser.parse_args(arguments)
    try:
        live = find(given.cluster, given.governance, given.metrics_url)
        if live.signed or live.insights:
            signed_in(live.session)
        rows = check(live, SystemClock())
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except StewardError as error:
        print(said(error), file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(as_json(given.cluster, rows), indent=2))
    else:
        show(given.cluster, rows, Console())
    return 1 if any(row.failed for row in rows) else 0


def as_json(cluster: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Describe the verdicts for a program."""
    return {
        "cluster": cluster,
        "ok": not any(row.failed for row in rows),
        "states": summary(rows),
        "needs": [
            {
                "name": row.need.name,
                "detectors": list(row.need.detectors),
                "required": row.need.required,
                "state": row.state.value,
                "metric": row.metric,
                "metrics": list(row.need.metrics),
                "series": row.series,
                "detail": row.detail,
                "setting": row.setting,
                "advice": row.advice,
            }
            for row in rows
        ],
    }


def show(cluster: str, rows: Sequence[Row], console: Console) -> None:
    """Print a table, and below it how the add-ons are set and what to switch on."""
    table = Table(title=f"Metrics of {cluster}", title_justify="left")
    table.add_column("what, and who asks")
    table.add_column("state")
    table.add_column("series", justify="right")
    table.add_column("metric", overflow="fold")
    for row in rows:
        colour = _COLOURS.get(row.state, "red" if row.failed else "yellow")
        detail = f"\n{escape(row.detail)}" if row.detail else ""
        table.add_row(
            f"{escape(row.need.name)}\n[dim]{', '.join(row.need.detectors)}[/]",
            f"[{colour}]{row.state.value}[/]{'' if row.need.required else ' (optional)'}{detail}",
            str(row.series),
            "\n".join([row.metric] if row.metric else row.need.metrics),
        )
    console.print(table)
    for setting in dict.fromkeys(f"{row.need.add_on}: {row.setting}" for row in rows):
        console.print(setting, highlight=False, markup=False, soft_wrap=True)
    advised: dict[str, list[str]] = {}
    for row in rows:
        if row.state in BAD:
            mark = "required" if row.need.required else "optional"
            advised.setdefault(row.advice, []).append(f"{row.need.name} ({mark})")
    for advice, names in advised.items():
        console.print(f"- {', '.join(names)}: {advice}", highlight=False, markup=False)


if __name__ == "__main__":
    sys.exit(main())
