"""run_command: answers what was typed after `/gpu`, and shows a card's evidence."""

from typing import Any

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from steward import bootstrap
from steward.events import parse
from steward.slack.commands import Command
from steward.telemetry import logger
from steward.usecases.run_command import run_command


def answer_record(record: SQSRecord) -> dict[str, Any]:
    """Answer one command."""
    app = bootstrap.app()
    outcome = run_command(
        parse(Command, record.body, f"message {record.message_id}"),
        policy=app.policy,
        alerts=app.alerts,
        evaluations=app.evaluations,
        actions=app.actions,
        responder=app.responder,
        clock=app.clock,
    )
    logger.info("answered", **outcome)
    return outcome


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Answer a batch; one that fails holds up no other."""
    return process_partial_response(
        event=event,
        record_handler=answer_record,
        processor=BatchProcessor(event_type=EventType.SQS),
        context=context,
    )
