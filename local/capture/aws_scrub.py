"""What is left of an answer of SageMaker or EKS, and of metric labels: pure."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from local.capture.kubernetes_scrub import Json
from local.capture.names import Pseudonyms, names_person
from steward.sources.control_plane.add_ons import KEPT

_DROPPED = frozenset(
    {
        "LifeCycleConfig",
        "ResponseMetadata",
        "Tags",
        "env",
        "identity",
        "nextToken",
        "NextToken",
        "tags",
    }
)
LABELS = frozenset(
    {
        "__name__",
        "DCGM_FI_DRIVER_VERSION",
        "GPU_I_ID",
        "GPU_I_PROFILE",
        "Hostname",
        "UUID",
        "cluster_id",
        "cluster_name",
        "cluster_queue",
        "cohort",
        "condition",
        "container",
        "detailed_reason",
        "device",
        "exported_container",
        "exported_job",
        "exported_namespace",
        "exported_pod",
        "flavor",
        "git_version",
        "gpu",
        "hostname",
        "instance_type",
        "job",
        "kubernetes_node",
        "le",
        "local_queue",
        "modelName",
        "name",
        "namespace",
        "neuron_device_index",
        "neuroncore",
        "neuroncore_per_device_count",
        "node",
        "phase",
        "pod",
        "preempting_cluster_queue",
        "priority_class",
        "reason",
        "replica_role",
        "resource",
        "result",
        "runtime_tag",
        "status",
        "underlying_cause",
        "uuid",
    }
)
"""Labels whose values are kept; of any other the value is a pseudonym, so that no two series meet."""

_OF_JOBS = frozenset({"pod", "exported_pod"})


def scrub_aws(answer: Mapping[str, Any], names: Pseudonyms) -> Json:
    """Reduce an answer to what a recording may hold, in the form that the AWS CLI prints."""
    found = {key: _member(key, one, names) for key, one in answer.items() if key not in _DROPPED}
    add_on = answer.get("addon")
    if isinstance(add_on, dict) and isinstance(add_on.get("configurationValues"), str):
        kept = KEPT.get(str(add_on.get("addonName")), ())
        settings = _configuration(add_on["configurationValues"], kept, names)
        found["addon"]["configurationValues"] = settings
    return found


def scrub_labels(labels: Mapping[str, str], names: Pseudonyms) -> dict[str, str]:
    """Replace the values of a series' labels where they are people, jobs or nobody's business."""
    found = {}
    for label, value in labels.items():
        if label in _OF_JOBS:
            found[label] = names.pod(value)
        elif label in LABELS:
            found[label] = names.text(value)
        elif names_person(label):
            found[label] = names.person(value)
        else:
            found[label] = names.hidden(value)
    return found


def _member(key: str, value: object, names: Pseudonyms) -> Any:
    if key == "certificateAuthority":
        return {"data": ""}
    if key == "endpoint" and isinstance(value, str):
        return "https://left-out.eks.amazonaws.com"
    if key in {"CreatedBy", "LastModifiedBy"}:
        return _people(value, names)
    if key == "configurationValues":
        return ""
    if isinstance(value, str) and value and names_person(key):
        return names.person(value)
    return _any(value, names)


def _any(value: object, names: Pseudonyms) -> Any:
    match value:
        case dict():
            return {k: _member(k, one, names) for k, one in value.items() if k not in _DROPPED}
        case list() | tuple():
            return [_any(one, names) for one in value]
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case str():
            return names.text(value)
        case bytes():
            return names.hidden(value.hex())
    return value


def _people(value: object, names: Pseudonyms) -> Any:
    """Replace every word of an identity; an ARN keeps its form."""
    if isinstance(value, dict):
        return {key: _people(one, names) for key, one in value.items()}
    if not isinstance(value, str):
        return None
    return names.text(value) if value.startswith("arn:") else names.person(value)


def _configuration(text: str, kept: tuple[str, ...], names: Pseudonyms) -> str:
    """Keep the settings that the steward reads; everything else may be secret.

    What is not a JSON object says nothing to the steward either, and stays that.
    """
    try:
        settings = json.loads(text) if text.strip() else {}
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        return "left out of the recording"
    found: Json = {}
    for path, value in _leaves(settings, ()):
        dotted = ".".join(path)
        if any(_is(dotted, pattern) for pattern in kept):
            place = found
            for step in path[:-1]:
                place = place.setdefault(step, {})
            place[path[-1]] = _any(value, names)
    return json.dumps(found) if found else ""


def _is(dotted: str, pattern: str) -> bool:
    return dotted.count(".") == pattern.count(".") and fnmatchcase(dotted, pattern)


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(one, (*path, key))
    elif path:
        yield path, value
