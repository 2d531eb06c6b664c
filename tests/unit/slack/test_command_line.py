"""What is typed after /gpu, and what it is taken for."""

import pytest

from steward.slack.command_line import USAGES, Asked, Misunderstood, parse
from steward.slack.text import escape


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("", Asked(name="help")),
        ("  ", Asked(name="help")),
        ("STATUS", Asked(name="status")),
        ("why Job/ml/rerank", Asked(name="why", words=("Job/ml/rerank",))),
        ("idle", Asked(name="idle")),
        ("idle research in ml-2", Asked(name="idle", words=("research",), cluster="ml-2")),
        ("status in ml-2", Asked(name="status", cluster="ml-2")),
        ("snooze 3f9a2c1b0d 4h", Asked(name="snooze", words=("3f9a2c1b0d", "4h"))),
        ("ack `3f9a2c1b0d`", Asked(name="ack", words=("3f9a2c1b0d",))),
        (
            "exempt 3f9a2c1b0d 7d warm pool  in December",
            # The reason is the rest, whatever words it ends with.
            Asked(name="exempt", words=("3f9a2c1b0d", "7d", "warm pool in December")),
        ),
    ],
)
def test_words_become_a_wish(text: str, asked: Asked) -> None:
    assert parse(text) == asked


@pytest.mark.parametrize(
    ("text", "meant"),
    [("statsu", "/gpu status"), ("snoze x", "/gpu snooze"), ("exempts", "/gpu exempt")],
)
def test_what_is_nearly_a_command_names_it(text: str, meant: str) -> None:
    told = parse(text)
    assert isinstance(told, Misunderstood)
    assert meant in told.why


@pytest.mark.parametrize("text", ["why", "team", "ack", "snooze x", "exempt x 7d", "why in c"])
def test_what_lacks_something_shows_how_it_is_typed(text: str) -> None:
    told = parse(text)
    assert isinstance(told, Misunderstood)
    assert escape(USAGES[text.split(maxsplit=1)[0]]) in told.why


def test_what_is_no_command_at_all_is_sent_to_the_list() -> None:
    told = parse("<!channel> dance")
    assert isinstance(told, Misunderstood)
    assert "/gpu help" in told.why
    assert "<" not in told.why
