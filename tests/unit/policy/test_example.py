"""The example policy is the contract's."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from local.policy import load
from steward.cluster.policy import (
    BorrowingLimits,
    CapacityLimits,
    ClusterPolicy,
    HangLimits,
    IdleLimits,
    InstanceGroup,
    MetricsSource,
    Override,
    PendingLimits,
    PreemptionLimits,
    Price,
    Severity,
    SharingStrategy,
    TelemetryLimits,
    Thresholds,
)
from tests.unit.policy.documents import EXAMPLE, TEXT, edited, resolved


@pytest.fixture(scope="module")
def cluster() -> ClusterPolicy:
    (only,) = load(EXAMPLE).clusters
    return only


def uncommented(heading: str) -> str:
    """Lines of the example's comment that follow a heading, without their comment sign."""
    after = TEXT[TEXT.index(heading) :].splitlines()[1:]
    lines = []
    for line in after:
        if not line.lstrip().startswith("# "):
            break
        lines.append(line.replace("# ", "", 1))
    return "\n".join(lines)


def test_the_example_cluster_is_the_contracts(cluster: ClusterPolicy) -> None:
    assert (cluster.name, cluster.eks_name) == ("ml-shared-01", "ml-shared-01-eks")
    assert (cluster.region, cluster.time_zone) == ("us-east-1", "UTC")
    assert (cluster.digest_day, cluster.digest_time) == ("Monday", "09:00")
    assert cluster.tick_minutes == 5  # the contract's recordings tick every 5 minutes
    assert cluster.account is None  # the steward's own
    assert cluster.role_arn is None
    # four ml.p5.48xlarge; AWS lists 8 H100 for each
    group = InstanceGroup(instance_type="ml.p5.48xlarge", count=4, accelerators_per_instance=8)
    assert cluster.capacity == (group,)


def test_the_example_price_has_a_source_and_a_date(cluster: ClusterPolicy) -> None:
    price = Price(
        instance_type="ml.p5.48xlarge",
        usd_per_hour=63.296,
        source="third-party list of on-demand rates; replace with your own",
        date="2026-09-01",
    )
    assert cluster.prices == (price,)
    assert cluster.price_of("ml.p4d.24xlarge") is None  # no price, no dollars


def test_the_example_teams_are_the_contracts(cluster: ClusterPolicy) -> None:
    borrows, stays = SharingStrategy.LEND_AND_BORROW, SharingStrategy.DONT_LEND
    assert [
        (team.name, team.accelerators, team.strategy, team.borrow_limit_percent)
        for team in cluster.teams
    ] == [
        ("platform-mlops", 4, borrows, 50),
        ("research", 14, borrows, 50),
        ("product-genai", 10, stays, None),
    ]
    assert cluster.buffer_accelerators == 4
    # SageMaker's default weight: the contract names none
    assert {team.fair_share_weight for team in cluster.teams} == {0}


def test_the_example_shares_out_all_32_accelerators(cluster: ClusterPolicy) -> None:
    assert 4 + 14 + 10 + 4 == 4 * 8
    shared = sum(team.accelerators for team in cluster.teams) + cluster.buffer_accelerators
    assert shared == sum(g.count * g.accelerators_per_instance for g in cluster.capacity)


def test_a_team_owns_the_namespace_that_task_governance_makes(cluster: ClusterPolicy) -> None:
    # hyperpod-ns-<team> is what the add-on creates
    assert [team.namespaces for team in cluster.teams] == [
        ("hyperpod-ns-platform-mlops",),
        ("hyperpod-ns-research",),
        ("hyperpod-ns-product-genai",),
    ]
    assert cluster.team_of("hyperpod-ns-research") is cluster.teams[1]
    assert cluster.team_of("default") is None


def test_the_example_classes_fair_share_and_checkpoints_are_the_contracts(
    cluster: ClusterPolicy,
) -> None:
    assert cluster.fair_share is True
    assert {each.name: each.weight for each in cluster.priority_classes} == {
        "inference-serving": 100,
        "production-training": 75,
        "experimentation": 25,
    }
    for team in cluster.teams:
        (location,) = team.checkpoints
        assert location.uri == f"s3://ml-shared-01-checkpoints/{team.name}/"
        assert location.marker is None
        assert team.exemptions == ()
    assert cluster.overrides == ()


def test_the_example_thresholds_are_the_contracts(cluster: ClusterPolicy) -> None:
    # each number from the contract's table of defaults
    assert cluster.thresholds == Thresholds(
        idle=IdleLimits(
            activity_max=0.01,
            window_minutes=60,
            startup_grace_minutes=15,
            coverage_min=0.8,
            held_bytes=1_073_741_824,
            severity=Severity.WARN,
            page_after_hours=4.0,
            page_accelerators=8,
        ),
        hang=HangLimits(
            activity_min=0.95,
            tensor_max=0.005,
            power_max=0.25,
            window_minutes=30,
            severity=Severity.WARN,
        ),
        telemetry=TelemetryLimits(damping_minutes=10),
        borrowing=BorrowingLimits(share=0.95, window_minutes=30, severity=Severity.WARN),
        preemptions=PreemptionLimits(
            count=3,
            period_hours=168,  # 7 days of 24 hours
            lost_gpu_hours=0.0,
            startup_minutes=15,
            checkpoint_minutes=30,
            severity=Severity.WARN,
        ),
        pending=PendingLimits(wait_minutes=120, without_pods_minutes=30, severity=Severity.WARN),
        capacity=CapacityLimits(damping_minutes=10, severity=Severity.WARN),
    )
    assert cluster.metrics == MetricsSource(
        endpoint="https://aps-workspaces.us-east-1.amazonaws.com"
        "/workspaces/ws-00000000-0000-0000-0000-000000000000",
        sigv4=True,
        cluster_label=None,
        scrape_interval_seconds=60,
        delay_seconds=120,
    )


def test_thresholds_left_out_are_the_ones_written_out(path: Path, cluster: ClusterPolicy) -> None:
    begin, end = TEXT.index("    thresholds:"), TEXT.index("    # Thresholds for some teams")
    left_out = resolved(path, TEXT[:begin] + TEXT[end:]).thresholds
    # the keys' defaults, the example's values and the nouns' defaults are one and the same
    assert left_out == cluster.thresholds == Thresholds()


def test_every_channel_has_a_name_and_an_id(cluster: ClusterPolicy) -> None:
    channels = [team.channel for team in cluster.teams] + [cluster.platform_channel]
    assert [(c.name, c.id) for c in channels if c] == [
        ("gpu-mlops", "C0GPUMLOPS01"),
        ("gpu-research", "C0GPURESEA01"),
        ("gpu-product-genai", "C0GPUGENAI01"),
        ("gpu-platform", "C0GPUPLATF01"),
    ]


def test_the_examples_in_its_comments_are_valid_too(path: Path) -> None:
    override = uncommented("is quiet at night")
    text = edited("    overrides: []", f"    overrides:\n{override}")
    exemption = uncommented("# An exemption has a reason")
    text = edited("        # An exemption has a reason", exemption + "\n        # An", text)
    cluster = resolved(path, text)
    assert cluster.overrides == (
        Override(
            priority_classes=("inference-serving", "inference-serving-priority"),
            owner_kinds=("Deployment",),
            idle={"window_minutes": 720, "severity": Severity.INFO, "page_accelerators": 0},
        ),
    )
    (promise,) = cluster.teams[1].exemptions
    assert promise.until == datetime(2026, 12, 5, 18, tzinfo=UTC)
    subject = "StatefulSet/hyperpod-ns-research/warm-pool-2"
    last = promise.until - timedelta(seconds=1)
    assert cluster.exemption_for("idle_gpus", subject, last, "research") == promise
    assert (
        cluster.exemption_for("idle_gpus", subject, promise.until, "research") is None
    )  # half-open
    assert cluster.exemption_for("pending", subject, last, "research") is None
