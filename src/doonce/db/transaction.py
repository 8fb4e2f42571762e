"""A transaction is a generator of statements: plain code without I/O that can always be run again from its start.

`yield from fetch(STATEMENT, …)` asks for one statement and resumes with its rows; `return` ends the transaction. The
driver (a PostgreSQL connection, SQLite's writer thread, a test that stops between any two statements) decides how each
is carried out. Results leave only after the commit, and any database error closes the generator: there is no way to
catch one and go on (PROTOCOL T1).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from doonce.base.records import Record

if TYPE_CHECKING:
    import sqlalchemy as sa

    from doonce.db.statement import Statement

Result = TypeVar("Result")
Params = dict[str, Any]


class Row(Protocol):
    """One result row, read by position or by column name."""

    def __getitem__(self, key: int | str, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...


class Fetch(Record, frozen=True):
    """Run one statement and resume with all its rows."""

    statement: Statement
    params: Params


class InsertMany(Record, frozen=True):
    """Insert plain rows; `skip_conflicts` leaves an existing key alone (a later locking read tells who won, T7)."""

    table: sa.Table
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    skip_conflicts: bool


class ReadClock(Record, frozen=True):
    """Resume with the database's time in integer microseconds UTC, read now, after whatever locks are held.

    `steady`: resume with None instead while that time cannot be trusted to pace work (PROTOCOL C1).
    """

    steady: bool = False


class FetchThenClock(Record, frozen=True):
    """Run one locking statement and read the clock after its locks: resume with both, as one question to a server.

    `steady` as for `ReadClock`.
    """

    statement: Statement
    params: Params
    steady: bool


class LockNames(Record, frozen=True):
    """Hold named locks until the end of the transaction, shared or exclusive; had in the order of the names."""

    names: tuple[str, ...]
    exclusive: bool


class Certify(Record, frozen=True):
    """Make what rests on rows that are locked, and not changed, conflict with whoever changes them (PROTOCOL S5).

    For engines that certify only what is written: there both sides write one thing for each name. Elsewhere the lock
    itself excludes, and this costs nothing.
    """

    names: tuple[str, ...]


class Notify(Record, frozen=True):
    """Wake whoever waits on a topic, once the commit is durable. A hint: it may be lost, so waiters also poll."""

    topics: tuple[str, ...]


Call = Fetch | InsertMany | ReadClock | FetchThenClock | LockNames | Certify | Notify
Txn = Generator[Call, Any, Result]
Operation = Callable[..., Txn[Result]]


def fetch(statement: Statement, **params: Any) -> Txn[list[Row]]:
    """All rows of one statement. A batch parameter takes a list of tuples in the order of its columns."""
    rows: list[Row] = yield Fetch(statement, params)
    return rows


def insert_many(
    table: sa.Table,
    columns: tuple[str, ...],
    rows: Iterable[tuple[Any, ...]],
    *,
    skip_conflicts: bool = False,
) -> Txn[None]:
    """Insert rows as one set; nothing is sent for an empty one."""
    listed = list(rows)
    if listed:
        yield InsertMany(table, columns, listed, skip_conflicts)


def clock() -> Txn[int]:
    """The database's time, integer microseconds UTC. Read it after the locks and write with it (PROTOCOL T3, C1)."""
    now_us: int = yield ReadClock()
    return now_us


def steady_clock() -> Txn[int | None]:
    """The database's time, or None after a jump of it: then nothing may be claimed, reclaimed or pruned (C1)."""
    now_us: int | None = yield ReadClock(steady=True)
    return now_us


def fetch_then_clock(statement: Statement, **params: Any) -> Txn[tuple[list[Row], int]]:
    """The rows of a statement that locks them, and the time after the last lock was had (PROTOCOL T3)."""
    answer: tuple[list[Row], int] = yield FetchThenClock(statement, params, steady=False)
    return answer


def fetch_then_steady_clock(statement: Statement, **params: Any) -> Txn[tuple[list[Row], int | None]]:
    """The same, but the time is None while it must not pace work (PROTOCOL C1)."""
    answer: tuple[list[Row], int | None] = yield FetchThenClock(statement, params, steady=True)
    return answer


def lock_shared(names: Iterable[str], then: Iterable[str] = ()) -> Txn[None]:
    """Share named locks with other effects and exclude a transfer, without starving it (PROTOCOL S3).

    `then` are names that come later in the lock order (T4), asked for in the same trip.
    """
    unique = (*sorted(set(names)), *sorted(set(then)))
    if unique:
        yield LockNames(unique, exclusive=False)


def lock_exclusive(names: Iterable[str]) -> Txn[None]:
    """Hold named locks alone: waits for every sharer, and is not overtaken by later ones."""
    unique = tuple(sorted(set(names)))
    if unique:
        yield LockNames(unique, exclusive=True)


def certify(names: Iterable[str]) -> Txn[None]:
    """Exclude whoever certifies one of these names too, on engines whose row locks end at the node that has them.

    After the rows that the names stand for were locked: once by who only relies on them, and once by who changes them.
    """
    unique = tuple(sorted(set(names)))
    if unique:
        yield Certify(unique)


def notify(topics: Iterable[str]) -> Txn[None]:
    """Wake waiters of these topics after the commit, one hint a topic (a NOTIFY per flush, never per row)."""
    unique = tuple(sorted(set(topics)))
    if unique:
        yield Notify(unique)


def lock_number(name: str) -> int:
    """The signed 64-bit number of a named lock. Two names may collide; that costs waiting, never safety."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)
