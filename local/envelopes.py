"""What Lambda's event sources wrap around their content, and what Lambda says of an invocation."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from local.twins import Event
from steward.cluster.figures import stamp

REGION, ACCOUNT = "us-east-1", "000000000000"


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


def from_queue(queue: str, batch: Iterable[tuple[str, str]], group: str) -> dict[str, Any]:
    """Wrap a batch of messages (id and body, all of one group) as SQS does."""
    return {
        "Records": [
            {
                "messageId": identifier,
                "receiptHandle": "local",
                "body": body,
                "attributes": {"MessageGroupId": group, "ApproximateReceiveCount": "1"},
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
