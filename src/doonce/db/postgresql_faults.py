"""What PostgreSQL's errors prove, by their codes."""

from __future__ import annotations

import asyncpg

from doonce.db.faults import (
    Contended,
    DatabaseFault,
    Disconnected,
    OutOfSpace,
    RefusedData,
    RolledBack,
    SchemaFault,
)

CONNECTION_STATES = ("08", "57P", "53", "25006")
"""Another connection may do better: lost, shutting down, out of connections or memory, a standby."""


def classify(error: Exception) -> DatabaseFault:
    """Sort an error raised before COMMIT was sent: all of them are proven rollbacks (PROTOCOL T1, T6)."""
    state = getattr(error, "sqlstate", None) or ""
    if state == "53100":
        return OutOfSpace(str(error))
    if not isinstance(error, asyncpg.PostgresError) or state.startswith(CONNECTION_STATES):
        return Disconnected(str(error))
    if state in ("55P03", "57014"):
        return Contended(str(error))
    if state.startswith(("22", "23")):
        return RefusedData(str(error))
    if state == "42501":
        return SchemaFault(str(error), "GRANT this user all on doonce's tables, or let it own them")
    if state.startswith(("42", "3F")):
        return SchemaFault(str(error))
    return RolledBack(str(error))
