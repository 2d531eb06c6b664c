"""Measure the cold start of what was built: INIT and first invocation, beside a floor.

The floor imports the same third-party modules and makes the same AWS clients, and does nothing
else: the ratio is what our own code costs. CPU time of fresh processes, in turn, best of several;
everything that a function calls is the local rig.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from local.cloud import NOW, TICK, Cloud, cloud
from local.metrics.source import CHOICE
from local.replay import ROOT
from local.rig import CREDENTIALS
from local.routing import load_template
from steward.errors import ConfigError

BUILD = ROOT / ".aws-sam" / "build"
EVENTS = {
    "plan_ticks": "tick",
    "take_snapshot": "tick",
    "evaluate_snapshot": "idle_gpus",
    "reconcile_alerts": "evaluation",
    "record_checkpoints": "heartbeat",
    "answer_slack": "acknowledge",
    "run_command": "status",
}
"""The event that each function starts with."""

CEILING = 1.3
"""Ratio that no function may exceed."""

_MEASURED = """
import json, sys, time
layers, folder, event = json.loads(sys.argv[1])
sys.path[:0] = [folder, *layers]
before = set(sys.modules)
services = []
start = time.process_time()
import handler
{spy}
context = type("Context", (), dict(function_name="f", memory_limit_in_mb=512, aws_request_id="1",
    invoked_function_arn="arn:aws:lambda:us-east-1:000000000000:function:f"))()
handler.handler(event, context)
used = time.process_time() - start
modules = [n for n, m in list(sys.modules.items()) if n not in before and getattr(m, "__file__", None)]
places = {{n: sys.modules[n].__file__ for n in modules}}
print("\\n" + json.dumps({{"cpu": used, "places": places, "services": services}}))
"""
_SPY = """
import boto3
make = boto3.Session.client
def client(self, name, *a, **k):
    services.append(name)
    return make(self, name, *a, **k)
boto3.Session.client = client
"""
_FLOOR = """
import importlib, json, sys, time
layers, modules, services = json.loads(sys.argv[1])
sys.path[:0] = layers
start = time.process_time()
for name in modules:
    importlib.import_module(name)
if services:
    import boto3
    session = boto3.Session(region_name="us-east-1")
    clients = [session.client(name) for name in services]
def handler(event, context):
    return {}
handler({}, None)
print("\\n" + json.dumps({"cpu": time.process_time() - start}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStart:
    """A function's cold start and its floor, in CPU seconds, with what it imports."""

    function: str
    own: float
    floor: float
    packages: tuple[str, ...]
    modules: int
    steward: tuple[str, ...]
    services: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """How many times the floor."""
        return self.own / self.floor


def measure(function: str, running: Cloud, runs: int) -> ColdStart:
    """Measure one function; floor and function in turn, best of `runs` of each."""
    layers = [str(BUILD / layer / "python") for layer in ("StewardLayer", "DepsLayer")]
    names = {
        resource["Properties"]["CodeUri"].rstrip("/").rpartition("/")[2]: name
        for name, resource in load_template(ROOT / "template.yaml")["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function"
    }
    folder = str(BUILD / names[function])
    event = json.loads((ROOT / "events" / function / f"{EVENTS[function]}.json").read_text())
    given = [layers, folder, event]
    with _seeded(running) as reset:
        probe = _run(_MEASURED.format(spy=_SPY), given, running)
        third_party = _third_party(probe["places"], layers[1])
        floor = [layers[1:], third_party, probe["services"]]
        own_times, floor_times = [], []
        for _ in range(runs):
            reset()
            own_times.append(_run(_MEASURED.format(spy=""), given, running)["cpu"])
            floor_times.append(_run(_FLOOR, floor, running)["cpu"])
    packages = sorted({name.partition(".")[0] for name in third_party})
    return ColdStart(
        function=function,
        own=min(own_times),
        floor=min(floor_times),
        packages=tuple(packages),
        modules=len(third_party),
        steward=tuple(sorted(n for n in probe["places"] if n.startswith("steward."))),
        services=tuple(probe["services"]),
    )


def _third_party(places: Mapping[str, str], deps: str) -> list[str]:
    """Modules of the deps layer, in the order in which they were first imported."""
    return [name for name, place in places.items() if place.startswith(deps)]


def _run(program: str, given: Any, running: Cloud) -> dict[str, Any]:
    """Run a program in a fresh interpreter that sees the built layers and nothing else."""
    environment = {"PATH": os.environ["PATH"], **CREDENTIALS, **running.variables}
    environment |= {
        "POLICY_PATH": str(BUILD / "PolicyLayer" / "policy" / "policy.json"),
        "POWERTOOLS_LOG_LEVEL": "INFO",
    }
    base = getattr(sys, "_base_executable", sys.executable)
    done = subprocess.run(  # noqa: S603 - this interpreter and the programs above
        [base, "-B", "-I", "-S", "-c", program, json.dumps(given)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ConfigError(f"the built function failed: {done.stderr.strip()[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


@contextmanager
def _seeded(running: Cloud) -> Iterator[Any]:
    """Give a function that puts bucket and table back to what they were five minutes ago."""
    s3 = running.session.client("s3", endpoint_url=running.rig.url)
    dynamodb = running.session.client("dynamodb", endpoint_url=running.rig.url)
    bucket, table = running.variables["BUCKET"], running.variables["STATE_TABLE"]
    key = "memory/ml-shared-01.json"
    memory = s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    def reset() -> None:
        s3.put_object(Bucket=bucket, Key=key, Body=memory)
        for one in s3.list_objects_v2(Bucket=bucket, Prefix="latest/").get("Contents", []):
            pointer = s3.get_object(Bucket=bucket, Key=one["Key"])["Body"].read().decode()
            # A cold start in the middle of the day: the tick before it is the last snapshot.
            earlier = pointer.replace(f"{NOW:%Y-%m-%dT%H:%M}", f"{NOW - TICK:%Y-%m-%dT%H:%M}")
            s3.put_object(Bucket=bucket, Key=one["Key"], Body=earlier.encode())
        for prefix in ("claims/", "checkpoints/"):
            for one in s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", []):
                s3.delete_object(Bucket=bucket, Key=one["Key"])
        for item in dynamodb.scan(TableName=table)["Items"]:
            names = {name: item[name] for name in ("pk", "sk")}
            dynamodb.delete_item(TableName=table, Key=names)

    yield reset
    reset()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a ratio is over the ceiling, 2 where nothing was built."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=11, help="counted runs of each (default 11)")
    given = parser.parse_args(arguments)
    os.environ[CHOICE] = "recorded"
    console = Console(width=110)
    if not (BUILD / "template.yaml").is_file():
        print(f"bench: {BUILD}: not built; run `make build ARCH=x86_64`", file=sys.stderr)
        return 2
    with (
        tempfile.TemporaryDirectory() as scratch,
        cloud(Path(scratch) / "recording", "127.0.0.1") as running,
    ):
        found = [measure(function, running, given.runs) for function in EVENTS]
    table = Table(title=f"Cold start, CPU ms, best of {given.runs}", title_justify="left")
    for name in ("function", "INIT + first", "floor", "ratio", "modules", "clients", "packages"):
        table.add_column(name, justify="left" if name in {"function", "packages"} else "right")
    for one in found:
        colour = "green" if one.ratio <= CEILING else "red"
        table.add_row(
            one.function,
            f"{one.own * 1000:.0f}",
            f"{one.floor * 1000:.0f}",
            f"[{colour}]{one.ratio:.2f}[/]",
            str(one.modules),
            " ".join(one.services) or "-",
            " ".join(one.packages),
        )
    console.print(table)
    for one in found:
        console.print(f"{one.function} imports {' '.join(one.steward)}", highlight=False)
    return 0 if all(one.ratio <= CEILING for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
