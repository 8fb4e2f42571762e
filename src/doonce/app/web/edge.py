"""Where HTTP ends and typed calls begin: bounded bodies in, one shape of error out, never a stack trace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec
import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from doonce.base.errors import (
    DeadlineExceeded,
    DoonceError,
    ErrorClass,
    Internal,
    Invalid,
    Unauthenticated,
    Unavailable,
)
from doonce.base.limits import check_size
from doonce.base.secrets import Secret
from doonce.db.faults import CommitUnknown, DatabaseFault, RefusedData
from doonce.trust import Identity, Verifier
from doonce.wire import decode, encode, error_document, status_of

StructT = TypeVar("StructT", bound=msgspec.Struct)
Handler = Callable[[Request], Awaitable[Response]]

JSON: Final = "application/json"
RETRY_AFTER: Final = {ErrorClass.UNAVAILABLE, ErrorClass.EXHAUSTED, ErrorClass.DEADLINE}

log: Final = structlog.get_logger("doonce.api")


def guarded(handler: Handler) -> Handler:
    """The handler, with every failure turned into an error document of a fixed status."""

    async def endpoint(request: Request) -> Response:
        try:
            return await handler(request)
        except DoonceError as refused:
            return refusal(refused)
        except DatabaseFault as fault:
            log.warning("api.database_fault", path=request.url.path, fault=type(fault).__name__)
            return refusal(_of_database(fault))
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception:  # the edge: no fault of ours leaves it
            log.exception("api.failed", path=request.url.path)
            return refusal(Internal("the request failed inside the service", hint="its log says why"))

    return endpoint


def _of_database(fault: DatabaseFault) -> DoonceError:
    if isinstance(fault, RefusedData):
        return Invalid("the database refuses a value of this request; nothing was written")
    if isinstance(fault, CommitUnknown):
        return Unavailable(
            "whether it was written is not known yet", hint="send exactly the same request again"
        )
    return Unavailable("the database is busy; nothing was written", hint="send the same request again")


def refusal(error: DoonceError) -> Response:
    """The one spelling of an error on HTTP."""
    headers: dict[str, str] = {}
    if error.error_class is ErrorClass.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    if error.error_class in RETRY_AFTER:
        headers["Retry-After"] = "1"
    return Response(encode(error_document(error)), status_of(error.error_class), headers, JSON)


def answer(value: msgspec.Struct, status: int = 200) -> Response:
    """A success with its document."""
    return Response(encode(value), status, None, JSON)


async def body(request: Request, kind: type[StructT], *, bytes_max: int, seconds: float) -> StructT:
    """The one document that the body is, read within its bound and time, strictly (see `wire.decode`)."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Invalid("the body must be application/json")
    announced = request.headers.get("content-length", "")
    if announced.isdigit():
        check_size("the body", int(announced[:20]), bytes_max)
    try:
        async with asyncio.timeout(seconds):
            raw = await _read(request, bytes_max)
    except TimeoutError:
        raise DeadlineExceeded("the body did not arrive in time") from None
    return decode(raw, kind, bytes_max=bytes_max)


async def _read(request: Request, bytes_max: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        check_size("the body", size, bytes_max)
        chunks.append(chunk)
    return b"".join(chunks)


async def identified(request: Request, verifier: Verifier) -> Identity:
    """Who asks, by bearer credential; raises `Unauthenticated`, the same for every reason."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("a bearer credential is needed", hint="send `Authorization: Bearer <token>`")
    return await verifier.verify(Secret(token.strip().encode("latin-1")))
