"""The numbers that alarms watch: CloudWatch reads them from the log, so that no call is made.

One dimension, `service`: the stack's name, so that two stacks in an account do not hide each other.
"""

import os
from contextlib import redirect_stdout
from datetime import UTC, datetime

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from steward.telemetry import logger

NAMESPACE = "GpuSteward"

UNITS = {
    "OldestSnapshotAge": MetricUnit.Seconds,
    "Coverage": MetricUnit.NoUnit,
    "Findings": MetricUnit.Count,
    "DetectorsFailed": MetricUnit.Count,
    "Lateness": MetricUnit.Seconds,
    "CardsUndelivered": MetricUnit.Count,
    "SlackRefusals": MetricUnit.Count,
}
"""Every metric: CloudWatch bills each by the month, and a name that is not here is a mistake."""


def emit(**values: float | None) -> None:
    """Write metrics to the log, in CloudWatch's embedded metric format.

    Parameters
    ----------
    **values : float or None
        By the names of :data:`UNITS`; None is not known, and so not written: absent is not zero.

    Raises
    ------
    KeyError
        There is no such metric.
    """
    known = {name: value for name, value in values.items() if value is not None}
    if not known:
        return
    metrics = EphemeralMetrics(namespace=NAMESPACE)
    for name, value in known.items():
        metrics.add_metric(name=name, unit=UNITS[name], value=value)
    # Lambda drops lines below the function's level, and takes one without level and time for INFO.
    metrics.add_metadata("level", os.environ.get("AWS_LAMBDA_LOG_LEVEL", "INFO"))
    metrics.add_metadata("timestamp", datetime.now(UTC).isoformat())
    # Wherever the log goes: in a replay stdout holds its own lines only.
    with redirect_stdout(logger.registered_handler.stream):  # type: ignore[attr-defined]
        metrics.flush_metrics()
