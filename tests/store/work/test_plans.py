"""Every hot statement finds its rows by an index with a million rows there, on each engine, whatever the statistics.

The numbers begin where all have as many digits, so that names sort as they were made, as the real ones do.
"""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from tests.store.work.kernel import TABLES, Kernel, Places, blocking

from doonce.db.postgresql import PostgresqlDriver
from doonce.db.sqlite import SqliteDriver
from doonce.db.statement import Constant, Rows, Scalar, Slot, Statement
from doonce.work.tables import work_item, work_item_history

BIG = {table.name for table in TABLES} - {"work_ownership", "work_claimer", "work_retention"}
FIRST, LAST = 1_000_001, 2_000_000
FILLING_SECONDS = 600
HOT = sorted(name for name in Statement.registry if name.split(".")[0] in ("work", "lanes"))
ITEM = {
    "family": "'effect'", "org": "'acme'", "installation": "'main'", "subject_kind": "'command'",
    "subject_id": "'cmd_' || n", "view_digest": "'v'", "capability_version": "1",
    "source_lane": "CASE WHEN n % 2 = 0 THEN 's' || (n - n % 500) END", "source_position": "n",
    "target_lane": "'t' || (n - n % 200)", "target_position": "n",
    "state": "CASE WHEN n % 10 < 7 THEN 'succeeded' WHEN n % 10 < 9 THEN 'pending' ELSE 'processing' END",
    "run_after": "n", "attempts": "0", "claims": "0", "failures": "0", "deferrals": "0", "expiries": "0", "alone": "0",
    "lease_until": "0", "ownership_epoch": "1", "cancel_requested": "0", "created_at": "n", "updated_at": "n",
}  # fmt: skip
FILL = [
    f"INSERT INTO work_item (id, {', '.join(ITEM)}) SELECT 'wrk_' || n, {', '.join(ITEM.values())} FROM numbers",
    "INSERT INTO work_ready SELECT 'effect', 0, 'acme', 'main', n, 'wrk_' || n, NULL, 't' || n FROM numbers",
    "INSERT INTO work_lease SELECT 'tok_' || n, 'effect', n, '[]' FROM numbers WHERE n % 64 = 0",
    "INSERT INTO work_lane SELECT 't' || n, 'pass', n, NULL, 0, NULL, 0 FROM numbers",
    "INSERT INTO work_lane_entry SELECT 't' || (n - n % 200), n, 'wrk_' || n, 1, n FROM numbers",
]
HISTORY = {name: text for name, text in ITEM.items() if name in work_item_history.c} | {
    "finished_at": "n", "moved_at": "n",
}  # fmt: skip
FILL.append(
    f"INSERT INTO work_item_history (id, {', '.join(HISTORY)}) SELECT 'wrk_m' || n, {', '.join(HISTORY.values())} "
    "FROM numbers"
)
ANALYZED = "work_item, work_ready, work_lease, work_lane, work_lane_entry, work_item_history"
NUMBERS = (
    f"WITH RECURSIVE numbers(n) AS (SELECT {FIRST} UNION ALL SELECT n + 1 FROM numbers WHERE n < {LAST}) "
)


async def fill(kernel: Kernel) -> None:
    def insert() -> None:
        with kernel.connect() as connection:
            if kernel.on_mariadb:
                count_far(connection)
            for text in FILL:
                table, rest = (on_mysql(text) if kernel.on_mariadb else text).split(" SELECT ", 1)
                numbered = f"{table} {NUMBERS} SELECT {rest}"
                connection.exec_driver_sql(numbered if kernel.on_sqlite else numbered.replace("%", "%%"))

    await asyncio.to_thread(insert)


def count_far(connection: sa.Connection) -> None:
    """Let a recursion go on for as long as there are numbers; each server has a name of its own for it."""
    limits = "'max_recursive_iterations', 'cte_max_recursion_depth'"
    for name, _ in connection.exec_driver_sql(f"SHOW VARIABLES WHERE variable_name IN ({limits})").all():
        connection.exec_driver_sql(f"SET SESSION {name} = {LAST - FIRST + 1}")


def on_mysql(text: str) -> str:
    """The same rows, in the words of the MySQL wire."""
    return re.sub(r"'(\w*)' \|\| (\([^()]*\)|\w+)", r"concat('\1', \2)", text)


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def faults_on_postgresql(plan: dict[str, Any]) -> list[str]:
    """Nodes that look at more of a big table than an index condition picks."""
    found = []
    for node in nodes(plan):
        if node.get("Relation Name") not in BIG or node["Node Type"] in ("ModifyTable", "Bitmap Heap Scan"):
            continue
        picked = node.get("Index Cond") or node.get("TID Cond")
        if "Scan" not in node["Node Type"] or node["Node Type"] == "Seq Scan" or not picked:
            found.append(f"{node['Node Type']} on {node['Relation Name']}")
    return found


async def plan_on_postgresql(driver: PostgresqlDriver, statement: Statement) -> dict[str, Any]:
    """The generic plan that the driver's own connections use."""
    connection = await driver._connect()
    try:
        compiled = statement.postgresql
        await connection.execute(f"PREPARE planned AS {compiled.text}")
        nothing = ", ".join(["NULL"] * len(compiled.slots))
        rows = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE planned({nothing})")
        plan: dict[str, Any] = msgspec.json.decode(rows)[0]["Plan"]
        return plan
    finally:
        await connection.close()


@pytest.mark.postgresql
@pytest.mark.timeout(FILLING_SECONDS)
async def test_plans_on_postgresql(postgres_places: Places) -> None:
    """With the statistics of empty tables, as on a young database, and with those of full ones."""
    async with postgres_places.kernel() as kernel:
        for table in ANALYZED.split(", "):  # nobody but this test may look at them
            await kernel.execute(sa.text(f"ALTER TABLE {table} SET (autovacuum_enabled = off)"))
        await kernel.execute(sa.text(f"ANALYZE {ANALYZED}"))
        await fill(kernel)
        faults = {"stale statistics": await faults_of_all(kernel)}
        await kernel.execute(sa.text(f"ANALYZE {ANALYZED}"))
        faults["fresh statistics"] = await faults_of_all(kernel)
        assert faults == {"stale statistics": {}, "fresh statistics": {}}


async def faults_of_all(kernel: Kernel) -> dict[str, list[str]]:
    """What the plans of the hot statements do that they should not, by statement."""
    driver = kernel.database.driver
    plans = {name: await plan_on_postgresql(driver, Statement.registry[name]) for name in HOT}
    order = [node["Node Type"] for node in nodes(plans["work.candidates"])]
    assert "Sort" not in order, "the oldest are found in the order of the index, not by looking at all"
    return {name: faults for name, plan in plans.items() if (faults := faults_on_postgresql(plan))}


def faults_on_mysql(name: str, rows: list[Any], *, full: bool) -> list[str]:
    """Steps that look at more of a big table than the key of a row before, or of the parameters, picks.

    A few rows may also be read in the order of a key by what locks none: MySQL's optimizer does.
    """
    picks = {"const", "eq_ref", "ref", "range"}
    if not full and Statement.registry[name].mysql.plain:
        picks.add("index")
    return [
        f"{row.type} on {row.table} {row.Extra}"
        for row in rows
        if row.table in BIG
        and row.select_type != "INSERT"  # MySQL names what is written as well
        and (row.type not in picks or "buffer" in str(row.Extra))
    ]


@pytest.mark.mariadb
@pytest.mark.timeout(FILLING_SECONDS)
@pytest.mark.parametrize("full", [False, True], ids=["nearly_empty", "full"])
async def test_plans_on_mariadb(mariadb_url: str, tmp_path: Path, full: bool) -> None:
    """Also while the tables are so small that a scan looks cheap: it would lock rows that nobody asked for."""
    async with Places(mariadb_url, tmp_path).kernel() as kernel:
        await kernel.insert(*[kernel.new(target_lane="t", **blocking("s")) for _ in range(3)])
        if full:
            await fill(kernel)
            await kernel.execute(sa.text(f"ANALYZE TABLE {ANALYZED}"))
        plans = await asyncio.to_thread(explain_on_mysql, kernel)
        found = {name: faults_on_mysql(name, rows, full=full) for name, rows in plans.items()}
        assert {name: faults for name, faults in found.items() if faults} == {}
        order = " ".join(str(row.Extra) for row in plans["work.candidates"])
        assert "filesort" not in order, (
            "the oldest are found in the order of the index, not by looking at all"
        )


def explain_on_mysql(kernel: Kernel) -> dict[str, list[Any]]:
    """The plan of each hot statement, for the parameters of one row."""
    plans = {}
    with kernel.connect() as connection:
        for name in HOT:
            compiled = Statement.registry[name].mysql
            text = compiled.text.replace("%", "%%").replace("?", "%s")
            values = tuple(argument_of(slot) for slot in compiled.slots)
            plans[name] = list(connection.exec_driver_sql(f"EXPLAIN FORMAT = TRADITIONAL {text}", values))
    return plans


def argument_of(slot: Slot) -> Any:
    """A value of the parameter's kind: a text for a text, or no index would do."""
    if isinstance(slot, Rows):
        return '[["a", "b", "c"]]'
    if isinstance(slot, Constant):
        return slot.constant
    return 5 if isinstance(slot, Scalar) and slot.name == "rows" else "1"


@pytest.mark.timeout(FILLING_SECONDS)
async def test_plans_on_sqlite(sqlite_places: Places) -> None:
    async with sqlite_places.kernel() as kernel:
        await fill(kernel)
        driver = kernel.database.driver
        assert isinstance(driver, SqliteDriver)
        connection = driver._connect()
        scans = {f"SCAN {table}" for table in BIG}
        faults: dict[str, list[str]] = {}
        for name in HOT:
            compiled = Statement.registry[name].sqlite
            nothing = ["[]" if isinstance(slot, Rows) else 0 for slot in compiled.slots]
            details = [
                row["detail"] for row in connection.execute("EXPLAIN QUERY PLAN " + compiled.text, nothing)
            ]
            if any(detail in scans or "AUTOMATIC" in detail for detail in details):
                faults[name] = details
            if name == "work.candidates":
                assert not [detail for detail in details if "TEMP B-TREE" in detail]
        connection.close()
        assert faults == {}


async def test_the_claims_cost_does_not_grow_with_what_waits(kernel: Kernel) -> None:
    """Statements, not milliseconds: the same number of them and the same rows, with a backlog and without."""
    assert work_item.name in BIG
    calls = kernel.watch()
    await kernel.insert(*[kernel.new() for _ in range(5)])
    await kernel.claim(2)
    calls.clear()
    await kernel.claim(2)
    alone = list(calls)
    await kernel.insert(*[kernel.new() for _ in range(500)])
    calls.clear()
    await kernel.claim(2)
    assert calls == alone
