"""What is demanded of a server on the MySQL wire, and how its answer to that is judged. Pure.

Refused are servers that lack what the statements need, and those of which it is known that they do not keep what the
protocol relies on. Asked is what the server says of itself in the very session, after it was configured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from doonce.db import tidb

VARIABLES: Final = (
    "SHOW SESSION VARIABLES WHERE variable_name IN ('version', 'autocommit', 'tx_isolation',"
    " 'transaction_isolation', 'time_zone', 'read_only', 'super_read_only', 'innodb_flush_log_at_trx_commit',"
    " 'innodb_doublewrite', 'innodb_rollback_on_timeout', 'log_bin', 'sync_binlog', 'wsrep_on', 'max_allowed_packet',"
    " 'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')"
)
"""Their rows are a name and a value, and a name that a server does not know is simply absent."""

VARIABLES_OF_TIDB: Final = VARIABLES.removesuffix(")") + "".join(f", '{name}'" for name in tidb.NAMES) + ")"

MARIADB_MIN: Final = (10, 6)
"""The first one with JSON_TABLE and SKIP LOCKED."""
MYSQL_MIN: Final = (8, 0)
DOUBLEWRITE_MENDS: Final = frozenset({"ON", "1", "DETECT_AND_RECOVER"})
"""MySQL's DETECT_ONLY says that a page was half written, and has nothing to mend it with."""
PACKET_BYTES_MIN: Final = 16_777_216
"""The server's own default; a flush of the largest batch, escaped, is below it."""


def refusal(variables: Mapping[str, str]) -> tuple[str, str]:
    """Why this server, or this session on it, cannot be worked with, and the mend; ("", "") if it can."""
    version = variables["version"]
    found = re.match(r"(\d+)\.(\d+)", version)
    numbers = (int(found[1]), int(found[2])) if found else (0, 0)
    is_mariadb = "MariaDB" in version
    if tidb.is_tidb(version):
        why, mend = tidb.refusal(variables)
        if why:
            return why, mend
    elif numbers < (MARIADB_MIN if is_mariadb else MYSQL_MIN):
        return f"the server is {version}, which is too old", "use MariaDB 10.6 or newer, or MySQL 8"
    isolation = variables.get("transaction_isolation") or variables.get("tx_isolation", "")
    if isolation != "READ-COMMITTED":
        return (
            f"its isolation stays {isolation}",
            "let this user set its session's isolation to READ COMMITTED",
        )
    if variables.get("autocommit") != "OFF":
        return "it commits each statement by itself", "take autocommit out of the server's init_connect"
    if variables.get("time_zone") != "+00:00":
        return "its session is not in UTC", "take time_zone out of the server's init_connect"
    packet_bytes = int(variables.get("max_allowed_packet", PACKET_BYTES_MIN))
    if packet_bytes < PACKET_BYTES_MIN:
        return f"max_allowed_packet is {packet_bytes} bytes", f"set it to {PACKET_BYTES_MIN} or more"
    return "", ""


def judge_durability(variables: Mapping[str, str], *, replicated: bool) -> list[str]:
    """What keeps the server from keeping a commit that it answered (PROTOCOL S1); empty if nothing does."""
    if tidb.is_tidb(variables["version"]):
        return tidb.judge_durability(variables)
    faults = [
        f"{name} is on: connect to the primary"
        for name in ("read_only", "super_read_only")
        if variables.get(name, "OFF") not in ("OFF", "0")
    ]
    if variables.get("innodb_flush_log_at_trx_commit") != "1":
        faults.append(
            f"innodb_flush_log_at_trx_commit is {variables.get('innodb_flush_log_at_trx_commit')}, not 1"
        )
    doublewrite = variables.get("innodb_doublewrite", "ON")
    if doublewrite not in DOUBLEWRITE_MENDS:
        faults.append(f"innodb_doublewrite is {doublewrite.lower()}")
    if variables.get("log_bin", "OFF") in ("ON", "1") and variables.get("sync_binlog") != "1":
        faults.append(f"the binary log is on, and sync_binlog is {variables.get('sync_binlog')}, not 1")
    semi_sync = ("rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled")
    is_cluster = variables.get("wsrep_on", "OFF") == "ON"
    if replicated and not is_cluster and not any(variables.get(name, "OFF") == "ON" for name in semi_sync):
        faults.append(
            "semi-synchronous replication is off, although the configuration declares it replicated"
        )
    return faults
