"""The fixtures that every store test stands on."""

import sqlite3
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa


def test_each_test_has_an_empty_database_of_its_own(database_url: str) -> None:
    engine, _, rest = database_url.partition("://")
    if engine == "sqlite":
        path = Path(rest.removeprefix("/"))
        assert not path.exists()
        sqlite3.connect(path).close()
    elif engine == "mysql":
        made = sa.create_engine(sa.make_url(database_url).set(drivername="mysql+pymysql"))
        with made.connect() as connection:
            asked = "SELECT count(*), @@innodb_flush_log_at_trx_commit FROM information_schema.tables"
            found = connection.exec_driver_sql(f"{asked} WHERE table_schema = DATABASE()").one()
        made.dispose()
        assert tuple(found) == (0, 1)
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
    monkeypatch.delenv("DOONCE_TEST_MARIADB", raising=False)
    pytester.makeconftest((Path(__file__).parents[1] / "conftest.py").read_text())
    pytester.makeini(
        "[pytest]\nmarkers =\n  postgresql: x\n  mariadb: x\n  kill: x\nasyncio_default_fixture_loop_scope = function\n"
    )
    pytester.makepyfile("def test_it(database_url): pass")
    result = pytester.runpytest_inprocess("-p", "no:xdist")
    result.assert_outcomes(passed=1, errors=2)
