"""What a document becomes."""

from pathlib import Path

from local.policy import load
from steward import codec
from steward.cluster.policy import Policy, Scope, Severity, Team
from tests.unit.policy.documents import QUOTA, TEXT, edited, exemption, resolved

COMMENTED = '    # account: "012345678901"\n'


def test_the_compiled_policy_reads_back_as_it_was(path: Path) -> None:
    text = edited(QUOTA, exemption(detector="pending"))
    every = "window: 2h, activity_max: 0%, held_memory: 5GiB, page_after: 90m, severity: page"
    hang = "window: 45m, activity_min: 99%, tensor_max: 1%, power_max: 20%, severity: info"
    pending = "wait: 90m, severity: page"
    form = f"{{teams: [research], idle: {{{every}}}, hang: {{{hang}}}, pending: {{{pending}}}}}"
    text = edited("overrides: []", f"overrides: [{form}]", text)
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
    assert override.hang == {
        "window_minutes": 45,
        "activity_min": 0.99,
        "tensor_max": 0.01,
        "power_max": 0.2,
        "severity": "info",
    }
    assert override.pending == {"wait_minutes": 90, "severity": "page"}
    # a whole number stays one: windows are compared with the minutes that a tick measured
    assert type(override.idle["window_minutes"]) is int
    assert again.clusters[0].limits(Scope(team="research")).idle.severity is Severity.PAGE
    assert again.clusters[0].limits(Scope(team="research")).hang.severity is Severity.INFO
    assert again.clusters[0].limits(Scope(team="research")).pending.severity is Severity.PAGE


def test_a_team_is_found_by_every_namespace_it_lists(path: Path) -> None:
    cluster = resolved(path, edited(QUOTA, f"{QUOTA}        namespaces: [lab, sweeps]\n"))
    team: Team | None = cluster.team_named("research")
    assert team is not None
    assert cluster.team_of("lab") is cluster.team_of("sweeps") is team
    assert cluster.team_of("hyperpod-ns-research") is None  # listed namespaces replace the default


QUEUE = "https://sqs.us-east-1.amazonaws.com/012345678901/spoke-snapshot-requests"


def test_a_cluster_names_the_queue_of_its_spoke(path: Path) -> None:
    account = '    account: "012345678901"\n'
    given = f"{account}    spoke_queue_url: {QUEUE}\n"

    assert resolved(path, TEXT).spoke_queue_url is None
    assert resolved(path, edited(COMMENTED, given)).spoke_queue_url == QUEUE


def test_a_spoke_may_read_another_account_with_a_role_of_that_account(path: Path) -> None:
    role = "arn:aws:iam::444455556666:role/gpu-steward-reader"
    given = f'    account: "444455556666"\n    role_arn: {role}\n    spoke_queue_url: {QUEUE}\n'

    cluster = resolved(path, edited(COMMENTED, given))
    assert (cluster.spoke_queue_url, cluster.role_arn) == (QUEUE, role)
