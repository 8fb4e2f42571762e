"""The tables are created once, verified by name, and searched by their indexes."""

import re
from pathlib import Path

import pytest
from sqlalchemy import MetaData
from tests.store.runtime.applications import Application, application, database, prepare

from doonce.base.errors import Conflict, Invalid
from doonce.runtime import schema
from doonce.runtime.relay_claim import HeadPolicy, claim, lease_locked, lock_found
from doonce.runtime.statements import Engine, Step, text

SQL: dict[str, Engine] = {"sqlite": "sqlite", "postgresql": "postgresql", "mariadb": "mysql"}


def test_creating_again_changes_nothing(app: Application) -> None:
    with app.transaction() as connection:
        app.execute(connection, "INSERT INTO doonce_outbox_lane VALUES ('a', 'b', 'c', 1)")
    with app.transaction() as connection:
        schema.create(connection)
        schema.verify(connection)

    assert app.count("doonce_outbox_lane") == 1


@pytest.mark.parametrize("table", ["doonce_outbox", "doonce_inbox", "doonce_outbox_lane"])
def test_a_missing_table_is_named(app: Application, table: str) -> None:
    with app.transaction() as connection:
        app.execute(connection, f"DROP TABLE {table}")
        with pytest.raises(Invalid, match=f"{table} lacks") as refused:
            schema.verify(connection)

    assert "schema.create" in refused.value.hint


def test_the_script_makes_what_create_makes(plain: Application) -> None:
    made = MetaData()
    with plain.transaction() as connection:
        for table in schema.metadata.sorted_tables:
            plain.execute(connection, f"DROP TABLE {table.name}")
        script = schema.ddl(SQL[plain.engine])
        for one in filter(None, map(str.strip, script.split(";"))):
            plain.execute(connection, one)
        schema.verify(connection)
        made.reflect(connection)

    for table in schema.metadata.sorted_tables:
        reflected = made.tables[table.name]
        assert {one.name for one in reflected.columns} == {one.name for one in table.columns}
        assert {one.name for one in reflected.indexes} >= {one.name for one in table.indexes}


NUMBERS = {
    "sqlite": "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 15000) ",
    "postgresql": "WITH numbers(n) AS (SELECT generate_series(1, 15000)) ",
    "mariadb": "",
}
NUMBERED = "JSON_TABLE(CONCAT('[0', REPEAT(',0', 14999), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) AS numbers"
BYTES = {"sqlite": "BLOB", "postgresql": "BYTEA", "mariadb": "BINARY"}
EXPLAIN = {
    "sqlite": "EXPLAIN QUERY PLAN ",
    "postgresql": "EXPLAIN ",
    "mariadb": "EXPLAIN FORMAT = TRADITIONAL ",
}
WALKS = r"SCAN (candidate|earlier)|Seq Scan|'ALL'"
"""What a plan says that reads a whole table."""


def test_the_claim_walks_only_what_is_due(plain: Application) -> None:
    """Ten thousand finished rows and five thousand that are due in an hour cost a claim nothing."""
    fill = (
        "INSERT INTO doonce_outbox (outbox_id, handoff_key, org, installation, capability, binding_digest,"
        " binding_generation, operation, local_ref, payload, payload_digest, source_lane, lane_position,"
        " emitted_at_us, state, wish, due_at_us)"
        " SELECT CAST(n AS VARCHAR(10)), CAST(n AS VARCHAR(10)), 'o', 'i', 'c', 'd', 1, 'p', 'r',"
        " CAST('{}' AS {bytes}), 'd', CAST(n - 700 * FLOOR(n / 700) AS VARCHAR(10)), n, 0,"
        " CASE WHEN n <= 10000 THEN 'completed' ELSE 'pending' END,"
        " 'accept', CASE WHEN n <= 10000 THEN 0 ELSE 9000000000000000 END FROM {numbers}"
    )
    filled = fill.replace("{bytes}", BYTES[plain.engine])
    if plain.engine == "mariadb":
        filled = filled.replace("VARCHAR", "CHAR").replace("{numbers}", NUMBERED)
    filled = filled.replace("{numbers}", "numbers")
    with plain.transaction() as connection:
        plain.execute(connection, NUMBERS[plain.engine] + filled)
    step = finding(plain.engine)
    engine = SQL[plain.engine]
    made = text(step.statement, engine, "qmark" if engine == "sqlite" else "format")
    explain = EXPLAIN[plain.engine] + made.sql
    with plain.transaction() as connection:
        if plain.engine == "postgresql":
            plain.execute(connection, "ANALYZE doonce_outbox")
        rows = connection.exec_driver_sql(explain, made.values(step.values)).all()
    plan = "\n".join(str(row) for row in rows)

    assert "doonce_outbox_due" in plan
    assert "doonce_outbox_lane_open" in plan
    assert not re.search(WALKS, plan), plan


def finding(engine: str) -> Step:
    """The step of a claim that searches."""
    claiming = claim("t", rows_max=10, lease_us=1, policy=HeadPolicy.BLOCK)
    next(claiming)
    return claiming.send([{"engine": SQL[engine]}])


@pytest.mark.mariadb
def test_what_a_claim_locks_is_read_by_its_key(tmp_path: Path) -> None:
    """Also in a small table: a scan would wait for, and lock, rows that nobody asked for."""
    with database("mariadb", tmp_path) as address, application("mariadb", "sqlalchemy", address) as plain:
        prepare(plain)
        for statement, values in (
            (lock_found, {"ids": '["61","62"]', "rows_max": 5}),
            (lease_locked, {"ids": '["61","62"]', "token": "t", "lease_us": 1}),
        ):
            made = text(statement, "mysql", "format")
            with plain.transaction() as connection:
                rows = (
                    connection.exec_driver_sql(EXPLAIN["mariadb"] + made.sql, made.values(values))
                    .mappings()
                    .all()
                )
            assert [(row["table"], row["key"]) for row in rows] == [("found", None), ("o", "PRIMARY")]


@pytest.mark.mariadb
def test_a_definition_never_commits_the_applications_change(tmp_path: Path) -> None:
    with database("mariadb", tmp_path) as address, application("mariadb", "pymysql", address) as plain:
        prepare(plain)
        with plain.transaction() as connection:
            plain.execute(connection, "INSERT INTO things (id, title) VALUES (1, 'CTO')")
            with pytest.raises(Conflict, match="definition commits"):
                schema.create(connection)
            connection.rollback()
        assert plain.count("things") == 0


@pytest.mark.mariadb
def test_a_table_without_transactions_is_refused(tmp_path: Path) -> None:
    with database("mariadb", tmp_path) as address, application("mariadb", "pymysql", address) as plain:
        prepare(plain)
        with plain.transaction() as connection:
            plain.execute(connection, "ALTER TABLE doonce_inbox ENGINE=MyISAM")
            with pytest.raises(Invalid, match="doonce_inbox is not one of InnoDB"):
                schema.verify(connection)
