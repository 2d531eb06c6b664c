"""answer_slack: takes presses and commands from Slack at its Function URL, and hands them over."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from steward import bootstrap
from steward.telemetry import logger
from steward.usecases.answer_slack import answer


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request within Slack's three seconds."""
    app = bootstrap.app()
    return answer(
        event,
        secret=lambda: app.slack_secret.signing_secret(),  # noqa: PLW0108 - lazily
        actions=lambda: app.actions,
        commands=lambda: app.commands,
        dialogs=lambda: app.dialogs,
        clock=app.clock,
    )
