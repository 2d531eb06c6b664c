"""A messenger that keeps messages in memory, fails as told, and may lose an answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steward.alerts.errors import (
    ChannelError,
    MessageGoneError,
    UnknownOutcomeError,
)
from steward.alerts.model import Attempt, Posted


class AnswerLostError(UnknownOutcomeError):
    """The call is carried out, then its answer is lost."""


class DiedError(Exception):
    """The process ends before the call is made."""


class DiedAfterwardsError(DiedError):
    """The call is carried out, then the process ends."""


_CARRIED_OUT = (AnswerLostError, DiedAfterwardsError)


@dataclass
class Message:
    """One message as channel members see it; `versions` are what it has shown."""

    channel: str
    ts: str
    attempt: Attempt
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
        Used up by the calls of post, update and find in turn; None is a call that works.
    calls : list of str
        Method and channel of every call.
    """

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
        if failure is not None and not isinstance(failure, _CARRIED_OUT):
            raise failure
        return failure

    def post(self, channel: str, message: Mapping[str, Any], attempt: Attempt) -> Posted:
        lost = self._begin("post", channel)
        self.posted += 1
        ts = f"{self.posted}.0"
        self.messages.append(
            Message(channel=channel, ts=ts, attempt=attempt, versions=[dict(message)])
        )
        if lost:
            raise lost
        return Posted(channel=channel, ts=ts)

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

    def find(self, channel: str, attempt: Attempt) -> Posted | None:
        if lost := self._begin("find", channel):
            raise lost
        found = (m for m in self.messages if m.channel == channel and m.attempt.id == attempt.id)
        return next((Posted(channel=channel, ts=m.ts) for m in found), None)

    def delete(self, ts: str) -> None:
        """Somebody deletes a message."""
        self.messages = [m for m in self.messages if m.ts != ts]

    def headers(self, channel: str | None = None) -> list[str]:
        """First lines of the messages as they stand, or of one channel's."""
        return [
            (m.shown["blocks"][0]["text"]["text"] if "blocks" in m.shown else m.shown["text"])
            for m in self.messages
            if channel in {None, m.channel}
        ]
