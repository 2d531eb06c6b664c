"""What Slack refuses in a message, as documented, in Slack's own words.

Written from the documentation (docs.slack.dev, Block Kit) and not from the product's limiter, so
that each finds the other's mistakes.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

MOST_BLOCKS = 50
MOST_TEXT = 40_000
MOST_TOTAL = 13_000
"""Of all blocks as JSON. Undocumented: messages of about this size are refused."""

KNOWN_TYPES = frozenset(
    {
        "actions",
        "context",
        "context_actions",
        "data_table",
        "data_visualization",
        "divider",
        "file",
        "header",
        "image",
        "markdown",
        "rich_text",
        "section",
        "table",
        "video",
    }
)
_LONGEST_TEXT = {"header": 150, "section": 3_000}


class RefusedError(Exception):
    """An answer that is not ok: its error code, and pointers into the message."""

    def __init__(self, code: str, messages: tuple[str, ...] = ()) -> None:
        super().__init__(code)
        self.code = code
        self.messages = messages


def check(payload: Mapping[str, Any]) -> None:
    """Check a message's size and shape.

    Raises
    ------
    RefusedError
        With the code and the JSON pointers that Slack would answer.
    """
    blocks = payload.get("blocks")
    if not blocks and not str(payload.get("text") or "").strip():
        raise RefusedError("no_text")
    if len(str(payload.get("text") or "")) > MOST_TEXT:
        raise RefusedError("msg_too_long")
    if not blocks:
        return
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise RefusedError("invalid_blocks_format")
    if faults := tuple(_faults(blocks)):
        raise RefusedError("invalid_blocks", faults)
    if len(json.dumps(blocks, ensure_ascii=False, separators=(",", ":"))) > MOST_TOTAL:
        raise RefusedError("msg_blocks_too_long")


def _faults(blocks: list[dict[str, Any]]) -> Iterator[str]:
    if len(blocks) > MOST_BLOCKS:
        yield _fault(f"no more than {MOST_BLOCKS} items allowed", "/blocks")
    for index, block in enumerate(blocks):
        yield from _block(block, f"/blocks/{index}")


def _block(block: Mapping[str, Any], at: str) -> Iterator[str]:
    kind = block.get("type")
    if kind not in KNOWN_TYPES:
        yield _fault(f"unsupported type: {kind}", f"{at}/type")
    if kind == "section" and not block.get("text") and not block.get("fields"):
        yield _fault("missing required field: text or fields", at)
    if kind == "header" and not isinstance(block.get("text"), dict):
        yield _fault("missing required field: text", at)
    if kind in _LONGEST_TEXT and "text" in block:
        yield from _text(block["text"], _LONGEST_TEXT[kind], f"{at}/text", plain=kind == "header")
    if kind == "section" and "fields" in block:
        yield from _texts(block["fields"], 2_000, f"{at}/fields")
    if kind == "context":
        yield from _texts(block.get("elements"), 3_000, f"{at}/elements")


def _texts(items: Any, longest: int, at: str) -> Iterator[str]:
    if not isinstance(items, list) or not items:
        yield _fault("must provide at least 1 item", at)
        return
    if len(items) > 10:
        yield _fault("no more than 10 items allowed", at)
    for index, item in enumerate(items):
        yield from _text(item, longest, f"{at}/{index}", plain=False)


def _text(item: Any, longest: int, at: str, *, plain: bool) -> Iterator[str]:
    allowed = {"plain_text"} if plain else {"plain_text", "mrkdwn"}
    if not isinstance(item, dict) or item.get("type") not in allowed:
        yield _fault(f"must be one of: {', '.join(sorted(allowed))}", at)
        return
    text = item.get("text")
    if not isinstance(text, str):
        yield _fault("must be a string", f"{at}/text")
    elif not text:
        yield _fault("must be more than 0 characters", f"{at}/text")
    elif len(text) > longest:
        yield _fault(f"must be less than {longest + 1} characters", f"{at}/text")


def _fault(message: str, pointer: str) -> str:
    return f"[ERROR] {message} [json-pointer:{pointer}]"
