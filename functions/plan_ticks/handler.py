"""plan_ticks: started by the one schedule, asks for every snapshot that is due."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from steward import bootstrap
from steward.errors import RetryableError
from steward.metrics import emit
from steward.telemetry import logger
from steward.usecases.plan_ticks import plan_ticks


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Ask for what is due; fails when something could not be asked for, so that Lambda retries."""
    app = bootstrap.app()
    plan = plan_ticks(
        app.policy.clusters,
        plans=app.plans,
        requests=app.requests,
        departures=app.departures,
        clock=app.clock,
    )
    logger.info(
        "planned",
        asked=plan.asked,
        left=plan.left,
        failed=plan.failed,
        oldest_seconds=plan.oldest_seconds,
        scheduled=event.get("scheduled_time"),
    )
    emit(OldestSnapshotAge=plan.oldest_seconds)
    if plan.failed:
        raise RetryableError(f"not done: {plan.failed}")
    return {"asked": list(plan.asked)}
