"""What every session on the MySQL wire is told before its first transaction, and whether the server took it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import structlog

from doonce.db import galera, tidb
from doonce.db.faults import Disconnected, SchemaFault
from doonce.db.mysql_connection import PooledConnection
from doonce.db.mysql_faults import wire_error
from doonce.db.mysql_server import VARIABLES, VARIABLES_OF_TIDB, refusal

log = structlog.get_logger("doonce.database")
SQL_MODE: Final = (
    "STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)
"""What is refused rather than cut. MySQL warns each session that is strict without the three in the middle."""
SESSION: Final = f"SET SESSION time_zone = '+00:00', sql_mode = '{SQL_MODE}', innodb_lock_wait_timeout = %s"
ISOLATION: Final = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
IDLE: Final = "SET SESSION idle_transaction_timeout = %s"
IDLE_ANYWHERE: Final = "SET SESSION wait_timeout = %s"
"""MySQL ends what idles in a transaction only as it ends whatever idles, so what has rested long is not used again."""
STATEMENT_TIME: Final = {
    True: "SET SESSION max_statement_time = %s / 1000",
    False: "SET SESSION max_execution_time = %s",
}
"""How long a statement may run, on MariaDB and elsewhere."""


@dataclass(frozen=True, slots=True)
class MysqlSettings:
    """How connections are made. Each is a line in docs/settings.md."""

    connections_max: int = 12
    connect_timeout_seconds: float = 10.0
    lock_timeout_seconds: int = 2
    statement_timeout_ms: int = 15_000
    idle_in_transaction_timeout_seconds: int = 20
    answer_timeout_seconds: float = 30.0


async def configure(connection: PooledConnection, settings: MysqlSettings, version: str) -> None:
    """Set what every session needs, and raise `SchemaFault` unless the server took it and can serve."""
    is_mariadb, is_tidb = "MariaDB" in version, tidb.is_tidb(version)
    connection.of_tidb = is_tidb
    connection.plain = connection.certifies = tidb.speaks_plainly(version)
    await connection.execute(SESSION, (settings.lock_timeout_seconds,))
    await connection.execute(ISOLATION)
    if is_mariadb:
        await connection.execute(IDLE, (settings.idle_in_transaction_timeout_seconds,))
    elif is_tidb:
        await _for_tidb(connection, settings, version)
    else:
        await connection.execute(IDLE_ANYWHERE, (settings.idle_in_transaction_timeout_seconds,))
        connection.rests_seconds_max = settings.idle_in_transaction_timeout_seconds / 2
    await connection.execute(STATEMENT_TIME[is_mariadb], (settings.statement_timeout_ms,))
    asked = VARIABLES_OF_TIDB if is_tidb else VARIABLES
    said = {row[0].lower(): str(row[1]) for row in await connection.fetch(asked)}
    why, mend = refusal(said)
    if why:
        raise SchemaFault(why, mend)
    if galera.is_node(said):
        await _join_cluster(connection)


async def _for_tidb(connection: PooledConnection, settings: MysqlSettings, version: str) -> None:
    """Set what a session on TiDB needs; an older one has not all of it, and is refused before."""
    why, mend = tidb.too_old(version)
    if why:
        raise SchemaFault(why, mend)
    _say_that_it_was_never_run(version)
    await connection.execute(tidb.SESSION)
    await connection.execute(tidb.IDLE, (settings.idle_in_transaction_timeout_seconds,))
    try:
        known = await connection.ask(tidb.CLUSTER, {})
    except wire_error() as error:
        denied = tidb.unreadable(error)
        if denied is not None:
            raise denied from error
        raise
    if not known:
        raise SchemaFault(*tidb.UNNAMED)


@cache
def _say_that_it_was_never_run(version: str) -> None:
    """Once in a process."""
    log.warning("database_never_tested", version=version, hint="run `doonce conformance` against it")


async def _join_cluster(connection: PooledConnection) -> None:
    """Set what a session on a node of a cluster needs; raises `Disconnected` while that node may not be worked with."""
    status = {row[0].lower(): str(row[1]) for row in await connection.fetch(galera.STATUS)}
    doubts = galera.doubts(status)
    if doubts:
        raise Disconnected("; ".join(doubts))
    await connection.execute(galera.CAUSAL_READS)
    connection.certifies = connection.of_galera = True
