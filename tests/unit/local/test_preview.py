import base64
import hashlib
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.mrkdwn import mrkdwn, slack_date
from local.preview import Message, Version, render

NOON = datetime(2026, 11, 5, 12, tzinfo=UTC)  # a Thursday
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \"'> </style></title>"
    '<javascript:alert(3)|click> <https://a.example/`"onmouseover=alert(4)`|x> &lt;b&gt;'
)
VOID = {"meta", "br", "hr", "use", "rect", "path"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: "list[Element | str]" = field(default_factory=list)

    def all(self, tag: str | None = None, css: str | None = None) -> "list[Element]":
        found = []
        for child in self.children:
            if isinstance(child, Element):
                classes = (child.attributes.get("class") or "").split()
                if tag in {None, child.tag} and (css is None or css in classes):
                    found.append(child)
                found += child.all(tag, css)
        return found

    def one(self, tag: str | None = None, css: str | None = None) -> "Element":
        (found,) = self.all(tag, css)
        return found

    @property
    def text(self) -> str:
        parts = [c if isinstance(c, str) else c.text for c in self.children]
        return " ".join("".join(parts).split())


class TreeBuilder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("root")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(html: str) -> Element:
    builder = TreeBuilder()
    builder.feed(html)
    builder.close()
    assert len(builder.open) == 1, "an element was left open"
    return builder.open[0]


def message(
    *payloads: dict[str, Any],
    ts: str = "1.1",
    at: str = "2026-11-05T08:00:00Z",
    channel: str = "C1",
) -> Message:
    hours = range(8, 8 + len(payloads))
    versions = [
        {"at": f"2026-11-05T{hour:02}:00:00Z" if index else at, "payload": payload}
        for index, (hour, payload) in enumerate(zip(hours, payloads, strict=True))
    ]
    return {"channel": channel, "ts": ts, "posted_at": at, "versions": versions}  # type: ignore[typeddict-item]


@pytest.fixture
def page(tmp_path: Path) -> Any:
    def show(*messages: Message, title: str = "a day", **channels: str) -> Element:
        named = channels or {"C1": "gpu-research"}
        out = render(messages, named, title, tmp_path / "made" / "page.html")
        return parse(out.read_text(encoding="utf-8"))

    return show


def blocks(*items: dict[str, Any]) -> dict[str, Any]:
    return {"text": "fallback", "blocks": list(items)}


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("*bold* and _slanted_ and ~gone~", "<strong>bold</strong> and <em>slanted</em> and <s>gone</s>"),
        ("*_both_*", "<strong><em>both</em></strong>"),
        ("2 * 3 * 4, snake_case_name, a*b*c", "2 * 3 * 4, snake_case_name, a*b*c"),
        ("`*not bold*`", "<code>*not bold*</code>"),
        ("```a\n*b*```", "<pre>a\n*b*</pre>"),
        ("one\ntwo", "one<br>two"),
        ("> said\n> twice\nand so", "<blockquote>said<br>twice</blockquote>and so"),
        ("&gt; said", "<blockquote>said</blockquote>"),
        ("R&amp;D &lt;ml&gt; &amp;lt;", "R&amp;D &lt;ml&gt; &amp;lt;"),
        ("<https://a.example/x?y=1&amp;z=2|the *page*>",
         '<a href="https://a.example/x?y=1&amp;z=2" rel="noreferrer">the <strong>page</strong></a>'),
        ("see https://a.example/b_c_d.", 'see <a href="https://a.example/b_c_d" rel="noreferrer">https://a.example/b_c_d</a>.'),
        ("<@U07>", '<span class="mention">@U07</span>'),
        ("<!subteam^S1|@ops>", '<span class="mention">@ops</span>'),
        ("<#C1>", '<span class="mention">#gpu-research</span>'),
        ("<!here>", '<span class="mention loud">@here</span>'),
        (":warning: :no_such_thing: 10:30:45", '<span class="emoji">⚠️</span> :no_such_thing: 10:30:45'),
        ("<unknown>", "&lt;unknown&gt;"),
    ],
)  # fmt: skip
def test_mrkdwn_reads_as_slack_documents_it(text: str, html: str) -> None:
    assert mrkdwn(text, NOON, {"C1": "gpu-research"}) == html


def test_a_text_cannot_name_a_piece_that_was_set_aside() -> None:
    # Pieces are set aside as NUL, number, NUL: the same three characters from outside are text.
    assert mrkdwn("`a` \0" + "0\0", NOON, {}) == "<code>a</code> 0"


SAFE = {"strong", "em", "s", "code", "pre", "blockquote", "br", "a", "span", "time"}


@given(st.text(alphabet=st.sampled_from("<>&|!@#^*_~`:;/\\\"' \n\0ab1{}") | st.characters()))
def test_no_text_makes_markup_that_mrkdwn_does_not_have(text: str) -> None:
    tree = parse(mrkdwn(text, NOON, {}))
    for element in tree.all():
        assert element.tag in SAFE
        assert set(element.attributes) <= {"href", "rel", "class"}
        assert re.match(
            r"(https?://|mailto:)", element.attributes.get("href") or "https://", re.IGNORECASE
        )


@given(st.text(alphabet=st.characters(categories=["Lu", "Ll", "Nd"]), min_size=1))
def test_words_without_markup_are_shown_as_they_are(text: str) -> None:
    assert mrkdwn(text, NOON, {}) == text


@pytest.mark.parametrize(
    "place", ["https://a.example/`x`", "https://a.example/<https://b.example>"]
)
def test_no_markup_gets_into_a_link_target(place: str) -> None:
    # Code and inner links are set aside before links are read: one in a target must not become
    # markup inside an attribute.
    for element in parse(mrkdwn(f"<{place}|x>", NOON, {})).all("a"):
        assert set(element.attributes) == {"href", "rel"}
        assert "<" not in (element.attributes["href"] or "")


# 1793880000 is 2026-11-05 12:00 UTC (date -u -d @1793880000), a Thursday.
@pytest.mark.parametrize(
    ("seconds", "template", "shown"),
    [
        (1793880000, "{date_short_pretty} at {time}", "Today at 12:00"),
        (1793880000 - 86400, "since {date_short_pretty} {time}", "Since yesterday 12:00"),
        (1793880000 + 86400, "{date_pretty}", "Tomorrow"),
        (1793880000 - 2 * 86400, "{date_short_pretty} {time_secs}", "Nov 3 12:00:00"),
        (1793880000 - 4 * 86400, "{date}", "November 1st"),
        (1793880000 - 3 * 86400, "{date}", "November 2nd"),
        (1793880000 - 2 * 86400, "{date}", "November 3rd"),
        (1793880000 + 6 * 86400, "{date_long}", "Wednesday, November 11th"),
        (1793880000 - 365 * 86400, "{date_short}", "Nov 5, 2025"),
        (1793880000, "{date_num} {nonsense}", "2026-11-05 {nonsense}"),
        ("soon", "{time}", "at noon"),
        (10**20, "{time}", "at noon"),
    ],
)
def test_a_date_reads_as_slack_shows_it_on_the_day_of_posting(
    seconds: object, template: str, shown: str
) -> None:
    assert slack_date(seconds, template, "at noon", NOON) == shown


@pytest.mark.parametrize("broken", ["<!date^1>", "<!date^1^{time}>", "<!date>", "<!date^^^|x>"])
def test_a_broken_date_shows_something_and_fails_nothing(broken: str) -> None:
    parse(mrkdwn(broken, NOON, {}))


def test_a_page_asks_nothing_of_the_network(page: Any, tmp_path: Path) -> None:
    page(
        message(
            blocks({"type": "image", "alt_text": "chart", "image_url": "https://a.example/x.png"})
        )
    )
    html = (tmp_path / "made" / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"\bsrc=|<link|<img|<iframe|@import|url\(|fetch\(|XMLHttpRequest", html)
    assert "a.example" not in html


def test_the_policy_admits_the_pages_own_script_only(page: Any) -> None:
    tree = page(message({"text": HOSTILE}))
    (script,) = (c for c in tree.one("script").children if isinstance(c, str))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = (m for m in tree.all("meta") if m.attributes.get("http-equiv"))
    content = policy.attributes["content"] or ""
    assert content.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}';" in content


@pytest.mark.parametrize(
    "payload",
    [
        {"text": HOSTILE},
        blocks(section(HOSTILE)),
        blocks({"type": "header", "text": {"type": "plain_text", "text": HOSTILE}}),
        blocks({"type": "section", "fields": [{"type": "mrkdwn", "text": HOSTILE}]}),
        blocks({"type": "context", "elements": [{"type": "plain_text", "text": HOSTILE}]}),
        blocks({"type": "actions", "elements": [{"type": "button", "style": HOSTILE, "url": HOSTILE,
                                                 "text": {"type": "plain_text", "text": HOSTILE}}]}),
        blocks({"type": "image", "alt_text": HOSTILE}),
        blocks({"type": "table", "rows": [[{"type": "raw_text", "text": HOSTILE}]],
                "column_settings": [{"align": HOSTILE}]}),
        blocks({"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [
            {"type": "text", "text": HOSTILE}, {"type": "link", "url": HOSTILE, "text": HOSTILE},
            {"type": "link", "url": "javascript:alert(1)"}]}]}),
        blocks({"type": "data_visualization", "title": HOSTILE, "chart": {
            "type": "bar", "series": [{"name": HOSTILE, "data": [{"label": HOSTILE, "value": 3}]}],
            "axis_config": {"categories": [HOSTILE], "y_label": HOSTILE}}}),
        blocks({"type": HOSTILE}),
        {"text": "x", "attachments": [{"color": "red;background:url(x)", "text": HOSTILE}]},
    ],
)  # fmt: skip
def test_hostile_text_stays_text_wherever_it_stands(page: Any, payload: dict[str, Any]) -> None:
    tree = page(message(payload, payload), title=HOSTILE, C1=HOSTILE)
    assert len(tree.all("script")) == 1  # the page's own
    assert not tree.all("img")
    for element in tree.all():
        assert not [name for name in element.attributes if name.startswith("on")]
        assert not (element.attributes.get("href") or "").lower().startswith("javascript")
        assert element.attributes.get("style") in {None, "--bar: #8d8d8d", "position: absolute"}
    assert "<script>alert(1)</script>" in tree.one("main").text  # readable, as written


def test_messages_stand_by_channel_in_order_of_posting(page: Any) -> None:
    tree = page(
        message({"text": "second"}, ts="10.0", at="2026-11-05T09:00:00Z"),
        message({"text": "elsewhere"}, ts="3.0", at="2026-11-04T10:00:00Z", channel="C2"),
        message({"text": "first"}, ts="9.0", at="2026-11-05T08:00:00Z"),
        C1="gpu-research",
        C2="gpu-platform",
    )
    assert [link.text for link in tree.one("nav").all("a")] == ["#gpu-platform1", "#gpu-research2"]
    assert [body.text for body in tree.all(css="body")] == ["elsewhere", "first", "second"]
    assert [day.text for day in tree.all(css="day")] == [
        "Wednesday, November 4th, 2026",
        "Thursday, November 5th, 2026",
    ]


def test_a_channel_without_a_name_is_shown_by_its_id(page: Any) -> None:
    tree = page(message({"text": "x"}, channel="C9"))
    assert tree.one("nav").one("b").text == "C9"


def test_replies_stand_under_their_parent_and_an_orphan_by_itself(page: Any) -> None:
    tree = page(
        message({"text": "parent"}, ts="1.0", at="2026-11-05T08:00:00Z"),
        message({"text": "later"}, ts="2.0", at="2026-11-05T08:01:00Z"),
        message({"text": "reply", "thread_ts": "1.0"}, ts="3.0", at="2026-11-05T08:02:00Z"),
        message({"text": "orphan", "thread_ts": "0.5"}, ts="4.0", at="2026-11-05T08:03:00Z"),
    )
    assert [body.text for body in tree.all(css="body")] == ["parent", "reply", "later", "orphan"]
    assert tree.one(css="thread").one(css="body").text == "reply"
    assert len(tree.all(css="phone")) == 3  # a reply alone rings no phone


def test_an_edited_message_shows_its_newest_version_and_what_changed(page: Any) -> None:
    tree = page(
        message(
            {"text": "8 idle, $70", "blocks": [section("*Cost* $70 so far")]},
            {"text": "8 idle, $140", "blocks": [section("*Cost* $140 so far")]},
            {"text": "fixed", "blocks": [section("*Cost* $140 so far"), section("Resolved")]},
        )
    )
    assert tree.one(css="body").text == "Cost $140 so farResolved"
    assert tree.one(css="edited").text == "(edited)"
    posted, first, second = tree.one("details").all("section", "step")
    assert posted.one(css="version").text == "Cost $70 so far"
    assert "08:00" in posted.one("header").text
    assert [d.text for d in first.all("del")] == ["$70"]
    assert [i.text for i in first.all("ins")] == ["$140"]
    assert "09:00" in first.one("header").text
    assert [i.text for i in second.all("ins")] == ["Resolved"]
    assert not second.all("del")
    # An edit rings no phone: the notification is that of the post.
    assert tree.one(css="phone").one(css="line").text == "GPU Steward: 8 idle, $70"


def test_an_edit_is_told_line_by_line(page: Any) -> None:
    before, after = (
        section("GPUs\nGPU-1 3.0 h\nGPU-2 1.0 h"),
        section("GPUs\nGPU-1 3.4 h\nGPU-2 1.0 h"),
    )
    steps = page(
        message(
            {"text": "a", "blocks": [before, section("To do")]}, {"text": "b", "blocks": [after]}
        )
    ).all("section", "step")
    assert [d.text for d in steps[1].all("del")] == ["3.0", "To do"]
    assert [i.text for i in steps[1].all("ins")] == ["3.4"]


def test_an_edit_that_nobody_sees_says_so(page: Any) -> None:
    same = [section("as before")]
    tree = page(message({"text": "a", "blocks": same}, {"text": "b", "blocks": same}))
    assert tree.one(css="changes").text == "Nothing that a reader sees."


def test_an_unedited_message_has_no_history(page: Any) -> None:
    tree = page(message({"text": "x"}))
    assert not tree.all("details")
    assert not tree.all(css="edited")


def test_a_message_without_blocks_shows_its_text(page: Any) -> None:
    assert page(message({"text": "*plain*"})).one(css="body").one("strong").text == "plain"


def test_a_message_with_blocks_does_not_show_its_text_twice(page: Any) -> None:
    assert page(message(blocks(section("the card")))).one(css="body").text == "the card"


def test_blocks_sent_as_json_text_are_shown_too(page: Any) -> None:
    payload = {"text": "x", "blocks": '[{"type": "divider"}]'}
    assert len(page(message(payload)).one(css="body").all("hr")) == 1


def test_every_block_is_drawn_as_its_kind(page: Any) -> None:
    cell = {"type": "raw_text", "text": "14"}
    button = {"type": "button", "text": {"type": "plain_text", "text": "Acknowledge"}}
    body = page(
        message(
            blocks(
                {"type": "header", "text": {"type": "plain_text", "text": "8 GPUs *idle*"}},
                {"type": "section", "fields": [{"type": "mrkdwn", "text": x} for x in "ab"]},
                {"type": "divider"},
                {"type": "context", "elements": [{"type": "mrkdwn", "text": "_small_"}]},
                {"type": "actions", "elements": [button | {"style": "primary"}, button]},
                {
                    "type": "table",
                    "rows": [[cell], [cell]],
                    "column_settings": [{"align": "right"}],
                },
                {"type": "image", "alt_text": "a chart"},
                {"type": "hologram"},
            )
        )
    ).one(css="body")
    assert body.one("h3").text == "8 GPUs *idle*"  # plain_text knows no mrkdwn
    assert [f.text for f in body.one(css="fields").all("div")] == ["a", "b"]
    assert len(body.all("hr")) == 1
    assert body.one(css="context").one("em").text == "small"
    assert [(b.attributes["class"] or "").split() for b in body.all("button")] == [
        ["button", "primary"],
        ["button"],
    ]
    assert [len(body.all("th")), len(body.all("td", "right"))] == [1, 1]
    assert body.one(css="alt").text == "a chart"
    assert "hologram" in body.one(css="unshown").text


def test_a_chart_draws_every_point_to_scale(page: Any) -> None:
    chart = {
        "type": "bar",
        "series": [
            {"name": "idle", "data": [{"label": x, "value": v} for x, v in (("a", 5), ("b", 10))]}
        ],
        "axis_config": {"categories": ["a", "b"]},
    }
    body = page(message(blocks({"type": "data_visualization", "title": "Idle", "chart": chart})))
    heights = [float(r.attributes["height"] or 0) for r in body.one(css="plot").all("rect")]
    assert heights == [70.0, 140.0]  # of 140: half, and the whole, of the largest value


@pytest.mark.parametrize(
    ("colour", "bar"),
    [("good", "#2eb67d"), ("#e01e5a", "#e01e5a"), ("e01e5a", "#e01e5a"), ("mauve", "#8d8d8d")],
)
def test_an_attachment_has_its_colour_bar(page: Any, colour: str, bar: str) -> None:
    payload = {"text": "x", "attachments": [{"color": colour, "blocks": [section("inside")]}]}
    attachment = page(message(payload)).one(css="attachment")
    assert attachment.attributes["style"] == f"--bar: {bar}"
    assert attachment.text == "inside"


def test_a_day_without_messages_says_so(page: Any) -> None:
    assert page().one(css="empty").text == "No message was posted."


def test_a_reply_that_the_channel_sees_says_so(tmp_path: Path) -> None:
    def posted(number: int, **arguments: Any) -> Message:
        at = "2026-11-05T12:00:00Z"
        version = Version(at=at, payload={"text": f"m{number}", **arguments})
        return Message(channel="C1", ts=f"{number}.0", posted_at=at, versions=[version])

    messages = [
        posted(0),
        posted(1, thread_ts="0.0"),
        posted(2, thread_ts="0.0", reply_broadcast=True),
    ]
    page = render(messages, {}, "t", tmp_path / "page.html").read_text()
    assert page.count('class="also"') == 1
