"""Texts, buttons, menus and images as Slack takes them inside blocks.

Limits: docs.slack.dev, Block Kit reference, composition objects and block elements. Elements that
the product has no use for (date pickers, check boxes) are refused as unsupported.
"""

from collections.abc import Iterator
from typing import Any

from local.standins.slack_shapes import (
    Check,
    choice,
    fault,
    flag,
    listed,
    shape,
    string,
    typed,
    whole,
)

ID = string(255)
"""A `block_id` or an `action_id`."""


def plain(most: int) -> Check:
    """Check a `plain_text` object."""
    return typed({"plain_text": shape({"text": string(most)}, {"emoji": flag})})


def text(most: int) -> Check:
    """Check a text object of either kind."""
    return typed(
        {
            "plain_text": shape({"text": string(most)}, {"emoji": flag}),
            "mrkdwn": shape({"text": string(most)}, {"verbatim": flag}),
        }
    )


_CONFIRM = shape(
    {"title": plain(100), "text": text(300), "confirm": plain(30), "deny": plain(30)},
    {"style": choice("primary", "danger")},
)
_OPTION = shape({"text": plain(75), "value": string(150)}, {"description": plain(75)})
_SELECT = shape(
    {"options": listed(_OPTION, 100)},
    {
        "action_id": ID,
        "placeholder": plain(150),
        "initial_option": _OPTION,
        "confirm": _CONFIRM,
        "focus_on_load": flag,
    },
)


def _select(value: Any, at: str) -> Iterator[str]:
    yield from _SELECT(value, at)
    if "initial_option" in value and value["initial_option"] not in (value.get("options") or []):
        yield fault("must match one of the options", f"{at}/initial_option")


_BUTTON = shape(
    {"text": plain(75)},
    {
        "action_id": ID,
        "url": string(3_000),
        "value": string(2_000),
        "style": choice("primary", "danger"),
        "confirm": _CONFIRM,
        "accessibility_label": string(75),
    },
)
_OVERFLOW = shape({"options": listed(_OPTION, 5)}, {"action_id": ID, "confirm": _CONFIRM})
_TEXT_INPUT = shape(
    {},
    {
        "action_id": ID,
        "initial_value": string(3_000),
        "multiline": flag,
        "min_length": whole(0, 3_000),
        "max_length": whole(1, 3_000),
        "placeholder": plain(150),
        "focus_on_load": flag,
    },
)
_IMAGE = shape({"image_url": string(3_000), "alt_text": string(2_000)})

PRESSED = {"button": _BUTTON, "overflow": _OVERFLOW, "static_select": _select}
ACTIONS = listed(typed(PRESSED), 25)
ACCESSORY = typed({**PRESSED, "image": _IMAGE})
INPUT = typed({"plain_text_input": _TEXT_INPUT, "static_select": _select})
CONTEXT = listed(
    typed(
        {
            "image": _IMAGE,
            "plain_text": shape({"text": string(3_000)}, {"emoji": flag}),
            "mrkdwn": shape({"text": string(3_000)}, {"verbatim": flag}),
        }
    ),
    10,
)
