"""SQLite: one writer thread owns the write connection, a few reader threads read; commits are fully synchronous.

Several processes may share a file: each flush holds a blocking `flock` on a side file, so that writers queue fairly
instead of starving in the busy handler (PROTOCOL S4). The side file also remembers the newest time this host has
committed, which tells a restored older copy from the real database (PROTOCOL S2).
"""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sa

from doonce.db.faults import (
    CommitUnknown,
    Contended,
    DatabaseFault,
    Disconnected,
    OutOfSpace,
    RefusedData,
    RolledBack,
    SchemaFault,
)
from doonce.db.sidefile import LET_WRITE, note_if_older, open_side_file, remember_time
from doonce.db.statement import DialectName
from doonce.db.transaction import (
    Certify,
    Fetch,
    FetchThenClock,
    InsertMany,
    LockNames,
    Notify,
    ReadClock,
    Txn,
)

T = TypeVar("T")
ADVANCE_CLOCK = (
    "UPDATE doonce_clock SET now_us = max(now_us + 1, doonce_host_us()) WHERE id = 1 RETURNING now_us"
)
CLOCK_AS_STORED = "SELECT now_us FROM doonce_clock WHERE id = 1"
READ_CLOCK = "SELECT max(now_us, doonce_host_us()) FROM doonce_clock WHERE id = 1"
LIBRARY_MIN = (3, 35)
"""The first one with RETURNING."""
REST_SECONDS = 30.0
WRONG_SCHEMA = ("no such", "has no column")
"""Words of errors of a file whose tables are not what a statement expects."""
_Job: TypeAlias = tuple[Callable[[], Txn[Any]], asyncio.Future[Any], Any]
DRIVER_ERRORS = (sqlite3.Error, ValueError, OverflowError)
ROWS_A_STATEMENT = (64, 16, 4, 1)
"""Sizes of inserts, each a text that is prepared once; the widest table has some 30 columns, of 32,766 parameters."""

NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "glusterfs", "ceph"}


def host_microseconds() -> int:
    """This host's time of day: what SQLite's own clock follows while it goes forward (PROTOCOL C2)."""
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class SqliteSettings:
    """How the file is opened."""

    readers: int = 2
    busy_timeout_ms: int = 5_000


class SqliteDriver:
    """Runs transactions on one SQLite file in WAL mode with `synchronous=FULL`."""

    dialect = DialectName.SQLITE

    def __init__(
        self, path: Path, settings: SqliteSettings, host_us: Callable[[], int] = host_microseconds
    ) -> None:
        self.path = path
        self.settings = settings
        self._host_us = host_us
        self._jobs: queue.SimpleQueue[_Job | threading.Event | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._opening = threading.Lock()
        self._readers = ThreadPoolExecutor(settings.readers, thread_name_prefix="doonce-sqlite-read")
        self._local = threading.local()
        self._reading: list[sqlite3.Connection] = []
        self._inserts: dict[tuple[str, tuple[str, ...], bool, int], str] = {}
        self._closed = False

    async def run(self, factory: Callable[[], Txn[T]], *, readonly: bool) -> T:
        """Drive one transaction and commit it; raises a `DatabaseFault` that says what is proven."""
        loop = asyncio.get_running_loop()
        if readonly:
            return await loop.run_in_executor(self._readers, self._read, factory)
        self._start_writer()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((factory, future, loop))
        return await future

    def rest(self) -> None:
        """Wait, at most `REST_SECONDS`, until the writer has done all that it was asked; the writer itself does not."""
        if self._writer is None or threading.current_thread() is self._writer:
            return
        rested = threading.Event()
        self._jobs.put(rested)
        rested.wait(REST_SECONDS)

    def _start_writer(self) -> None:
        if self._closed:
            raise Disconnected("the database is closed")
        if self._writer is None:
            with self._opening:
                if self._writer is None:
                    self._writer = threading.Thread(
                        target=self._write_loop, name="doonce-sqlite-write", daemon=True
                    )
                    self._writer.start()

    def _write_loop(self) -> None:
        connection: sqlite3.Connection | None = None
        side: int | None = None
        while (job := self._jobs.get()) is not None:
            if isinstance(job, threading.Event):  # who waits for it knows that all before it is done
                job.set()
                continue
            factory, future, loop = job
            try:
                side = open_side_file(self.path) if side is None else side
                connection = connection or self._connect_to_write(side)
                outcome: Any = self._write(connection, side, factory)
                error: BaseException | None = None
            except BaseException as caught:  # noqa: BLE001  # the caller's to raise; this thread goes on
                outcome, error = None, caught
                if isinstance(caught, CommitUnknown | Disconnected) and connection is not None:
                    connection.close()
                    connection = None
            try:
                loop.call_soon_threadsafe(_settle, future, outcome, error)
            except RuntimeError:  # the loop ended while the flush ran: nobody is left to tell
                continue
        if connection is not None:
            connection.close()
        if side is not None:
            os.close(side)

    def _connect_to_write(self, side: int) -> sqlite3.Connection:
        connection = self._connect()
        fcntl.flock(side, fcntl.LOCK_EX)
        try:  # before the first write, after which a copy from before would look current (PROTOCOL S2)
            note_if_older(side, _time(connection.execute(CLOCK_AS_STORED).fetchall()))
        except sqlite3.Error as error:
            connection.close()
            raise classify(error) from error
        except BaseException:
            connection.close()
            raise
        finally:
            fcntl.flock(side, fcntl.LOCK_UN)
        return connection

    def _write(self, connection: sqlite3.Connection, side: int, factory: Callable[[], Txn[T]]) -> T:
        fcntl.flock(side, fcntl.LOCK_EX)
        try:
            return self._transaction(connection, side, factory())
        finally:
            fcntl.flock(side, fcntl.LOCK_UN)

    def _transaction(self, connection: sqlite3.Connection, side: int, transaction: Txn[T]) -> T:
        newest_us: list[int] = []
        result: T
        try:
            _begin(connection, "BEGIN IMMEDIATE")
            value: Any = None
            while True:
                try:
                    call = transaction.send(value)
                except StopIteration as stop:
                    result = stop.value
                    break
                value = self._carry_out(connection, call, newest_us)
        except BaseException:
            transaction.close()
            _roll_back(connection)
            raise
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            fault = classify(error)
            if not _roll_back(connection) or not isinstance(fault, OutOfSpace | Contended | RefusedData):
                raise CommitUnknown(f"the commit failed: {error}") from error
            raise fault from error
        if newest_us:
            remember_time(side, newest_us[-1])
        return result

    def _carry_out(
        self, connection: sqlite3.Connection, call: Any, newest_us: list[int] | None = None
    ) -> Any:
        try:
            if isinstance(call, Fetch):
                compiled = call.statement.sqlite
                return connection.execute(compiled.text, compiled.arguments(call.params)).fetchall()
            if isinstance(call, InsertMany):
                self._insert(connection, call)
                return None
            if isinstance(call, ReadClock):
                if newest_us is None:
                    return _time(connection.execute(READ_CLOCK).fetchall())
                newest_us.append(_time(connection.execute(ADVANCE_CLOCK).fetchall()))
                return newest_us[-1]
        except DRIVER_ERRORS as error:
            raise classify(error) from error
        if isinstance(call, FetchThenClock):
            rows = self._carry_out(connection, Fetch(call.statement, call.params), newest_us)
            return rows, self._carry_out(connection, ReadClock(), newest_us)
        if isinstance(call, LockNames | Certify | Notify):
            return None  # one writer holds every lock; topics are woken in this process after the commit
        raise TypeError(f"not a statement: {call!r}")

    def _read(self, factory: Callable[[], Txn[T]]) -> T:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
            connection.execute("PRAGMA query_only=ON")
            self._reading.append(connection)
        transaction = factory()
        try:
            _begin(connection, "BEGIN")
            value: Any = None
            while True:
                try:
                    call = transaction.send(value)
                except StopIteration as stop:
                    result: T = stop.value
                    return result
                if not isinstance(call, Fetch | ReadClock | FetchThenClock):
                    raise TypeError(f"a read may not write: {call!r}")
                value = self._carry_out(connection, call)
        finally:
            transaction.close()
            _roll_back(connection)

    def _connect(self) -> sqlite3.Connection:
        refuse_unfit(self.path)
        try:
            connection = sqlite3.connect(
                self.path,
                timeout=self.settings.busy_timeout_ms / 1000,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=512,
            )
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA cache_size=-16384")
            connection.create_function("doonce_host_us", 0, self._host_us)
        except sqlite3.Error as error:
            raise classify(error) from error
        return connection

    def _insert(self, connection: sqlite3.Connection, call: InsertMany) -> None:
        """Insert many rows with few statements: each one gives the interpreter away and has to get it back."""
        start = 0
        for count in ROWS_A_STATEMENT:
            while len(call.rows) - start >= count:
                rows = call.rows[start : start + count]
                connection.execute(self._insert_text(call, count), tuple(itertools.chain.from_iterable(rows)))
                start += count

    def _insert_text(self, call: InsertMany, count: int) -> str:
        key = (call.table.name, call.columns, call.skip_conflicts, count)
        if key not in self._inserts:
            statement = sa.dialects.sqlite.insert(call.table).values(
                {name: sa.bindparam(name) for name in call.columns}
            )
            if call.skip_conflicts:
                statement = statement.on_conflict_do_nothing()
            compiled: Any = statement.compile(
                dialect=sa.dialects.sqlite.dialect(paramstyle="qmark"), column_keys=list(call.columns)
            )
            order = list(compiled.positiontup)
            if order != list(call.columns):
                raise TypeError(f"give the columns of {call.table.name} in table order: {order}")
            row = f"({', '.join('?' * len(call.columns))})"
            self._inserts[key] = str(compiled.string).replace(row, ", ".join([row] * count))
        return self._inserts[key]

    async def listen(self, wake: Callable[[str], None]) -> None:
        """Other processes cannot be heard on SQLite: its waiters poll."""

    async def close(self) -> None:
        """Finish what is queued, then close; even if the caller is cancelled meanwhile."""
        self._closed = True
        await asyncio.shield(asyncio.to_thread(self._end))

    def _end(self) -> None:
        if self._writer is not None:
            self._jobs.put(None)
            self._writer.join()
        self._readers.shutdown()
        for connection in self._reading:
            connection.close()


def _settle(future: asyncio.Future[Any], outcome: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(outcome)


def _begin(connection: sqlite3.Connection, text: str) -> None:
    try:
        connection.execute(text)
    except sqlite3.Error as error:
        raise classify(error) from error


def _time(rows: list[Any]) -> int:
    if len(rows) != 1:
        raise SchemaFault("doonce_clock has no row: this database was never migrated")
    time_us: int = rows[0][0]
    return time_us


def _roll_back(connection: sqlite3.Connection) -> bool:
    """Whether the connection is out of its transaction now."""
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        return False
    return True


def refuse_unfit(path: Path) -> None:
    """Refuse a library that is too old, and a path whose locks are not trustworthy (PROTOCOL S4)."""
    if sqlite3.sqlite_version_info < LIBRARY_MIN:
        raise SchemaFault(
            f"SQLite is {sqlite3.sqlite_version}, which is too old", "use a Python with SQLite 3.35 or newer"
        )
    _refuse_network_file_system(path)


def _refuse_network_file_system(path: Path) -> None:
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return
    resolved = str(path.parent.resolve())
    best = ("", "")
    for line in mounts:
        _, mount, kind = line.split(" ")[:3]
        inside = resolved == mount or resolved.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best[0]):
            best = (mount, kind)
    if best[1] in NETWORK_FILE_SYSTEMS:
        raise SchemaFault(f"{path} is on a {best[1]} file system, where SQLite's locks cannot be trusted")


def classify(error: Exception) -> DatabaseFault:
    """Sort an error by what it proves; every one raised before COMMIT is a rollback."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if isinstance(error, ValueError | OverflowError | UnicodeError):
        return RefusedData(str(error))
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Contended(str(error))
    if name.startswith("SQLITE_FULL") or (name.startswith("SQLITE_IOERR") and "full" in str(error)):
        return OutOfSpace(str(error))
    if name.startswith(("SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG", "SQLITE_RANGE")):
        return RefusedData(str(error))
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_IOERR")):
        return Disconnected(str(error))
    if name.startswith("SQLITE_READONLY"):
        return SchemaFault(str(error), LET_WRITE)
    if isinstance(error, sqlite3.OperationalError) and any(word in str(error) for word in WRONG_SCHEMA):
        return SchemaFault(str(error))
    if isinstance(error, sqlite3.InterfaceError | sqlite3.ProgrammingError | sqlite3.DataError):
        return RefusedData(str(error))
    return RolledBack(str(error))
