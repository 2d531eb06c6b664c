"""What the plan remembers of all clusters: over moto's DynamoDB, and over a twin."""

from datetime import datetime

import pytest

from local.twins import InMemoryRows
from steward.alerts.model import ReconcilerState
from steward.cluster.planning import Planned
from steward.errors import PermanentError
from steward.stores.state import Alerts, Plan, Row, RowKey, Rows
from tests.contract.stores import LATER, NOON, dynamo


@pytest.fixture(params=["aws", "twin"])
def rows(request: pytest.FixtureRequest) -> Rows:
    if request.param == "twin":
        return InMemoryRows()
    return dynamo(request.getfixturevalue("aws"))


def test_before_the_first_tick_no_cluster_is_known(rows: Rows) -> None:
    assert Plan(rows).known() == {}


def test_the_known_clusters_are_those_kept_last(rows: Rows) -> None:
    store = Plan(rows)
    store.keep({"ml": NOON, "other": NOON})
    store.keep({"ml": NOON, "snapshot": LATER, "": LATER})

    assert store.known() == {"ml": NOON, "snapshot": LATER, "": LATER}


def test_no_cluster_s_own_row_is_that_of_all(rows: Rows) -> None:
    store = Plan(rows)
    store.keep({"clusters": NOON})
    store.mark("clusters", Planned(snapshot=LATER))

    assert store.known() == {"clusters": NOON}
    assert store.last("clusters") == Planned(snapshot=LATER)


@pytest.mark.parametrize("at", [NOON, None])
def test_the_time_of_what_was_folded_last_is_the_reconciler_s(
    at: datetime | None, rows: Rows
) -> None:
    Alerts(rows).save(ReconcilerState(cluster="ml"), ReconcilerState(cluster="ml", at=at))

    assert Plan(rows).evaluated("ml") == at
    assert Plan(rows).evaluated("other") is None


def test_a_row_of_another_schema_is_not_guessed_at(rows: Rows) -> None:
    key = RowKey("plan#", "clusters")
    rows.put(Row(key=key, schema=99, body='{"since":{}}'))

    with pytest.raises(PermanentError, match="99"):
        Plan(rows).known()
