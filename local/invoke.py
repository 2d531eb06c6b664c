"""Run one built function in the real Lambda runtime, against the rig and nothing else.

`python -m local.invoke FUNCTION EVENT`: prints the function's answer on stdout, its log and what it
told Slack and pagers on stderr; exit status 1 when the function raised, 2 when it could not be run.
`python -m local.invoke --serve` keeps the rig up for `sam local invoke` by hand.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from local.cloud import Cloud, cloud
from local.replay import ROOT
from local.rig import CREDENTIALS
from local.routing import load_template
from steward.errors import ConfigError

PORT = 8930
"""Where `--serve` listens: the address that samconfig.toml gives to a plain `sam local invoke`."""

TEMPLATE = ROOT / "template.yaml"
BUILT = ROOT / ".aws-sam" / "build" / "template.yaml"
FOLDER = ROOT / "build" / "invoke"


def logical_id(function: str) -> str:
    """Find the template's name of a function by its folder under `functions/`.

    Raises
    ------
    ConfigError
        There is no such function; names those that there are.
    """
    named: dict[str, str] = {
        resource["Properties"]["CodeUri"].rstrip("/").rpartition("/")[2]: name
        for name, resource in load_template(TEMPLATE)["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function"
    }
    if function not in named:
        raise ConfigError(f"FUNCTION={function}: not one of {', '.join(sorted(named))}")
    return named[function]


def bridge() -> str:
    """Find the address at which containers reach this machine.

    Raises
    ------
    ConfigError
        No Docker engine answers.
    """
    docker = shutil.which("docker")
    question = ["network", "inspect", "bridge", "--format", "{{json .IPAM.Config}}"]
    answer = (
        subprocess.run([docker, *question], capture_output=True, text=True, check=False)  # noqa: S603 - fixed words
        if docker
        else None
    )
    if answer is None or answer.returncode:
        said = answer.stderr.strip() if answer else "docker is not on PATH"
        raise ConfigError(f"no Docker engine: {said}; start one, or set DOCKER_HOST")
    (config,) = json.loads(answer.stdout)
    # An engine that was never restarted names the subnet only; its first address is the bridge's.
    gateway: str = config.get("Gateway") or str(next(ip_network(config["Subnet"]).hosts()))
    return gateway


def invoke(
    function: str, event: dict[str, Any], running: Cloud
) -> subprocess.CompletedProcess[str]:
    """Run a function once; its answer is on the result's stdout, its log on stderr.

    Raises
    ------
    ConfigError
        The function is unknown, or nothing was built.
    """
    name = logical_id(function)
    if not BUILT.is_file():
        raise ConfigError(f"{BUILT}: not built; run `make build ARCH=x86_64`")
    sam = shutil.which("sam")
    if sam is None:
        raise ConfigError("sam is not on PATH; `make invoke` installs it into .tools/bin")
    with tempfile.TemporaryDirectory() as scratch:
        given = Path(scratch) / "event.json"
        given.write_text(json.dumps(event))
        variables = Path(scratch) / "variables.json"
        variables.write_text(json.dumps({"Parameters": running.variables}))
        command = [sam, "local", "invoke", name, "--event", str(given)]
        command += ["--env-vars", str(variables)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        return subprocess.run(  # noqa: S603 - the words above
            command,
            cwd=ROOT,
            env=environment | CREDENTIALS | {"SAM_CLI_TELEMETRY": "0"},
            capture_output=True,
            text=True,
            check=False,
        )


def raised(answer: str) -> bool:
    """Tell whether a function raised: the SAM CLI exits 0 all the same."""
    try:
        value = json.loads(answer or "null")
    except ValueError:
        return True
    return isinstance(value, dict) and "errorType" in value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="invoke", description=__doc__.splitlines()[0])
    parser.add_argument("function", nargs="?", help="its folder under functions/")
    parser.add_argument("event", nargs="?", type=Path, help="events/<function>/<case>.json")
    parser.add_argument("--serve", action="store_true", help="keep the rig up until interrupted")
    given = parser.parse_args(arguments)
    try:
        if given.serve:
            return _serve()
        if not given.function or not given.event:
            parser.error("FUNCTION and EVENT are needed")
        event = json.loads(given.event.read_text())
        with cloud(FOLDER / "recording", bridge()) as running:
            result = invoke(given.function, event, running)
            print(result.stderr, file=sys.stderr)
            for call in running.rig.calls:
                text = call["payload"].get("text", "")
                print(f"Slack {call['method']} {call['channel']}: {text}", file=sys.stderr)
            for page in running.rig.pages:
                print(f"SNS {page['topic_arn']}: {page['message']}", file=sys.stderr)
    except (ConfigError, OSError, ValueError) as error:
        print(f"invoke: {error}", file=sys.stderr)
        return 2
    print(result.stdout.strip())
    return 1 if result.returncode or raised(result.stdout.strip()) else 0


def _serve() -> int:
    with cloud(FOLDER / "recording", bridge(), PORT) as running:
        print(f"the rig listens at {running.rig.url}; Ctrl-C ends it", file=sys.stderr)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    return 0


if __name__ == "__main__":
    sys.exit(main())
