"""The one dialog: a reason and an end for an exemption."""

import json
from typing import Any

CALLBACK = "exempt"
REASON = 300
"""Longest reason, in characters: it stands on the card."""

SPANS = (("1d", "1 day"), ("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days"))


def exempt_view(cluster: str, card: str, response_url: str | None) -> dict[str, Any]:
    """Give the view that asks for an exemption's reason and end.

    What the submission needs beside them travels in `private_metadata`: it comes without a
    response_url of its own.
    """
    about = {"cluster": cluster, "card": card, "response_url": response_url}
    return {
        "type": "modal",
        "callback_id": CALLBACK,
        "private_metadata": json.dumps(about),
        "title": _plain("Exempt this problem"),
        "submit": _plain("Exempt"),
        "close": _plain("Cancel"),
        "blocks": [
            {
                "type": "input",
                "block_id": "reason",
                "label": _plain("Why, for whoever reads it later"),
                "element": {
                    "type": "plain_text_input",
                    "action_id": "reason",
                    "max_length": REASON,
                },
            },
            {
                "type": "input",
                "block_id": "span",
                "label": _plain("For how long"),
                "element": {
                    "type": "static_select",
                    "action_id": "span",
                    "options": [{"text": _plain(text), "value": span} for span, text in SPANS],
                    "initial_option": {"text": _plain(SPANS[1][1]), "value": SPANS[1][0]},
                },
            },
            {
                "type": "context",
                "elements": [
                    {
                        "type": "mrkdwn",
                        "text": "Owners of the team, and whom the policy names, may exempt. What is "
                        "to stay exempt belongs in the policy.",
                    }
                ],
            },
        ],
    }


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}
