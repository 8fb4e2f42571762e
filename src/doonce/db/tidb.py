"""TiDB, by its documentation: it could never be run here. What a session needs, what is refused, which cluster it is.

It has neither JSON_TABLE nor SKIP LOCKED (it reads the latter and then locks nothing), so its statements are plain
(`db/mysql_plain.py`). Its locks may be lost with the node that holds them, while what was written is looked at again
at COMMIT. So, as on Galera, whoever rests on a row that is only locked writes a slot (PROTOCOL S5). docs/engines.md
lists all that is assumed; `doonce conformance` is a user's proof.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from doonce.db.faults import SchemaFault
from doonce.db.mysql_faults import DENIED, code_of
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, fetch

VERSION: Final = re.compile(r"-TiDB-v(\d+)\.(\d+)\.(\d+)")
VERSION_MIN: Final = (8, 5, 6)
"""The first one that says which cluster it is: a row of `mysql.tidb`. All else that is used is older."""

BEGIN: Final = "BEGIN PESSIMISTIC"
"""An optimistic transaction takes no lock before its COMMIT, whatever `tidb_txn_mode` is for others. What only reads
begins so as well: `START TRANSACTION READ ONLY` is refused there."""
SESSION: Final = (
    "SET SESSION tidb_txn_mode = 'pessimistic', tidb_constraint_check_in_place_pessimistic = ON,"
    " tidb_guarantee_linearizability = ON, tidb_low_resolution_tso = OFF, tidb_read_staleness = 0"
)
"""Unique keys are looked at when a row is written, not at COMMIT; a transaction sees all that was committed before."""
IDLE: Final = "SET SESSION tidb_idle_transaction_timeout = %s"
NAMES: Final = (
    "tidb_txn_mode", "tidb_constraint_check_in_place_pessimistic", "tidb_guarantee_linearizability",
    "tidb_low_resolution_tso", "tidb_read_staleness", "tidb_sysdate_is_now", "tidb_super_read_only",
    "tidb_restricted_read_only", "datadir",
)  # fmt: skip
"""What is asked besides what every server on the MySQL wire is asked."""

UNREADABLE: Final = ("this user may not read mysql.tidb", "GRANT SELECT ON mysql.tidb TO it")
UNNAMED: Final = (
    "mysql.tidb does not say which cluster it is",
    "finish the cluster's upgrade, then start again",
)

CLUSTER: Final = Statement(
    "tidb.cluster",
    lambda dialect: sa.text("SELECT variable_value FROM mysql.tidb WHERE variable_name = 'cluster_id'"),
)


def _made(dialect: Dialect) -> sa.Select[Any]:
    columns: list[sa.ColumnElement[Any]] = [sa.column("create_time"), sa.column("tidb_table_id")]
    return (
        sa.select(*columns)
        .select_from(sa.table("tables", schema="information_schema"))
        .where(
            sa.literal_column("table_schema = DATABASE()"),
            sa.literal_column("table_name = 'database_incarnation'"),
        )
    )


MADE: Final = Statement("tidb.made", _made)
DEMANDED: Final = {
    "tidb_txn_mode": ("pessimistic",),
    "tidb_constraint_check_in_place_pessimistic": ("ON", "1"),
    "tidb_guarantee_linearizability": ("ON", "1"),
    "tidb_low_resolution_tso": ("OFF", "0"),
    "tidb_read_staleness": ("0",),
    "tidb_sysdate_is_now": ("OFF", "0"),
}
"""What a session must say of itself. `tidb_sysdate_is_now` would make SYSDATE the statement's beginning (T3)."""


def is_tidb(version: str) -> bool:
    """Whether a server that gives this version is TiDB."""
    return "TiDB" in version


def speaks_plainly(version: str) -> bool:
    """Whether a server lacks JSON_TABLE and SKIP LOCKED, so that its statements are plain."""
    return is_tidb(version)


def too_old(version: str) -> tuple[str, str]:
    """Why a TiDB of this version cannot be worked with, and the mend; ("", "") if it can."""
    found = VERSION.search(version)
    if found is not None and tuple(map(int, found.groups())) >= VERSION_MIN:
        return "", ""
    return (
        f"the server is {version}, which is too old",
        f"use TiDB {'.'.join(map(str, VERSION_MIN))} or newer",
    )


def unreadable(error: BaseException) -> SchemaFault | None:
    """What to tell of an error of asking which cluster it is, if it is that this user may not ask."""
    return SchemaFault(*UNREADABLE) if code_of(error) in DENIED else None


def refusal(variables: Mapping[str, str]) -> tuple[str, str]:
    """Why this TiDB, or this session on it, cannot be worked with, and the mend; ("", "") if it can."""
    why, mend = too_old(variables["version"])
    if why:
        return why, mend
    for name, allowed in DEMANDED.items():
        value = variables.get(name, "absent")
        if value not in allowed:
            return (
                f"{name} is {value} in its session, not {allowed[0]}",
                f"let this user set {name} to {allowed[0]}",
            )
    return "", ""


def judge_durability(variables: Mapping[str, str]) -> list[str]:
    """What keeps the cluster from keeping a commit that it answered (PROTOCOL S1); empty if nothing does.

    A commit is in the majority of its region's replicas before it is answered. How many those are, TiDB does not say.
    """
    faults = [
        f"{name} is on: nothing can be written"
        for name in ("tidb_super_read_only", "tidb_restricted_read_only", "read_only", "super_read_only")
        if variables.get(name, "OFF") not in ("OFF", "0")
    ]
    if variables.get("datadir", "").startswith("/"):
        faults.append(
            f"it keeps its data in {variables['datadir']}, the test store of a lone server, not in TiKV"
        )
    return faults


def place() -> Txn[tuple[str, str]]:
    """Which cluster it is, and the moment and the number under which it made the table of the pins.

    A restored backup is made of other tables, or in another cluster. A cluster that was flashed back is not noticed.
    """
    rows = yield from fetch(CLUSTER)
    made_at, number = (yield from fetch(MADE))[0]
    return f"tidb:{rows[0][0] if rows else ''}", f"made:{made_at} table:{number}"
