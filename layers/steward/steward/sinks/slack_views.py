"""Slack's dialogs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steward.settings import Settings
from steward.sinks.slack_api import SlackApi
from steward.sinks.slack_secret import SlackSecret

TIMEOUT_SECONDS = 2
"""Slack waits three seconds for whoever opens it, and the trigger lives no longer."""


class SlackDialogs:
    """Opens views; implements :class:`steward.ports.Dialogs`.

    Parameters
    ----------
    secret : SlackSecret
        Gives the bot token.
    settings : Settings
        With `local_endpoint` the rig is called in Slack's place.
    """

    def __init__(self, secret: SlackSecret, settings: Settings) -> None:
        self._api = SlackApi(secret, settings, timeout_seconds=TIMEOUT_SECONDS)

    def open(self, trigger_id: str, view: Mapping[str, Any]) -> None:
        """Open a view for whoever pressed.

        Raises
        ------
        DeliveryError
            Slack did not open it: the trigger has expired or was used, or there was no answer.
        """
        self._api.call("views.open", "(dialog)", {"trigger_id": trigger_id, "view": dict(view)})
