"""The Slack app's secret in Secrets Manager: the bot token, and what requests are signed with."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from steward.alerts.errors import CredentialsError
from steward.aws_errors import CLIENT_LIMITS, aws_call
from steward.errors import StewardError

if TYPE_CHECKING:
    from boto3 import Session
    from botocore.config import Config

    from steward.ports import Clock

AGE = timedelta(minutes=5)
"""How long a secret is kept: a rotated one is picked up by the next tick but one."""


class SlackSecret:
    """A JSON object with `bot_token` and `signing_secret`; a text that is none is the token alone.

    Parameters
    ----------
    session : boto3.Session
        For Secrets Manager.
    secret : str
        Name or ARN of the secret.
    clock : Clock
        Tells how old what was read is.
    limits : Config
        How long a call may take, and how often it is made.
    """

    def __init__(
        self, session: Session, secret: str, clock: Clock, limits: Config = CLIENT_LIMITS
    ) -> None:
        self._session = session
        self._limits = limits
        self._secret = secret
        self._clock = clock
        self._known: tuple[datetime, dict[str, str]] | None = None

    def bot_token(self) -> str:
        """Return the token, at most :data:`AGE` old.

        Raises
        ------
        CredentialsError
            There is no secret, it cannot be read now, or it holds no token.
        """
        return self._read("bot_token", '{"bot_token": "xoxb-..."}')

    def signing_secret(self) -> str:
        """Return what Slack signs its requests with, at most :data:`AGE` old.

        Raises
        ------
        CredentialsError
            As for the token.
        """
        return self._read("signing_secret", '{"signing_secret": "..."}')

    def _read(self, name: str, form: str) -> str:
        now = self._clock.now()
        if self._known is None or now - self._known[0] > AGE:
            self._known = (now, self._fetch())
        value = self._known[1].get(name, "")
        if not value:
            self._known = None  # whoever puts it there need not wait
            raise CredentialsError(f"secret {self._secret} holds no {name}; put {form} into it")
        return value

    def _fetch(self) -> dict[str, str]:
        if not self._secret:
            raise CredentialsError("no Slack secret is configured: set SLACK_SECRET to its name")
        client = self._session.client("secretsmanager", config=self._limits)
        try:
            with aws_call(f"read secret {self._secret}"):
                answer = client.get_secret_value(SecretId=self._secret)
        except StewardError as error:
            raise CredentialsError(f"no Slack secret: {error}") from error
        return _values(answer.get("SecretString", ""))


def _values(secret: str) -> dict[str, str]:
    if not secret.lstrip().startswith("{"):
        return {"bot_token": secret.strip()}
    try:
        held = json.loads(secret)
    except ValueError:
        return {}
    return {name: value.strip() for name, value in held.items() if isinstance(value, str)}
