"""What a dead letter tells of itself without its body: who failed, why, and where it came from.

SQS marks what it moved with the queue's ARN; EventBridge and Scheduler describe their failure in
message attributes; Lambda writes a record around what the function was given.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from steward.cluster.figures import stamp

if TYPE_CHECKING:
    from types_boto3_sqs.type_defs import MessageTypeDef

_LONGEST = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One dead letter.

    Attributes
    ----------
    queue : str or None
        Name of the queue that it came from; None: from a rule, the schedule or a function.
    origin, reason : str
        Who failed, and why as far as it was told; one line each.
    sent : datetime
        When it was first sent.
    message : MessageTypeDef
        As SQS gave it.
    """

    queue: str | None
    origin: str
    reason: str
    sent: datetime
    message: "MessageTypeDef"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterQueue:
    """A dead-letter queue, and the letters that were seen in it.

    Attributes
    ----------
    count : int
        How many there are about; of a long queue, or of a FIFO one, not all were seen.
    """

    title: str
    url: str
    arn: str
    count: int
    letters: tuple[Letter, ...]

    @property
    def fifo(self) -> bool:
        """Whether it is a FIFO queue: nothing but a queue's messages comes to one."""
        return self.arn.endswith(".fifo")

    def of(self, queue: str) -> tuple[Letter, ...]:
        """Find the letters that came from a queue."""
        return tuple(one for one in self.letters if one.queue == queue)


def read(message: "MessageTypeDef") -> Letter:
    """Read a message of a dead-letter queue."""
    system = message.get("Attributes", {})
    told = {k: v.get("StringValue", "") for k, v in message.get("MessageAttributes", {}).items()}
    queue = None
    if "DeadLetterQueueSourceArn" in system:
        queue = _name(system["DeadLetterQueueSourceArn"])
        origin = f"the queue {queue}"
        reason = "failed at every try: the log of the function that polls it says why"
    elif "RULE_ARN" in told or "SCHEDULE_ARN" in told:
        starter, arn = next((k, told[k]) for k in ("RULE_ARN", "SCHEDULE_ARN") if k in told)
        name = f"{starter.partition('_')[0].lower()} {arn.rpartition('/')[2]}"
        origin = f"the {name}, to {_name(told.get('TARGET_ARN', '?'))}"
        reason = f"{told.get('ERROR_CODE', '?')}: {told.get('ERROR_MESSAGE', '?')}"
    else:
        origin, reason = _of_function(message.get("Body", ""))
    return Letter(
        queue=queue,
        origin=_plain(origin),
        reason=_plain(reason),
        sent=datetime.fromtimestamp(int(system["SentTimestamp"]) / 1000, UTC),
        message=message,
    )


def describe(found: DeadLetterQueue) -> Iterator[str]:
    """Say what a queue holds: by who failed, with the reason of the newest."""
    yield f"{found.title}: {found.count}"
    groups: dict[str, list[Letter]] = defaultdict(list)
    for letter in found.letters:
        groups[letter.origin].append(letter)
    for origin, letters in sorted(groups.items()):
        newest = max(letters, key=lambda one: one.sent)
        oldest = min(one.sent for one in letters)
        yield f"  {len(letters)} from {origin}, since {stamp(oldest)}"
        yield f"    {newest.reason}"
        if newest.queue is None:
            yield "    stays: there is no queue to send it back to"
        else:
            yield f"    to send back: make redrive QUEUE={newest.queue} YES=1"


def _of_function(body: str) -> tuple[str, str]:
    """Read who failed, and with which error, of what Lambda writes; never what it was given."""
    try:
        record = json.loads(body)
        asked, answer = record["requestContext"], record.get("responsePayload") or {}
        function = asked["functionArn"].split(":")[6]
        error = f"{answer.get('errorType', '?')}: {answer.get('errorMessage', '?')}"
        return f"the function {function}", f"{asked.get('condition', '?')}, {error}"
    except (ValueError, LookupError, TypeError, AttributeError):
        return "somebody unknown", "it has no mark of a queue, a rule or a function"


def _name(arn: str) -> str:
    return arn.rpartition(":")[2]


def _plain(text: str) -> str:
    """Make one line that a terminal prints as it is: error texts come from outside."""
    line = "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
