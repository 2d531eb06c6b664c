"""Which values hold for a team, and which line says so."""

from pathlib import Path

import pytest

from local.policy.__main__ import main
from tests.unit.policy.documents import EXAMPLE, edited, resolved


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "governance.yaml"


OVERRIDES = """    overrides:
      - teams: [research]
        idle:
          window: 2h
          severity: info
      - owner_kinds: [RayCluster]
        idle:
          window: 3h
"""


def explained(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, str]:
    """Rows of `explain` for team research: key to the rest of its line, spaces squeezed."""
    arguments = ["explain", str(path), "--cluster", "ml-shared-01", "--team", "research"]
    assert main([*arguments, *options]) == 0
    rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    return {key: " ".join(rest.split()) for key, rest in rows}


def test_explain_tells_each_value_and_where_it_came_from(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = edited("    overrides: []\n", OVERRIDES)
    path.write_text(edited("        coverage_min: 80% #", "        #", text), encoding="utf-8")
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = explained(path, capsys)
    activity = lines.index("        activity_max: 1% # highest activity that still is idle") + 1
    assert rows["thresholds.idle.activity_max"] == f"1% thresholds, {path}:{activity}"
    assert rows["thresholds.idle.coverage_min"] == "80% default"
    window = lines.index("          window: 2h") + 1
    assert rows["thresholds.idle.window"] == f"2h overrides[0], {path}:{window}"
    assert rows["thresholds.idle.severity"] == f"info overrides[0], {path}:{window + 1}"
    assert rows["namespaces"] == "hyperpod-ns-research default"
    quota = lines.index("        accelerators: 14") + 1
    assert rows["accelerators"] == f"14 {path}:{quota}"
    # what was not asked for may still decide
    second = lines.index("      - owner_kinds: [RayCluster]") + 1
    assert rows["overrides[1],"] == f"{path}:{second}, may hold as well: it depends on --owner-kind"


def test_explain_follows_the_later_override(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text(edited("    overrides: []\n", OVERRIDES), encoding="utf-8")
    rows = explained(path, capsys, "--owner-kind", "RayCluster")
    assert rows["thresholds.idle.window"].startswith("3h overrides[1]")
    assert rows["thresholds.idle.severity"].startswith("info overrides[0]")
    rows = explained(path, capsys, "--owner-kind", "Pod")
    assert rows["thresholds.idle.window"].startswith("2h overrides[0]")
    assert "overrides[1]," not in rows  # known not to hold


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"--cluster": "ml-shared-1"},
            "there is no cluster ml-shared-1; did you mean ml-shared-01?",
        ),
        ({"--team": "reserch"}, "there is no team reserch; did you mean research?"),
        ({"--namespace": "default"}, "there is no namespace of research: default"),
        ({"--priority-class": "experiment"}, "did you mean experimentation?"),
    ],
)
def test_explain_refuses_names_that_the_policy_does_not_have(
    options: dict[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = {"--cluster": "ml-shared-01", "--team": "research"} | options
    arguments = [text for pair in chosen.items() for text in pair]
    assert main(["explain", str(EXAMPLE), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


def test_a_team_without_a_channel_is_told_in_the_platforms(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = edited("        channel: gpu-research\n", "")
    assert resolved(path, text).teams[1].channel is None
    line = text.splitlines().index("  platform_channel: gpu-platform") + 1
    assert explained(path, capsys)["channel"] == f"gpu-platform (C0GPUPLATF01) {path}:{line}"
