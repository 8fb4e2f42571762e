"""What is demanded of the database, checked: that it keeps what it commits (PROTOCOL S1), and that it is the one whose
commits this deployment relied on (S2). While either is in doubt, the gate is closed and nothing is dispatched.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from doonce.base.errors import Conflict, Unavailable
from doonce.base.ids import new_token
from doonce.base.limits import LIMITS, check_text
from doonce.db import galera, incarnation, sidefile
from doonce.db.database import Database
from doonce.db.faults import Disconnected
from doonce.db.incarnation import Declaration, Incarnation, NewIncarnation, Place
from doonce.db.mysql import MysqlDriver, PooledConnection
from doonce.db.mysql_server import VARIABLES, VARIABLES_OF_TIDB, judge_durability
from doonce.db.postgresql import PostgresqlDriver
from doonce.db.schema import COUNT, IDENTITY
from doonce.db.sqlite import SqliteDriver
from doonce.db.statement import Dialect, DialectName, Statement
from doonce.db.transaction import Fetch, Row, Txn, fetch

DURABLE_COMMITS: Final = frozenset({"on", "remote_apply"})
"""Values of synchronous_commit under which an answered commit is flushed, here and on a synchronous standby."""
SETTINGS_READ: Final = (
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "synchronous_standby_names",
    "transaction_read_only",
)
SETTINGS_MEND: Final = "change the server's settings, then start again"
SQLITE_FULL: Final = 2


def _settings(dialect: Dialect) -> sa.ClauseElement:
    if dialect.name is DialectName.SQLITE:
        return sa.select(
            sa.column("journal_mode", IDENTITY), sa.column("synchronous", sa.Integer())
        ).select_from(sa.table("pragma_journal_mode").join(sa.table("pragma_synchronous"), sa.true()))
    if dialect.name is DialectName.MYSQL:
        return sa.text(VARIABLES_OF_TIDB if dialect.plain else VARIABLES)
    return sa.select(
        sa.literal_column("pg_is_in_recovery()", sa.Boolean()).label("in_recovery"),
        *[sa.literal_column(f"current_setting('{name}')", IDENTITY).label(name) for name in SETTINGS_READ],
    )


def _end_frozen(_: Dialect) -> sa.Select[Any]:
    activity = sa.table(
        "pg_stat_activity",
        *map(sa.column, ("pid", "datname", "usename", "application_name", "state", "wait_event")),
    )
    return (
        sa.select(sa.func.pg_terminate_backend(activity.c.pid))
        .select_from(activity)
        .where(
            activity.c.datname == sa.literal_column("current_database()"),
            activity.c.usename == sa.literal_column("current_user"),
            activity.c.application_name == sa.bindparam("application_name", type_=IDENTITY),
            activity.c.state == sa.literal_column("'active'"),
            activity.c.wait_event == sa.literal_column("'ClientRead'"),
            sa.literal_column("state_change") < sa.literal_column("clock_timestamp()")
            - sa.bindparam("for_ms", type_=COUNT) * sa.literal_column("interval '1 millisecond'"),
        )
    )  # fmt: skip


SETTINGS = Statement("durability.settings", _settings)
END_FROZEN = Statement("durability.end_frozen", _end_frozen)
"""PostgreSQL only."""


def judge_settings(dialect: DialectName, rows: Sequence[Row], *, replicated: bool) -> list[str]:
    """What keeps this connection from being trusted with a commit (PROTOCOL S1); empty if nothing does."""
    if dialect is DialectName.MYSQL:
        return judge_durability({row[0].lower(): str(row[1]) for row in rows}, replicated=replicated)
    row = rows[0]
    if dialect is DialectName.SQLITE:
        faults = (
            [] if row["journal_mode"] == "wal" else [f"its journal mode is {row['journal_mode']}, not wal"]
        )
        return faults if row["synchronous"] >= SQLITE_FULL else [*faults, "synchronous is less than full"]
    if row["in_recovery"]:
        return ["it is a standby: connect to the primary"]
    faults = [f"{name} is off" for name in ("fsync", "full_page_writes") if row[name] != "on"]
    if row["synchronous_commit"] not in DURABLE_COMMITS:
        faults.append(f"synchronous_commit is {row['synchronous_commit']}, which is less than on")
    if row["transaction_read_only"] == "on":
        faults.append("default_transaction_read_only is on for this user or database")
    if replicated and not row["synchronous_standby_names"].strip():
        faults.append("synchronous_standby_names is empty, although the configuration declares it replicated")
    return faults


@dataclass(slots=True)
class DispatchGate:
    """Whether anything may be dispatched, and if not, why. Ask before a claim and again after each mark's commit."""

    open: bool = False
    reason: str = "the database has not been checked yet"

    def set(self, reason: str) -> None:
        """Close for a reason, or open with none."""
        self.open, self.reason = not reason, reason


@dataclass(frozen=True, slots=True)
class DurabilitySettings:
    """`replicated`: the configuration promises a synchronous standby. `check_every_seconds`: between two checks; new
    connections are checked at once, so this bounds only what changes under an open one.
    """

    replicated: bool = False
    check_every_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Examined:
    """One look at the database: what is wrong with its settings, what it says it is, and what was pinned."""

    faults: tuple[str, ...]
    place: Place | None
    pinned: Incarnation | None


class Durability:
    """Watches one database and keeps its dispatch gate."""

    def __init__(self, database: Database, settings: DurabilitySettings | None = None) -> None:
        self.gate = DispatchGate()
        self.settings = settings or DurabilitySettings()
        self._database = database
        self._pinned: Incarnation | None = None
        self._refused = ""
        if isinstance(database.driver, PostgresqlDriver | MysqlDriver):
            database.driver.admit = self.admit

    async def check(self) -> None:
        """Look at the database and set the gate: at start, and periodically by `watch`.

        A changed incarnation closes the gate and raises nothing: all but dispatch goes on. Raises `Unavailable`, and
        closes the gate, when the settings would lose commits or nothing is pinned.
        """
        try:
            examined = await self._database.transact(self._examine)
        except Unavailable as error:
            if self._refused:  # no connection is admitted: say why, and not that there is none
                raise Unavailable(self._refused, hint=SETTINGS_MEND) from error
            raise
        self._pinned = examined.pinned
        if examined.faults:
            self.gate.set(f"the database may lose commits: {'; '.join(examined.faults)}")
            raise Unavailable(self.gate.reason, hint=SETTINGS_MEND)
        if examined.pinned is None or examined.place is None:
            self.gate.set("the database has no incarnation pinned")
            raise Unavailable(self.gate.reason, hint="run `doonce migrate` with this URL")
        if incarnation.carried_on(examined.pinned.place, examined.place):
            dialect = self._database.dialect
            self._pinned = await self._database.transact(incarnation.follow, dialect, new_token())
        self.gate.set(self._doubt(examined.place, self._pinned or examined.pinned))

    async def end_frozen(self) -> int:
        """End the transactions of processes that stand still with a statement prepared and not executed; how many.

        PostgreSQL takes such a one for active, so that no time-out of its own ends it, and its locks would be held for
        as long as its process stands still. A process that wakes finds a connection lost: a proven rollback. Ends only
        what has this database, user and application name, after the time-out for what is idle in a transaction.
        Elsewhere none.
        """
        driver = self._database.driver
        if not isinstance(driver, PostgresqlDriver) or not driver.settings.idle_in_transaction_timeout_ms:
            return 0
        return await self._database.read(
            _end, driver.settings.application_name, driver.settings.idle_in_transaction_timeout_ms
        )

    async def declare(self, declaration: Declaration, operator: str, reason: str) -> Incarnation:
        """Accept what the database is now, on an operator's word, and open the gate.

        Lossy: whatever was accepted before and has not ended starts as unknown (`incarnation.last_lossy`). Clock: the
        database stays the one that it was, and its clock is believed as it is. Raises `Unavailable` as `check` does,
        `Conflict` for a clock while something else is in doubt, and `Invalid` for an empty operator or reason.
        """
        check_text("operator", operator, LIMITS.name_bytes_max)
        check_text("reason", reason, LIMITS.reason_bytes_max)
        with contextlib.suppress(Unavailable):
            await self.check()
        if declaration is Declaration.CLOCK and not self.gate.open:
            raise Conflict(f"the clock is not all that is in doubt: {self.gate.reason}")
        new = NewIncarnation(new_token(), declaration, operator, reason)
        accepted = await self._database.transact(incarnation.append, self._database.dialect, new)
        if isinstance(self._database.driver, SqliteDriver):
            await asyncio.to_thread(_remember, self._database.driver.path, accepted.place.identity)
        await self.check()
        return accepted

    async def admit(self, connection: Any) -> None:
        """Check a server's new connection before its first transaction.

        Another incarnation behind it closes the gate before anything can commit there. Raises `Disconnected` when its
        settings would lose commits: then no transaction runs on it.
        """
        dialect = self._database.dialect
        rows = await _ask(connection, dialect, SETTINGS)
        faults = judge_settings(dialect, rows, replicated=self.settings.replicated)
        self._refused = f"the database may lose commits: {'; '.join(faults)}" if faults else ""
        if self._refused:
            self.gate.set(self._refused)
            raise Disconnected(self._refused)
        if self._pinned is not None:
            found = await _drive(connection, dialect, incarnation.place(dialect, None))
            doubt = self._doubt(found, self._pinned)
            if doubt:
                self.gate.set(doubt)

    def _examine(self) -> Txn[Examined]:
        dialect = self._database.dialect
        rows = yield from fetch(SETTINGS)
        faults = judge_settings(dialect, rows, replicated=self.settings.replicated)
        if faults:
            return Examined(tuple(faults), None, None)
        pinned = yield from incarnation.newest()
        return Examined((), (yield from incarnation.place(dialect, pinned)), pinned)

    def _doubt(self, found: Place, pinned: Incarnation) -> str:
        """Why the database may not be the one whose commits were relied on, or ""."""
        driver = self._database.driver
        if isinstance(driver, SqliteDriver):
            return _doubt_by_side_file(driver.path, pinned)
        if found.identity != pinned.place.identity:
            return _with_mend("this is another database than the one that was pinned")
        if incarnation.is_same(pinned.place, found) or incarnation.carried_on(pinned.place, found):
            return ""
        if found.identity.startswith(galera.PREFIX):
            return _with_mend(
                "this primary component lacks the majority of the members that were pinned: a minority was "
                "bootstrapped, the cluster was started anew, or its nodes were replaced one after another unseen"
            )
        if isinstance(driver, MysqlDriver):
            return _with_mend(
                f"the tables of this database were {pinned.place.timeline}, and now {found.timeline}: "
                "a copy was put in their place"
            )
        before, after = pinned.place.timeline.split("/"), found.timeline.split("/")
        if before[0] == after[0]:
            return _with_mend(
                f"this database was {pinned.place.timeline}, and is now {found.timeline}: "
                "a copy was put in its place"
            )
        return _with_mend(
            f"the database went from timeline {before[0]} to {after[0]}: "
            "a standby was promoted, or a backup recovered"
        )


def _end(application_name: str, for_ms: int) -> Txn[int]:
    return len((yield from fetch(END_FROZEN, application_name=application_name, for_ms=for_ms)))


def _with_mend(doubt: str) -> str:
    return f"{doubt}; declare whether commits were lost (`doonce declare lossless|lossy`)"


def _doubt_by_side_file(path: Path, pinned: Incarnation) -> str:
    side = sidefile.open_side_file(path)
    try:
        known, older = sidefile.remembered_identity(side), sidefile.noted_older(side)
    finally:
        os.close(side)
    if older:
        return _with_mend(
            f"{path} is older than what was committed here before: a copy was put back, or it was made anew"
        )
    if not known:
        return _with_mend(f"{path} was not made on this host, or its side file is gone: it may be a copy")
    if known != pinned.place.identity:
        return _with_mend(f"{path} is another database than the one that was here before")
    return ""


def _remember(path: Path, identity: str) -> None:
    with sidefile.locked(path) as side:
        sidefile.remember_identity(side, identity)
        sidefile.forget_older(side)


async def _ask(connection: Any, dialect: DialectName, statement: Statement) -> list[Row]:
    """The rows of a statement without parameters, on a connection as its own driver has it."""
    if isinstance(connection, PooledConnection):
        return list(await connection.ask(statement, {}))
    rows: list[Row] = await connection.fetch(statement.on(dialect).text)
    return rows


async def _drive(connection: Any, dialect: DialectName, transaction: Txn[Place]) -> Place:
    """Carry out a transaction of plain reads on a connection that is not in the pool yet."""
    value: Any = None
    while True:
        try:
            call = transaction.send(value)
        except StopIteration as stop:
            found: Place = stop.value
            return found
        if not isinstance(call, Fetch):
            raise TypeError(f"only reads are for a connection outside the pool: {call!r}")
        value = await _ask(connection, dialect, call.statement)
