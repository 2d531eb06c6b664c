"""take_snapshot: the one door for every wish for a fresh snapshot."""

from functools import partial
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from steward import bootstrap
from steward.events import QueueEvent, parse
from steward.telemetry import logger
from steward.usecases.coalescing import Turns
from steward.usecases.serve_requests import serve_requests
from steward.usecases.take_snapshot import take_snapshot


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take one snapshot of each cluster that the batch asks for."""
    app = bootstrap.app()
    take = partial(
        take_snapshot,
        sources=app.sources,
        snapshots=app.snapshots,
        memories=app.memories,
        checkpoints=app.checkpoints,
        bus=app.bus,
        clock=app.clock,
    )
    batch = parse(QueueEvent, event, "snapshot-requests")
    clusters = app.policy.read_by(app.settings.snapshot_requests_url, spoke=app.settings.spoke)

    def left() -> float:
        return context.get_remaining_time_in_millis() / 1000

    turns = Turns(app.claims, app.snapshots, app.clock, context.aws_request_id, left)
    served = serve_requests(batch.records, clusters, app.clock.now(), take, turns, left)
    for outcome in served.outcomes:
        logger.info(
            "snapshot",
            cluster=outcome.cluster,
            key=outcome.key,
            reason=outcome.reason,
            refused=outcome.refused,
        )
    logger.info(
        "served",
        messages=len(batch.records),
        dropped=served.dropped,
        answered=served.answered,
    )
    return {"batchItemFailures": [{"itemIdentifier": name} for name in served.failed_messages]}
