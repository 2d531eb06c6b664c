"""What somebody typed after `/gpu`, or which card's evidence they want to see: how it travels."""

from datetime import datetime

import msgspec


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A wish that `run_command` answers.

    Attributes
    ----------
    id : str
        Identity of the command: a repeat has the same.
    text : str
        What was typed after `/gpu`; the Show evidence button of a card sends
        `evidence <cluster>/<card>`.
    user, name : str
        Slack user id, and what people call them.
    channel : str
        Id of the channel that it was typed in.
    response_url : str
        Where Slack takes the answer, for 30 minutes and five times.
    """

    id: str
    text: str
    user: str
    name: str
    channel: str
    at: datetime
    response_url: str
