"""The tables are created once, verified by name, and searched by their indexes."""

import re

import pytest
from sqlalchemy import MetaData
from tests.store.runtime.applications import Application

from doonce.base.errors import Invalid
from doonce.runtime import schema
from doonce.runtime.relay_store import HeadPolicy, claim
from doonce.runtime.statements import text


def test_creating_again_changes_nothing(app: Application) -> None:
    with app.transaction() as connection:
        app.execute(connection, "INSERT INTO doonce_outbox_lane VALUES ('a', 'b', 'c', 1)")
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
        script = schema.ddl("sqlite" if plain.engine == "sqlite" else "postgresql")
        for one in filter(None, map(str.strip, script.split(";"))):
            plain.execute(connection, one)
        schema.verify(connection)
        made.reflect(connection)

    for table in schema.metadata.sorted_tables:
        reflected = made.tables[table.name]
        assert {one.name for one in reflected.columns} == {one.name for one in table.columns}
        assert {one.name for one in reflected.indexes} >= {one.name for one in table.indexes}


def test_the_claim_walks_only_what_is_due(plain: Application) -> None:
    """Ten thousand finished rows and five thousand that are due in an hour cost a claim nothing."""
    fill = (
        "INSERT INTO doonce_outbox (outbox_id, handoff_key, org, installation, capability, binding_digest,"
        " binding_generation, operation, local_ref, payload, payload_digest, source_lane, lane_position,"
        " emitted_at_us, state, wish, due_at_us)"
        " SELECT CAST(n AS VARCHAR(10)), CAST(n AS VARCHAR(10)), 'o', 'i', 'c', 'd', 1, 'p', 'r',"
        " CAST('{}' AS {bytes}), 'd', CAST(n - 700 * (n / 700) AS VARCHAR(10)), n, 0,"
        " CASE WHEN n <= 10000 THEN 'completed' ELSE 'pending' END,"
        " 'accept', CASE WHEN n <= 10000 THEN 0 ELSE 9000000000000000 END FROM numbers"
    )
    numbers = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 15000) "
    kind = "BLOB" if plain.engine == "sqlite" else "BYTEA"
    with plain.transaction() as connection:
        plain.execute(connection, numbers + fill.replace("{bytes}", kind))
    (step,) = [next(claim("t", rows_max=10, lease_us=1, policy=HeadPolicy.BLOCK))]
    if plain.engine == "sqlite":
        made = text(step.statement, "sqlite", "qmark")
        explain = "EXPLAIN QUERY PLAN " + made.sql
    else:
        made = text(step.statement, "postgresql", "format")
        explain = "EXPLAIN " + made.sql
    with plain.transaction() as connection:
        if plain.engine == "postgresql":
            plain.execute(connection, "ANALYZE doonce_outbox")
        rows = connection.exec_driver_sql(explain, made.values(step.values)).all()
    plan = "\n".join(str(row) for row in rows)

    assert "doonce_outbox_due" in plan
    assert "doonce_outbox_lane_open" in plan
    assert not re.search(r"SCAN (candidate|earlier)|Seq Scan", plan)
