"""What a document becomes."""

from pathlib import Path

from local.policy import load
from steward import codec
from steward.cluster.policy import Policy, Scope, Severity, Team
from tests.unit.policy.documents import QUOTA, edited, exemption, resolved


def test_the_compiled_policy_reads_back_as_it_was(path: Path) -> None:
    text = edited(QUOTA, exemption(detector="pending"))
    every = "window: 2h, activity_max: 0%, held_memory: 5GiB, page_after: 90m, severity: page"
    text = edited("overrides: []", f"overrides: [{{teams: [research], idle: {{{every}}}}}]", text)
    path.write_text(text, encoding="utf-8")
    policy = load(path)
    again = codec.load(Policy, codec.dump(policy), "policy.json")
    assert again == policy
    (override,) = again.clusters[0].overrides
    assert override.idle == {
        "window_minutes": 120,
        "activity_max": 0.0,
        "held_bytes": 5 * 1024**3,
        "page_after_hours": 1.5,
        "severity": "page",
    }
    # a whole number stays one: windows are compared with the minutes that a tick measured
    assert type(override.idle["window_minutes"]) is int
    assert again.clusters[0].limits(Scope(team="research")).idle.severity is Severity.PAGE


def test_a_team_is_found_by_every_namespace_it_lists(path: Path) -> None:
    cluster = resolved(path, edited(QUOTA, f"{QUOTA}        namespaces: [lab, sweeps]\n"))
    team: Team | None = cluster.team_named("research")
    assert team is not None
    assert cluster.team_of("lab") is cluster.team_of("sweeps") is team
    assert cluster.team_of("hyperpod-ns-research") is None  # listed namespaces replace the default
