"""The policy file on the command line.

`python -m local.policy check|compile|schema|explain`; a bad policy ends with status 2 and one line
on stderr for each fault: `file:line: key.path: message; remedy`.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from local.policy import json_schema
from local.policy.explaining import explain
from local.policy.reading import PolicyFileError, read
from steward import codec
from steward.cluster.policy import Policy, Scope
from steward.errors import ConfigError


def summary(policy: Policy) -> Iterator[str]:
    """Say what a good policy shares out, a line a cluster."""
    for cluster in policy.clusters:
        capacity = sum(group.count * group.accelerators_per_instance for group in cluster.capacity)
        quotas = ", ".join(f"{team.name} {team.accelerators}" for team in cluster.teams)
        buffer = f"buffer {cluster.buffer_accelerators}"
        yield f"{cluster.name}: {capacity} accelerators: {quotas or 'no teams'}, {buffer}"


def schema_text() -> str:
    """Write the JSON schema of the document as `governance.schema.json` holds it."""
    return json.dumps(json_schema(), indent=2) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0: done, 2: bad policy or bad question, said on stderr."""
    options = _parser().parse_args(arguments)
    try:
        _run(options)
    except PolicyFileError as error:
        print("\n".join(error.lines), file=sys.stderr)
        return 2
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _run(options: argparse.Namespace) -> None:
    if options.command == "schema":
        options.destination.write_text(schema_text(), encoding="utf-8")
        return
    source = read(options.source)
    if options.command == "check":
        print("\n".join(summary(source.resolve())))
    elif options.command == "compile":
        options.destination.write_bytes(codec.dump(source.resolve()))
    else:
        scope = Scope(
            team=options.team,
            namespace=options.namespace,
            priority_class=options.priority_class,
            owner_kind=options.owner_kind,
        )
        print("\n".join(explain(source, options.cluster, scope)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local.policy", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="check a policy file")
    compile_ = commands.add_parser("compile", help="check it and write what Lambda reads")
    schema = commands.add_parser("schema", help="write the JSON schema of a policy file")
    explain_ = commands.add_parser("explain", help="print what holds for a team, and why")
    for command in (check, compile_, explain_):
        command.add_argument("source", type=Path)
    for command in (compile_, schema):
        command.add_argument("destination", type=Path)
    for option in ("--cluster", "--team"):
        explain_.add_argument(option, required=True)
    for option in ("--namespace", "--priority-class", "--owner-kind"):
        explain_.add_argument(option)
    return parser


if __name__ == "__main__":
    sys.exit(main())
