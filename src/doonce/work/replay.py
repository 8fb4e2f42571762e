"""Replay: dead work is worked once more as a new item that names the old one; the old one stays as it is.

Only for work whose every run may be repeated. A completion is idempotent by command, a derivation by the identities of
its events, an event is taken once by the application's own transaction, and a reconciliation only looks; an effect is
none of these, so it is never replayed here (PROTOCOL W6). The successor takes the dead item's place in its source lane,
and what waits behind it goes on after it.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from doonce.base.errors import Conflict, MissingOrDenied
from doonce.base.records import Record
from doonce.db.schema import IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, fetch
from doonce.ownership.model import Family
from doonce.work import history
from doonce.work import lanes as lane_store
from doonce.work.insert import insert
from doonce.work.items import READ_COLUMNS, lock_items, read_item
from doonce.work.model import TERMINAL, Item, LanePolicy, NewItem, State
from doonce.work.tables import work_item

REPLAYABLE: Final = frozenset(family.value for family in Family) - {Family.EFFECT.value}


def _successor(dialect: Dialect) -> sa.Select[Any]:
    return sa.select(*[work_item.c[name] for name in READ_COLUMNS]).where(
        work_item.c.predecessor == sa.bindparam("predecessor", type_=IDENTITY)
    )


SUCCESSOR = Statement("work.successor", _successor)


class Replay(Record, frozen=True):
    """A dead item, and the id that its successor gets if it has none yet."""

    item_id: str
    successor_id: str


def replay(row: Replay) -> Txn[str]:
    """Make a successor of a dead item, due now; its id, or that of the successor that is already under way.

    One item has one successor, so asking again, also after an unknown commit, changes nothing (PROTOCOL T5). An item
    that has moved to history is replayed like any other. Raises `MissingOrDenied` for no item, `Conflict` for one that
    has not died, is an effect, or whose successor has ended.
    """
    plain = (yield from history.plain_anywhere([row.item_id])).get(row.item_id)
    if plain is None:
        raise MissingOrDenied("there is no such work item")
    lane = plain.source_lane  # an item's lane never changes, and is locked before it (L1)
    held = yield from lane_store.lock([lane])
    item = (yield from lock_items([row.item_id])).get(row.item_id)
    if item is None:  # it has moved, and is held where it is now
        item = yield from history.lock_moved(row.item_id)
    if item is None:
        raise MissingOrDenied("there is no such work item")
    _check(item)
    # Whoever makes a successor holds its predecessor's lock, so nobody makes one between this read and the insert.
    rows = yield from fetch(SUCCESSOR, predecessor=item.id)
    successor = read_item(rows[0]) if rows else (yield from history.moved_successor(item.id))
    if successor is not None:
        return _under_way(successor, row)
    yield from insert(
        [
            NewItem(
                id=row.successor_id,
                family=item.family,
                scope=item.scope,
                subject_kind=item.subject_kind,
                subject_id=item.subject_id,
                view_digest=item.view_digest,
                capability_version=item.capability_version,
                source_lane=lane,
                source_policy=held[lane].policy if lane is not None else LanePolicy.BLOCK,
                source_position=item.source_position,
                replay_of=item.id,
                predecessor=item.id,
            )
        ],
        held,
    )
    yield from lane_store.save(held.values())
    return row.successor_id


def _check(item: Item) -> None:
    if item.family not in REPLAYABLE:
        raise Conflict(
            "an effect is never sent again under its command: its application has been told how that ended",
            hint="emit a new intent; an attempt that nobody knows the outcome of is for `doonce resolve`",
        )
    if item.state is not State.DEAD:
        raise Conflict(f"this work is {item.state.value}, and only dead work is replayed")


def _under_way(successor: Item, row: Replay) -> str:
    if successor.state in TERMINAL and successor.id != row.successor_id:
        raise Conflict(
            f"this work was replayed as {successor.id}, which is {successor.state.value}",
            hint="replay that one" if successor.state is State.DEAD else "there is nothing left to do",
        )
    return successor.id
