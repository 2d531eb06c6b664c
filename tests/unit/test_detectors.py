"""What every detector owes beside its code: a page, an event, and a name that says where it is."""

from pathlib import Path

import pytest

from steward import detect
from steward.detect import DETECTORS

ROOT = Path(__file__).resolve().parents[2]
FILES = {path.stem for path in Path(detect.__file__).parent.glob("*.py")} - {"__init__"}


def test_every_file_is_registered_and_nothing_else():
    assert {function.__module__.rpartition(".")[2] for _, function in DETECTORS} == FILES


@pytest.mark.parametrize(("name", "function"), DETECTORS)
def test_every_detector_has_a_page_and_an_event(name, function):
    noun = function.__module__.rpartition(".")[2]
    page = (ROOT / "docs" / "detectors" / f"{noun}.md").read_text()
    for heading in (
        f"# {name}",
        "## What fires",
        "## What it means",
        "## What to do",
        "## Evidence",
    ):
        assert heading in page, f"{noun}.md lacks {heading!r}"
    assert (ROOT / "events" / "evaluate_snapshot" / f"{name}.json").is_file()
