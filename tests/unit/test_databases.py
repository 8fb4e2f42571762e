"""The fixtures that every store test stands on."""

import sqlite3
from pathlib import Path

import psycopg
import pytest


def test_each_test_has_an_empty_database_of_its_own(database_url: str) -> None:
    engine, _, rest = database_url.partition("://")
    if engine == "sqlite":
        path = Path(rest.removeprefix("/"))
        assert not path.exists()
        sqlite3.connect(path).close()
    else:
        with psycopg.connect(database_url) as connection:
            tables = connection.execute(
                "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
            ).fetchone()
            encoding = connection.execute("SHOW server_encoding").fetchone()
            fsync = connection.execute("SHOW fsync").fetchone()
        assert (tables, encoding, fsync) == ((0,), ("UTF8",), ("on",))


def test_a_server_that_is_not_there_fails_and_never_skips(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOONCE_TEST_POSTGRES", raising=False)
    pytester.makeconftest((Path(__file__).parents[1] / "conftest.py").read_text())
    pytester.makeini(
        "[pytest]\nmarkers =\n  postgresql: x\n  kill: x\nasyncio_default_fixture_loop_scope = function\n"
    )
    pytester.makepyfile("def test_it(database_url): pass")
    result = pytester.runpytest_inprocess("-p", "no:xdist")
    result.assert_outcomes(passed=1, errors=1)
