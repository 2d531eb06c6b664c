"""Where a Workload's pods are said to write checkpoints: pure."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from steward.sources.kueue.workload_shapes import (
    Annotations,
    Template,
    TemplateMetadata,
    TemplateSpec,
    WorkloadShape,
    WorkloadSpec,
)

LONGEST = 512
"""Characters that are kept of a declaration."""

_CALLED = ("checkpoint", "ckpt")
_LAST_SEGMENTS = 2


def declared_checkpoints(item: WorkloadShape) -> str | None:
    """Give the value of an annotation, else the path of a mount that is called so; None without.

    The Workload's own annotation speaks for all of its pod sets; then the first pod set that says
    anything does.
    """
    pod_sets = (item.spec or WorkloadSpec()).pod_sets or ()
    templates = [pod_set.template or Template() for pod_set in pod_sets]
    annotated = [item.metadata.annotations]
    annotated += [(one.metadata or TemplateMetadata()).annotations for one in templates]
    for annotations in annotated:
        value = (annotations or Annotations()).checkpoints
        if isinstance(value, str) and value.strip():
            return value.strip()[:LONGEST]
    return next((path[:LONGEST] for path in _mounts(templates) if _is_called_so(path)), None)


def _mounts(templates: list[Template]) -> Iterator[str]:
    for template in templates:
        for container in (template.spec or TemplateSpec()).containers or ():
            for mount in container.volume_mounts or ():
                if mount.mount_path:
                    yield mount.mount_path


def _is_called_so(path: str) -> bool:
    """Whether one of the last two parts of a path names checkpoints."""
    last = PurePosixPath(path.lower()).parts[-_LAST_SEGMENTS:]
    return any(name in part for part in last for name in _CALLED)
