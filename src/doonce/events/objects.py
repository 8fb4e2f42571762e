"""Whole objects, as they were read for events: one for an event at most, sealed, never changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from doonce.base.keys import frame
from doonce.base.records import Record
from doonce.db.schema import IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, fetch, insert_many
from doonce.events.tables import event_object
from doonce.ingress.receipts import Sealed
from doonce.ingress.rewrapping import shelf

COLUMNS = tuple(column.name for column in event_object.c)


def _load(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(event_object).where(
        event_object.c.event_id.in_(sa.select(ids.c.id).select_from(ids.source))
    )


LOAD = Statement("events.load_objects", _load)


class ObjectRead(Record, frozen=True):
    """The object that an event is about, as the provider had it at `read_at`; `sealed` is None where it had none."""

    event_id: str
    attempt_id: str
    sealed: Sealed | None
    read_at: int


def object_place(event_id: str) -> str:
    """What an event's object is sealed for."""
    return frame("event_object", event_id)


OBJECTS = shelf(event_object, "event_id", object_place)


def insert(objects: Sequence[ObjectRead]) -> Txn[None]:
    """Keep what was read, within the transaction that ends the reading."""
    yield from insert_many(event_object, COLUMNS, [_row(one) for one in objects])


def _row(read: ObjectRead) -> tuple[Any, ...]:
    sealed = read.sealed
    if sealed is None:
        return (read.event_id, read.attempt_id, None, "", read.read_at)
    return (read.event_id, read.attempt_id, sealed.raw, sealed.key_id, read.read_at)


def load(event_ids: Iterable[str]) -> Txn[dict[str, ObjectRead]]:
    """What was read for these events; absent where nothing was. It never changes, so a plain read is enough."""
    wanted = sorted(set(event_ids))
    rows = (yield from fetch(LOAD, ids=[(event_id,) for event_id in wanted])) if wanted else []
    return {
        row["event_id"]: ObjectRead(
            event_id=row["event_id"],
            attempt_id=row["attempt_id"],
            sealed=None if row["sealed"] is None else Sealed(bytes(row["sealed"]), row["key_id"]),
            read_at=row["read_at"],
        )
        for row in rows
    }
