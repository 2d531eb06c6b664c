"""record_checkpoints: keeps what jobs and storage tell of checkpoints."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from steward import bootstrap
from steward.events import QueueEvent, parse
from steward.telemetry import logger
from steward.usecases.record_checkpoints import record_checkpoints


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Record a batch, in one write for each job that it speaks of."""
    app = bootstrap.app()
    batch = parse(QueueEvent, event, "checkpoints-written")
    recorded = record_checkpoints(batch.records, app.policy, app.checkpoints, app.clock.now())
    logger.info(
        "recorded", messages=len(batch.records), jobs=recorded.jobs, dropped=recorded.dropped
    )
    return {"batchItemFailures": [{"itemIdentifier": name} for name in recorded.failed_messages]}
