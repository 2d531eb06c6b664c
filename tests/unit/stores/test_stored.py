import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steward import codec
from steward.alerts.model import Alert, Card
from steward.cluster.findings import Evaluation, Finding
from steward.cluster.memory import Memory
from steward.cluster.policy import Policy, Severity
from steward.cluster.snapshot import Snapshot
from steward.errors import PermanentError
from steward.stores.stored import decode, encode
from tests.unit.stores.nouns import anything

NOON = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
FINDING = Finding(
    detector="idle_gpus",
    subject="Job/team-a/train",
    reason="idle",
    severity=Severity.WARN,
    team="research",
    since=NOON,
    gpus=8.0,
    gpu_hours=None,
    cost_usd=None,
    action="kubectl -n team-a delete job train",
)


@pytest.mark.parametrize("kind", [Alert, Card, Evaluation, Finding, Memory, Policy, Snapshot])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_noun_survives_its_stored_form(kind: type, data: st.DataObject) -> None:
    # A store that changes what it keeps would make a detector see another world at the next tick.
    noun = data.draw(anything(kind))

    assert codec.load(kind, encode(kind, noun, "here"), "here") == noun


@pytest.mark.parametrize("kind", [Evaluation, Memory, Policy, Snapshot])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_a_noun_of_the_expected_schema_is_read(kind: type, data: st.DataObject) -> None:
    noun = data.draw(anything(kind))

    assert decode(kind, encode(kind, noun, "here"), 1, "here") == noun


def test_an_unknown_schema_is_refused_with_place_versions_and_remedy() -> None:
    # Written by a newer version: reading its fields by today's meaning would be a guess.
    newer = encode(Memory, Memory(cluster="ml", schema=7), "here")

    with pytest.raises(PermanentError) as refused:
        decode(Memory, newer, 1, "s3://b/memory/ml.json")

    text = str(refused.value)
    assert "s3://b/memory/ml.json" in text
    assert "schema 7" in text
    assert "schema 1" in text
    assert "deploy the version that wrote it" in text


def test_a_newer_schema_is_refused_as_such_even_where_its_fields_differ() -> None:
    # The version is read before the noun: else the reader would complain of a missing field.
    with pytest.raises(PermanentError, match="has schema 2, this version reads schema 1"):
        decode(Memory, b'{"schema":2,"name":"renamed"}', 1, "here")


@pytest.mark.parametrize("data", [b'{"cluster":"ml"}', b"", b"[]", b'{"schema":', b"\xff\xfe"])
def test_what_names_no_schema_is_refused(data: bytes) -> None:
    # Memory's own default would fill the version in: nothing stored may rely on that.
    with pytest.raises(PermanentError, match="here: not a stored"):
        decode(Memory, data, 1, "here")


@pytest.mark.parametrize("value", [object(), "\ud800"])
def test_evidence_that_json_cannot_carry_is_refused_at_the_write(value: Any) -> None:
    # An object has no JSON form, and half of a surrogate pair has no UTF-8 form.
    finding = copy.replace(FINDING, evidence={"value": value})

    with pytest.raises(PermanentError, match="here: this Finding cannot be written as JSON"):
        encode(Finding, finding, "here")
