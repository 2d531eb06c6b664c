"""Whatever the data, what leaves the limiter is what Slack takes; checked by the stand-in's rules."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.standins.slack_blocks import check
from steward.slack.limits import TEXT, fit
from steward.slack.text import length

Block = dict[str, Any]


def mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text}


def section(text: str) -> Block:
    return {"type": "section", "text": mrkdwn(text)}


def message(*blocks: Block, text: str = "summary") -> Block:
    return {"text": text, "blocks": list(blocks)}


def test_what_fits_is_left_as_it_is() -> None:
    given_message = message(section("a"), {"type": "divider"})
    assert fit(given_message) == given_message


@pytest.mark.parametrize(
    ("block", "place", "longest"),
    [
        ({"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}, "text", 150),
        (section("x" * 3001), "text", 3000),
    ],
)
def test_a_long_text_is_cut_at_its_limit(block: Block, place: str, longest: int) -> None:
    text = fit(message(block))["blocks"][0][place]["text"]
    assert text[-1] == "…"
    assert longest - 1 <= len(text) <= longest  # one is kept free to close a code span with


def test_fields_and_elements_are_counted() -> None:
    fields = [mrkdwn(f"f{n}") for n in range(14)]
    elements = [mrkdwn(f"e{n}") for n in range(14)]
    fitted = fit(
        message({"type": "section", "fields": fields}, {"type": "context", "elements": elements})
    )
    kept = fitted["blocks"][0]["fields"]
    assert [f["text"] for f in kept] == [*(f"f{n}" for n in range(9)), "+5 more"]
    assert fitted["blocks"][1]["elements"][-1]["text"] == "+5 more"


def test_blocks_beyond_fifty_are_counted_in_a_last_line() -> None:
    blocks = fit(message(*(section(f"part {n}") for n in range(58))))["blocks"]
    assert len(blocks) == 50
    # 49 parts are shown, so nine of the 58 are not.
    assert blocks[-1]["elements"][0]["text"] == "+9 more parts left out"


def test_blank_elements_are_left_out_and_a_blank_text_is_replaced() -> None:
    fitted = fit(
        message(
            section("  "),
            {"type": "section", "fields": [mrkdwn(""), mrkdwn("kept")]},
            {"type": "context", "elements": [mrkdwn(" ")]},
            text=" ",
        )
    )
    assert fitted["blocks"] == [{"type": "section", "fields": [mrkdwn("kept")]}]
    assert fitted["text"].strip()


def test_the_total_shrinks_the_longest_texts_before_it_drops_a_block() -> None:
    blocks = [section("head"), *(section("x" * 3000) for _ in range(6)), section("kubectl")]
    fitted = fit(message(*blocks))["blocks"]
    assert [len(b["text"]["text"]) for b in fitted] == [4, *[1199] * 6, 7]


def test_a_cut_code_block_is_closed_again() -> None:
    text = fit(message(section(f"```\n{'x' * 4000}\n```")))["blocks"][0]["text"]["text"]
    assert text.endswith("…\n```")
    assert len(text) <= 3000


def test_a_code_span_that_a_cut_leaves_open_is_closed_again() -> None:
    text = fit(message(section("`x` " * 1000)))["blocks"][0]["text"]["text"]
    assert text.count("`") % 2 == 0


TEXTS = st.tuples(st.sampled_from(["", " ", "a", "é", "🙂", "&amp;", "`"]), st.integers(1, 3200))
KINDS = st.sampled_from(["header", "section", "fields", "context", "divider"])
BLOCKS = st.lists(st.tuples(KINDS, st.lists(TEXTS, min_size=1, max_size=14)), max_size=70)


def build(kind: str, texts: list[str]) -> Block:
    if kind == "header":
        return {"type": "header", "text": {"type": "plain_text", "text": texts[0]}}
    if kind == "fields":
        return {"type": "section", "fields": [mrkdwn(text) for text in texts]}
    if kind == "context":
        return {"type": "context", "elements": [mrkdwn(text) for text in texts]}
    return section(texts[0]) if kind == "section" else {"type": "divider"}


@settings(deadline=None, max_examples=60)
@given(BLOCKS, TEXTS)
def test_slack_takes_every_message_that_leaves_the_limiter(
    blocks: list[tuple[str, list[tuple[str, int]]]], text: tuple[str, int]
) -> None:
    built = [build(kind, [unit * count for unit, count in texts]) for kind, texts in blocks]
    fitted = fit(message(*built, text=text[0] * text[1]))
    check(fitted)
    assert 0 < length(fitted["text"]) <= TEXT
