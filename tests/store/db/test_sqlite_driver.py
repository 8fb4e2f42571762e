"""SQLite: its own clock, its queue of writers, its faults, and files where its locks mean nothing."""

import asyncio
import fcntl
import os
import sqlite3
import sys
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.store.db.notes import OLDEST, NoteDatabase, note, now, put, read, statement

from doonce.base.errors import Exhausted, Invalid, Unavailable
from doonce.db import sqlite as sqlite_module
from doonce.db.database import Database, RetrySettings, open_database
from doonce.db.faults import CommitUnknown, Contended, OutOfSpace, SchemaFault
from doonce.db.sidefile import open_side_file, remembered_time, side_file
from doonce.db.sqlite import SqliteDriver, SqliteSettings, refuse_unfit
from doonce.db.transaction import Txn, clock, fetch, insert_many
from doonce.db.verify import verify


def path_of(notes: NoteDatabase) -> Path:
    return Path(notes.url.removeprefix("sqlite:///"))


async def test_c2_the_clock_follows_the_host_forward_and_creeps_when_the_host_goes_back(
    sqlite: NoteDatabase,
) -> None:
    transact = sqlite.database.transact
    assert await transact(now) == OLDEST
    sqlite.host.now_us = OLDEST + 500
    assert await transact(now) == OLDEST + 500
    sqlite.host.now_us = 17
    assert [await transact(now) for _ in range(3)] == [OLDEST + 501, OLDEST + 502, OLDEST + 503]
    assert await sqlite.database.read(now) == OLDEST + 503
    sqlite.host.now_us = OLDEST + 504
    assert await transact(now) == OLDEST + 504


async def test_c2_a_rolled_back_time_is_given_out_again(sqlite: NoteDatabase) -> None:
    def failing() -> Txn[None]:
        yield from clock()
        raise Invalid("no")

    with pytest.raises(Invalid):
        await sqlite.database.transact(failing)
    assert await sqlite.database.transact(now) == OLDEST


async def test_s2_the_side_file_remembers_the_newest_committed_time(sqlite: NoteDatabase) -> None:
    committed = await sqlite.database.transact(now)
    side = open_side_file(path_of(sqlite))
    assert remembered_time(side) == committed
    os.close(side)


def somebody_waits(side: int) -> bool:
    """Whether the kernel has somebody waiting for the lock of this file."""
    inode = f":{os.fstat(side).st_ino} "
    return any("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


async def test_s4_writers_of_several_processes_queue_on_the_side_file(sqlite: NoteDatabase) -> None:
    await sqlite.database.transact(put, [("a", 1)])
    side = open_side_file(path_of(sqlite))
    fcntl.flock(side, fcntl.LOCK_EX)
    call = asyncio.create_task(sqlite.database.transact(put, [("b", 2)]))
    async with asyncio.timeout(10):
        while not await asyncio.to_thread(somebody_waits, side):
            assert not call.done()
    assert await sqlite.rows() == [("a", 1)], "readers do not queue"
    assert not call.done()
    fcntl.flock(side, fcntl.LOCK_UN)
    await call
    assert await sqlite.rows() == [("a", 1), ("b", 2)]
    os.close(side)


COUNTER = """
import asyncio, sys
from doonce.db.database import open_database
from tests.store.db.notes import put, read
async def main(url, name):
    database = open_database(url)
    for number in range(30):
        await database.transact(put, [(f"{name}{number:02}", number)])
    await database.close()
asyncio.run(main(*sys.argv[1:]))
"""


async def test_s4_several_processes_write_one_file_without_loss(sqlite: NoteDatabase) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    children = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", COUNTER, sqlite.url, name, env=environment)
        for name in "xy"
    ]
    async with asyncio.timeout(60):
        assert [await child.wait() for child in children] == [0, 0]
    assert len(await sqlite.rows()) == 60


async def test_a_foreign_writer_that_holds_the_file_is_contention(sqlite: NoteDatabase) -> None:
    driver = SqliteDriver(path_of(sqlite), SqliteSettings(busy_timeout_ms=20))
    database = Database(sqlite.url, driver, RetrySettings(base_ms=0.1))
    other = sqlite3.connect(path_of(sqlite), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Contended):
        await database.transact(put, [("a", 1)])
    other.execute("ROLLBACK")
    assert await database.transact(put, [("a", 1)]) == "written"
    other.close()
    await database.close()


async def test_a_full_disk_is_exhausted_and_leaves_nothing(sqlite: NoteDatabase) -> None:
    await sqlite.database.transact(put, [("a", 1)])
    pages = statement("note.pages", lambda dialect: sa.text("PRAGMA max_page_count = 8"))

    def fill() -> Txn[None]:
        yield from fetch(pages)
        yield from insert_many(note, ("id", "number"), [(f"{n:0500}", n) for n in range(500)])

    with pytest.raises(Exhausted):
        await sqlite.database.transact(fill)
    assert await sqlite.rows() == [("a", 1)]


class FailingCommit:
    """A connection whose COMMIT fails as told; everything else is the real one's."""

    def __init__(self, inner: sqlite3.Connection, errors: list[sqlite3.Error]) -> None:
        self._inner = inner
        self._errors = errors

    def execute(self, text: str, *arguments: object) -> sqlite3.Cursor:
        if text == "COMMIT" and self._errors:
            error = self._errors.pop()
            if "after" in str(error):
                self._inner.execute("COMMIT")
            raise error
        return self._inner.execute(text, *arguments)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def sqlite_error(name: str, text: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize("when", ["before", "after"])
async def test_t6_an_input_or_output_error_on_commit_is_unknown_and_settled_by_running_again(
    sqlite: NoteDatabase, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    errors = [sqlite_error("SQLITE_IOERR_FSYNC", f"disk I/O error {when}")]
    connect = SqliteDriver._connect
    opened: list[int] = []

    def connect_failing(driver: SqliteDriver) -> object:
        opened.append(1)
        return FailingCommit(connect(driver), errors)

    monkeypatch.setattr(SqliteDriver, "_connect", connect_failing)
    seen: list[str] = []

    class Observer:
        def rolled_back(self, operation: str, fault: str) -> None:
            seen.append(fault)

        def commit_unknown(self, operation: str) -> None:
            seen.append("unknown")

    sqlite.database.observer = Observer()
    assert await sqlite.database.transact(put, [("a", 1)]) == "written"
    assert seen == ["unknown"]
    assert len(opened) == 2, "such a connection is not used again"
    assert await sqlite.rows() == [("a", 1)]


async def test_a_database_without_its_clock_row_says_what_is_missing(sqlite: NoteDatabase) -> None:
    connection = sqlite3.connect(path_of(sqlite))
    connection.execute("DELETE FROM doonce_clock")
    connection.commit()
    connection.close()
    for call in (sqlite.database.transact(now), sqlite.database.read(now)):
        with pytest.raises(Unavailable) as raised:
            await call
        assert "migrate" in raised.value.hint


async def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"not a database at all" * 100)
    database = open_database(
        f"sqlite:///{tmp_path / 'x.db'}", settings=RetrySettings(tries_max=2, base_ms=0.1)
    )
    with pytest.raises(Unavailable):
        await database.transact(put, [("a", 1)])
    with pytest.raises(Unavailable):
        await database.read(read)
    await database.close()


def test_s4_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_unfit(tmp_path / "x.db")
    mounts = f"server:/x {tmp_path} nfs4 rw 0 0\n/dev/sda1 / ext4 rw 0 0\n"
    monkeypatch.setattr(sqlite_module.Path, "read_text", lambda self: mounts)
    with pytest.raises(SchemaFault):
        refuse_unfit(tmp_path / "x.db")
    refuse_unfit(Path("/elsewhere/x.db"))
    refuse_unfit(tmp_path.with_name(f"{tmp_path.name}-beside") / "x.db")


def test_s4_a_disk_within_a_network_file_system_is_a_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = f"/dev/sda1 {tmp_path} ext4 rw 0 0\nserver:/x {tmp_path.parent} nfs4 rw 0 0\n"
    monkeypatch.setattr(sqlite_module.Path, "read_text", lambda self: mounts)
    refuse_unfit(tmp_path / "x.db")
    with pytest.raises(SchemaFault):
        refuse_unfit(tmp_path.parent / "x.db")


async def test_a_library_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_module, "LIBRARY_MIN", (99, 0))
    with pytest.raises(SchemaFault, match="too old") as refused:
        refuse_unfit(tmp_path / "x.db")
    assert "SQLite 3.35" in refused.value.hint
    url = f"sqlite:///{tmp_path / 'x.db'}"
    for start in (verify(url), open_database(url).read(now)):  # a start looks at the schema, then it works
        with pytest.raises(Unavailable, match="too old") as unavailable:
            await start
        assert unavailable.value.hint == refused.value.hint


def test_faults_are_sorted_by_what_they_prove() -> None:
    def sort(name: str, text: str = "") -> type:
        return type(sqlite_module.classify(sqlite_error(name, text)))

    assert sort("SQLITE_FULL") is OutOfSpace
    assert sort("SQLITE_BUSY_SNAPSHOT") is Contended
    assert sort("SQLITE_ERROR", "no such table: work_item") is SchemaFault
    assert sort("SQLITE_ERROR", "table job has no column named kind") is SchemaFault
    assert sort("SQLITE_READONLY", "attempt to write a readonly database") is SchemaFault
    assert not issubclass(sort("SQLITE_IOERR_WRITE"), CommitUnknown)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "not a url", "oracle://x"])
def test_a_url_that_cannot_be_served_is_refused_with_what_to_use(url: str) -> None:
    with pytest.raises(Invalid) as raised:
        open_database(url)
    assert "sqlite:///" in raised.value.hint


def test_the_side_file_is_beside_the_database(tmp_path: Path) -> None:
    assert side_file(tmp_path / "x.db") == tmp_path / "x.db-doonce"


async def test_at_rest_means_that_the_writer_has_left_its_transaction(sqlite: NoteDatabase) -> None:
    """Or who is stopped at a named point would hold the file against everybody."""
    database = sqlite.database
    inside, leave = threading.Event(), threading.Event()
    order: list[str] = []

    def stays() -> Txn[None]:
        yield from clock()
        inside.set()
        assert leave.wait(30)
        order.append("left")

    def rests() -> None:
        database.rest()
        order.append("rested")

    writing = asyncio.create_task(database.transact(stays))
    assert await asyncio.to_thread(inside.wait, 30)
    resting = asyncio.create_task(asyncio.to_thread(rests))
    await asyncio.sleep(0.05)
    leave.set()
    await asyncio.gather(writing, resting)
    assert order == ["left", "rested"]
