"""TakeSnapshot's timeout holds what its sources may take, one after the other."""

import inspect
from typing import Any

from steward.aws_errors import CLIENT_LIMITS
from steward.sources.assumed_role import client_limits
from steward.sources.container_insights.reader import ContainerInsightsMetrics
from steward.sources.control_plane.reader import ENDPOINT_DEADLINE, ControlPlaneReader
from steward.sources.kubernetes.reader import KubernetesApi
from steward.sources.kubernetes.session import CONNECT_SECONDS, REQUEST_SECONDS
from steward.sources.prometheus.reader import PrometheusMetrics
from steward.usecases.checkpoint_evidence import LOOKING_TIME
from steward.usecases.coalescing import LONGEST_SECONDS
from steward.usecases.read_cluster import METRICS_TIME

type Document = dict[str, Any]


def deadline(reader: type) -> float:
    """Return the deadline that a reader has where nobody gives it another."""
    found: float = inspect.signature(reader).parameters["deadline_seconds"].default
    return found


def request_seconds(config: Any) -> float:
    """Return how long one request may take; botocore's stubs know no attribute of its Config."""
    found: float = config.connect_timeout + config.read_timeout
    return found


def test_a_snapshot_in_which_every_source_hangs_takes_no_longer_than_is_reckoned_with() -> None:
    # A request that left in time may outlast the deadline by its own time-outs. The metrics source
    # is asked until a minute is spent, and its last question has a deadline of its own.
    request = request_seconds(client_limits())
    control_plane = deadline(ControlPlaneReader) + request
    endpoint = ENDPOINT_DEADLINE.total_seconds() + request
    kubernetes = deadline(KubernetesApi) + CONNECT_SECONDS + REQUEST_SECONDS
    question = max(deadline(PrometheusMetrics), deadline(ContainerInsightsMetrics) + request)
    metrics = METRICS_TIME.total_seconds() + question
    checkpoints = LOOKING_TIME.total_seconds() + request + request_seconds(CLIENT_LIMITS)
    assert control_plane + endpoint + kubernetes + metrics + checkpoints <= LONGEST_SECONDS


def test_a_run_has_time_for_two_such_clusters_and_the_stores(written: Document) -> None:
    timeout = written["Resources"]["TakeSnapshot"]["Properties"]["Timeout"]
    # Nine calls of bucket and bus, each one request long: none of them is meant to hang. The claim
    # (read, written, read again), the pointer (read twice, written), memory, snapshot, bus.
    stores = 9 * request_seconds(CLIENT_LIMITS)
    assert timeout >= 2 * (LONGEST_SECONDS + stores)
