"""Who is asked for more than activity, as the policy has it; and which backend a cluster gets."""

import subprocess
import sys
from copy import replace
from pathlib import Path

import pytest

from steward.cluster.policy import HangLimits, IdleLimits, Override, Thresholds
from steward.sources.container_insights.readings import Need
from tests.builders import a_cluster

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = a_cluster()


def test_the_defaults_reach_a_little_beyond_the_default_thresholds() -> None:
    assert Need.of(CLUSTER) == Need(idle_max=0.05, busy_min=0.9)


def test_whatever_the_policy_calls_idle_or_hanging_is_asked_for() -> None:
    limits = Thresholds(idle=IdleLimits(activity_max=0.08), hang=HangLimits(activity_min=0.85))
    cluster = replace(
        CLUSTER,
        thresholds=limits,
        overrides=(
            Override(idle={"activity_max": 0.1}, hang={"activity_min": 0.99}),
            Override(idle={"window_minutes": 120}, hang={"activity_min": 0.8}),
        ),
    )
    assert Need.of(cluster) == Need(idle_max=0.1, busy_min=0.8)
    # An override can only widen it: others keep the thresholds.
    assert Need.of(replace(cluster, overrides=())) == Need(idle_max=0.08, busy_min=0.85)


@pytest.mark.parametrize(
    ("backend", "own", "others"),
    [
        (
            "PROMETHEUS",
            "steward.sources.prometheus.reader",
            "steward.sources.container_insights.reader",
        ),
        (
            "CONTAINER_INSIGHTS",
            "steward.sources.container_insights.reader",
            "steward.sources.prometheus.reader",
        ),
    ],
)
def test_each_backend_is_loaded_only_where_the_policy_names_it(
    backend: str, own: str, others: str
) -> None:
    program = f"""
import sys
from copy import replace
import boto3
from steward.clock import SystemClock
from steward.cluster.policy import MetricsBackend
from steward.settings import Settings
from steward.sources.factory import ClusterSources
from tests.builders import a_cluster
CLUSTER = a_cluster()
source = replace(CLUSTER.metrics, backend=MetricsBackend.{backend})
sources = ClusterSources(boto3.Session(), SystemClock(), Settings(region="us-east-1"))
reader = sources.metrics(replace(CLUSTER, metrics=source))
print(reader.part, *(name for name in sys.modules if name.startswith("steward.sources")))
"""
    path = [str(ROOT), str(ROOT / "layers" / "steward"), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = {path!r}\n{program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    part, *loaded = done.stdout.split()
    assert part == {"PROMETHEUS": "prometheus"}.get(backend, "cloudwatch/GetMetricData")
    assert own in loaded
    assert not [name for name in loaded if name.startswith(others)]
