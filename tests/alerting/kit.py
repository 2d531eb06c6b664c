"""Small clusters that people are told about: jobs in queues that do not exist, nodes that fail.

A job whose queue does not exist is told at once (pending, missing_queue, warn), and ends ten minutes
after it was last seen; nothing else of the cluster is recorded, so that nothing else is told.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from local.recording.moments import moment_name
from tests.handmade import EKS, Object, listing, write
from tests.queues.kit import FLAVOR, GPU, K19, Job, Quota, by_resource, cluster_queue, local_queue
from tests.queues.scene import machine, refused

CLUSTER = "ml-shared-01"
RECORDINGS = Path(__file__).resolve().parent.parent / "recordings" / "slack"

PLATFORM = "C0GPUPLATF01"
RESEARCH = "C0GPURESEA01"
"""Channels of the example policy."""

TEXT = "LocalQueue {} doesn't exist"


def waiting(
    name: str,
    created: datetime,
    *,
    queue: str = "gone",
    team: str = "research",
    gpus: int = 8,
    priority_class: str = "experimentation-priority",
) -> Job:
    """A job that waits for a queue that does not exist."""
    return Job(
        name=name,
        team=team,
        created=created,
        gpus=gpus,
        queue=queue,
        priority_class=priority_class,
        uid=f"uid-{team}-{name}",
        conditions=refused(created, TEXT.format(queue), "Inadmissible"),
    )


def incident_card(detector_group: str, opened: datetime) -> str:
    """The short name of a card: of its group, and of the time at which its incident began."""
    key = f"{CLUSTER}|{detector_group}|{moment_name(opened)}"
    return hashlib.sha256(key.encode()).hexdigest()[:10]


def wait_card(opened: datetime, *, queue: str = "gone", team: str = "research") -> str:
    """The card of jobs that wait for a queue that does not exist."""
    return incident_card(f"pending|{team}|missing_queue|{queue}", opened)


def look(
    folder: Path,
    when: datetime,
    *,
    jobs: Sequence[Job] = (),
    nodes: Sequence[Object] | None = None,
    teams: Iterable[str] = (),
) -> None:
    """Write what is seen of the cluster from a time on: queues, jobs, nodes; the rest is denied."""
    teams = tuple(teams)
    zero = {FLAVOR: {GPU: Quota(nominal="0")}}
    queues = [cluster_queue(K19, f"hyperpod-ns-{team}-clusterqueue", None, zero) for team in teams]
    made: dict[str, Sequence[Object]] = {
        "clusterqueues": queues,
        "localqueues": [local_queue(K19, team) for team in teams],
        "nodes": [machine(0)] if nodes is None else nodes,
        **by_resource(K19, jobs),
    }
    for resource, items in made.items():
        write(folder / "kubernetes" / moment_name(when) / f"{resource}.json", listing(items))
    write(folder / "eks" / "DescribeCluster.json", EKS)


def slack(folder: Path, *entries: Object) -> None:
    """Write presses, commands and scripted answers, one a line."""
    place = folder / "slack"
    place.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    (place / "slack.json").write_text(f"[\n{lines}\n]\n")


def policy(
    folder: Path,
    teams: Mapping[str, str | None],
    *,
    overrides: Sequence[Object] = (),
    channels: Mapping[str, str] | None = None,
    cluster: Object | None = None,
    people: Object | None = None,
) -> None:
    """Write a policy: each team with its channel's id (None: it has none of its own).

    `cluster` has further keys of the cluster, `people` of `slack`.
    """
    named = {"gpu-platform": PLATFORM, **(channels or {})}
    named |= {f"gpu-{team}": channel for team, channel in teams.items() if channel}
    document = {
        "schema": 1,
        "slack": {
            "channels": named,
            "platform_channel": "gpu-platform",
            **(people or {}),
        },
        "clusters": [
            {
                "name": CLUSTER,
                "eks_name": f"{CLUSTER}-eks",
                "region": "us-east-1",
                "time_zone": "UTC",
                "metrics": {
                    "backend": "prometheus",
                    "endpoint": "https://x.example",
                    "sigv4": False,
                },
                "capacity": [{"instance_type": FLAVOR, "count": 4, "accelerators_per_instance": 8}],
                "buffer_accelerators": 32,
                "fair_share": True,
                "priority_classes": [
                    {"name": "experimentation", "weight": 25},
                    {"name": "production-training", "weight": 75},
                ],
                "teams": [_team(team, channel) for team, channel in teams.items()],
                "overrides": list(overrides),
                **(cluster or {}),
            }
        ],
    }
    # JSON is YAML, and needs no second writer.
    (folder / "governance.yaml").write_text(f"{json.dumps(document, indent=1)}\n")


def _team(name: str, channel: str | None) -> Object:
    made = {
        "name": name,
        "accelerators": 0,
        "sharing": {"strategy": "DontLend"},
        "owners": [f"{name}@example.com"],
    }
    return {**made, "channel": f"gpu-{name}"} if channel else made
