"""The steward's event bus."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from steward.aws_errors import CLIENT_LIMITS, aws_call
from steward.errors import PermanentError, RetryableError
from steward.events import SOURCE

if TYPE_CHECKING:
    from boto3 import Session
    from types_boto3_events import EventBridgeClient


class EventBridgeBus:
    """Puts our events on an EventBridge bus, one a call.

    Parameters
    ----------
    bus : str
        Its name; of a bus of another account or region, its ARN.
    """

    def __init__(self, session: Session, bus: str) -> None:
        self._session = session
        self._bus = bus

    @cached_property
    def _client(self) -> EventBridgeClient:
        # A bus answers in its own region only: an ARN names it (arn:aws:events:<region>:...).
        region = self._bus.split(":")[3] if self._bus.startswith("arn:") else None
        return self._session.client("events", region_name=region, config=CLIENT_LIMITS)

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Put one event.

        Raises
        ------
        RetryableError
            The bus did not take it: a failed entry is an answer with HTTP 200.
        """
        doing = f"put {detail_type!r} on bus {self._bus}"
        with aws_call(doing):
            answer = self._client.put_events(
                Entries=[
                    {
                        "Source": SOURCE,
                        "DetailType": detail_type,
                        "Detail": detail_text(detail),
                        "EventBusName": self._bus,
                    }
                ]
            )
        if answer["FailedEntryCount"]:
            entry = answer["Entries"][0]
            raise RetryableError(
                f"{doing}: {entry.get('ErrorCode')}: {entry.get('ErrorMessage')}; "
                "the next run tries again"
            )


def detail_text(detail: Mapping[str, Any]) -> str:
    """Write an event's detail.

    Raises
    ------
    PermanentError
        It holds something that JSON cannot carry, NaN included.
    """
    try:
        return json.dumps(dict(detail), allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise PermanentError(
            f"an event's detail cannot be written as JSON: {error}; mend what put the value there"
        ) from error
