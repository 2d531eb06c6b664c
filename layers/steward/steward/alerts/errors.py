"""How a delivery to Slack can go wrong: one class for each thing the reconciler does about it."""

from steward.errors import PermanentError, RetryableError, StewardError


class DeliveryError(StewardError):
    """Base of everything a messenger raises about a delivery."""


class RefusedContentError(DeliveryError, PermanentError):
    """Slack refused the blocks; the text holds its pointer. The card may be sent as text."""


class ChannelError(DeliveryError, PermanentError):
    """The channel is missing, archived or closed to the bot."""


class CredentialsError(DeliveryError, PermanentError):
    """The token is absent, revoked or lacks a scope."""


class MessageGoneError(DeliveryError, PermanentError):
    """The message to edit or delete does not exist any more, or may not be touched any more."""


class NotAcceptedError(DeliveryError, RetryableError):
    """Slack did not take the message.

    Parameters
    ----------
    message : str
        What happened, where, and the remedy.
    retry_after_seconds : float or None
        How long Slack wants the channel left alone (HTTP 429); None: the refusal is this
        message's own.
    """

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class UnknownOutcomeError(DeliveryError, RetryableError):
    """The request may or may not have been accepted: no answer, or one that does not tell."""
