"""Recordings written by hand: only what a case needs, in whatever legal shape it needs it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.recordings import LISTED, iso

NAMESPACE = "hyperpod-ns-research"
NODE = "hyperpod-i-0a"

EKS = {"cluster": {"name": "ml-shared-01-eks", "version": "1.33", "endpoint": "https://x"}}

type Object = dict[str, Any]


def header(
    folder: Path, start: datetime, end: datetime, tick: str = "5m", cluster: str = "ml-shared-01"
) -> Path:
    """Write `recording.yaml`, and the one answer without which Kubernetes cannot be reached."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recording.yaml").write_text(
        f"cluster: {cluster}\nfrom: {iso(start)}\nto: {iso(end)}\ntick: {tick}\n"
    )
    write(folder / "eks" / "DescribeCluster.json", EKS)
    return folder


def write(path: Path, document: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def kubernetes(
    folder: Path, at: datetime, *, without: Iterable[str] = (), **items: Sequence[Object]
) -> None:
    """Write a `kubernetes/<time>` folder: every listed resource, empty where nothing is given."""
    place = folder / "kubernetes" / f"{at:%Y%m%dT%H%M%SZ}"
    for resource in LISTED:
        if resource not in without:
            write(place / f"{resource}.json", listing(items.get(resource, [])))


def listing(items: Sequence[Object]) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def node(name: str = NODE, gpus: int = 8, **labels: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"} | labels,
        },
        "spec": {},
        "status": {
            "capacity": {"nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(
    name: str,
    born: object,
    *,
    namespace: str = NAMESPACE,
    requests: Mapping[str, object] | None = None,
    owner: Object | None = None,
    phase: str = "Running",
    uid: str | None = None,
    node_name: str | None = NODE,
    labels: Mapping[str, str] | None = None,
) -> Object:
    """A pod; `born` is written as it is given (text or epoch seconds)."""
    amounts = {"nvidia.com/gpu": "1"} if requests is None else dict(requests)
    spec: Object = {"containers": [{"name": "main", "resources": {"requests": amounts}}]}
    if node_name is not None:
        spec["nodeName"] = node_name
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{namespace}-{name}",
            "creationTimestamp": born,
            "labels": dict(labels or {}),
            **({"ownerReferences": [owner]} if owner else {}),
        },
        "spec": spec,
        "status": {"phase": phase, "startTime": born},
    }


def controller(version: str, kind: str, name: str, **more: object) -> Object:
    return {
        "apiVersion": version,
        "kind": kind,
        "name": name,
        "uid": f"uid-{kind}-{name}",
        "controller": True,
        **more,
    }


def owned(
    version: str, kind: str, name: str, owner: Object | None = None, namespace: str = NAMESPACE
) -> Object:
    """An object whose only interest is that it owns, and by whom it is owned."""
    metadata: Object = {"name": name, "namespace": namespace, "uid": f"uid-{kind}-{name}"}
    if owner:
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {}}


def series(
    uuid: str,
    pod_name: str,
    points: Iterable[tuple[datetime, object]],
    *,
    metric: str = "DCGM_FI_DEV_GPU_UTIL",
    namespace: str = NAMESPACE,
    labels: Mapping[str, str] | None = None,
    milliseconds: bool = False,
) -> list[str]:
    """Sample lines of one series; `labels` in place of the usual ones."""
    given = labels or {
        "Hostname": NODE,
        "UUID": uuid,
        "namespace": namespace,
        "pod": pod_name,
    }
    pairs = ",".join(f'{name}="{value}"' for name, value in given.items())
    scale = 1000 if milliseconds else 1
    return [f"{metric}{{{pairs}}} {value} {when.timestamp() * scale:.0f}" for when, value in points]


def metrics(folder: Path, lines: Iterable[str], name: str = "dcgm.om") -> None:
    path = folder / "metrics" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, *(["# EOF"] if name.endswith(".om") else []), ""]))
