"""Exemptions: who promises what, and until when."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.policy.documents import QUOTA, TEAM, edited, exemption, faults, resolved


@pytest.mark.parametrize("detector", [None, "any", "*"])
def test_an_exemption_without_a_detector_is_from_any(detector: str | None, path: Path) -> None:
    cluster = resolved(path, edited(QUOTA, exemption(detector=detector)))
    (promise,) = cluster.teams[1].exemptions
    assert promise.detector == "*"
    # 17:00 at +01:00, in the one form that every time of the product has
    assert promise.until.isoformat() == "2026-12-31T16:00:00+00:00"


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({"until": None}, "until", "no exemption is for ever"),
        ({"until": "2026-12-31"}, "until", "is not a time with an offset"),
        ({"until": "2026-12-31T17:00:00"}, "until", "is not a time with an offset"),
        ({"until": "2026-13-31T17:00:00Z"}, "until", "is not a time with an offset"),
        ({"reason": None}, "reason", "is missing"),
        ({"reason": " "}, "reason", "is not a line of text"),
        ({"author": None}, "author", "is missing"),
        ({"detector": "idle_gpu"}, "detector", "did you mean idle_gpus?"),
    ],
)
def test_a_bad_exemption_is_refused(
    changes: dict[str, str | None], key: str, said: str, path: Path
) -> None:
    (line,) = faults(path, edited(QUOTA, exemption(**changes)))
    assert f"{TEAM}.exemptions[0].{key}: " in line
    assert said in line


def test_an_exemption_speaks_for_its_own_team_only(path: Path) -> None:
    cluster = resolved(path, edited(QUOTA, exemption(subject="*")))
    (promise,) = cluster.teams[1].exemptions
    before = promise.until - timedelta(hours=1)
    held = {
        team: cluster.exemption_for("idle_gpus", "PyTorchJob/lab/sweep", before, team)
        for team in ("research", "product-genai", None)
    }
    # a pattern that fits everything still says nothing of another team, or of what has none
    assert held == {"research": promise, "product-genai": None, None: None}
