"""A messenger that keeps messages in memory, fails as told, and may lose an answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from steward.alerts.errors import (
    ChannelError,
    MessageGoneError,
    UnknownOutcomeError,
)
from steward.alerts.model import Attempt, Posted
from steward.ports import Clock


class AnswerLostError(UnknownOutcomeError):
    """The call is carried out, then its answer is lost; the history may show a post later."""

    def __init__(self, message: str, *, hidden_minutes: int = 0) -> None:
        super().__init__(message)
        self.hidden_minutes = hidden_minutes


class DiedError(Exception):
    """The process ends before the call is made."""


class DiedAfterwardsError(DiedError):
    """The call is carried out, then the process ends."""


@dataclass
class Message:
    """One message as channel members see it, at once; the history shows it from `listed` on."""

    channel: str
    ts: str
    attempt: Attempt
    listed: datetime
    versions: list[Mapping[str, Any]]

    @property
    def shown(self) -> Mapping[str, Any]:
        return self.versions[-1]


@dataclass
class FakeSlack:
    """What Slack holds.

    Attributes
    ----------
    messages : list of Message
        In the order of their posting.
    failures : list of Exception or None
        Used up by the calls in turn; None is a call that works.
    clock : Clock
        Tells what the history shows.
    calls : list of str
        Method and channel of every call.
    """

    clock: Clock
    messages: list[Message] = field(default_factory=list)
    failures: list[Exception | None] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    posted: int = 0

    def _begin(self, method: str, channel: str) -> Exception | None:
        self.calls.append(f"{method} {channel}")
        if channel in self.closed:
            raise ChannelError(f"{channel}: is_archived")
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, AnswerLostError | DiedAfterwardsError | None):
            return failure
        raise failure

    def post(self, message: Mapping[str, Any], attempt: Attempt) -> Posted:
        lost = self._begin("post", attempt.channel)
        self.posted += 1
        posted = Posted(channel=attempt.channel, ts=f"{self.posted}.0")
        hidden = lost.hidden_minutes if isinstance(lost, AnswerLostError) else 0
        self.messages.append(
            Message(
                channel=posted.channel,
                ts=posted.ts,
                attempt=attempt,
                listed=self.clock.now() + timedelta(minutes=hidden),
                versions=[dict(message)],
            )
        )
        if lost:
            raise lost
        return posted

    def update(self, posted: Posted, message: Mapping[str, Any], attempt: Attempt) -> Posted:
        lost = self._begin("update", posted.channel)
        found = next((m for m in self.messages if m.ts == posted.ts), None)
        if found is None:
            raise MessageGoneError(f"{posted.ts}: message_not_found")
        found.versions.append(dict(message))
        found.attempt = attempt
        if lost:
            raise lost
        return posted

    def find(self, attempt: Attempt) -> Posted | None:
        if lost := self._begin("find", attempt.channel):
            raise lost
        for m in self.messages:
            if (m.channel, m.attempt.id) == (attempt.channel, attempt.id):
                listed = m.listed <= self.clock.now()
                return Posted(channel=m.channel, ts=m.ts) if listed else None
        return None

    def delete(self, posted: Posted) -> None:
        lost = self._begin("delete", posted.channel)
        kept = [m for m in self.messages if m.ts != posted.ts]
        if len(kept) == len(self.messages):
            raise MessageGoneError(f"{posted.ts}: message_not_found")
        self.messages = kept
        if lost:
            raise lost

    def headers(self, channel: str | None = None) -> list[str]:
        """First lines of the messages as they stand, or of one channel's."""
        return [
            (m.shown["blocks"][0]["text"]["text"] if "blocks" in m.shown else m.shown["text"])
            for m in self.messages
            if channel in {None, m.channel}
        ]
