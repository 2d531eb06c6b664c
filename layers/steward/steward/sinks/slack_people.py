"""Slack's members: who has an e-mail address, and which one a member has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from steward.alerts.errors import MessageGoneError, UnknownOutcomeError
from steward.settings import Settings
from steward.sinks.slack_api import SlackApi
from steward.sinks.slack_secret import SlackSecret

if TYPE_CHECKING:
    from boto3 import Session

    from steward.ports import Clock


class SlackDirectory:
    """Looks members up; implements :class:`steward.ports.Directory`.

    Needs the scopes `users:read` and `users:read.email`.

    Parameters
    ----------
    session : boto3.Session
        For Secrets Manager, where the bot token lies.
    settings : Settings
        Names the secret. With `local_endpoint` the rig is called in Slack's place.
    clock : Clock
        Tells how old the token is.
    """

    def __init__(self, session: Session, settings: Settings, clock: Clock) -> None:
        secret = SlackSecret(session, settings.slack_secret, clock)
        self._api = SlackApi(secret, settings)

    def user_of(self, email: str) -> str | None:
        """Return the id of the member with an e-mail address.

        Returns
        -------
        str or None
            None: nobody has it, or whoever had it has left.
        """
        member = self._member("users.lookupByEmail", email, {"email": email})
        return None if member is None or member.get("deleted") else str(member["id"])

    def email_of(self, user: str) -> str | None:
        """Return a member's e-mail address.

        Returns
        -------
        str or None
            None: there is none that we may see, or the member is another organisation's (Slack
            Connect), whose administrators write its addresses as they like.
        """
        member = self._member("users.info", user, {"user": user})
        if member is None or not self._home & _homes(member):
            return None
        profile = member.get("profile")
        email = profile.get("email") if isinstance(profile, Mapping) else None
        return email if isinstance(email, str) and email else None

    def _member(
        self, method: str, about: str, arguments: Mapping[str, str]
    ) -> Mapping[str, Any] | None:
        try:
            member = self._api.call(method, about, arguments).get("user")
        except MessageGoneError:
            return None
        if not isinstance(member, Mapping) or not isinstance(member.get("id"), str):
            raise UnknownOutcomeError(f"Slack {method} {about}: the answer holds no member")
        return member

    @cached_property
    def _home(self) -> frozenset[str]:
        """The bot's own workspace, and the organisation that it is part of."""
        answer = self._api.call("auth.test", "(own workspace)", {})
        return _ids(answer.get("team_id"), answer.get("enterprise_id"))


def _homes(member: Mapping[str, Any]) -> frozenset[str]:
    enterprise = member.get("enterprise_user")
    within = enterprise.get("enterprise_id") if isinstance(enterprise, Mapping) else None
    return _ids(member.get("team_id"), within)


def _ids(*values: object) -> frozenset[str]:
    return frozenset(value for value in values if isinstance(value, str) and value)
