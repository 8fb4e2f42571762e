"""Writes that answer no rows are sent together only where they cannot get in each other's way."""

from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
from tests.store.db.notes import READ, SET, NoteDatabase, note, statement

from doonce.db.database import open_database
from doonce.db.faults import RefusedData
from doonce.db.posting import WRITES_MAX, Posted, Write, combined
from doonce.db.statement import Compiled, Dialect
from doonce.db.transaction import Txn, clock, fetch, insert_many, notify


def _drop(dialect: Dialect) -> sa.Delete:
    ids = dialect.batch("ids", id=sa.Text())
    return sa.delete(note).where(note.c.id.in_(sa.select(ids.c.id).select_from(ids.source)))


DROP = statement("note.drop", _drop)


def one_after_another() -> Txn[list[tuple[str, int]]]:
    """Each write needs the one before it: insert, change, drop, insert again, change again."""
    yield from insert_many(note, ("id", "number"), [("a", 1), ("b", 2)])
    yield from fetch(SET, rows=[("a", 3), ("b", 4)])
    yield from fetch(DROP, ids=[("a",)])
    yield from insert_many(note, ("id", "number"), [("a", 5)])
    yield from fetch(SET, rows=[("a", 6)])
    rows = yield from fetch(READ)
    return [tuple(row) for row in rows]


async def test_each_write_of_one_table_sees_the_one_before_it(notes: NoteDatabase) -> None:
    assert await notes.database.transact(one_after_another) == [("a", 6), ("b", 4)]
    assert await notes.rows() == [("a", 6), ("b", 4)]


async def test_writes_at_the_end_are_sent_before_the_commit_and_their_refusal_rolls_all_back(
    notes: NoteDatabase,
) -> None:
    def write(rows: list[tuple[str, int]]) -> Txn[str]:
        yield from insert_many(note, ("id", "number"), rows)
        return "written"

    assert await notes.database.transact(write, [("a", 1)]) == "written"
    assert await notes.rows() == [("a", 1)]
    with pytest.raises(RefusedData):
        await notes.database.transact(write, [("b", 1), ("a", 2)])
    assert await notes.rows() == [("a", 1)]


@pytest.fixture
async def page(postgresql: NoteDatabase) -> sa.Table:
    """Another table beside the notes."""
    connection = await postgresql.connect()
    await connection.execute("CREATE TABLE page (id text PRIMARY KEY, number bigint)")
    await connection.close()
    return sa.Table("page", sa.MetaData(), sa.Column("id", sa.Text()), sa.Column("number", sa.BigInteger()))


@pytest.fixture
async def sent(postgresql: NoteDatabase) -> list[str]:
    """The statements that the one connection is given, from now on."""
    texts: list[str] = []
    connection = await postgresql.database.driver._acquire()
    fetching = connection.fetch

    async def listening(text: str, *arguments: object) -> list[asyncpg.Record]:
        texts.append(text)
        return await fetching(text, *arguments)

    connection.fetch = listening
    postgresql.database.driver._release(connection)
    return texts


@pytest.mark.postgresql
async def test_writes_of_different_tables_go_as_one_statement(
    postgresql: NoteDatabase, page: sa.Table, sent: list[str]
) -> None:
    def both() -> Txn[int]:
        yield from insert_many(note, ("id", "number"), [("a", 1)])
        yield from insert_many(page, ("id", "number"), [("b", 2)])
        return (yield from clock())

    await postgresql.database.transact(both)
    assert [text.split(" ", 1)[0] for text in sent] == ["WITH", "SELECT"]
    assert await postgresql.database.read(_numbers, page) == [2]
    assert await postgresql.rows() == [("a", 1)]


@pytest.mark.postgresql
async def test_a_plain_read_of_another_table_goes_before_and_a_hint_with_the_last_write(
    postgresql: NoteDatabase, page: sa.Table, sent: list[str]
) -> None:
    def work() -> Txn[tuple[list[int], list[int]]]:
        yield from insert_many(note, ("id", "number"), [("a", 1)])
        others = yield from _numbers(page)
        yield from notify(["pages"])
        yield from insert_many(page, ("id", "number"), [("b", 2)])
        yield from notify(["notes"])
        mine = yield from _numbers(page)
        yield from fetch(SET, rows=[("a", 3)])
        return others, mine

    listening = open_database(postgresql.url)
    await listening.listen()
    assert await postgresql.database.transact(work) == ([], [2]), "what it wrote itself it sees"
    assert [text.split(" ", 1)[0] for text in sent] == ["SELECT", "WITH", "SELECT", "WITH"]
    assert "pg_notify" in sent[-1]
    assert await listening.wakeups.wait("pages", 10)
    assert await listening.wakeups.wait("notes", 10)
    assert await postgresql.rows() == [("a", 3)]
    await listening.close()


def _numbers(table: sa.Table) -> Txn[list[int]]:
    rows = yield from fetch(statement("page.numbers", lambda dialect: sa.select(table.c.number)))
    return [row[0] for row in rows]


def test_what_locks_or_reads_a_changed_table_does_not_overtake() -> None:
    posted = Posted([write_of("a", "b")])
    assert posted.lets_pass(_compiled(sa.select(C)))
    assert posted.lets_pass(_compiled(sa.select(B))), "both only read b"
    assert not posted.lets_pass(_compiled(sa.select(A)))
    assert not posted.lets_pass(_compiled(sa.select(C).where(C.c.x.in_(sa.select(A.c.x)))))
    assert not posted.lets_pass(_compiled(sa.select(C).with_for_update()))
    assert not posted.lets_pass(_compiled(sa.select(C).with_for_update(read=True)))


A, B, C = (sa.Table(name, sa.MetaData(), sa.Column("x", sa.Text())) for name in "abc")


def _compiled(select: sa.Select[Any]) -> Compiled:
    return statement("posting.read", lambda dialect: select).postgresql


def write_of(table: str, *reads: str) -> Write:
    return Write(f"UPDATE {table} SET x = $1", ("x",), table, frozenset({table, *reads}))


def test_a_write_shares_a_statement_with_no_writer_or_reader_of_its_table() -> None:
    posted = Posted([write_of("a", "b")])
    assert posted.admits(write_of("c"))
    assert posted.admits(write_of("c", "b")), "both only read b"
    assert not posted.admits(write_of("a"))
    assert not posted.admits(write_of("b")), "a's write reads it"
    assert not posted.admits(write_of("c", "a")), "it reads what a's write changes"
    full = Posted([write_of(f"t{number}") for number in range(WRITES_MAX)])
    assert not full.admits(write_of("other"))


def test_parameters_of_one_statement_are_numbered_through() -> None:
    assert combined(("UPDATE a SET x = $1, y = $2", "DELETE FROM b WHERE z = $1 OR w = $1", "INSERT $1")) == (
        "WITH write_1 AS (UPDATE a SET x = $1, y = $2), "
        "write_2 AS (DELETE FROM b WHERE z = $3 OR w = $3) INSERT $4"
    )
    posted = Posted([write_of("a"), write_of("b")])
    text, arguments = posted.take()
    assert (text.count("$"), arguments) == (2, ["x", "x"])
    assert posted.writes == []
