"""reconcile_alerts: moves Slack towards what the newest evaluation of each cluster says."""

from typing import Any

from aws_lambda_powertools.utilities.batch import SqsFifoPartialProcessor, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from steward import bootstrap
from steward.alerts.actions import CardAction
from steward.bootstrap import App
from steward.events import EvaluationReady
from steward.metrics import emit
from steward.reconcile_events import ClusterLeft, parse_work
from steward.telemetry import logger
from steward.usecases.reconcile_alerts import act, depart, reconcile


def reconcile_record(record: SQSRecord) -> dict[str, Any]:
    """Reconcile one cluster; a Slack failure does not fail the message, the next run tries again."""
    app = bootstrap.app()
    work = parse_work(record.body, f"message {record.message_id}")
    outcome = _reconciled(work, app)
    emit(
        Lateness=outcome.get("late_seconds"),
        CardsUndelivered=outcome.get("undelivered"),
        SlackRefusals=outcome.get("refusals"),
    )
    logger.info("reconciled", **outcome)
    return outcome


def _reconciled(work: EvaluationReady | CardAction | ClusterLeft, app: App) -> dict[str, Any]:
    match work:
        case CardAction():
            return act(
                work,
                policy=app.policy,
                alerts=app.alerts,
                messenger=app.messenger,
                directory=app.directory,
                pager=app.pager,
                responder=app.responder,
                clock=app.clock,
            )
        case ClusterLeft():
            return depart(
                work.cluster,
                work.at,
                policy=app.policy,
                alerts=app.alerts,
                messenger=app.messenger,
                directory=app.directory,
                clock=app.clock,
            )
        case EvaluationReady():
            outcome = reconcile(
                app.evaluations.get(work.key),
                policy=app.policy,
                alerts=app.alerts,
                messenger=app.messenger,
                directory=app.directory,
                pager=app.pager,
                clock=app.clock,
            )
            return {"evaluation": work.key, **outcome}


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Reconcile a batch; a failing cluster holds up its own group only."""
    return process_partial_response(
        event=event,
        record_handler=reconcile_record,
        processor=SqsFifoPartialProcessor(skip_group_on_error=True),
        context=context,
    )
