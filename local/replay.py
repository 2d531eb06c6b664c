"""Replay a recording through the real handlers, on a virtual clock; prints JSON lines.

`python -m local.replay RECORDING`; what each line means is in docs/replay.md.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from local import lines
from local import policy as policy_tool
from local.application import LocalApp, VirtualClock, for_recording
from local.recording import Recording
from local.rig import environment, serve
from local.routing import read_routes
from local.simulation import Emit, Replay
from steward import bootstrap
from steward.cluster.figures import stamp
from steward.cluster.policy import Policy
from steward.errors import ConfigError
from steward.settings import Settings
from steward.telemetry import logger

ROOT = Path(__file__).resolve().parent.parent


def load_policy(recording: Recording) -> Policy:
    """Load the policy in force: the recording's own, else the example policy.

    Raises
    ------
    ConfigError
        It is wrong, or does not know the recorded cluster.
    """
    path = recording.governance or ROOT / "layers/policy/governance.yaml"
    policy = policy_tool.load(path)
    if policy.cluster(recording.cluster) is None:
        known = ", ".join(cluster.name for cluster in policy.clusters)
        raise ConfigError(
            f"{recording.folder / 'recording.yaml'}: cluster {recording.cluster!r} is not in "
            f"{path} (it knows {known}); correct the name or add a governance.yaml"
        )
    return for_recording(policy, recording.cluster, recording.tick)


def replay(
    folder: Path, emit: Emit, progress: Callable[[datetime], None] = lambda _: None
) -> Replay:
    """Replay a recording and return the finished run.

    Raises
    ------
    ConfigError
        The recording or its policy is wrong; nothing was replayed.
    """
    recording = Recording.open(folder)
    policy = load_policy(recording)
    clock = VirtualClock(recording.start)
    # Stdout holds lines only. Not setStream: that flushes the old stream, which may be closed.
    logger.registered_handler.stream = sys.stderr  # type: ignore[attr-defined]
    names = {name for c in policy.clusters for name in (c.name, c.eks_name)}
    with serve(recording, names, clock.now) as rig, environment(rig.url):
        settings = Settings(
            region="us-east-1",
            local_endpoint=rig.url,
            slack_secret="slack",  # noqa: S106 - its name
        )
        app = LocalApp(settings, policy, clock)
        bootstrap.use(app)
        try:
            run = Replay(
                recording=recording,
                routes=read_routes(ROOT / "template.yaml", CheckpointBuckets=_buckets(policy)),
                app=app,
                clock=clock,
                rig=rig,
                emit=emit,
            )
            run.run(progress)
        finally:
            bootstrap.use(None)
    return run


def _buckets(policy: Policy) -> str:
    """List the buckets that the policy's teams write checkpoints to, as a deployment is told."""
    locations = [one.uri for c in policy.clusters for team in c.teams for one in team.checkpoints]
    names = {uri.removeprefix("s3://").partition("/")[0] for uri in locations if uri[:5] == "s3://"}
    return ",".join(sorted(names))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; returns the exit status (0 ran, 1 a handler failed, 2 bad input)."""
    parser = argparse.ArgumentParser(prog="replay", description=__doc__.splitlines()[0])
    parser.add_argument("recording", type=Path, help="folder of the recording")
    given = parser.parse_args(arguments)
    logging.getLogger().setLevel(logging.ERROR)
    logger.setLevel(logging.ERROR)
    try:
        run = replay(given.recording, _print, _Progress())
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    return 1 if run.failures else 0


def _print(line: lines.Line) -> None:
    print(lines.dump(line), flush=True)


class _Progress:
    """Says on stderr which hour is being replayed."""

    def __init__(self) -> None:
        self._said: datetime | None = None

    def __call__(self, at: datetime) -> None:
        if self._said is None or at - self._said >= timedelta(hours=1):
            self._said = at
            print(f"replaying {stamp(at)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
