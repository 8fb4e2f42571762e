"""What a database fault proves about the transaction it hit. Each engine's module sorts its own errors into these."""

from __future__ import annotations


class DatabaseFault(Exception):
    """Base of what an engine reports; the driver's own error is the cause, for operators only."""

    @property
    def code(self) -> str:
        """The engine's own code of the error, or "": its words may carry values, and are not for everybody."""
        cause = self.__cause__
        named = getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorname", None)
        number = cause.args[0] if cause is not None and cause.args else None
        return str(named or (number if isinstance(number, int) else ""))


class RolledBack(DatabaseFault):
    """Proven: nothing of the transaction happened, and the same transaction may succeed when run again."""


class Contended(RolledBack):
    """Proven rollback because a lock was not had in time."""


class Disconnected(RolledBack):
    """Proven rollback: the connection failed before COMMIT was sent, or none could be opened."""


class RefusedData(DatabaseFault):
    """Proven rollback that will repeat: the engine refuses a value (range, NUL, constraint)."""


class OutOfSpace(DatabaseFault):
    """Proven rollback: the disk, or a configured limit of it, is full."""


class SchemaFault(DatabaseFault):
    """Proven rollback: a table or column is missing, or this user may not touch it, or the server cannot serve.

    `hint` says what to do, where it is not a migration.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class CommitUnknown(DatabaseFault):
    """COMMIT was sent and its result is not known. Settle it by running the same transaction again (PROTOCOL T5)."""


def silence(*, committing: bool) -> Disconnected | CommitUnknown:
    """What it proves that a server says nothing: before COMMIT was sent, that it will roll back once we are gone."""
    if committing:
        return CommitUnknown("the server gave no answer to COMMIT in time")
    return Disconnected("the server gave no answer in time")
