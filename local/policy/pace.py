"""How often a cluster is looked at where its policy does not say so.

Prometheus bills by samples, of which a query touches few; CloudWatch bills each metric that is asked
for, so that a large cluster is asked less often. The arithmetic is in docs/metrics.md.
"""

from steward.cluster.policy import MetricsBackend

USD_PER_METRIC = 0.01 / 1000
PRICE_SOURCE = "GetMetricData, us-east-1, secondary source"
PRICE_DATE = "2026-11"

METRICS_OF_AN_ACCELERATOR = 3
"""The most that a tick asks of one: its activity, and memory or else tensor activity and power."""

_STEPS = ((128, 5), (1024, 15))
_SLOWEST = 30


def default_tick(backend: MetricsBackend, accelerators: int) -> int:
    """Choose the minutes between two looks at a cluster of so many accelerators.

    The metrics of at most 1,024 accelerators then cost at most 3 USD a day, those of more at most
    1.44 per 1,000: see :func:`usd_per_day`.
    """
    if backend is MetricsBackend.PROMETHEUS:
        return _STEPS[0][1]
    return next((tick for most, tick in _STEPS if accelerators <= most), _SLOWEST)


def usd_per_day(accelerators: int, tick_minutes: int) -> float:
    """Reckon the most that CloudWatch asks for the metrics of a cluster's accelerators."""
    ticks = 24 * 60 / tick_minutes
    return accelerators * METRICS_OF_AN_ACCELERATOR * ticks * USD_PER_METRIC
