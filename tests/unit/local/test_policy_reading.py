"""A policy file as text: what is no plain document, and where each fault stands."""

from pathlib import Path

import pytest

from local.policy import load
from steward.errors import ConfigError
from tests.unit.policy.documents import QUOTA, TEAM, edited, faults


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "governance.yaml"


def test_a_key_written_twice_is_a_fault_with_both_lines(path: Path) -> None:
    text = edited(QUOTA, QUOTA + "        accelerators: 20\n")
    first = text[: text.index(QUOTA)].count("\n") + 1
    message = f"{TEAM}.accelerators: is already at line {first}; keep one of the two"
    assert faults(path, text) == (f"{path}:{first + 1}: {message}",)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("schema: 1\na: b: c\n", 2, "not YAML: mapping values are not allowed here"),
        ("", 1, "holds no keys"),
        ("- schema\n", 1, "holds no keys"),
        ("a: \x07\n", 1, "not YAML"),
        ("schema: 1\n---\nschema: 1\n", 2, "not YAML"),
        ("schema: *x\n", 1, "not YAML: found undefined alias"),
        ("schema: 1\nslack: &x\n  channels: *x\n", 3, "slack.channels: holds itself"),
        ("schema: 1\nslack: !secret x\n", 2, "slack: has the tag !secret"),
        ("schema: 1\n2: x\n", 2, "2: is not a plain key"),
        ("schema: 1\n<<: {}\n", 2, "<<: is not a plain key"),
    ],
)
def test_what_is_not_a_plain_document_is_refused(
    text: str, line: int, message: str, path: Path
) -> None:
    assert any(fault.startswith(f"{path}:{line}: {message}") for fault in faults(path, text))


def test_a_file_that_cannot_be_read_is_named(path: Path) -> None:
    with pytest.raises(ConfigError, match=r"governance\.yaml: cannot be read: .*No such file"):
        load(path)
    path.write_bytes(b"schema: \xff\n")
    with pytest.raises(ConfigError, match=r"cannot be read: .*decode"):
        load(path)
