"""Slack's dialogs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steward.settings import Settings
from steward.sinks.slack_api import SlackApi

if TYPE_CHECKING:
    from boto3 import Session

    from steward.ports import Clock

TIMEOUT_SECONDS = 2
"""Slack waits three seconds for whoever opens it, and the trigger lives no longer."""


class SlackDialogs:
    """Opens views; implements :class:`steward.ports.Dialogs`.

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
        self._api = SlackApi(session, settings, clock, timeout_seconds=TIMEOUT_SECONDS)

    def open(self, trigger_id: str, view: Mapping[str, Any]) -> None:
        """Open a view for whoever pressed.

        Raises
        ------
        DeliveryError
            Slack did not open it: the trigger has expired or was used, or there was no answer.
        """
        self._api.call("views.open", "(dialog)", {"trigger_id": trigger_id, "view": dict(view)})
