"""Tables and charts as Slack takes them.

Limits: docs.slack.dev, Block Kit reference, table, data table and data visualization block.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from local.standins.slack_elements import ID
from local.standins.slack_shapes import (
    Check,
    choice,
    fault,
    flag,
    listed,
    number,
    shape,
    string,
    typed,
    unchecked,
    whole,
)

MOST_CELL_TEXT = 10_000
"""Characters over all cells of a message."""

_RAW_TEXT = shape({"text": string(MOST_CELL_TEXT)})
_LEAF = typed(
    {
        "text": shape({"text": string(MOST_CELL_TEXT)}, {"style": unchecked}),
        "link": shape({"url": string(3_000)}, {"text": string(MOST_CELL_TEXT), "style": unchecked}),
        **dict.fromkeys(("channel", "date", "emoji", "user", "usergroup"), unchecked),
    }
)
_LEAVES = shape({"elements": listed(_LEAF, 1_000)})
_RICH_TEXT = shape(
    {"elements": listed(typed({"rich_text_section": _LEAVES}), 1_000)}, {"block_id": ID}
)
_RAW_NUMBER = shape({"value": number}, {"text": string(MOST_CELL_TEXT)})

_COLUMN = shape({}, {"align": choice("left", "center", "right"), "is_wrapped": flag})
_CELL = typed({"raw_text": _RAW_TEXT, "rich_text": _RICH_TEXT})
TABLE = shape(
    {"rows": listed(listed(_CELL, 20), 100)},
    {"block_id": ID, "column_settings": listed(_COLUMN, 20, least=0)},
)

_HEADING = typed({"raw_text": _RAW_TEXT, "raw_number": _RAW_NUMBER})
_DATUM = typed({"raw_text": _RAW_TEXT, "rich_text": _RICH_TEXT, "raw_number": _RAW_NUMBER})


def _data_row(value: Any, at: str) -> Iterator[str]:
    first = at.endswith("/rows/0")
    yield from listed(_HEADING if first else _DATUM, 20)(value, at)


_DATA_TABLE = shape(
    {"rows": listed(_data_row, 101, least=2), "caption": string(MOST_CELL_TEXT)},
    {"block_id": ID, "page_size": whole(1, 100), "row_header_column_index": whole(0, 19)},
)


def data_table(value: Any, at: str) -> Iterator[str]:
    """Check a data table: all rows as long as the header."""
    yield from _DATA_TABLE(value, at)
    rows = [row for row in value.get("rows") or [] if isinstance(row, list)]
    for index, row in enumerate(rows):
        if len(row) != len(rows[0]):
            yield fault("all rows must have the same number of cells", f"{at}/rows/{index}")


_LABEL = string(20)
_POINT = shape({"label": _LABEL, "value": number})
_SERIES = shape({"name": _LABEL, "data": listed(_POINT, 20)})
_AXES = shape({"categories": listed(_LABEL, 20)}, {"x_label": string(50), "y_label": string(50)})
_PLOT = shape({"series": listed(_SERIES, 6), "axis_config": _AXES})


def _plot(value: Any, at: str) -> Iterator[str]:
    """Check a bar, area or line chart: one point for each category, and names that differ."""
    faults = [*_PLOT(value, at)]
    yield from faults
    if faults:
        return
    categories = value["axis_config"]["categories"]
    names: list[str] = []
    for index, series in enumerate(value["series"]):
        if [point["label"] for point in series["data"]] != categories:
            yield fault("labels must match the categories", f"{at}/series/{index}/data")
        if series["name"] in names:
            yield fault("must be unique", f"{at}/series/{index}/name")
        names.append(series["name"])


def _chart() -> Check:
    pie = shape({"segments": listed(_POINT, 6)})
    return typed({"pie": pie, "bar": _plot, "area": _plot, "line": _plot})


CHART = shape({"title": string(50), "chart": _chart()}, {"block_id": ID})

FAMILY = frozenset({"table", "data_table"})
"""Blocks of which a message may have one."""


def cell_text(block: Mapping[str, Any]) -> int:
    """Count the characters of all cells of a table whose shape is right."""
    return sum(_letters(cell) for row in block["rows"] for cell in row)


def _letters(part: Any) -> int:
    if isinstance(part, dict):
        own = len(part["text"]) if isinstance(part.get("text"), str) else 0
        return own + sum(_letters(value) for value in part.values())
    return sum(map(_letters, part)) if isinstance(part, list) else 0
