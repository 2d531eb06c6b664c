"""Writes the demo's files, in the form of docs/recordings.md."""

import json
from pathlib import Path

from local.demo_recording import aws, checkpoints, kubernetes, metrics
from local.demo_recording.script import FOLDERS, FROM, HISTORY, NOTEBOOK_HISTORY, TO
from steward.cluster.figures import stamp

HEADER = f"""\
cluster: ml-shared-01
from: {stamp(FROM)}
to: {stamp(TO)}
tick: 5m
note: >-
  A scripted Thursday. The metrics are those of GPUs that a pod is named for: from {HISTORY:%H:%M} on,
  activity and memory every 60 s, tensor activity and power every 120 s; and the activity of
  notebook-llm-eval from Tuesday {NOTEBOOK_HISTORY:%H:%M} on.
"""


def write(folder: Path) -> Path:
    """Write the recording.

    Parameters
    ----------
    folder : Path
        Made where it is missing; files of the same names are replaced.

    Returns
    -------
    Path
        `folder`.
    """
    documents: dict[str, object] = dict(aws.answers())
    documents[f"checkpoints/{checkpoints.BUCKET}"] = checkpoints.listing()
    for at in FOLDERS:
        for resource, items in kubernetes.objects(at).items():
            listed = {"apiVersion": "v1", "kind": "List", "items": items}
            documents[f"kubernetes/{at:%Y%m%dT%H%M%SZ}/{resource}"] = listed
    for name, document in documents.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    (folder / "recording.yaml").write_text(HEADER, encoding="utf-8")
    (folder / "metrics").mkdir(exist_ok=True)
    with (folder / "metrics" / "dcgm.om").open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(metrics.lines())
    return folder
