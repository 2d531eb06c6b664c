"""One suite for the stores of the state table: over moto's DynamoDB, and over a twin."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from local.twins import InMemoryRows
from steward import codec
from steward.alerts.model import (
    AlertState,
    Attempt,
    Card,
    CardKind,
    Posted,
    ReconcilerState,
    Waiver,
)
from steward.cluster.findings import Resolution
from steward.cluster.planning import Planned
from steward.errors import PermanentError
from steward.ports import AlertStore, PlanStore
from steward.stores.dynamo import DynamoRows
from steward.stores.state import ROW_LIMIT, Alerts, Plan, Row, RowKey, Rows
from tests.contract.stores import EMPTY, LATER, NOON, a_card, a_state, an_alert, dynamo


@pytest.fixture(params=["aws", "twin"])
def rows(request: pytest.FixtureRequest) -> Rows:
    if request.param == "twin":
        return InMemoryRows()
    return dynamo(request.getfixturevalue("aws"))


# --- the plan ------------------------------------------------------------------------------------


def test_a_cluster_that_was_never_planned_has_no_time(rows: Rows) -> None:
    store: PlanStore = Plan(rows)

    assert store.last("ml") == Planned()


def test_the_plan_remembers_the_last_time_of_each_cluster(rows: Rows) -> None:
    store: PlanStore = Plan(rows)
    store.mark("ml", Planned(snapshot=NOON))
    store.mark("other", Planned(snapshot=NOON, audit=NOON))

    store.mark("ml", Planned(snapshot=LATER, audit=NOON))

    assert store.last("ml") == Planned(snapshot=LATER, audit=NOON)
    assert store.last("other") == Planned(snapshot=NOON, audit=NOON)


# --- alerts and cards ----------------------------------------------------------------------------


def test_a_cluster_without_rows_has_an_empty_state(rows: Rows) -> None:
    store: AlertStore = Alerts(rows)

    assert store.load("ml") == ReconcilerState(cluster="ml")


def test_a_state_comes_back_as_it_was_saved(rows: Rows) -> None:
    store: AlertStore = Alerts(rows)
    attempt = Attempt(cluster="ml", card="c", channel="C1", revision="r1", id="a1", at=NOON)
    posted = Posted(channel="C1", ts="1793620800.000100")
    card = copy.replace(a_card("c"), intent=attempt, posted=posted, delivered="r0")
    state = a_state([an_alert("Job/a/one"), an_alert("Job/a/two")], [card, a_card("d")])

    store.save(EMPTY, state)

    assert store.load("ml") == state


def test_an_exemption_comes_back_and_goes_with_its_end(rows: Rows) -> None:
    store = Alerts(rows)
    waiver = Waiver(
        id="1.1-exempt-U1",
        group="job|Job/a/one",
        detectors=("idle_gpus",),
        reason="warm pool",
        user="U1",
        name="ana",
        at=NOON,
        until=LATER,
    )
    exempt = copy.replace(a_state(), waivers={waiver.id: waiver})
    store.save(EMPTY, exempt)
    assert store.load("ml") == exempt

    store.save(exempt, a_state(at=LATER))

    assert store.load("ml") == a_state(at=LATER)


def test_what_stands_beside_a_card_is_written_before_it() -> None:
    # Else a crash between would lose the word of a change: the card would already show it.
    rows = CountingRows()
    note = copy.replace(a_card("c#reopened"), kind=CardKind.NOTE, parent="c")

    Alerts(rows).save(EMPTY, a_state(cards=[a_card("c"), note]))

    bodies = [row.body for row in rows.written]
    assert ['"kind":"note"' in body for body in bodies] == [True, False, False]


def test_clusters_and_their_plans_do_not_mix(rows: Rows) -> None:
    store = Alerts(rows)
    store.save(EMPTY, a_state([an_alert("Job/a/one")]))
    Plan(rows).mark("ml", Planned(snapshot=NOON))

    assert store.load("ml-2") == ReconcilerState(cluster="ml-2")
    assert store.load("ml") == a_state([an_alert("Job/a/one")])


def test_what_disappeared_is_deleted(rows: Rows) -> None:
    store = Alerts(rows)
    before = a_state([an_alert("Job/a/one"), an_alert("Job/a/two")], [a_card("c"), a_card("d")])
    store.save(EMPTY, before)
    after = a_state([an_alert("Job/a/two")], [a_card("d")], at=LATER)

    store.save(before, after)

    assert store.load("ml") == after
    assert len(rows.query("cluster#ml")) == 3  # an alert, a card and the head


def test_the_second_of_two_saves_of_one_alert_stands(rows: Rows) -> None:
    # One writer a cluster is the queue's promise; were there two, neither may be half-written.
    store = Alerts(rows)
    first, second = an_alert("Job/a/one", {"n": 1}), an_alert("Job/a/one", {"n": 2})
    store.save(EMPTY, a_state([first]))

    store.save(EMPTY, a_state([second], at=LATER))

    assert store.load("ml") == a_state([second], at=LATER)


def test_a_saved_card_replaces_that_card_alone(rows: Rows) -> None:
    store: AlertStore = Alerts(rows)
    store.save(EMPTY, a_state([an_alert("Job/a/one")], [a_card("c"), a_card("d")]))
    delivered = copy.replace(a_card("c"), delivered="r1", delivered_at=NOON)

    store.save_card("ml", delivered)

    assert store.load("ml") == a_state([an_alert("Job/a/one")], [delivered, a_card("d")])


def test_only_differences_are_written() -> None:
    rows = CountingRows()
    store = Alerts(rows)
    before = a_state([an_alert("Job/a/one"), an_alert("Job/a/two")], [a_card("c")])
    store.save(EMPTY, before)
    rows.written.clear()
    changed = copy.replace(an_alert("Job/a/two"), last_seen=LATER)

    store.save(before, a_state([an_alert("Job/a/one"), changed], [a_card("c")], at=LATER))

    alert, head = rows.written  # one alert changed and time went on: nothing else is paid for
    assert '"last_seen":"2026-11-02T12:05:00Z"' in alert.body
    assert head.key == RowKey("cluster#ml", "head")


def test_an_unchanged_state_costs_no_write() -> None:
    rows = CountingRows()
    state = a_state([an_alert("Job/a/one")], [a_card("c")])

    Alerts(rows).save(state, state)

    assert rows.written == []


class CountingRows(InMemoryRows):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[Row] = []

    def put(self, row: Row) -> None:
        self.written.append(row)
        super().put(row)


def test_more_than_a_hundred_alerts_come_back(rows: Rows) -> None:
    # More than four batches of 25 writes.
    state = a_state([an_alert(f"Job/a/{n}") for n in range(110)], [a_card("c")])

    Alerts(rows).save(EMPTY, state)

    assert Alerts(rows).load("ml") == state


def test_a_state_of_more_than_a_megabyte_comes_back(rows: Rows) -> None:
    # 8 rows of 200,000 bytes: DynamoDB answers at most 1 MB a page, so one page cannot hold them.
    evidence = {"text": "x" * 200_000}
    state = a_state([an_alert(f"Job/a/{n}", evidence) for n in range(8)])
    Alerts(rows).save(EMPTY, state)

    with queries(rows) as pages:
        assert Alerts(rows).load("ml") == state

    assert isinstance(rows, InMemoryRows) or len(pages) >= 2
    # An eventually consistent page may show an alert as it was before the last run.
    assert all(page["ConsistentRead"] for page in pages)


@contextmanager
def queries(rows: Rows) -> Iterator[list[dict[str, Any]]]:
    seen: list[dict[str, Any]] = []
    if isinstance(rows, DynamoRows):
        rows._client.meta.events.register(
            "before-parameter-build.dynamodb.Query", lambda params, **_: seen.append(params)
        )
    yield seen


def test_an_alert_over_the_item_limit_is_refused_before_anything_is_written(rows: Rows) -> None:
    large = an_alert("Job/a/large", {"text": "x" * ROW_LIMIT})

    with pytest.raises(PermanentError) as refused:
        Alerts(rows).save(EMPTY, a_state([an_alert("Job/a/one"), large]))

    assert "idle_gpus|Job/a/large|idle" in str(refused.value)
    assert "400000" in str(refused.value)  # 400 KB, DynamoDB's limit for an item
    assert Alerts(rows).load("ml") == ReconcilerState(cluster="ml")


def test_a_row_of_exactly_the_item_limit_is_taken(rows: Rows) -> None:
    # Else the limit above would promise more than the table takes.
    key = RowKey("cluster#ml", "alert#x")
    bare = Row(key=key, schema=1, body="", expires_at=1796083200)
    row = copy.replace(bare, body="é" * ((ROW_LIMIT - bare.size) // 2))  # 2 bytes in UTF-8
    assert row.size in {ROW_LIMIT, ROW_LIMIT - 1}

    rows.put(row)

    assert rows.get(key) == row


def test_what_has_ended_expires_thirty_days_later(rows: Rows) -> None:
    resolved = copy.replace(
        an_alert("Job/a/resolved"),
        state=AlertState.RESOLVED,
        resolved=NOON,
        resolution=Resolution.RELEASED,
    )
    shown = copy.replace(a_card("shown"), closed=True, delivered="r1", delivered_at=NOON)

    Alerts(rows).save(EMPTY, a_state([an_alert("Job/a/open"), resolved], [shown, a_card("c")]))

    # 2026-11-02T12:00Z + 30 d = 2026-12-02T12:00Z = 1796212800 (date -u -d 2026-12-02T12:00Z +%s).
    ends = {row.body: row.expires_at for row in rows.query("cluster#ml")}
    assert {body for body, end in ends.items() if end == 1796212800} == {
        codec.dump(resolved).decode(),
        codec.dump(shown).decode(),
    }
    assert set(ends.values()) == {None, 1796212800}


SHOWN = copy.replace(a_card("c"), closed=True, delivered="r1", delivered_at=NOON)
TRYING = Attempt(cluster="ml", card="c", channel="C1", revision="r1", id="a1", at=NOON)


@pytest.mark.parametrize(
    "card",
    [
        copy.replace(SHOWN, closed=False),
        copy.replace(SHOWN, desired="r2"),  # Slack does not show the end yet
        copy.replace(SHOWN, intent=TRYING),  # whether it does is not known
    ],
)
def test_a_card_with_work_left_does_not_expire(card: Card, rows: Rows) -> None:
    Alerts(rows).save_card("ml", card)

    assert {row.expires_at for row in rows.query("cluster#ml")} == {None}


def test_a_reopened_alert_does_not_expire(rows: Rows) -> None:
    store = Alerts(rows)
    resolved = copy.replace(an_alert("Job/a/one"), state=AlertState.RESOLVED, resolved=NOON)
    store.save(EMPTY, a_state([resolved]))
    reopened = copy.replace(resolved, state=AlertState.OPEN)  # remembers that it once ended

    store.save(a_state([resolved]), a_state([reopened], at=LATER))

    assert {row.expires_at for row in rows.query("cluster#ml")} == {None}


def test_a_row_of_another_schema_is_refused(rows: Rows) -> None:
    rows.put(Row(key=RowKey("cluster#ml", "head"), schema=2, body="{}"))

    with pytest.raises(PermanentError, match=r"cluster#ml, head: has schema 2, .* reads schema 1"):
        Alerts(rows).load("ml")


def test_a_row_of_an_unknown_kind_is_refused(rows: Rows) -> None:
    # To leave it out would be to decide without what a newer version thought worth keeping.
    rows.put(Row(key=RowKey("cluster#ml", "silence#1"), schema=1, body="{}"))

    with pytest.raises(PermanentError, match="cluster#ml, silence#1: no row that this version"):
        Alerts(rows).load("ml")
