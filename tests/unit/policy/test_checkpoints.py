"""Where a team's jobs write checkpoints: text, or a location with its marker."""

from pathlib import Path

import jsonschema
import pytest

from local.policy import json_schema
from local.policy.__main__ import main
from local.policy.reading import parse
from steward.cluster.policy import CheckpointLocation
from tests.unit.policy.documents import edited, resolved

OLD = "checkpoints: [s3://ml-shared-01-checkpoints/research/]"


@pytest.mark.parametrize(
    ("written", "uri", "marker"),
    [
        ("s3://bucket/", "s3://bucket/", None),
        ('"s3://bucket/{namespace}/{job}/"', "s3://bucket/{namespace}/{job}/", None),
        ("{location: s3://bucket/a/}", "s3://bucket/a/", None),
        ("{location: s3://bucket/a/, marker: '*.metadata'}", "s3://bucket/a/", "*.metadata"),
        ("fsx://shared/{team}/", "fsx://shared/{team}/", None),
        ("{location: fsx://fs-0123456789abcdef0/}", "fsx://fs-0123456789abcdef0/", None),
    ],
)
def test_a_location_is_text_or_a_mapping(
    written: str, uri: str, marker: str | None, path: Path
) -> None:
    text = edited(OLD, f"checkpoints:\n          - {written}")
    team = resolved(path, text).teams[1]
    # placeholders stay as they are: whose job it is, only a preemption tells
    assert team.checkpoints == (CheckpointLocation(uri=uri, marker=marker),)
    document = parse(text, path).document
    jsonschema.Draft202012Validator(json_schema()).validate(document)


def test_explain_names_every_location_and_its_marker(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = "checkpoints: [{location: s3://bkt/a/, marker: _SUCCESS}, fsx://shared/]"
    text = edited(OLD, given)
    path.write_text(text, encoding="utf-8")
    assert main(["explain", str(path), "--cluster", "ml-shared-01", "--team", "research"]) == 0
    rows = capsys.readouterr().out.splitlines()
    (row,) = (" ".join(row.split()) for row in rows if row.startswith("checkpoints"))
    line = text.splitlines().index(f"        {given}") + 1
    assert row == f"checkpoints s3://bkt/a/ (marker _SUCCESS), fsx://shared/ {path}:{line}"
