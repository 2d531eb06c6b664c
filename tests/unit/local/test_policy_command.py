"""The policy file on the command line, and what its reference shows of it."""

import re
from pathlib import Path

import pytest

from local.policy import load
from local.policy.__main__ import main, schema_text
from steward import codec
from steward.cluster.policy import Policy
from tests.unit.policy.documents import EXAMPLE, FOLDER, edited
from tests.unit.policy.key_mistakes import KEY_MISTAKES
from tests.unit.policy.rule_mistakes import RULE_MISTAKES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "governance.yaml"


def test_check_says_what_is_shared_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(EXAMPLE)]) == 0
    assert capsys.readouterr().out == (
        "ml-shared-01: 32 accelerators: platform-mlops 4, research 14, product-genai 10, buffer 4\n"
    )


def test_compile_writes_what_lambda_reads(tmp_path: Path) -> None:
    destination = tmp_path / "policy.json"
    assert main(["compile", str(EXAMPLE), str(destination)]) == 0
    assert codec.load(Policy, destination.read_bytes(), "policy.json") == load(EXAMPLE)


def test_a_bad_policy_ends_with_2_a_line_a_fault_and_no_file(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = edited("    tick: 5m", "    tick: 1m")
    path.write_text(edited("      day: Monday", "      day: x", text), encoding="utf-8")
    destination = tmp_path / "policy.json"
    assert main(["compile", str(path), str(destination)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.split(": ")[1] for line in captured.err.splitlines()] == [
        "clusters[0].tick",
        "clusters[0].digest.day",
    ]
    assert not destination.exists()


def test_schema_writes_the_schema(tmp_path: Path) -> None:
    destination = tmp_path / "governance.schema.json"
    assert main(["schema", str(destination)]) == 0
    assert destination.read_text(encoding="utf-8") == schema_text()


def test_the_committed_schema_is_the_one_that_the_models_make() -> None:
    committed = (FOLDER / "governance.schema.json").read_text(encoding="utf-8")
    assert committed == schema_text(), "run: python -m local.policy schema on the file"


def test_the_reference_shows_what_the_tool_prints(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = (FOLDER.parents[1] / "docs/policy.md").read_text(encoding="utf-8")
    shown = [
        line
        for block in re.findall(r"```text\n(.*?)```", reference, flags=re.DOTALL)
        for line in block.splitlines()
    ]
    for mistake in (*KEY_MISTAKES.values(), *RULE_MISTAKES.values()):
        path.write_text(edited(mistake.old, mistake.new), encoding="utf-8")
        main(["check", str(path)])
    main(["check", str(EXAMPLE)])
    main(["explain", str(EXAMPLE), "--cluster", "ml-shared-01", "--team", "research"])
    captured = capsys.readouterr()
    # line numbers move with every edit of the policy; what is said about a line does not
    place = re.compile(r"\S*governance\.yaml:\d+")
    printed = {place.sub("", line) for line in (captured.out + captured.err).splitlines()}
    assert len(shown) > 10
    assert [line for line in shown if place.sub("", line) not in printed] == []
