"""Replay: dead work is worked once more as a new item that names the old one; the old one stays as it is.

Only for work whose every run may be repeated. A completion is idempotent by command, a derivation by the identities of
its events, and a reconciliation only looks; an effect is none of these, so it is never replayed here (PROTOCOL W6).
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
from doonce.work.insert import insert
from doonce.work.items import READ_COLUMNS, lock_items, read_item
from doonce.work.model import TERMINAL, Item, NewItem, State
from doonce.work.tables import work_item

REPLAYABLE: Final = frozenset(family.value for family in (Family.COMPLETION, Family.RECONCILE, Family.EVENT))


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

    One item has one successor, so asking again, also after an unknown commit, changes nothing (PROTOCOL T5). Raises
    `MissingOrDenied` for no item, `Conflict` for one that has not died, is an effect, or whose successor has ended.
    """
    items = yield from lock_items([row.item_id])
    item = items.get(row.item_id)
    if item is None:
        raise MissingOrDenied("there is no such work item")
    _check(item)
    # Whoever makes a successor holds its predecessor's lock, so nobody makes one between this read and the insert.
    rows = yield from fetch(SUCCESSOR, predecessor=item.id)
    if rows:
        return _under_way(read_item(rows[0]), row)
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
                replay_of=item.id,
                predecessor=item.id,
            )
        ]
    )
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
