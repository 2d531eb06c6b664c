"""The two queues: the door to `take_snapshot`, and the way of evaluations to `reconcile_alerts`.

Each says what its messages hold and stands on `Sender`, which only sends: SQS in Lambda, a list in
the local rig.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import msgspec

from steward.aws_errors import CLIENT_LIMITS, aws_call

if TYPE_CHECKING:
    from boto3 import Session
    from types_boto3_sqs import SQSClient

_GROUP_ID = re.compile(r"[!-~]{1,128}")  # what SQS takes: ASCII letters, digits, punctuation


class Fifo(msgspec.Struct, frozen=True, kw_only=True):
    """What a FIFO queue orders and recognises repeats by."""

    group: str
    deduplication: str


class Sender(Protocol):
    """Sends one message to one queue.

    Raises
    ------
    DeniedError, RetryableError, PermanentError
        The call was refused, may succeed later, or stays wrong: see :mod:`steward.aws_errors`.
    """

    def send(self, body: str, fifo: Fifo | None = None) -> None:
        """Send a message; a FIFO queue wants the second argument."""
        ...


class SqsSender:
    """Sends to an SQS queue."""

    def __init__(self, session: Session, url: str) -> None:
        self._session = session
        self._url = url

    @cached_property
    def _client(self) -> SQSClient:
        return self._session.client("sqs", config=CLIENT_LIMITS)

    def send(self, body: str, fifo: Fifo | None = None) -> None:
        """Send a message."""
        with aws_call(f"send to {self._url}"):
            if fifo is None:
                self._client.send_message(QueueUrl=self._url, MessageBody=body)
            else:
                self._client.send_message(
                    QueueUrl=self._url,
                    MessageBody=body,
                    MessageGroupId=fifo.group,
                    MessageDeduplicationId=fifo.deduplication,
                )


class SnapshotRequestSender:
    """Asks `take_snapshot` for a snapshot: `{cluster, scope, requested_at, reason}`."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def ask(self, cluster: str, at: datetime, reason: str) -> None:
        """Ask for a fresh snapshot of a cluster."""
        request = {
            "cluster": cluster,
            "scope": "tick",
            "requested_at": _utc(at),
            "reason": reason,
        }
        self._sender.send(json.dumps(request))


class EvaluationSender:
    """Hands evaluations to `reconcile_alerts`, in order for each cluster: `{cluster, key, at}`."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def send(self, cluster: str, key: str, at: datetime) -> None:
        """Hand over one evaluation; the same one again within five minutes is one message."""
        fifo = Fifo(group=_group(cluster), deduplication=_digest(key))
        self._sender.send(json.dumps({"cluster": cluster, "key": key, "at": _utc(at)}), fifo)


def _utc(at: datetime) -> str:
    # To the microsecond where there is one: a request is compared with the start of a snapshot.
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _group(cluster: str) -> str:
    # A digest, not a replacement of characters: two clusters must not fall into one group.
    return cluster if _GROUP_ID.fullmatch(cluster) else _digest(cluster)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
