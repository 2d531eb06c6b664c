"""Slack's directory, its response addresses and a pager, in memory; each fails as told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steward.errors import StewardError


@dataclass
class FakeDirectory:
    """Members by address; `failure` is raised by every look-up."""

    users: dict[str, str] = field(default_factory=dict)
    failure: StewardError | None = None
    asked: list[str] = field(default_factory=list)

    def user_of(self, email: str) -> str | None:
        self._ask(email)
        return self.users.get(email)

    def email_of(self, user: str) -> str | None:
        self._ask(user)
        return next((email for email, known in self.users.items() if known == user), None)

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.failure is not None:
            raise self.failure


@dataclass
class FakeResponder:
    """Answers by address."""

    answers: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    failure: StewardError | None = None

    def respond(self, response_url: str, message: Mapping[str, Any]) -> None:
        if self.failure is not None:
            raise self.failure
        self.answers.append((response_url, message))


@dataclass
class FakePager:
    """Messages by topic."""

    published: list[tuple[str, str, str]] = field(default_factory=list)
    failures: list[StewardError] = field(default_factory=list)

    def publish(self, topic_arn: str, subject: str, message: str) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.published.append((topic_arn, subject, message))
