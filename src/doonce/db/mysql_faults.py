"""What the errors of the MySQL wire prove about the transaction that they hit."""

from __future__ import annotations

from typing import Final

from doonce.db.faults import (
    Contended,
    DatabaseFault,
    Disconnected,
    OutOfSpace,
    RefusedData,
    RolledBack,
    SchemaFault,
)

CONTENDED: Final = frozenset({1205, 1317, 1969, 3024, 3572})
REFUSED: Final = frozenset(
    {1048, 1062, 1264, 1292, 1300, 1364, 1366, 1406, 1451, 1452, 1690, 3140, 3819, 4025, 8004, 8025}
)
DENIED: Final = frozenset({1044, 1142, 1143, 1370})
SCHEMA: Final = frozenset({1049, 1051, 1054, 1064, 1146, 1176, 1419})
NO_SPACE: Final = frozenset({1021, 1114})
ELSEWHERE: Final = frozenset(
    {1040, 1041, 1042, 1043, 1047, 1053, 1077, 1158, 1159, 1160, 1161, 1203, 1290, 1836, 1927, 4031}
    | {8027, 8120, 9001, 9002, 9003, 9004, 9005, 9010}
)
"""Another connection may do better: lost, idle too long, shutting down, without a majority, full, read only. On TiDB
also: its placement driver or a region's store gives no answer, or this server does not know the newest tables."""
CLIENT_SIDE: Final = range(2000, 3000)
ROLLED_BACK_AT_COMMIT: Final = frozenset({1213, 1205, 1020})
"""Proven even from COMMIT: a deadlock, or a failed certification. Every other error of it leaves it unknown."""
ROLLED_BACK_AT_COMMIT_OF_TIDB: Final = frozenset({8002, 8022, 8028, 9007})
"""The same for TiDB, each by its documentation: a conflict of writes, a rollback, a table that was changed."""


def wire_error() -> type[Exception]:
    """What the server's own errors are. Imported when first asked for: workers on other engines have no driver here."""
    from asyncmy.errors import MySQLError  # noqa: PLC0415

    return MySQLError


def driver_errors() -> tuple[type[Exception], ...]:
    """All that the driver raises. A `RuntimeError` is the event loop's, of a transport that was closed meanwhile."""
    return (wire_error(), OSError, RuntimeError)  # TimeoutError is an OSError


def code_of(error: BaseException) -> int:
    """The server's number of an error, or 0."""
    code = error.args[0] if error.args else 0
    return code if isinstance(code, int) else 0


def is_rollback_at_commit(error: BaseException, *, of_cluster: bool, of_tidb: bool = False) -> bool:
    """Whether an error of COMMIT proves that nothing was committed.

    A node of a cluster may also have waited too long (1205) for what others decide: there that proves nothing. TiDB has
    numbers of its own for it, and only these are proof there.
    """
    code = code_of(error)
    if of_tidb:
        return code in ROLLED_BACK_AT_COMMIT_OF_TIDB
    return code in ROLLED_BACK_AT_COMMIT and not (of_cluster and code in CONTENDED)


def classify(error: Exception) -> DatabaseFault:
    """Sort an error raised before COMMIT was sent: all of them are proven rollbacks (PROTOCOL T1, T6)."""
    code = code_of(error)
    if not isinstance(error, wire_error()) or code in ELSEWHERE or code in CLIENT_SIDE:
        return Disconnected(str(error))
    if code in NO_SPACE:
        return OutOfSpace(str(error))
    if code in CONTENDED:
        return Contended(str(error))
    if code in REFUSED:
        return RefusedData(str(error))
    if code in DENIED:
        return SchemaFault(str(error), "GRANT ALL PRIVILEGES on this database to this user")
    if code in SCHEMA:
        return SchemaFault(str(error))
    return RolledBack(str(error))
