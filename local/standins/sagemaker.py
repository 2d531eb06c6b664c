"""SageMaker: JSON 1.1 over POST, the operation in a header."""

import re
from collections.abc import Callable
from datetime import datetime

from werkzeug.wrappers import Request, Response

from local.recording import Recording, moment
from local.standins.aws_wire import (
    JSON_1_1,
    Document,
    RefusedError,
    Wire,
    json_response,
    page,
    recorded,
)

TARGET = "SageMaker."

IDENTIFIERS = {
    "DescribeCluster": "ClusterName",
    "DescribeClusterEvent": "EventId",
    "DescribeClusterNode": "NodeId",
    "DescribeClusterSchedulerConfig": "ClusterSchedulerConfigId",
    "DescribeComputeQuota": "ComputeQuotaId",
}
"""The parameter that a recorded file's `.<id>` stands for."""

LISTS = {
    "ListClusterEvents": "Events",
    "ListClusterNodes": "ClusterNodeSummaries",
    "ListClusterSchedulerConfigs": "ClusterSchedulerConfigSummaries",
    "ListComputeQuotas": "ComputeQuotaSummaries",
}
"""What the CLI merged and the stand-in pages again."""

PAGE = 10
"""Items of a page where the caller names no MaxResults, as SageMaker does."""

_CLUSTER_ID = re.compile(r"[a-z0-9]{12}")


class SageMakerStandin:
    """Answers SageMaker's calls from a recording, at the virtual time."""

    def __init__(self, recording: Recording, now: Callable[[], datetime]) -> None:
        self._recording = recording
        self._now = now
        self._wire = Wire("sagemaker")

    def is_asked(self, request: Request) -> bool:
        """Tell whether a request is for SageMaker."""
        return request.method == "POST" and _target(request).startswith(TARGET)

    def respond(self, request: Request) -> Response:
        """Answer one request.

        Raises
        ------
        RefusedError
            The answer is an error.
        """
        operation = _target(request).removeprefix(TARGET)
        answer = self._ask(operation, _parameters(request))
        return json_response(self._wire.encode(operation, answer), JSON_1_1)

    def _ask(self, operation: str, parameters: Document) -> Document:
        named = parameters.get(IDENTIFIERS.get(operation, ""))
        identifier = None if named is None else _tail(str(named))
        answer = recorded(self._recording.sagemaker(operation, identifier, self._now()), operation)
        if operation not in LISTS:
            return answer
        key = LISTS[operation]
        if operation == "ListClusterEvents":
            answer = _keep(answer, key, lambda event: self._happened(event, parameters))
            answer = _by_time(answer, key, parameters.get("SortOrder"))
        if "ClusterArn" in parameters:
            names = self._names_of(str(parameters["ClusterArn"]))
            answer = _keep(answer, key, lambda item: self._may_be(item.get("ClusterArn"), names))
        size = parameters.get("MaxResults", PAGE)
        return page(answer, key, "NextToken", size, parameters.get("NextToken"))

    def _happened(self, event: Document, parameters: Document) -> bool:
        when = _event_time(event)
        if when is None:
            return True  # the client has to cope with what was recorded
        after, before = parameters.get("EventTimeAfter"), parameters.get("EventTimeBefore")
        return (
            when <= self._now()
            and (after is None or when >= _time(after))
            and (before is None or when <= _time(before))
        )

    def _names_of(self, arn: str) -> set[str]:
        """Find the endings by which answers may name the cluster that a caller names by `arn`."""
        cluster = self._recording.cluster
        described = self._recording.sagemaker("DescribeCluster", cluster, self._now()) or {}
        known = {_tail(str(described.get("ClusterArn", ""))), cluster}
        return {_tail(arn)} | (known if _tail(arn) in known else set())

    def _may_be(self, arn: object, names: set[str]) -> bool:
        """Tell whether an ARN may be of the cluster: loosely, for it may end in a name or an id."""
        tail = _tail(str(arn))
        # A name says nothing of an id: only an ending of the same kind can tell two clusters apart.
        return arn is None or tail in names or self._is_id(tail) not in map(self._is_id, names)

    def _is_id(self, tail: str) -> bool:
        return tail != self._recording.cluster and _CLUSTER_ID.fullmatch(tail) is not None


def _target(request: Request) -> str:
    return request.headers.get("X-Amz-Target", "")


def _parameters(request: Request) -> Document:
    parameters = request.get_json(force=True, silent=True)
    if not isinstance(parameters, dict):
        raise RefusedError("SerializationException", "the body is not a JSON object")
    return parameters


def _keep(answer: Document, key: str, wanted: Callable[[Document], bool]) -> Document:
    items = answer.get(key)
    if not isinstance(items, list):
        return answer
    return answer | {key: [i for i in items if not isinstance(i, dict) or wanted(i)]}


def _by_time(answer: Document, key: str, order: object) -> Document:
    """Sort events as the service does: newest first where the caller names no order."""
    items = answer.get(key)
    if not isinstance(items, list):
        return answer
    timed = [(when, one) for one in items if (when := _event_time(one)) is not None]
    timed.sort(key=lambda pair: pair[0], reverse=order != "Ascending")
    untimed = [one for one in items if _event_time(one) is None]
    return answer | {key: [*(one for _, one in timed), *untimed]}


def _event_time(event: object) -> datetime | None:
    """When an event happened; None where the recording holds no time of it."""
    try:
        return moment(event.get("EventTime")) if isinstance(event, dict) else None
    except ValueError:
        return None


def _time(value: object) -> datetime:
    try:
        return moment(value)
    except ValueError as error:
        raise RefusedError("ValidationException", str(error)) from error


def _tail(name_or_arn: str) -> str:
    return name_or_arn.rpartition("/")[2]
