"""Foreign names are harmless, cuts fall between characters, numbers read well."""

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.slack.text import (
    code,
    code_block,
    cut,
    dollars,
    duration,
    escape,
    gpus,
    hours,
    length,
    number,
    percent,
    safe,
    when,
)

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"  # three people joined into one character
SPAIN = "\U0001f1ea\U0001f1f8"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("<!channel>", "&lt;!channel&gt;"),
        ("<@U012345>", "&lt;@U012345&gt;"),
        ("<https://evil.example|kubectl>", "&lt;https://evil.example|kubectl&gt;"),
        ("a&b<c", "a&amp;b&lt;c"),
        ("R&D <ml>", "R&amp;D &lt;ml&gt;"),
        ("équipe-β", "équipe-β"),
        ("研究チーム", "研究チーム"),
        ("a`b```c", "a'b'''c"),
        ("two\nlines\r\n\u2028and\ttabs", "two lines and tabs"),
        ("x" * 63, "x" * 63),
        ("user\u202etxt.exe", "user txt.exe"),  # a direction mark would turn the rest round
        ("broken\ud800", "broken"),  # half a character, which no encoder takes
        ("", "(none)"),
        ("  \n ", "(none)"),
        (None, "(none)"),
    ],
)
def test_a_foreign_name_is_shown_and_nothing_more(name: str | None, written: str) -> None:
    assert safe(name) == written


@given(st.text())
def test_no_foreign_text_can_leave_its_code_span_or_speak_to_slack(name: str) -> None:
    span = code(name)
    assert span.startswith("`")
    assert span.endswith("`")
    assert not re.search(r"[<>`\n\r\x00]", span[1:-1])
    assert re.sub(r"&(amp|lt|gt);", "", span).count("&") == 0
    assert len(span) > 2
    span.encode()


@given(st.text())
def test_no_command_can_leave_its_code_block(command: str) -> None:
    block = code_block(command)
    assert block.count("```") == 2
    assert not re.search(r"[<>\x00\r]", block)


def test_a_command_of_several_lines_stays_one() -> None:
    assert code_block("kubectl get pods\n  -A\n") == "```\nkubectl get pods\n  -A\n```"


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("short", 5, "short"),
        ("too long", 5, "too…"),
        ("ab&amp;cd", 7, "ab…"),  # 5 of &amp; do not fit before the ellipsis: none of it stays
        ("ab&amp;cd", 8, "ab&amp;…"),
        ("abcde\u0301f", 6, "abcd…"),  # the accent belongs to the e
        ("abcde\u0301fgh", 8, "abcde\u0301f…"),
        (f"ab{FAMILY}cd", 9, "ab…"),
        (f"ab{FAMILY}cd", 11, f"ab{FAMILY}…"),
        (f"{SPAIN}{SPAIN}{SPAIN}", 8, f"{SPAIN}…"),
        ("ab<!date^1^{time}|12:00 UTC>cd", 20, "ab…"),
        ("नमस्ते दुनिया", 5, "नम…"),  # स्ते is one character of four
        ("한국어", 2, "한…"),
        ("\u1112\u1161\u11ab\u1100", 3, "…"),  # letters that make one syllable stay together
    ],
)
def test_a_cut_falls_between_characters(text: str, limit: int, kept: str) -> None:
    assert cut(text, limit) == kept


PIECES = st.lists(
    st.sampled_from(["&amp;", "&lt;", "a", "é", "e\u0301", FAMILY, SPAIN, "한", " ", "🙂", "👍🏽"])
).map("".join)


@given(PIECES, st.integers(min_value=1, max_value=60))
def test_a_cut_text_fits_and_breaks_nothing(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert length(short) <= limit
    if length(text) <= limit:
        assert short == text
        return
    body = short.removesuffix("…")
    assert text.startswith(body)
    assert not re.search(r"&(?!amp;|lt;|gt;)", body)
    rest = text[len(body) :].lstrip()
    assert not body.endswith("\u200d")
    assert not rest.startswith(("\u0301", "\u200d", "🏽"))


def test_length_counts_what_takes_two_units_twice() -> None:
    assert (length("abc"), length("a🙂"), length(FAMILY)) == (3, 3, 8)


@given(st.text(alphabet="&<>ab;"))
def test_escaping_can_be_undone(text: str) -> None:
    undone = escape(text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert undone == text


def test_a_time_is_the_readers_with_utc_as_fallback() -> None:
    # 5 November 2026 12:00 UTC is 1,793,880,000 s after the epoch (20,762 days and 12 hours).
    assert (
        when("2026-11-05T12:00:00Z")
        == "<!date^1793880000^{date_short_pretty} {time}|2026-11-05 12:00 UTC>"
    )


@pytest.mark.parametrize(
    ("minutes", "written"),
    [(0, "0 min"), (59, "59 min"), (185, "3 h 05 min"), (2879, "47 h 59 min"), (3120, "2 d 4 h")],
)
def test_a_span_reads_in_its_largest_units(minutes: int, written: str) -> None:
    assert duration(timedelta(minutes=minutes, seconds=30)) == written


def test_numbers_carry_their_unit() -> None:
    assert (gpus(1), gpus(3 / 7), gpus(8.0), gpus(10_000)) == (
        "1 GPU",
        "0.43 GPU",
        "8 GPUs",
        "10,000 GPUs",
    )
    assert (hours(3), hours(1234.56), hours(None)) == (
        "3.0 GPU-h",
        "1,234.6 GPU-h",
        "GPU-hours not known",
    )
    assert (dollars(23.736), dollars(None)) == ("$23.74", "no price, no dollars")
    assert (percent(0.983333), percent(0), number(1200, 0)) == ("98.3 %", "0 %", "1,200")


@pytest.mark.parametrize("value", [-3.0, float("nan"), float("inf")])
def test_a_number_that_cannot_be_is_flagged_not_printed(value: float) -> None:
    for text in (number(value), gpus(value), hours(value), dollars(value)):
        assert "inconsistent data" in text
        assert not re.search(r"\d|nan|inf\b", text)
