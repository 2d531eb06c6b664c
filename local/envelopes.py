"""What Lambda's event sources wrap around their content, and what Lambda says of an invocation."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from local.twins import Event
from steward.cluster.figures import stamp

REGION, ACCOUNT = "us-east-1", "000000000000"

_HOST = f"local.lambda-url.{REGION}.on.aws"
_SLACKBOT = "Slackbot 1.0 (+https://api.slack.com/robots)"


@dataclass(frozen=True, slots=True, kw_only=True)
class LambdaContext:
    """What Lambda tells a handler of its invocation.

    Attributes
    ----------
    seconds : float
        Time that is left: as much as Lambda ever gives, where nothing else ends a run.
    """

    function_name: str
    aws_request_id: str
    memory_limit_in_mb: int = 512
    seconds: float = 900.0

    @property
    def invoked_function_arn(self) -> str:
        """ARN of the function."""
        return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        """Time that is left, in Lambda's unit."""
        return round(1000 * self.seconds)


def from_queue(
    queue: str, batch: Iterable[tuple[str, str]], group: str | None = None
) -> dict[str, Any]:
    """Wrap a batch of messages (id and body) as SQS does; those of a FIFO queue are of one group."""
    ordered = {} if group is None else {"MessageGroupId": group}
    return {
        "Records": [
            {
                "messageId": identifier,
                "receiptHandle": "local",
                "body": body,
                "attributes": {**ordered, "ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
                "awsRegion": REGION,
            }
            for identifier, body in batch
        ]
    }


def from_bus(event: Event, identifier: str, at: datetime) -> dict[str, Any]:
    """Wrap a published event as EventBridge does."""
    return {
        "version": "0",
        "id": identifier,
        "detail-type": event.detail_type,
        "source": event.source,
        "account": ACCOUNT,
        "time": stamp(at),
        "region": REGION,
        "resources": [],
        "detail": json.loads(event.detail),
    }


def from_slack(form: str, signing_secret: str, at: datetime, identifier: str) -> dict[str, Any]:
    """Wrap a form that Slack posts, signed, as a Function URL does (payload format 2.0).

    Parameters
    ----------
    form : str
        The request's body: `payload=…` of a press, the flat fields of a command.
    signing_secret : str
        Secret of the app: the signature is over the raw body (docs.slack.dev, verifying requests
        from Slack).
    at : datetime
        When Slack sends it.
    identifier : str
        Of the request.
    """
    timestamp = int(at.timestamp())
    signed = f"v0:{timestamp}:{form}".encode()
    digest = hmac.new(signing_secret.encode(), signed, hashlib.sha256).hexdigest()
    # Lambda hands over names in lower case, and every body that is neither text nor JSON in base64.
    headers = {
        "accept": "application/json,*/*",
        "content-length": str(len(form.encode())),
        "content-type": "application/x-www-form-urlencoded",
        "host": _HOST,
        "user-agent": _SLACKBOT,
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
        "x-slack-request-timestamp": str(timestamp),
        "x-slack-signature": f"v0={digest}",
    }
    http = {
        "method": "POST",
        "path": "/",
        "protocol": "HTTP/1.1",
        "sourceIp": "192.0.2.1",
        "userAgent": _SLACKBOT,
    }
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": "/",
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "local",
            "domainName": _HOST,
            "domainPrefix": "local",
            "http": http,
            "requestId": identifier,
            "routeKey": "$default",
            "stage": "$default",
            "time": f"{at:%d/%b/%Y:%H:%M:%S +0000}",
            "timeEpoch": 1000 * timestamp,
        },
        "body": base64.b64encode(form.encode()).decode(),
        "isBase64Encoded": True,
    }
