"""SNS topics that pagers listen to."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from steward.aws_errors import CLIENT_LIMITS, aws_call
from steward.errors import ConfigError

if TYPE_CHECKING:
    from boto3 import Session
    from types_boto3_sns import SNSClient

SUBJECT = 99
"""Longest subject: SNS wants ASCII of less than 100 characters, and no line end."""


class SnsPager:
    """Publishes to topics, each in its own region; implements :class:`steward.ports.Pager`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._clients: dict[str, SNSClient] = {}

    def publish(self, topic_arn: str, subject: str, message: str) -> None:
        """Publish one message.

        Parameters
        ----------
        topic_arn : str
            `arn:aws:sns:<region>:<account>:<name>`.
        subject : str
            Any text: what a subject cannot carry is left out, and the end is cut.
        message : str
            As it is, at most 256 KB.

        Raises
        ------
        ConfigError
            The ARN is not a topic's.
        DeniedError, RetryableError, PermanentError
            See :mod:`steward.aws_errors`.
        """
        client = self._reaching(topic_arn)
        with aws_call(f"publish to {topic_arn}"):
            client.publish(TopicArn=topic_arn, Subject=_subject(subject), Message=message)

    def _reaching(self, topic_arn: str) -> SNSClient:
        # A topic answers in its own region only.
        match topic_arn.split(":"):
            case ["arn", _, "sns", region, _, _] if region:
                if region not in self._clients:
                    self._clients[region] = self._session.client(
                        "sns", region_name=region, config=CLIENT_LIMITS
                    )
                return self._clients[region]
        raise ConfigError(
            f"{topic_arn!r} is not the ARN of an SNS topic; "
            "write arn:aws:sns:<region>:<account>:<name>"
        )


def _subject(text: str) -> str:
    """Write a text as a subject: letters lose their accents, other scripts become `?`."""
    letters = unicodedata.normalize("NFKD", text)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    printable = "".join(letter if letter.isprintable() else " " for letter in bare)
    line = " ".join(printable.encode("ascii", "replace").decode().split())
    if len(line) > SUBJECT:
        line = f"{line[: SUBJECT - 3].rstrip()}..."
    return line or "GPU Steward"
