"""Twelve thousand requests at the Function URL: none unsigned is believed, none breaks it."""

import base64
import json
from typing import Any
from urllib.parse import urlencode

from hypothesis import given, settings
from hypothesis import strategies as st

from local.envelopes import from_slack
from tests.builders import NOON
from tests.unit.usecases.test_answer_slack import COMMAND, SECRET, Rig, press, submit

FORMS = [COMMAND, press("acknowledge"), press("snooze"), press("exempt"), submit()]
ANY = st.characters()
"""Half characters too (lone surrogates): JSON can name them, no queue can carry them."""

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(ANY, max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "user", "id", "view", "actions", "action_id", "state", "values"]
            )
            | st.text(max_size=8),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "x-slack-signature",
            "X-Slack-Signature",
            "x-slack-request-timestamp",
            "X-SLACK-REQUEST-TIMESTAMP",
            "content-type",
            "x-slack-retry-num",
        ]
    )
    | st.text(max_size=10),
    st.text(max_size=80)
    | st.just(str(int(NOON.timestamp())))
    | st.just("v0=" + "0" * 64)
    | st.integers()
    | st.none(),
    max_size=6,
)
BODIES = st.text() | st.binary(max_size=200).map(lambda raw: base64.b64encode(raw).decode())


@settings(max_examples=5_000, deadline=None)
@given(
    event=st.fixed_dictionaries(
        {},
        optional={
            "headers": HEADERS | JSON,
            "body": BODIES | JSON,
            "isBase64Encoded": st.booleans() | JSON,
            "requestContext": JSON,
        },
    )
)
def test_nothing_unsigned_is_believed(event: dict[str, Any]) -> None:
    rig = Rig()
    assert rig.answer(event)["statusCode"] == 401
    assert not [*rig.actions, *rig.commands, *rig.opened]


@settings(max_examples=5_000, deadline=None)
@given(
    form=st.sampled_from(FORMS).flatmap(
        lambda form: st.builds(
            lambda name, value: {**form, name: value},
            st.sampled_from([*form, "payload", "command", "text"]),
            st.text() | JSON.map(json.dumps),
        )
    )
    | st.dictionaries(st.text(max_size=10), st.text(max_size=50), max_size=5)
    | JSON.map(lambda value: {"payload": json.dumps(value)})
)
def test_whatever_slack_signs_is_answered(form: dict[str, str]) -> None:
    done = Rig().answer(from_slack(urlencode(form, errors="replace"), SECRET, NOON, "1"))
    assert done["statusCode"] == 200
    assert not done["body"] or json.loads(done["body"])


@settings(max_examples=2_000, deadline=None)
@given(form=st.sampled_from(FORMS), position=st.integers(0), flip=st.integers(1, 255))
def test_one_byte_that_is_another_is_not_what_was_signed(
    form: dict[str, str], position: int, flip: int
) -> None:
    event = from_slack(urlencode(form), SECRET, NOON, "1")
    body = bytearray(base64.b64decode(event["body"]))
    body[position % len(body)] ^= flip
    rig = Rig()
    assert rig.answer({**event, "body": base64.b64encode(body).decode()})["statusCode"] == 401
    assert not [*rig.actions, *rig.commands, *rig.opened]
