"""The stand-in's limits on tables and charts, each on both sides, with Slack's code and pointer.

The numbers are Slack's (docs.slack.dev: table, data table and data visualization block), written
here a second time.
"""

from typing import Any

import pytest

from local.standins.slack_blocks import RefusedError, check

type Block = dict[str, Any]


def raw(text: Any = "-") -> Block:
    return {"type": "raw_text", "text": text}


def rich(*leaves: Any) -> Block:
    return {
        "type": "rich_text",
        "elements": [{"type": "rich_text_section", "elements": [*leaves]}],
    }


def table(*rows: Any, **more: Any) -> Block:
    return {"type": "table", "rows": [*rows], **more}


def data_table(*rows: Any, **more: Any) -> Block:
    return {"type": "data_table", "caption": "Teams", "rows": [*rows], **more}


def point(label: str = "Mon", value: Any = 1) -> Block:
    return {"label": label, "value": value}


def pie(count: int, **more: Any) -> Block:
    segments = [point(f"s{n}", n) for n in range(count)]
    return {**chart({"type": "pie", "segments": segments}), **more}


def plot(series: int = 1, points: int = 1, kind: str = "bar", **axes: Any) -> Block:
    labels = [f"w{n}" for n in range(points)]
    return chart(
        {
            "type": kind,
            "series": [
                {"name": f"s{n}", "data": [point(label) for label in labels]} for n in range(series)
            ],
            "axis_config": {"categories": labels, **axes},
        }
    )


def chart(shown: Block) -> Block:
    return {"type": "data_visualization", "title": "Idle", "chart": shown}


def taken(*blocks: Any) -> None:
    check({"text": "t", "blocks": [*blocks]})


def refusal(*blocks: Any) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        check({"text": "t", "blocks": [*blocks]})
    return caught.value


def line(message: str, pointer: str) -> tuple[str, ...]:
    return (f"[ERROR] {message} [json-pointer:{pointer}]",)


LIMITS = [
    ("rows", table(*[[raw()]] * 100), table(*[[raw()]] * 101), "no more than 100 items allowed", "/rows"),
    ("no row", table([raw()]), table(), "must provide at least 1 items", "/rows"),
    ("cells", table([raw()] * 20), table([raw()] * 21), "no more than 20 items allowed", "/rows/0"),
    ("no cell", table([raw()]), table([]), "must provide at least 1 items", "/rows/0"),
    ("empty cell", table([raw("-")]), table([raw()], [raw("")]), "must be more than 0 characters", "/rows/1/0/text"),
    ("null cell", table([raw()]), table([raw(), None]), "must be an object", "/rows/0/1"),
    ("null text", table([raw()]), table([raw(None)]), "must be a string", "/rows/0/0/text"),
    ("number", table([raw("7")]), table([{"type": "raw_number", "value": 7}]), "unsupported type: raw_number", "/rows/0/0/type"),
    (
        "empty rich cell",
        table([rich({"type": "text", "text": "t", "style": {"bold": True}})]),
        table([rich({"type": "text", "text": ""})]),
        "must be more than 0 characters",
        "/rows/0/0/elements/0/elements/0/text",
    ),
    ("rich cell without text", table([rich({"type": "emoji", "name": "x"})]), table([rich()]), "must provide at least 1 items", "/rows/0/0/elements/0/elements"),
    ("settings", table([raw()], column_settings=[{}] * 20), table([raw()], column_settings=[{}] * 21), "no more than 20 items allowed", "/column_settings"),
    ("null setting", table([raw()], column_settings=[{"align": "right", "is_wrapped": True}]), table([raw()], column_settings=[{}, None]), "must be an object", "/column_settings/1"),
    ("null settings", table([raw()], column_settings=[]), table([raw()], column_settings=None), "must be an array", "/column_settings"),
    ("align", table([raw()], column_settings=[{"align": "center"}]), table([raw()], column_settings=[{"align": "top"}]), "must be one of: left, center, right", "/column_settings/0/align"),
    ("data rows", data_table(*[[raw()]] * 101), data_table(*[[raw()]] * 102), "no more than 101 items allowed", "/rows"),
    ("header alone", data_table(*[[raw()]] * 2), data_table([raw()]), "must provide at least 2 items", "/rows"),
    ("page", data_table([raw()], [raw()], page_size=100), data_table([raw()], [raw()], page_size=101), "must be from 1 to 100", "/page_size"),
    ("no page", data_table([raw()], [raw()], page_size=1), data_table([raw()], [raw()], page_size=0), "must be from 1 to 100", "/page_size"),
    ("caption", data_table([raw()], [raw()]), {"type": "data_table", "rows": [[raw()], [raw()]]}, "missing required field: caption", ""),
    ("empty caption", data_table([raw()], [raw()]), data_table([raw()], [raw()], caption=""), "must be more than 0 characters", "/caption"),
    (
        "rich header",
        data_table([raw()], [rich({"type": "text", "text": "t"})]),
        data_table([rich({"type": "text", "text": "t"})], [raw()]),
        "unsupported type: rich_text",
        "/rows/0/0/type",
    ),
    ("data number", data_table([raw()], [{"type": "raw_number", "value": 7.5}]), data_table([raw()], [{"type": "raw_number", "value": "7"}]), "must be a number", "/rows/1/0/value"),
    ("ragged", data_table([raw()] * 2, [raw()] * 2), data_table([raw()] * 2, [raw()] * 2, [raw()]), "all rows must have the same number of cells", "/rows/2"),
    ("segments", pie(6), pie(7), "no more than 6 items allowed", "/chart/segments"),
    ("no segment", pie(1), pie(0), "must provide at least 1 items", "/chart/segments"),
    ("series", plot(6, 2), plot(7, 2), "no more than 6 items allowed", "/chart/series"),
    ("no series", plot(1), plot(0), "must provide at least 1 items", "/chart/series"),
    ("title", pie(1, title="x" * 50), pie(1, title="x" * 51), "must be less than 51 characters", "/title"),
    ("no title", pie(1, title="x"), pie(1, title=""), "must be more than 0 characters", "/title"),
    ("axis", plot(x_label="x" * 50), plot(x_label="x" * 51), "must be less than 51 characters", "/chart/axis_config/x_label"),
    ("other axis", plot(y_label="x" * 50), plot(y_label="x" * 51), "must be less than 51 characters", "/chart/axis_config/y_label"),
    ("kind", plot(kind="area"), plot(kind="radar"), "unsupported type: radar", "/chart/type"),
    (
        "segment label",
        chart({"type": "pie", "segments": [point("x" * 20)]}),
        chart({"type": "pie", "segments": [point("x" * 21)]}),
        "must be less than 21 characters",
        "/chart/segments/0/label",
    ),
    (
        "value",
        chart({"type": "pie", "segments": [point(value=0.5)]}),
        chart({"type": "pie", "segments": [point(value=None)]}),
        "must be a number",
        "/chart/segments/0/value",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fits", "bad", "message", "pointer"),
    [case[1:] for case in LIMITS],
    ids=[case[0] for case in LIMITS],
)
def test_a_limit_is_kept_on_both_sides(fits: Block, bad: Block, message: str, pointer: str) -> None:
    taken({"type": "divider"}, fits)
    error = refusal({"type": "divider"}, bad)
    assert error.code == "invalid_blocks"
    assert error.messages == line(message, f"/blocks/1{pointer}")


def test_a_series_has_one_to_twenty_points_that_are_the_categories() -> None:
    for kind in ("bar", "area", "line"):
        taken(plot(2, 20, kind))
    many = refusal(plot(1, 21))
    assert many.messages == (
        *line("no more than 20 items allowed", "/blocks/0/chart/series/0/data"),
        *line("no more than 20 items allowed", "/blocks/0/chart/axis_config/categories"),
    )
    short = plot(2, 3)
    short["chart"]["series"][1]["data"].pop()
    error = refusal(short)
    assert error.code == "invalid_blocks"
    assert error.messages == line(
        "labels must match the categories", "/blocks/0/chart/series/1/data"
    )


def test_names_of_series_are_short_and_differ() -> None:
    def named(first: str, second: str) -> Block:
        drawn = plot(2)
        for series, name in zip(drawn["chart"]["series"], (first, second), strict=True):
            series["name"] = name
        return drawn

    taken(named("x" * 20, "y"))
    long = refusal(named("x" * 21, "y"))
    assert long.messages == line("must be less than 21 characters", "/blocks/0/chart/series/0/name")
    assert refusal(named("x", "x")).messages == line(
        "must be unique", "/blocks/0/chart/series/1/name"
    )


@pytest.mark.parametrize("make", [table, data_table])
def test_all_cells_together_have_at_most_ten_thousand_characters(make: Any) -> None:
    heading = [raw("x" * 5_000), rich({"type": "text", "text": "x"})]
    if make is data_table:
        heading = [raw("x" * 5_000), raw("x")]
    taken(make(heading, [raw("y" * 4_998), raw("y")]))
    error = refusal(make(heading, [raw("y" * 4_999), raw("y")]))
    assert error.code == "invalid_blocks"
    assert error.messages == line("must be less than 10001 characters", "/blocks/0/rows")


def test_a_full_table_is_no_message_too_long() -> None:
    # As JSON 100 rows of 20 cells are above 60,000 characters; the table's own limits are what counts.
    taken(table(*[[raw("12345")] * 20] * 100))


@pytest.mark.parametrize(
    "second", [table([raw()]), data_table([raw()], [raw()])], ids=["table", "data_table"]
)
def test_a_message_has_one_table_wherever_it_stands(second: Block) -> None:
    taken(table([raw()]))
    taken(table([raw()]), pie(1), plot())
    error = refusal(table([raw()]), second)
    assert error.code == "invalid_attachments"
    assert error.messages == line("only_one_table_allowed", "/blocks")
    with pytest.raises(RefusedError) as caught:
        check({"text": "t", "blocks": [table([raw()])], "attachments": [{"blocks": [second]}]})
    assert caught.value.code == "invalid_attachments"


def test_the_longest_row_of_a_data_table_has_twenty_cells() -> None:
    taken(data_table(*[[raw()] * 20] * 2))
    error = refusal(data_table(*[[raw()] * 21] * 2))
    assert error.messages == (
        *line("no more than 20 items allowed", "/blocks/0/rows/0"),
        *line("no more than 20 items allowed", "/blocks/0/rows/1"),
    )
