"""The queues: the doors to `take_snapshot`, and the way of evaluations to `reconcile_alerts`.

Each says what its messages hold and stands on `Sender`, which only sends: SQS in Lambda, a list in
the local rig.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import msgspec

from steward.aws_errors import CLIENT_LIMITS, aws_call
from steward.errors import ConfigError

if TYPE_CHECKING:
    from boto3 import Session
    from botocore.config import Config
    from types_boto3_sqs import SQSClient

    from steward.alerts.actions import CardAction
    from steward.cluster.planning import SnapshotScope
    from steward.slack.commands import Command


_REGION = re.compile(r"https://sqs\.([a-z0-9-]+)\.amazonaws\.")
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


class SqsClients:
    """One client a region, made when first needed: the queues of many spokes share it.

    Parameters
    ----------
    limits : Config
        How long a call may take, and how often it is made.
    """

    def __init__(self, session: Session, limits: Config = CLIENT_LIMITS) -> None:
        self._session = session
        self._limits = limits
        self._clients: dict[str | None, SQSClient] = {}

    def reaching(self, url: str) -> SQSClient:
        """Return the client of the region that a queue's URL names; else of the session's own."""
        found = _REGION.match(url)
        region = found[1] if found else None
        if region not in self._clients:
            self._clients[region] = self._session.client(
                "sqs", region_name=region, config=self._limits
            )
        return self._clients[region]


class SqsSender:
    """Sends to an SQS queue."""

    def __init__(self, clients: SqsClients, url: str) -> None:
        self._clients = clients
        self._url = url

    def send(self, body: str, fifo: Fifo | None = None) -> None:
        """Send a message."""
        with aws_call(f"send to {self._url}"):
            client = self._clients.reaching(self._url)
            if fifo is None:
                client.send_message(QueueUrl=self._url, MessageBody=body)
            else:
                client.send_message(
                    QueueUrl=self._url,
                    MessageBody=body,
                    MessageGroupId=fifo.group,
                    MessageDeduplicationId=fifo.deduplication,
                )


class SnapshotRequestSender:
    """Asks `take_snapshot` for a snapshot: `{cluster, scope, requested_at, reason}`.

    Parameters
    ----------
    own : Sender or None
        The stack's own queue; None where it has no `take_snapshot`.
    spokes : mapping of str to Sender
        The queue of each cluster (by its name) that a spoke reads.
    """

    def __init__(self, own: Sender | None, spokes: Mapping[str, Sender]) -> None:
        self._own = own
        self._spokes = spokes

    def ask(self, cluster: str, at: datetime, reason: str, scope: SnapshotScope) -> None:
        """Ask whoever reads a cluster for a fresh snapshot of it.

        Raises
        ------
        ConfigError
            Nobody reads it.
        """
        sender = self._spokes.get(cluster, self._own)
        if sender is None:
            raise ConfigError(
                f"cluster {cluster}: it names no spoke_queue_url, and a stack with Role=hub has no "
                "take_snapshot; name its spoke in the policy, or deploy this stack with Role=both"
            )
        request = {
            "cluster": cluster,
            "scope": scope,
            "requested_at": _utc(at),
            "reason": reason,
        }
        sender.send(json.dumps(request))


class EvaluationSender:
    """Hands over to `reconcile_alerts`, in order for each cluster.

    Evaluations are `{cluster, key, at}`, actions are :class:`steward.alerts.actions.CardAction`, and
    a cluster that left the policy is `{cluster, at, kind: "departed"}`. The same one again within
    five minutes is one message.
    """

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def send(self, cluster: str, key: str, at: datetime) -> None:
        """Hand over one evaluation."""
        body = json.dumps({"cluster": cluster, "key": key, "at": _utc(at)})
        self._send(cluster, body, key)

    def act(self, action: CardAction) -> None:
        """Hand over one action."""
        self._send(action.cluster, msgspec.json.encode(action).decode(), action.id)

    def depart(self, cluster: str, at: datetime) -> None:
        """Have the cards of a cluster closed."""
        body = json.dumps({"cluster": cluster, "at": _utc(at), "kind": "departed"})
        self._send(cluster, body, body)

    def _send(self, cluster: str, body: str, identity: str) -> None:
        self._sender.send(body, Fifo(group=_group(cluster), deduplication=_digest(identity)))


class CommandSender:
    """Hands commands to `run_command`: :class:`steward.slack.commands.Command`."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def send(self, command: Command) -> None:
        """Hand over one command."""
        self._sender.send(msgspec.json.encode(command).decode())


def _utc(at: datetime) -> str:
    # To the microsecond where there is one: a request is compared with the start of a snapshot.
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _group(cluster: str) -> str:
    # A digest, not a replacement of characters: two clusters must not fall into one group.
    return cluster if _GROUP_ID.fullmatch(cluster) else _digest(cluster)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
