"""Where metrics come from: the keys of each backend, and what they mean where they are left out."""

from pathlib import Path

import pytest

from local.policy.__main__ import main
from local.policy.pace import USD_PER_METRIC, default_tick, usd_per_day
from steward.cluster.policy import MetricsBackend, MetricsSource
from tests.unit.policy.documents import TEXT, edited, faults, resolved

METRICS = "clusters[0].metrics"
BLOCK = TEXT[TEXT.index("    metrics:\n") : TEXT.index("    # What the quotas share out")]
TICK = "    tick: 5m # how often to look\n"
CAPACITY = "        count: 4\n"
DEAR = MetricsBackend.CONTAINER_INSIGHTS


def with_metrics(*keys: str, backend: str = "container_insights", text: str = TEXT) -> str:
    lines = "".join(f"      {key}\n" for key in (f"backend: {backend}", *keys))
    return edited(BLOCK, f"    metrics:\n{lines}\n", text)


def test_container_insights_needs_its_name_only(path: Path) -> None:
    assert resolved(path, with_metrics()).metrics == MetricsSource(
        backend=DEAR,
        endpoint="",
        sigv4=False,
        cluster_label=None,
        scrape_interval_seconds=60,
        delay_seconds=300,
    )


def test_the_delay_left_out_is_that_of_the_backend(path: Path) -> None:
    keys = ("endpoint: https://prometheus.example.com", "sigv4: false")
    source = resolved(path, with_metrics(*keys, backend="prometheus")).metrics
    assert (source.backend, source.delay_seconds) == (MetricsBackend.PROMETHEUS, 120)
    assert resolved(path, with_metrics("delay: 90s")).metrics.delay_seconds == 90


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("endpoint", "https://prometheus.example.com"),
        ("sigv4", "false"),
        ("cluster_label", "ml-shared-01"),
    ],
)
def test_a_key_of_prometheus_has_no_effect_on_cloudwatch(key: str, value: str, path: Path) -> None:
    (line,) = faults(path, with_metrics(f"{key}: {value}"))
    assert f"{METRICS}.{key}: " in line
    assert "has no effect: container_insights has none; remove it" in line


def test_prometheus_cannot_do_without_endpoint_and_signature(path: Path) -> None:
    lines = faults(path, with_metrics(backend="prometheus"))
    endpoint, signature = (line.split(": ", 1)[1] for line in lines)
    missing = "is missing, and prometheus needs it"
    assert endpoint == f"{METRICS}.endpoint: {missing}; add the base URL of the query API"
    assert signature.startswith(f"{METRICS}.sigv4: {missing}; add true for Amazon's service")


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("scrape_interval: 30s", "CloudWatch keeps one value a minute"),
        ("delay: 59s", "the minute at the end of a window must be over"),
    ],
)
def test_nothing_of_cloudwatch_is_finer_than_a_minute(key: str, why: str, path: Path) -> None:
    (line,) = faults(path, with_metrics(key))
    assert f"{METRICS}.{key.partition(':')[0]}: " in line
    assert f"is less than 60s: {why}; write 60s or more" in line


def test_an_unknown_backend_is_one_fault_with_the_nearest(path: Path) -> None:
    (line,) = faults(path, with_metrics(backend="container_insight"))
    assert f"{METRICS}.backend: " in line
    assert "did you mean container_insights?" in line


# --- the tick ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accelerators", "minutes"),
    [(1, 5), (128, 5), (129, 15), (1024, 15), (1025, 30), (10_000, 30)],
)
def test_the_more_there_is_to_ask_cloudwatch_the_slower_the_tick(
    accelerators: int, minutes: int
) -> None:
    assert default_tick(DEAR, accelerators) == minutes
    assert default_tick(MetricsBackend.PROMETHEUS, accelerators) == 5


@pytest.mark.parametrize(
    ("accelerators", "usd"),
    [
        # Three metrics an accelerator and tick, 0.01 USD a thousand.
        (32, 32 * 3 * 288 / 100_000),  # 0.28
        (128, 128 * 3 * 288 / 100_000),  # 1.11
        (1_000, 1_000 * 3 * 96 / 100_000),  # 2.88
        (10_000, 10_000 * 3 * 48 / 100_000),  # 14.40
    ],
)
def test_what_a_day_costs_at_most(accelerators: int, usd: float) -> None:
    assert usd_per_day(accelerators, default_tick(DEAR, accelerators)) == pytest.approx(usd)


def test_the_daily_cost_stays_below_what_the_documentation_promises() -> None:
    """At most 3 USD a day up to 1,024 accelerators, 1.44 per 1,000 where there are more."""
    assert pytest.approx(0.01) == 1000 * USD_PER_METRIC
    for accelerators in range(1, 20_001):
        promised = 3 if accelerators <= 1024 else 1.44 * accelerators / 1000
        assert usd_per_day(accelerators, default_tick(DEAR, accelerators)) <= promised + 1e-9


def test_a_tick_left_out_follows_backend_and_capacity(path: Path) -> None:
    text = edited(TICK, "")
    assert resolved(path, text).tick_minutes == 5
    assert resolved(path, with_metrics(text=text)).tick_minutes == 5
    large = edited(CAPACITY, "        count: 125\n", text)  # 1,000 accelerators
    assert resolved(path, large).tick_minutes == 5
    assert resolved(path, with_metrics(text=large)).tick_minutes == 15
    written = edited(CAPACITY, "        count: 125\n")
    assert resolved(path, with_metrics(text=written)).tick_minutes == 5  # as it says


def test_explain_tells_where_the_tick_came_from(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def tick(text: str) -> str:
        path.write_text(text, encoding="utf-8")
        options = ("--cluster", "ml-shared-01", "--team", "research")
        assert main(["explain", str(path), *options]) == 0
        rows = capsys.readouterr().out.splitlines()
        return " ".join(next(row for row in rows if row.startswith("tick ")).split())

    written = TEXT.splitlines().index(TICK.removesuffix("\n")) + 1
    assert tick(TEXT) == f"tick 5m {path}:{written}"
    assert tick(edited(TICK, "")) == "tick 5m default"
    large = edited(CAPACITY, "        count: 125\n", edited(TICK, ""))
    assert tick(with_metrics(text=large)) == (
        "tick 15m default for 1000 accelerators on CloudWatch: at most 2.88 USD a day "
        "(GetMetricData, us-east-1, secondary source, 2026-11)"
    )
