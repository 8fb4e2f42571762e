"""One closed tree of errors: whatever is raised to a caller is one of these classes (DESIGN rule 5)."""

from enum import Enum
from typing import ClassVar


class ErrorClass(str, Enum):
    """The closed set of error classes, as they appear on the wire, in logs and in metrics."""

    UNAUTHENTICATED = "UNAUTHENTICATED"
    INVALID = "INVALID"
    FORBIDDEN = "FORBIDDEN"
    MISSING_OR_DENIED = "MISSING_OR_DENIED"
    CONFLICT = "CONFLICT"
    QUARANTINED = "QUARANTINED"
    STALE = "STALE"
    UNAVAILABLE = "UNAVAILABLE"
    EXHAUSTED = "EXHAUSTED"
    DEADLINE = "DEADLINE"
    INTERNAL = "INTERNAL"

    __str__ = str.__str__


class DoonceError(Exception):
    """An error that is safe to show: its message and hint hold no secret and no payload.

    `message` says what is wrong, `hint` what to do next (it may be empty). The raw fault behind an error, if
    there is one, is its `__cause__`: for the operator's log, never for the caller.
    """

    error_class: ClassVar[ErrorClass] = ErrorClass.INTERNAL

    def __init__(self, message: str, *, hint: str = "", axis: str = "") -> None:
        super().__init__(message)
        if axis and self.error_class is not ErrorClass.STALE:
            raise ValueError("only a stale error names an axis")
        self.message = message
        self.hint = hint
        self.axis = axis

    def __str__(self) -> str:
        return self.message


class Unauthenticated(DoonceError):
    """Nobody has proved who is asking."""

    error_class = ErrorClass.UNAUTHENTICATED


class Invalid(DoonceError):
    """The input can never be accepted as it is; nothing was written."""

    error_class = ErrorClass.INVALID


class Forbidden(DoonceError):
    """A proven identity may not do this."""

    error_class = ErrorClass.FORBIDDEN


class MissingOrDenied(DoonceError):
    """It does not exist, or it belongs to another scope; the two are never told apart."""

    error_class = ErrorClass.MISSING_OR_DENIED


class Conflict(DoonceError):
    """It contradicts a durable fact that stays as it is."""

    error_class = ErrorClass.CONFLICT


class Quarantined(DoonceError):
    """The same key came with other content: a conflict was recorded, the first fact is untouched."""

    error_class = ErrorClass.QUARANTINED


class Stale(DoonceError):
    """What the caller holds is no longer current; `axis` names which fence moved (lease, epoch, …)."""

    error_class = ErrorClass.STALE


class Unavailable(DoonceError):
    """Something needed cannot be reached now; the same call may succeed later."""

    error_class = ErrorClass.UNAVAILABLE


class Exhausted(DoonceError):
    """A bounded resource is full; nothing was started."""

    error_class = ErrorClass.EXHAUSTED


class DeadlineExceeded(DoonceError):
    """The time that was given does not suffice or has run out."""

    error_class = ErrorClass.DEADLINE


class Internal(DoonceError):
    """An invariant of ours does not hold: a fault to report, never a result to interpret."""

    error_class = ErrorClass.INTERNAL
