"""What Slack refuses in a message or a modal, as documented, in Slack's own words.

Written from the documentation (docs.slack.dev, Block Kit) and not from the product's limiter, so
that each finds the other's mistakes. Of block types that the product has no use for (cards, rich
text), only the type is known here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from local.standins.slack_elements import ACCESSORY, ACTIONS, CONTEXT, ID, INPUT, plain, text
from local.standins.slack_shapes import (
    Fields,
    fault,
    flag,
    listed,
    shape,
    string,
    typed,
    unchecked,
    whole,
)
from local.standins.slack_tables import CHART, FAMILY, MOST_CELL_TEXT, TABLE, cell_text, data_table

MOST_BLOCKS = 50
MOST_MODAL_BLOCKS = 100
MOST_TEXT = 40_000
MOST_EDITED_TEXT = 4_000
"""chat.update takes less than chat.postMessage."""

MOST_TOTAL = 13_000
"""Of all blocks as JSON, tables and charts apart, which have limits of their own. Undocumented:
messages of about this size are refused (slackapi/bolt-js#2509)."""

MOST_MARKDOWN = 12_000
"""Over all markdown blocks of a payload."""

MOST_VIEW_BYTES = 250_000

_BLOCK_ID = {"block_id": ID}
_EVERYWHERE: Fields = {
    "actions": shape({"elements": ACTIONS}, _BLOCK_ID),
    "context": shape({"elements": CONTEXT}, _BLOCK_ID),
    "divider": shape({}, _BLOCK_ID),
    "header": shape({"text": plain(150)}, {"level": whole(1, 4), **_BLOCK_ID}),
    "image": shape(
        {"image_url": string(3_000), "alt_text": string(2_000)},
        {"title": plain(2_000), **_BLOCK_ID},
    ),
    "input": shape(
        {"label": plain(2_000), "element": INPUT},
        {"hint": plain(2_000), "optional": flag, "dispatch_action": flag, **_BLOCK_ID},
    ),
    "rich_text": unchecked,
    "section": shape(
        {},
        {
            "text": text(3_000),
            "fields": listed(text(2_000), 10),
            "accessory": ACCESSORY,
            "expand": flag,
            **_BLOCK_ID,
        },
    ),
    "video": unchecked,
}
_IN_MESSAGES: Fields = {
    **_EVERYWHERE,
    "card": unchecked,
    "carousel": unchecked,
    "container": unchecked,
    "context_actions": unchecked,
    "data_table": data_table,
    "data_visualization": CHART,
    "file": unchecked,
    "markdown": shape({"text": string(MOST_MARKDOWN)}, _BLOCK_ID),
    "plan": unchecked,
    "table": TABLE,
    "task_card": unchecked,
}
_IN_MODALS: Fields = {
    **_EVERYWHERE,
    "alert": shape({"text": text(200)}, {"level": string(75), **_BLOCK_ID}),
}
_VIEW = shape(
    {"title": plain(24), "blocks": unchecked},
    {
        "submit": plain(24),
        "close": plain(24),
        "private_metadata": string(3_000, least=0),
        "callback_id": string(255),
        "external_id": string(255),
        "clear_on_close": flag,
        "notify_on_close": flag,
        "submit_disabled": flag,
    },
)


class RefusedError(Exception):
    """An answer that is not ok: its error code, and pointers into the message."""

    def __init__(self, code: str, messages: tuple[str, ...] = ()) -> None:
        super().__init__(code)
        self.code = code
        self.messages = messages


def check(payload: Mapping[str, Any], *, most_text: int = MOST_TEXT) -> None:
    """Check a message's size and shape.

    Parameters
    ----------
    payload : mapping
        `text`, `blocks`, `attachments`.
    most_text : int
        Longest text, in characters; :data:`MOST_EDITED_TEXT` for an edit.

    Raises
    ------
    RefusedError
        With the code and the JSON pointers that Slack would answer.
    """
    blocks, attachments = payload.get("blocks"), payload.get("attachments")
    written = str(payload.get("text") or "")
    if not blocks and not attachments and not written.strip():
        raise RefusedError("no_text")
    if len(written) > most_text:
        raise RefusedError("msg_too_long")
    if blocks:
        _check_blocks(blocks, "/blocks", "invalid_blocks")
    for index, attachment in enumerate(attachments or []):
        at = f"/attachments/{index}"
        if not isinstance(attachment, dict):
            raise RefusedError("invalid_attachments", (fault("must be an object", at),))
        if within := attachment.get("blocks"):
            _check_blocks(within, f"{at}/blocks", "invalid_attachments")
    every = [*(blocks or []), *_within(attachments or [])]
    if sum(block["type"] in FAMILY for block in every) > 1:
        raise RefusedError("invalid_attachments", (fault("only_one_table_allowed", "/blocks"),))
    if _total(every) > MOST_TOTAL or _markdown(every) > MOST_MARKDOWN:
        raise RefusedError("msg_blocks_too_long")


def check_view(view: Any) -> None:
    """Check a modal's size and shape.

    Raises
    ------
    RefusedError
        With the code and the JSON pointers that Slack would answer.
    """
    faults = [*typed({"modal": _VIEW})(view, "/view")]
    if not faults:
        faults = [*_faults(view["blocks"], _IN_MODALS, MOST_MODAL_BLOCKS, "/view/blocks")]
    if not faults and "submit" not in view:
        faults = [
            fault(
                "must define `submit` to use an `input` block in modals", f"/view/blocks/{n}/input"
            )
            for n, block in enumerate(view["blocks"])
            if block["type"] == "input"
        ]
    if faults:
        raise RefusedError("invalid_arguments", tuple(faults))
    if len(json.dumps(view, ensure_ascii=False).encode()) > MOST_VIEW_BYTES:
        raise RefusedError("view_too_large")


def _check_blocks(blocks: Any, at: str, code: str) -> None:
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise RefusedError("invalid_blocks_format")
    if faults := tuple(_faults(blocks, _IN_MESSAGES, MOST_BLOCKS, at)):
        raise RefusedError(code, faults)


def _faults(blocks: Any, kinds: Fields, most: int, at: str) -> Iterator[str]:
    faults = [*listed(typed(kinds), most, least=0)(blocks, at)]
    yield from faults
    if faults:
        return
    for index, block in enumerate(blocks):
        where = f"{at}/{index}"
        if block["type"] == "section" and not block.keys() & {"text", "fields"}:
            yield fault("missing required field: text or fields", where)
        if block["type"] == "actions":
            yield from _repeated(block["elements"], "action_id", f"{where}/elements")
        if block["type"] in FAMILY and cell_text(block) > MOST_CELL_TEXT:
            yield fault(f"must be less than {MOST_CELL_TEXT + 1} characters", f"{where}/rows")
    yield from _repeated(blocks, "block_id", at)


def _repeated(items: Sequence[Mapping[str, Any]], name: str, at: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        if (given := item.get(name)) in seen:
            yield fault(f"{name} must be unique: {given}", f"{at}/{index}/{name}")
        elif given is not None:
            seen.add(given)


def _within(attachments: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [block for attachment in attachments for block in attachment.get("blocks") or []]


def _total(blocks: Sequence[Mapping[str, Any]]) -> int:
    counted = [block for block in blocks if block["type"] not in {*FAMILY, "data_visualization"}]
    return len(json.dumps(counted, ensure_ascii=False, separators=(",", ":")))


def _markdown(blocks: Sequence[Mapping[str, Any]]) -> int:
    return sum(len(block["text"]) for block in blocks if block["type"] == "markdown")
