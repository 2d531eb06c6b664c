"""What the state table remembers: the plan, and the alerts and cards of each cluster.

Partition `cluster#<name>` holds `alert#<digest>`, `card#<digest>` (cards and what stands beside
them), `waiver#<digest>` and `head` (the evaluation that was folded last); partition `plan#<name>`
holds `snapshot`. Each store stands on `Rows`, which says only how rows are kept: DynamoDB in Lambda,
a dictionary in the local rig.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

import msgspec

from steward import codec
from steward.alerts.model import (
    KEPT,
    Alert,
    AlertState,
    Card,
    CardKind,
    ReconcilerState,
    Waiver,
)
from steward.cluster.planning import Known, Planned
from steward.errors import PermanentError
from steward.stores.stored import check_schema, encode

SCHEMA = 1
"""Version of the rows."""

ROW_LIMIT = 400_000
"""Most bytes of a row, names included: DynamoDB's 400 KB for an item, read as the smaller number."""


class RowKey(NamedTuple):
    """Partition and sort key."""

    partition: str
    sort: str


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row; `expires_at` (epoch seconds) is when the table may forget it."""

    key: RowKey
    schema: int
    body: str
    expires_at: int | None = None

    @property
    def size(self) -> int:
        """Bytes as DynamoDB counts them: UTF-8 names and values, a number at its largest."""
        texts = ("pk", "sk", "body", "schema", "expires_at", *self.key, self.body)
        return sum(len(text.encode()) for text in texts) + 2 * 21


class Rows(Protocol):
    """Rows under two-part keys; a read sees every finished write.

    Raises
    ------
    DeniedError, RetryableError, PermanentError
        The call was refused, may succeed later, or stays wrong: see :mod:`steward.aws_errors`.
    """

    def where(self, key: RowKey) -> str:
        """Name a row for people."""
        ...

    def query(self, partition: str) -> list[Row]:
        """Return all rows of a partition."""
        ...

    def get(self, key: RowKey) -> Row | None:
        """Return a row; None where there is none."""
        ...

    def put(self, row: Row) -> None:
        """Write a row, whatever stood there."""
        ...

    def write(self, puts: Sequence[Row], deletes: Sequence[RowKey]) -> None:
        """Write rows, then delete rows; may stop half-way, and may be repeated."""
        ...


class Alerts:
    """Alerts and cards of a cluster."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def load(self, cluster: str) -> ReconcilerState:
        """Load everything the reconciler knows of the cluster.

        Raises
        ------
        PermanentError
            A row is of another schema, or is none that this version knows.
        """
        at: datetime | None = None
        alerts: dict[str, Alert] = {}
        cards: dict[str, Card] = {}
        waivers: dict[str, Waiver] = {}
        for row in self._rows.query(_partition(cluster)):
            where = self._rows.where(row.key)
            kind = row.key.sort.partition("#")[0]
            if kind == "head":
                at = _read(_Moment, row, where).at
            elif kind == "alert":
                alert = _read(Alert, row, where)
                alerts[alert.key] = alert
            elif kind == "card":
                card = _read(Card, row, where)
                cards[card.key] = card
            elif kind == "waiver":
                waiver = _read(Waiver, row, where)
                waivers[waiver.id] = waiver
            else:
                raise PermanentError(
                    f"{where}: no row that this version knows; deploy the version that wrote it"
                )
        return ReconcilerState(cluster=cluster, at=at, alerts=alerts, cards=cards, waivers=waivers)

    def save(self, before: ReconcilerState, after: ReconcilerState) -> None:
        """Write what differs: alerts and what stands beside cards, then the cards, the head last.

        A crash between leaves the older head, so that the same evaluation is folded once more. The
        older cards with it: what was about to be said of their change is there, under its own
        name, and is not said again.

        Raises
        ------
        PermanentError
            A row would be too large; then nothing was written.
        """
        cluster = after.cluster
        puts = [
            self._waiver_row(cluster, waiver)
            for key, waiver in after.waivers.items()
            if key not in before.waivers
        ]
        puts += [
            self._alert_row(cluster, alert)
            for key, alert in after.alerts.items()
            if before.alerts.get(key) != alert
        ]
        changed = [card for key, card in after.cards.items() if before.cards.get(key) != card]
        puts += [self._card_row(cluster, c) for c in changed if c.kind is not CardKind.CARD]
        cards = [self._card_row(cluster, c) for c in changed if c.kind is CardKind.CARD]
        deletes = [_alert_key(cluster, key) for key in before.alerts.keys() - after.alerts.keys()]
        deletes += [_card_key(cluster, key) for key in before.cards.keys() - after.cards.keys()]
        gone = before.waivers.keys() - after.waivers.keys()
        deletes += [_waiver_key(cluster, key) for key in gone]
        if puts:
            self._rows.write(puts, ())
        if cards or deletes:
            self._rows.write(cards, sorted(deletes))
        if before.at != after.at:
            head = RowKey(_partition(cluster), "head")
            self._rows.put(_moment_row(self._rows, head, after.at))

    def save_card(self, cluster: str, card: Card) -> None:
        """Write one card (its intent, or what was delivered)."""
        self._rows.put(self._card_row(cluster, card))

    def _alert_row(self, cluster: str, alert: Alert) -> Row:
        resolved = alert.resolved if alert.state is AlertState.RESOLVED else None
        return _row(self._rows, _alert_key(cluster, alert.key), Alert, alert, ended=resolved)

    def _waiver_row(self, cluster: str, waiver: Waiver) -> Row:
        return _row(self._rows, _waiver_key(cluster, waiver.id), Waiver, waiver, ended=waiver.until)

    def _card_row(self, cluster: str, card: Card) -> Row:
        # A closed card that Slack does not yet show as such is still work to do.
        done = card.closed and card.intent is None and card.delivered == card.desired
        ended = card.delivered_at if done else None
        return _row(self._rows, _card_key(cluster, card.key), Card, card, ended=ended)


class Plan:
    """When each cluster's snapshots were last asked for, and which clusters there were at all."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def known(self) -> dict[str, datetime]:
        """Return every cluster that was ever planned and has not left, with when it first was."""
        row = self._rows.get(_KNOWN)
        return _read(Known, row, self._rows.where(row.key)).since if row else {}

    def keep(self, since: dict[str, datetime]) -> None:
        """Remember which clusters there are."""
        self._rows.put(_row(self._rows, _KNOWN, Known, Known(since=since)))

    def evaluated(self, cluster: str) -> datetime | None:
        """Return the time of the evaluation that was folded last; None where none ever was."""
        row = self._rows.get(_head_key(cluster))
        return _read(_Moment, row, self._rows.where(row.key)).at if row else None

    def last(self, cluster: str) -> Planned:
        """Return when snapshots were last asked for."""
        row = self._rows.get(_plan_key(cluster))
        return _read(Planned, row, self._rows.where(row.key)) if row else Planned()

    def mark(self, cluster: str, planned: Planned) -> None:
        """Remember what was asked for."""
        self._rows.put(_row(self._rows, _plan_key(cluster), Planned, planned))


class _Moment(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime | None


def _partition(cluster: str) -> str:
    return f"cluster#{cluster}"


def _alert_key(cluster: str, key: str) -> RowKey:
    return RowKey(_partition(cluster), f"alert#{_digest(key)}")


def _card_key(cluster: str, key: str) -> RowKey:
    return RowKey(_partition(cluster), f"card#{_digest(key)}")


def _waiver_key(cluster: str, key: str) -> RowKey:
    return RowKey(_partition(cluster), f"waiver#{_digest(key)}")


def _head_key(cluster: str) -> RowKey:
    return RowKey(_partition(cluster), "head")


def _plan_key(cluster: str) -> RowKey:
    return RowKey(f"plan#{cluster}", "snapshot")


_KNOWN = RowKey("plan#", "clusters")
"""The one row about all clusters: no cluster is without a name."""


def _digest(key: str) -> str:
    # Subjects are of any length; a sort key is not.
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def _moment_row(rows: Rows, key: RowKey, at: datetime | None) -> Row:
    return _row(rows, key, _Moment, _Moment(at=at))


def _row(
    rows: Rows, key: RowKey, kind: type, value: object, *, ended: datetime | None = None
) -> Row:
    where = rows.where(key)
    body = encode(kind, value, where).decode()
    expires_at = int((ended + KEPT).timestamp()) if ended else None
    row = Row(key=key, schema=SCHEMA, body=body, expires_at=expires_at)
    if row.size > ROW_LIMIT:
        name = getattr(value, "key", key.sort)
        raise PermanentError(
            f"{where} ({name}): {row.size} bytes, but an item takes {ROW_LIMIT}; "
            "shorten the evidence or group it more finely"
        )
    return row


def _read[T](kind: type[T], row: Row, where: str) -> T:
    check_schema(row.schema, SCHEMA, where)
    return codec.load(kind, row.body, where)
