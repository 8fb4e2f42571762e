"""One spelling of an error on HTTP, for the service and for the application's inbox."""

from typing import Final

import msgspec

from doonce.base.errors import (
    Conflict,
    DeadlineExceeded,
    DoonceError,
    ErrorClass,
    Exhausted,
    Forbidden,
    Internal,
    Invalid,
    MissingOrDenied,
    Quarantined,
    Stale,
    Unauthenticated,
    Unavailable,
)

_STATUS: Final[dict[ErrorClass, int]] = {
    ErrorClass.UNAUTHENTICATED: 401,
    ErrorClass.INVALID: 400,
    ErrorClass.FORBIDDEN: 403,
    ErrorClass.MISSING_OR_DENIED: 404,
    ErrorClass.CONFLICT: 409,
    ErrorClass.QUARANTINED: 422,
    ErrorClass.STALE: 412,
    ErrorClass.UNAVAILABLE: 503,
    ErrorClass.EXHAUSTED: 429,
    ErrorClass.DEADLINE: 504,
    ErrorClass.INTERNAL: 500,
}

_RAISED: Final[dict[ErrorClass, type[DoonceError]]] = {
    kind.error_class: kind
    for kind in (
        Unauthenticated,
        Invalid,
        Forbidden,
        MissingOrDenied,
        Conflict,
        Quarantined,
        Stale,
        Unavailable,
        Exhausted,
        DeadlineExceeded,
        Internal,
    )
}


class ErrorBody(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"kind": "class"}
):
    """The class decides what a caller does next; the texts are for people."""

    kind: ErrorClass
    message: str
    hint: str


class ErrorDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of every answer that is not a success."""

    error: ErrorBody


def status_of(error_class: ErrorClass) -> int:
    """Return the one HTTP status of an error class."""
    return _STATUS[error_class]


def error_document(error: DoonceError) -> ErrorDocument:
    """Return what a caller may see of `error`; never its cause."""
    return ErrorDocument(error=ErrorBody(kind=error.error_class, message=error.message, hint=error.hint))


def raised_from(document: ErrorDocument) -> DoonceError:
    """Return the error that a received document stands for, to be raised by whoever asked."""
    body = document.error
    return _RAISED[body.kind](body.message, hint=body.hint)
