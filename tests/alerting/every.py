"""All recordings of what people are told in Slack, and what they press there."""

from tests.alerting import crowds, exempting, failing, holding, lives
from tests.queues.scene import Recorded

EVERY: tuple[Recorded, ...] = (
    *lives.RECORDINGS,
    *crowds.RECORDINGS,
    *exempting.RECORDINGS,
    *failing.RECORDINGS,
    *holding.RECORDINGS,
)
