"""Looking: which of a worker's scopes have something to do, without asking each of them.

Hints decide only where a claim looks, never what it takes (PROTOCOL W7, T2).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS
from doonce.db.statement import Dialect, DialectName, Statement
from doonce.db.transaction import Row, Txn, fetch
from doonce.work.fairness import Room, Sharing
from doonce.work.floors import Floors
from doonce.work.items import now_expression
from doonce.work.model import Scope, Shelf
from doonce.work.tables import work_ready


def _candidates(dialect: Dialect) -> sa.Select[Any]:
    rows = sa.bindparam("rows", type_=COUNT)
    return dialect.some_free(_due(dialect), rows, by=("due", "item_id"))


def _due(dialect: Dialect) -> sa.Select[Any]:
    ready = work_ready
    return (
        sa.select(ready)
        .where(
            ready.c.family == sa.bindparam("family", type_=IDENTITY),
            ready.c.shelf == sa.bindparam("shelf", type_=COUNT),
            ready.c.org == sa.bindparam("org", type_=IDENTITY),
            ready.c.installation == sa.bindparam("installation", type_=IDENTITY),
            ready.c.due >= sa.bindparam("since", type_=MICROSECONDS),
            ready.c.due <= now_expression(dialect),
        )
        .order_by(ready.c.due, ready.c.item_id)
    )


def _waiting(dialect: Dialect) -> sa.Select[Any]:
    """One index seek a scope: its earliest hint."""
    scopes = dialect.batch("scopes", org=IDENTITY, installation=IDENTITY, since=MICROSECONDS)
    first = (
        sa.select(work_ready.c.due)
        .where(
            work_ready.c.family == sa.bindparam("family", type_=IDENTITY),
            work_ready.c.shelf == sa.bindparam("shelf", type_=COUNT),
            work_ready.c.org == scopes.c.org,
            work_ready.c.installation == scopes.c.installation,
            work_ready.c.due >= scopes.c.since,
        )
        .order_by(work_ready.c.due)
        .limit(sa.literal_column("1"))
        .correlate(scopes.source)
        .scalar_subquery()
    )
    return (
        sa.select(scopes.c.org, scopes.c.installation)
        .select_from(scopes.source)
        .where(first <= now_expression(dialect))
    )


def _next_hint(dialect: Dialect) -> sa.Select[Any]:
    """One index seek, however many scopes lie between. The MySQL wire finds no range by a comparison of rows."""
    ready = work_ready
    org, installation = (sa.bindparam(name, type_=IDENTITY) for name in ("org", "installation"))
    from_there = sa.tuple_(ready.c.org, ready.c.installation) >= sa.tuple_(org, installation)
    if dialect.name is DialectName.MYSQL:
        from_there = sa.or_(
            ready.c.org > org, sa.and_(ready.c.org == org, ready.c.installation >= installation)
        )
    return (
        sa.select(ready.c.org, ready.c.installation)
        .where(
            ready.c.family == sa.bindparam("family", type_=IDENTITY),
            ready.c.shelf == sa.bindparam("shelf", type_=COUNT),
            from_there,
        )
        .order_by(ready.c.org, ready.c.installation, ready.c.due)
        .limit(sa.literal_column("1"))
    )


CANDIDATES = Statement("work.candidates", _candidates)
WAITING = Statement("work.waiting", _waiting)
NEXT_HINT = Statement("work.next_hint", _next_hint)


@dataclass(frozen=True, slots=True)
class Sought:
    """What a claim looks for. `scopes`: whose turn it is first. `shelves`: where, earlier ones first."""

    family: str
    shelves: Sequence[int]
    scopes: Sequence[Scope]
    rows_max: int


def find(sought: Sought, room: Room, floors: Floors) -> Txn[list[Row]]:
    """Due hints, locked, shared between the scopes that have some (`fairness`).

    Bounded by what is asked for, not by scopes. Suspects are looked for from the front: they are few.
    """
    if tuple(sought.shelves) == (Shelf.ALONE.value,):
        floors = Floors()
    scopes = sought.scopes
    if len(scopes) > 1:
        scopes = yield from waiting(sought.family, sought.shelves, scopes, floors)
    sharing = Sharing(scopes, sought.rows_max, room)
    found: dict[Scope, list[Row]] = {}
    while asks := sharing.asks():
        for scope, rows_max in asks.items():
            found[scope] = yield from _find_in(sought, scope, rows_max, floors)
            sharing.found(scope, rows_max, len(found[scope]))
    return [row for rows in found.values() for row in rows]


def _find_in(sought: Sought, scope: Scope, rows_max: int, floors: Floors) -> Txn[list[Row]]:
    since_us = floors.begin(scope)
    found: list[Row] = []
    for shelf in sought.shelves:
        found += yield from fetch(
            CANDIDATES,
            family=sought.family,
            shelf=shelf,
            org=scope.org,
            installation=scope.installation,
            since=since_us,
            rows=rows_max - len(found),
        )
        if len(found) >= rows_max:
            break
    floors.end(scope, since_us, sorted(row["due"] for row in found))
    return found


def waiting(
    family: str, shelves: Sequence[int], scopes: Sequence[Scope], floors: Floors | None = None
) -> Txn[tuple[Scope, ...]]:
    """Those of these scopes that have an item due, in their order; one statement a shelf.

    With floors also those where only a whole look can say so, and takes long: the claim's own look is that.
    """
    since = {scope: 0 if floors is None else floors.since(scope) for scope in scopes}
    asked = [
        (scope.org, scope.installation, since_us) for scope, since_us in since.items() if since_us is not None
    ]
    due: set[tuple[str, str]] = set()
    for shelf in shelves:
        rows = yield from fetch(WAITING, family=family, shelf=shelf, scopes=asked)
        due |= {(row[0], row[1]) for row in rows}
    return tuple(scope for scope in scopes if since[scope] is None or (scope.org, scope.installation) in due)


@dataclass(frozen=True, slots=True)
class Look:
    """Where to look. `scopes`: all of a worker's, in order of their names. `start`: the position of the first one.

    `scopes_max`: how many are asked about in one statement.
    """

    family: str
    shelves: Sequence[int]
    scopes: Sequence[Scope]
    start: int
    scopes_max: int


@dataclass(frozen=True, slots=True)
class Seen:
    """Scopes with something due, and how many scopes were passed until the last one of them was looked at."""

    due: tuple[Scope, ...]
    passed: int


def look(asked: Look) -> Txn[Seen]:
    """The next scopes in which something is due, from `start` on and once around: the first that are found at once.

    Scopes without any hint are passed over by the index. Statements are two for each `scopes_max` scopes that have
    hints, the wait of a later time among them, and two where there are none.
    """
    total = len(asked.scopes)
    passed = 0
    while passed < total:
        at = (asked.start + passed) % total
        hint = yield from _first_from(asked, at)
        if hint is None:
            break
        passed += (hint - at) % total
        window = asked.scopes[hint : hint + min(asked.scopes_max, max(0, total - passed))]
        passed += len(window)
        if not window:
            break
        due = yield from waiting(asked.family, asked.shelves, window)
        if due:
            return Seen(due, passed)
    return Seen((), total)


def _first_from(asked: Look, at: int) -> Txn[int | None]:
    """The position of the first scope with a hint from `at` on, around the end; None when no scope has one."""
    for start in (at, 0) if at else (0,):
        positions: list[int] = []
        for shelf in asked.shelves:
            position = yield from _first_on(asked, shelf, start)
            positions.append(position)
        if min(positions) < len(asked.scopes):
            return min(positions)
    return None


def _first_on(asked: Look, shelf: int, start: int) -> Txn[int]:
    """The position of the first scope with a hint on this shelf, or of the next after a stranger's; else the end."""
    scope = asked.scopes[start]
    rows = yield from fetch(
        NEXT_HINT, family=asked.family, shelf=shelf, org=scope.org, installation=scope.installation
    )
    if not rows:
        return len(asked.scopes)
    return bisect_left(asked.scopes, (rows[0][0], rows[0][1]), key=lambda one: (one.org, one.installation))
