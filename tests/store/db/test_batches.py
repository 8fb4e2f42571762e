"""A batch goes in and comes out value by value, whatever texts and numbers it holds, on each engine's own way."""

import asyncio

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.conftest import PLAIN, on_every_engine
from tests.store.db.notes import note, open_notes, statement

from doonce.db.arrays import integer_array, text_array
from doonce.db.statement import Compiled, Constant, Dialect, DialectName, Rows, Scalar, Statement
from doonce.db.transaction import Txn, fetch

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(st.tuples(TEXTS, st.none() | TEXTS, NUMBERS, st.none() | NUMBERS), min_size=1, max_size=8)
AWKWARD = ['"', "\\", '","', "{}", "NULL", "null", "", " ", ",", "\n", "'", "é", "\U0001f600", '\\"', "$[0]"]


def _echo(dialect: Dialect) -> sa.Select[tuple[object, ...]]:
    rows = dialect.batch("rows", a=sa.Text(), b=sa.Text(), c=sa.BigInteger(), d=sa.BigInteger())
    return sa.select(rows.c.a, rows.c.b, rows.c.c, rows.c.d)


ECHO = statement("note.echo", _echo)


def echo(rows: list[tuple[object, ...]]) -> Txn[list[tuple[object, ...]]]:
    found = yield from fetch(ECHO, rows=rows)
    return [tuple(row) for row in found]


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database's URL; it outlives the examples of one test."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('batches') / 'notes.db'}"
    if request.param in ("mariadb", "galera", PLAIN):
        return str(request.getfixturevalue(f"fresh_{request.param}"))
    return f"{request.getfixturevalue('db_postgres')}?search_path=batches"


ENGINES = pytest.mark.parametrize("url", on_every_engine(), indirect=True)


@ENGINES
def test_a_batch_comes_out_as_it_went_in(url: str) -> None:
    with asyncio.Runner() as runner:
        opening = open_notes(url)
        notes = runner.run(opening.__aenter__())

        @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
        @given(ROWS)
        @example([(text, None, 0, None) for text in AWKWARD])
        @example([("x", text, -(2**63), 2**63 - 1) for text in AWKWARD])
        def check(rows: list[tuple[object, ...]]) -> None:
            assert runner.run(notes.database.transact(echo, rows)) == rows

        try:
            check()
        finally:
            runner.run(opening.__aexit__(None, None, None))


def test_array_literals_are_spelled_as_the_server_reads_them() -> None:
    assert text_array([]) == "{}"
    assert text_array(["a", "b c", ""]) == '{"a","b c",""}'
    assert text_array([None, "NULL", 'q"', "\\"]) == '{NULL,"NULL","q\\"","\\\\"}'
    assert integer_array([1, None, -2]) == "{1,NULL,-2}"
    assert integer_array([]) == "{}"


def test_a_statement_is_named_once() -> None:
    taken = next(iter(Statement.registry))
    with pytest.raises(ValueError, match=taken):
        Statement(taken, lambda dialect: sa.select(note))


def test_in_lists_are_spelled_out_beside_parameters() -> None:
    made = statement(
        "note.some",
        lambda dialect: sa.select(note.c.id).where(
            note.c.id.in_(["a", "b"]), note.c.number == sa.bindparam("n")
        ),
    )
    for dialect in DialectName:
        compiled = made.on(dialect)
        assert isinstance(compiled, Compiled)
        assert "POSTCOMPILE" not in compiled.text
        assert sorted(compiled.arguments({"n": 7}), key=str) == [7, "a", "b"]
        assert {type(slot) for slot in compiled.slots} == {Constant, Scalar}
    assert isinstance(ECHO.sqlite.slots[0], Rows)
