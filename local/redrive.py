"""Say what lies in a stack's dead-letter queues, and send back what came from a queue.

`python -m local.redrive [--stack NAME] [--queue NAME [--yes]]`; docs/operate.md says when to.

The FIFO queue is redriven by SQS itself (StartMessageMoveTask). The standard one cannot be: it holds
what rules, the schedule and functions failed at as well, and SQS moves only what came from a queue.
Its messages are sent back one by one, those of the named queue alone.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import batched
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import BotoCoreError

from local.dead_letters import DeadLetterQueue, Letter, describe, read
from local.live import said, signed_in
from steward.aws_errors import aws_call
from steward.errors import ConfigError, StewardError

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import MessageTypeDef

HIDDEN_SECONDS = 300
"""How long what was looked at stays out of others' sight: long enough to send it back."""

MOST = 1000
"""Messages that are looked at; what is left of a longer queue the next run looks at."""

WAIT_SECONDS = 1
"""How long SQS may look for messages: without, it asks only some of its servers."""

_BATCH = 10
_QUEUES = {"DeadLettersUrl": "dead letters", "DeadLettersFifoUrl": "dead letters, FIFO"}
"""Outputs of the stack that name a dead-letter queue; a spoke has no FIFO one."""


class Desk:
    """Where dead letters are looked at and sent back.

    Parameters
    ----------
    session : boto3.Session
        Of somebody who may describe the stack, and receive, delete, send and start move tasks.

    Raises
    ------
    StewardError
        SQS or CloudFormation refused or did not answer.
    """

    def __init__(self, session: boto3.Session) -> None:
        self._session = session
        self._sqs: SQSClient = session.client("sqs")

    def queues(self, stack: str) -> tuple[DeadLetterQueue, ...]:
        """Look into every dead-letter queue; what was looked at is hidden until it is released.

        Raises
        ------
        ConfigError
            The stack has no such output: it is another one.
        """
        client: Any = self._session.client("cloudformation")
        with aws_call(f"describe the stack {stack}", denied="allow DescribeStacks"):
            (found,) = client.describe_stacks(StackName=stack)["Stacks"]
        outputs = {one["OutputKey"]: str(one["OutputValue"]) for one in found.get("Outputs", ())}
        if "DeadLettersUrl" not in outputs:
            raise ConfigError(f"STACK={stack}: has no output DeadLettersUrl; name the steward's")
        urls = {title: outputs[key] for key, title in _QUEUES.items() if key in outputs}
        return tuple(self._look(title, url) for title, url in urls.items())

    def send_back(self, found: DeadLetterQueue, letters: Iterable[Letter], queue: str) -> int:
        """Send letters to the queue that they came from, and take them away; returns how many.

        Sent first: one that is then not taken away is there twice, and none is lost.
        """
        with aws_call(f"find the queue {queue}", denied="allow sqs:GetQueueUrl"):
            url = self._sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        sent = 0
        for letter in letters:
            with aws_call(f"send back to {queue}, after {sent}", denied="allow sqs:SendMessage"):
                self._sqs.send_message(
                    QueueUrl=url,
                    MessageBody=letter.message["Body"],
                    MessageAttributes=_attributes(letter.message),
                )
            with aws_call(f"take a letter out of {found.url}", denied="allow sqs:DeleteMessage"):
                self._sqs.delete_message(
                    QueueUrl=found.url, ReceiptHandle=letter.message["ReceiptHandle"]
                )
            sent += 1
        return sent

    def move(self, found: DeadLetterQueue) -> None:
        """Have SQS move everything back to where it came from, in its order."""
        with aws_call(f"redrive {found.arn}", denied="allow sqs:StartMessageMoveTask"):
            self._sqs.start_message_move_task(SourceArn=found.arn)

    def release(self, found: DeadLetterQueue) -> None:
        """Let others see again what was looked at and is still there."""
        for some in batched(found.letters, _BATCH, strict=False):
            with aws_call(f"release {found.url}", denied="allow sqs:ChangeMessageVisibility"):
                self._sqs.change_message_visibility_batch(
                    QueueUrl=found.url,
                    Entries=[
                        {
                            "Id": str(number),
                            "ReceiptHandle": one.message["ReceiptHandle"],
                            "VisibilityTimeout": 0,
                        }
                        for number, one in enumerate(some)
                    ],
                )

    def _look(self, title: str, url: str) -> DeadLetterQueue:
        with aws_call(f"look at {url}", denied="allow sqs:GetQueueAttributes"):
            told = self._sqs.get_queue_attributes(
                QueueUrl=url, AttributeNames=["QueueArn", "ApproximateNumberOfMessages"]
            )["Attributes"]
        letters = tuple(read(message) for message in self._receive(url))
        return DeadLetterQueue(
            title=title,
            url=url,
            arn=told["QueueArn"],
            count=max(int(told["ApproximateNumberOfMessages"]), len(letters)),
            letters=letters,
        )

    def _receive(self, url: str) -> Iterator["MessageTypeDef"]:
        for _ in range(MOST // _BATCH):
            with aws_call(f"receive from {url}", denied="allow sqs:ReceiveMessage"):
                some = self._sqs.receive_message(
                    QueueUrl=url,
                    MaxNumberOfMessages=_BATCH,
                    VisibilityTimeout=HIDDEN_SECONDS,
                    WaitTimeSeconds=WAIT_SECONDS,
                    MessageSystemAttributeNames=["All"],
                    MessageAttributeNames=["All"],
                ).get("Messages", [])
            if not some:
                return
            yield from some


def _attributes(message: "MessageTypeDef") -> dict[str, Any]:
    given = message.get("MessageAttributes", {})
    return {
        name: {k: v for k, v in value.items() if k in {"DataType", "StringValue", "BinaryValue"}}
        for name, value in given.items()
    }


def redrive(session: boto3.Session, stack: str, queue: str, *, yes: bool) -> None:
    """Print what there is; with a queue and a yes, send back what came from it.

    Raises
    ------
    ConfigError
        Nothing came from that queue, or the stack is another one.
    StewardError
        AWS refused or did not answer; what was not sent back is still there.
    """
    desk = Desk(session)
    found = desk.queues(stack)
    try:
        for one in found:
            print(*describe(one), sep="\n")
        chosen = [one for one in found if one.of(queue)]
        if queue and not chosen:
            raise ConfigError(f"QUEUE={queue}: nothing here came from it; the names stand above")
        for one in chosen:
            if yes and not one.fifo:
                print(f"sent back to {queue}: {desk.send_back(one, one.of(queue), queue)}")
    finally:
        for one in found:
            desk.release(one)
    for one in chosen:
        if yes and one.fifo:
            desk.move(one)  # SQS moves only what nobody is looking at
            print(f"SQS moves {one.count} back to {queue}, in their order")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="redrive", description=__doc__.splitlines()[0])
    parser.add_argument("--stack", default="gpu-steward", help="name of the steward's stack")
    parser.add_argument("--queue", default="", help="send back what came from this queue")
    parser.add_argument("--yes", action="store_true", help="without it, only say what there is")
    given = parser.parse_args(arguments)
    try:
        session = boto3.Session()
        signed_in(session)
        redrive(session, given.stack, given.queue, yes=given.yes)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except BotoCoreError as error:
        print(f"AWS: {error}; set AWS_PROFILE and AWS_REGION", file=sys.stderr)
        return 2
    except StewardError as error:
        print(said(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
