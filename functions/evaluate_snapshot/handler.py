"""evaluate_snapshot: every detector over the snapshot that was just taken."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from steward import bootstrap
from steward.events import EventEnvelope, SnapshotTaken, parse
from steward.metrics import emit
from steward.telemetry import logger
from steward.usecases.evaluate_snapshot import evaluate_snapshot


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Evaluate one snapshot; one of a cluster that has left the policy is dropped."""
    app = bootstrap.app()
    envelope = parse(EventEnvelope, event, "event")
    taken = parse(SnapshotTaken, envelope.detail, "Snapshot Taken")
    cluster = app.policy.cluster(taken.cluster)
    if cluster is None:
        logger.warning("snapshot of a cluster that the policy does not know", cluster=taken.cluster)
        return {"key": None, "reason": "cluster not in the policy"}
    outcome = evaluate_snapshot(
        taken.key,
        cluster,
        snapshots=app.snapshots,
        memories=app.memories,
        evaluations=app.evaluations,
        queue=app.queue,
        bus=app.bus,
    )
    logger.info(
        "evaluated",
        cluster=cluster.name,
        snapshot=taken.key,
        key=outcome.key,
        reason=outcome.reason,
        findings=outcome.findings,
        unknown=outcome.unknown,
        failed=outcome.failed,
        coverage=outcome.coverage,
    )
    if outcome.applied:
        emit(
            Coverage=outcome.coverage,
            Findings=outcome.findings,
            DetectorsFailed=len(outcome.failed),
        )
    return {"key": outcome.key, "reason": outcome.reason}
