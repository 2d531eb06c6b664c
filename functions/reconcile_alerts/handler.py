"""reconcile_alerts: moves Slack towards what the newest evaluation of each cluster says."""

from typing import Any

from aws_lambda_powertools.utilities.batch import SqsFifoPartialProcessor, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from steward import bootstrap
from steward.events import EvaluationReady, parse
from steward.telemetry import logger
from steward.usecases.reconcile_alerts import reconcile


def reconcile_record(record: SQSRecord) -> dict[str, Any]:
    """Reconcile one cluster; a Slack failure does not fail the message, the next run tries again."""
    app = bootstrap.app()
    ready = parse(EvaluationReady, record.body, f"message {record.message_id}")
    outcome = reconcile(
        app.evaluations.get(ready.key),
        policy=app.policy,
        alerts=app.alerts,
        messenger=app.messenger,
        clock=app.clock,
    )
    logger.info("reconciled", evaluation=ready.key, **outcome)
    return outcome


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Reconcile a batch; a failing cluster holds up its own group only."""
    return process_partial_response(
        event=event,
        record_handler=reconcile_record,
        processor=SqsFifoPartialProcessor(skip_group_on_error=True),
        context=context,
    )
