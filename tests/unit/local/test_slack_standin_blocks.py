"""The stand-in's limits, each on both sides, with Slack's code and pointer.

The numbers are Slack's (docs.slack.dev, Block Kit reference), written here a second time.
"""

from collections.abc import Callable
from typing import Any

import pytest

from local.standins.slack_blocks import RefusedError, check, check_view

type Block = dict[str, Any]


def mrkdwn(text: Any) -> Block:
    return {"type": "mrkdwn", "text": text}


def plain(text: Any) -> Block:
    return {"type": "plain_text", "text": text}


def section(**fields: Any) -> Block:
    return {"type": "section", **fields}


def context(*elements: Any) -> Block:
    return {"type": "context", "elements": [*elements]}


def actions(*elements: Any, **more: Any) -> Block:
    return {"type": "actions", "elements": [*elements], **more}


def button(**fields: Any) -> Block:
    return {"type": "button", "text": plain("Go"), **fields}


def option(text: str = "1 h", value: str = "1h", **more: Any) -> Block:
    return {"text": plain(text), "value": value, **more}


def select(*options: Any, **more: Any) -> Block:
    return {"type": "static_select", "options": [*options], **more}


def overflow(count: int) -> Block:
    return {"type": "overflow", "options": [option(value=str(n)) for n in range(count)]}


def image(**fields: Any) -> Block:
    return {"type": "image", "image_url": "https://example.com/a.png", "alt_text": "a", **fields}


def confirm(**fields: Any) -> Block:
    whole = {"title": plain("t"), "text": plain("t"), "confirm": plain("y"), "deny": plain("n")}
    return {**whole, **fields}


def asked() -> Block:
    return {"type": "input", "label": plain("Reason"), "element": {"type": "plain_text_input"}}


def refusal(*blocks: Any, **payload: Any) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        check({"text": "t", "blocks": [*blocks], **payload})
    return caught.value


def line(message: str, pointer: str) -> tuple[str, ...]:
    return (f"[ERROR] {message} [json-pointer:{pointer}]",)


LENGTHS: list[tuple[str, int, str, Callable[[str], Block]]] = [
    ("section", 3_000, "/text/text", lambda t: section(text=mrkdwn(t))),
    ("field", 2_000, "/fields/0/text", lambda t: section(fields=[mrkdwn(t)])),
    ("header", 150, "/text/text", lambda t: {"type": "header", "text": plain(t)}),
    ("context", 3_000, "/elements/0/text", lambda t: context(mrkdwn(t))),
    ("button", 75, "/elements/0/text/text", lambda t: actions(button(text=plain(t)))),
    ("value", 2_000, "/elements/0/value", lambda t: actions(button(value=t))),
    ("url", 3_000, "/elements/0/url", lambda t: actions(button(url=t))),
    ("action_id", 255, "/elements/0/action_id", lambda t: actions(button(action_id=t))),
    (
        "label",
        75,
        "/elements/0/accessibility_label",
        lambda t: actions(button(accessibility_label=t)),
    ),
    ("block_id", 255, "/block_id", lambda t: {"type": "divider", "block_id": t}),
    ("option", 75, "/elements/0/options/0/text/text", lambda t: actions(select(option(text=t)))),
    (
        "option value",
        150,
        "/elements/0/options/0/value",
        lambda t: actions(select(option(value=t))),
    ),
    (
        "option description",
        75,
        "/elements/0/options/0/description/text",
        lambda t: actions(select(option(description=plain(t)))),
    ),
    (
        "placeholder",
        150,
        "/elements/0/placeholder/text",
        lambda t: actions(select(option(), placeholder=plain(t))),
    ),
    (
        "confirm title",
        100,
        "/elements/0/confirm/title/text",
        lambda t: actions(button(confirm=confirm(title=plain(t)))),
    ),
    (
        "confirm text",
        300,
        "/elements/0/confirm/text/text",
        lambda t: actions(button(confirm=confirm(text=plain(t)))),
    ),
    (
        "confirm button",
        30,
        "/elements/0/confirm/confirm/text",
        lambda t: actions(button(confirm=confirm(confirm=plain(t)))),
    ),
    (
        "confirm's other button",
        30,
        "/elements/0/confirm/deny/text",
        lambda t: actions(button(confirm=confirm(deny=plain(t)))),
    ),
    ("alt", 2_000, "/alt_text", lambda t: image(alt_text=t)),
    ("image title", 2_000, "/title/text", lambda t: image(title=plain(t))),
    ("image url", 3_000, "/image_url", lambda t: image(image_url=t)),
    ("alt of an element", 2_000, "/elements/0/alt_text", lambda t: context(image(alt_text=t))),
    (
        "accessory",
        75,
        "/accessory/text/text",
        lambda t: section(text=mrkdwn("t"), accessory=button(text=plain(t))),
    ),
    ("label", 2_000, "/label/text", lambda t: {**asked(), "label": plain(t)}),
    ("hint", 2_000, "/hint/text", lambda t: {**asked(), "hint": plain(t)}),
    ("markdown", 12_000, "/text", lambda t: {"type": "markdown", "text": t}),
]


@pytest.mark.parametrize(
    ("most", "pointer", "block"), [case[1:] for case in LENGTHS], ids=[case[0] for case in LENGTHS]
)
def test_a_text_has_a_longest_length_and_is_not_empty(
    most: int, pointer: str, block: Callable[[str], Block]
) -> None:
    for fits in ("x", "x" * most):
        check({"text": "t", "blocks": [block(fits)]})
    long, empty = refusal(block("x" * (most + 1))), refusal(block(""))
    assert (long.code, empty.code) == ("invalid_blocks", "invalid_blocks")
    assert long.messages == line(f"must be less than {most + 1} characters", f"/blocks/0{pointer}")
    assert empty.messages == line("must be more than 0 characters", f"/blocks/0{pointer}")


COUNTS: list[tuple[str, int, str, Callable[[int], Block]]] = [
    ("fields", 10, "/fields", lambda n: section(fields=[mrkdwn("f")] * n)),
    ("context", 10, "/elements", lambda n: context(*[mrkdwn("e")] * n)),
    ("actions", 25, "/elements", lambda n: actions(*[button()] * n)),
    (
        "options",
        100,
        "/elements/0/options",
        lambda n: actions(select(*[option(value=str(i)) for i in range(n)])),
    ),
    ("overflow", 5, "/elements/0/options", lambda n: actions(overflow(n))),
]


@pytest.mark.parametrize(
    ("most", "pointer", "block"), [case[1:] for case in COUNTS], ids=[case[0] for case in COUNTS]
)
def test_a_list_has_a_most_and_is_not_empty(
    most: int, pointer: str, block: Callable[[int], Block]
) -> None:
    for fits in (1, most):
        check({"text": "t", "blocks": [block(fits)]})
    many, none = refusal(block(most + 1)), refusal(block(0))
    assert (many.code, none.code) == ("invalid_blocks", "invalid_blocks")
    assert many.messages == line(f"no more than {most} items allowed", f"/blocks/0{pointer}")
    assert none.messages == line("must provide at least 1 items", f"/blocks/0{pointer}")


def test_a_message_has_at_most_fifty_blocks() -> None:
    divider = {"type": "divider"}
    check({"text": "t", "blocks": [divider] * 50})
    error = refusal(*[divider] * 51)
    assert error.code == "invalid_blocks"
    assert error.messages == line("no more than 50 items allowed", "/blocks")


@pytest.mark.parametrize(
    ("block", "message", "pointer"),
    [
        (section(), "missing required field: text or fields", ""),
        (section(text=None), "must be an object", "/text"),
        (section(text=mrkdwn(None)), "must be a string", "/text/text"),
        (section(text=mrkdwn(7)), "must be a string", "/text/text"),
        (section(fields=None), "must be an array", "/fields"),
        (section(fields=[None]), "must be an object", "/fields/0"),
        (section(text={"type": "html", "text": "t"}), "unsupported type: html", "/text/type"),
        (section(text=plain("t"), colour="red"), "invalid additional property: colour", ""),
        (section(text=plain("t"), expand=1), "must be a boolean", "/expand"),
        ({"type": "header"}, "missing required field: text", ""),
        ({"type": "header", "text": mrkdwn("t")}, "unsupported type: mrkdwn", "/text/type"),
        ({"type": "header", "text": plain("t"), "level": 0}, "must be from 1 to 4", "/level"),
        ({"type": "header", "text": plain("t"), "level": True}, "must be an integer", "/level"),
        (context(button()), "unsupported type: button", "/elements/0/type"),
        (actions(image()), "unsupported type: image", "/elements/0/type"),
        (actions(button(text=mrkdwn("t"))), "unsupported type: mrkdwn", "/elements/0/text/type"),
        (actions(button(style="loud")), "must be one of: primary, danger", "/elements/0/style"),
        (actions({"type": "button"}), "missing required field: text", "/elements/0"),
        (actions(select(option(), initial_option=option("2 h", "2h"))), "must match one of the options", "/elements/0/initial_option"),
        (actions(select({"text": plain("t")})), "missing required field: value", "/elements/0/options/0"),
        ({"type": "image", "image_url": "u"}, "missing required field: alt_text", ""),
        ({"type": "divider", "block_id": None}, "must be a string", "/block_id"),
        ({"type": "alert", "text": plain("t")}, "unsupported type: alert", "/type"),
        ({"type": "alarm"}, "unsupported type: alarm", "/type"),
        ({}, "unsupported type: None", "/type"),
    ],
)  # fmt: skip
def test_a_wrong_shape_is_refused_where_it_is_wrong(
    block: Block, message: str, pointer: str
) -> None:
    error = refusal({"type": "divider"}, block)
    assert error.code == "invalid_blocks"
    assert error.messages == line(message, f"/blocks/1{pointer}")


def test_what_a_card_is_made_of_is_taken() -> None:
    card = [
        {"type": "header", "text": plain("8 GPUs idle"), "level": 1},
        section(text=mrkdwn("*who*"), fields=[mrkdwn("team"), plain("research")], expand=True),
        section(text=plain("t"), accessory=image()),
        image(title=plain("t"), block_id="picture"),
        context(mrkdwn("since"), plain("UTC"), image()),
        actions(
            button(action_id="acknowledge", style="primary", confirm=confirm()),
            select(
                option("1 h", "1h"),
                option("4 h", "4h"),
                action_id="snooze",
                placeholder=plain("Snooze"),
                initial_option=option("4 h", "4h"),
            ),
            {**overflow(2), "action_id": "more"},
            block_id="card/ml-shared-01/0123456789",
        ),
        asked(),
        {"type": "rich_text", "elements": []},
        {"type": "markdown", "text": "**t**"},
        {"type": "divider"},
    ]
    check({"text": "t", "blocks": card})


def test_every_fault_is_named() -> None:
    error = refusal(section(text=mrkdwn("")), section(fields=[]))
    assert error.messages == (
        *line("must be more than 0 characters", "/blocks/0/text/text"),
        *line("must provide at least 1 items", "/blocks/1/fields"),
    )


def test_block_ids_of_a_message_differ() -> None:
    two = [{"type": "divider", "block_id": "a"}, {"type": "divider", "block_id": "b"}]
    check({"text": "t", "blocks": [*two, {"type": "divider"}, {"type": "divider"}]})
    error = refusal(*two, {"type": "divider", "block_id": "a"})
    assert error.code == "invalid_blocks"
    assert error.messages == line("block_id must be unique: a", "/blocks/2/block_id")


def test_action_ids_of_a_block_differ() -> None:
    # In two blocks they may be the same.
    check({"text": "t", "blocks": [actions(button(action_id="a")), actions(button(action_id="a"))]})
    error = refusal(actions(button(action_id="a"), button(), button(), button(action_id="a")))
    assert error.code == "invalid_blocks"
    assert error.messages == line("action_id must be unique: a", "/blocks/0/elements/3/action_id")


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"text": ""},
        {"text": " \n"},
        {"text": None, "blocks": None},
        {"text": "", "blocks": []},
        {"text": "", "blocks": [], "attachments": []},
    ],
)
def test_a_message_says_something(payload: Block) -> None:
    with pytest.raises(RefusedError) as caught:
        check(payload)
    assert caught.value.code == "no_text"
    check({**payload, "text": "t"})


@pytest.mark.parametrize("blocks", [{"type": "divider"}, ["x"], [None], "text"])
def test_blocks_are_a_list_of_objects(blocks: Any) -> None:
    with pytest.raises(RefusedError) as caught:
        check({"text": "t", "blocks": blocks})
    assert caught.value.code == "invalid_blocks_format"


def test_a_text_has_at_most_forty_thousand_characters_and_an_edit_four_thousand() -> None:
    check({"text": "x" * 40_000})
    check({"text": "x" * 4_000}, most_text=4_000)
    for most in (40_000, 4_000):
        with pytest.raises(RefusedError) as caught:
            check({"text": "x" * (most + 1)}, most_text=most)
        assert caught.value.code == "msg_too_long"


def test_all_blocks_together_have_a_largest_size() -> None:
    # Seen in the field, undocumented: about 13,000 characters, though each block is legal.
    empty = len('[{"type":"section","text":{"type":"mrkdwn","text":""}}]') - 2
    rest = 13_000 - 2 - 4 * (empty + 2_900 + 1) - empty
    blocks = [section(text=mrkdwn("x" * 2_900))] * 4
    check({"text": "t", "blocks": [*blocks, section(text=mrkdwn("x" * rest))]})
    error = refusal(*blocks, section(text=mrkdwn("x" * (rest + 1))))
    assert (error.code, error.messages) == ("msg_blocks_too_long", ())


def test_markdown_blocks_share_twelve_thousand_characters() -> None:
    def halves(first: int, second: int) -> list[Block]:
        return [{"type": "markdown", "text": "x" * size} for size in (first, second)]

    check({"text": "t", "blocks": halves(6_000, 6_000)})
    assert refusal(*halves(6_000, 6_001)).code == "msg_blocks_too_long"


def test_what_is_wrong_in_an_attachment_is_an_attachments_fault() -> None:
    def attached(text: str) -> list[Block]:
        return [{"color": "#000000", "blocks": [section(text=mrkdwn(text))]}]

    check({"attachments": attached("t")})
    error = refusal(attachments=attached(""))
    assert error.code == "invalid_attachments"
    pointer = "/attachments/0/blocks/0/text/text"
    assert error.messages == line("must be more than 0 characters", pointer)
    nothing = refusal(attachments=[None])
    assert nothing.code == "invalid_attachments"
    assert nothing.messages == line("must be an object", "/attachments/0")


# --- modals ---------------------------------------------------------------------------------------


def reason(**more: Any) -> Block:
    element = {"type": "plain_text_input", "action_id": "reason", "multiline": True, **more}
    return {"type": "input", "block_id": "reason", "label": plain("Reason"), "element": element}


def modal(*blocks: Any, **more: Any) -> Block:
    whole = {"type": "modal", "title": plain("Exempt"), "submit": plain("Exempt")}
    return {**whole, "blocks": [*blocks], **more}


def refused(view: Any) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        check_view(view)
    return caught.value


def test_what_an_exemption_is_asked_with_is_taken() -> None:
    span = {
        "type": "input",
        "block_id": "span",
        "label": plain("For"),
        "element": select(option("7 days", "7d"), action_id="span"),
        "hint": plain("It ends by itself."),
    }
    alert = {"type": "alert", "text": mrkdwn("Nobody will be told.")}
    view = modal(reason(max_length=3_000), span, alert, close=plain("Cancel"))
    check_view({**view, "callback_id": "exempt", "private_metadata": "{}"})


@pytest.mark.parametrize(
    ("field", "most", "pointer"),
    [
        ("title", 24, "/title/text"),
        ("submit", 24, "/submit/text"),
        ("close", 24, "/close/text"),
        ("callback_id", 255, "/callback_id"),
        ("private_metadata", 3_000, "/private_metadata"),
    ],
)
def test_a_modals_texts_have_a_longest_length(field: str, most: int, pointer: str) -> None:
    def view(text: str) -> Block:
        value = plain(text) if pointer.endswith("/text") else text
        return modal(reason(), **{field: value})

    check_view(view("x" * most))
    error = refused(view("x" * (most + 1)))
    assert error.code == "invalid_arguments"
    assert error.messages == line(f"must be less than {most + 1} characters", f"/view{pointer}")


def test_a_modal_has_at_most_a_hundred_blocks() -> None:
    check_view(modal(*[{"type": "divider"}] * 100))
    error = refused(modal(*[{"type": "divider"}] * 101))
    assert error.code == "invalid_arguments"
    assert error.messages == line("no more than 100 items allowed", "/view/blocks")


@pytest.mark.parametrize(
    ("view", "message", "pointer"),
    [
        (None, "must be an object", ""),
        ({**modal(), "type": "home"}, "unsupported type: home", "/type"),
        ({"type": "modal", "blocks": []}, "missing required field: title", ""),
        ({"type": "modal", "title": plain("t")}, "missing required field: blocks", ""),
        (modal(size="large"), "invalid additional property: size", ""),
        (modal(blocks={}), "must be an array", "/blocks"),
        (modal({"type": "table", "rows": []}), "unsupported type: table", "/blocks/0/type"),
        (modal({"type": "markdown", "text": "t"}), "unsupported type: markdown", "/blocks/0/type"),
        (modal(reason(placeholder=plain("x" * 151))), "must be less than 151 characters", "/blocks/0/element/placeholder/text"),
        (modal(reason(max_length=3_001)), "must be from 1 to 3000", "/blocks/0/element/max_length"),
        (modal({**reason(), "label": plain("x" * 2_001)}), "must be less than 2001 characters", "/blocks/0/label/text"),
        (modal({**reason(), "element": button()}), "unsupported type: button", "/blocks/0/element/type"),
        (modal({"type": "alert", "text": plain("x" * 201)}), "must be less than 201 characters", "/blocks/0/text/text"),
        (modal(reason(), reason()), "block_id must be unique: reason", "/blocks/1/block_id"),
    ],
)  # fmt: skip
def test_a_wrong_modal_is_refused_where_it_is_wrong(view: Any, message: str, pointer: str) -> None:
    error = refused(view)
    assert error.code == "invalid_arguments"
    assert error.messages == line(message, f"/view{pointer}")


def test_a_modal_with_an_input_can_be_submitted() -> None:
    view = modal({"type": "divider"}, reason())
    check_view(view)
    del view["submit"]
    message = "must define `submit` to use an `input` block in modals"
    assert refused(view).messages == line(message, "/view/blocks/1/input")
    check_view({**view, "blocks": [{"type": "divider"}]})


def test_a_modal_has_at_most_250_kilobytes() -> None:
    text = section(fields=[mrkdwn("é" * 2_000)] * 10)  # about 40,000 bytes, in UTF-8
    check_view(modal(*[text] * 6))
    assert refused(modal(*[text] * 7)).code == "view_too_large"
