"""Whether a request comes from Slack: its signature over the raw body, and its age.

Source: docs.slack.dev, verifying requests from Slack. slack_sdk's own verifier raises on a timestamp
that is no number, on a body that is not UTF-8 and on a signature that is not ASCII.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import datetime, timedelta

AGE = timedelta(minutes=5)
"""Of a request, into the past and into the future: what is older may be somebody's recording."""

_TIMESTAMP, _SIGNATURE = "x-slack-request-timestamp", "x-slack-signature"
_SECONDS = re.compile(r"[0-9]{1,11}")
"""Since the epoch, for a few thousand years."""

_DIGEST = re.compile(r"v0=[0-9a-f]{64}")


def claimed(headers: Mapping[str, str], now: datetime) -> tuple[str, str] | None:
    """Read timestamp and signature from a request's headers, their names in any case.

    Returns
    -------
    (str, str) or None
        None where no secret could make the request a right one: one of them is missing or
        malformed, or it is too old or too new. That is known before any secret is read.
    """
    known = {name.lower(): value for name, value in headers.items()}
    timestamp, signature = known.get(_TIMESTAMP), known.get(_SIGNATURE)
    if not isinstance(timestamp, str) or not isinstance(signature, str):
        return None
    if not (_SECONDS.fullmatch(timestamp) and _DIGEST.fullmatch(signature)):
        return None
    if abs(now.timestamp() - int(timestamp)) > AGE.total_seconds():
        return None
    return timestamp, signature


def signed(secret: str, timestamp: str, signature: str, body: bytes) -> bool:
    """Tell whether a body was signed with the secret; takes the same time wherever it differs."""
    text = b"v0:%b:%b" % (timestamp.encode(), body)
    expected = f"v0={hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()}"
    return hmac.compare_digest(expected, signature)
