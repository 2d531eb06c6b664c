"""The Slack bot token, read from Secrets Manager when a message is sent."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from steward.alerts.errors import CredentialsError
from steward.aws_errors import CLIENT_LIMITS, aws_call
from steward.errors import StewardError

if TYPE_CHECKING:
    from boto3 import Session

    from steward.ports import Clock

TOKEN_AGE = timedelta(minutes=5)
"""How long a token is kept: a rotated one is picked up by the next tick but one."""


class BotToken:
    """The bot token in Secrets Manager: a JSON object with `bot_token`, or the token alone."""

    def __init__(self, session: Session, secret: str, clock: Clock) -> None:
        self._session = session
        self._secret = secret
        self._clock = clock
        self._known: tuple[datetime, str] | None = None

    def read(self) -> str:
        """Return the token, at most :data:`TOKEN_AGE` old.

        Raises
        ------
        CredentialsError
            There is no secret, it cannot be read now, or it holds no token.
        """
        now = self._clock.now()
        if self._known is None or now - self._known[0] > TOKEN_AGE:
            self._known = (now, self._fetch())
        return self._known[1]

    def _fetch(self) -> str:
        if not self._secret:
            raise CredentialsError("no Slack secret is configured: set SLACK_SECRET to its name")
        client = self._session.client("secretsmanager", config=CLIENT_LIMITS)
        try:
            with aws_call(f"read secret {self._secret}"):
                answer = client.get_secret_value(SecretId=self._secret)
        except StewardError as error:
            raise CredentialsError(f"no Slack token: {error}") from error
        token = _token_in(answer.get("SecretString", ""))
        if not token:
            raise CredentialsError(
                f'secret {self._secret} holds no token; put {{"bot_token": "xoxb-..."}} into it'
            )
        return token


def _token_in(secret: str) -> str:
    if not secret.lstrip().startswith("{"):
        return secret.strip()
    try:
        token = json.loads(secret).get("bot_token")
    except ValueError:
        return ""
    return token.strip() if isinstance(token, str) else ""
