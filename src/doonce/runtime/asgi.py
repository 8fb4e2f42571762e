"""The application's inbox as a small ASGI application: `POST /doonce/completions`, and `POST /doonce/events`.

    app = inbox_app(engine.begin, project, Secret(token), events=handlers)

Mount it beside the application's own routes, or serve it alone.
"""

import hmac
import traceback
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Final, cast

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from doonce.base.errors import DoonceError, Internal, Invalid, MissingOrDenied, Unauthenticated
from doonce.base.limits import check_size
from doonce.base.secrets import Secret
from doonce.runtime import inbox
from doonce.runtime.events import EventHandlers, event_of
from doonce.runtime.inbox import AsyncEventHandler, AsyncProjection, EventHandler, Projection
from doonce.wire import (
    EVENT_BODY_BYTES_MAX,
    NOTICE_BODY_BYTES_MAX,
    CompletionNotice,
    CompletionReceipt,
    EventNotice,
    EventReceipt,
    decode,
    encode,
    error_document,
    status_of,
)

COMPLETIONS_PATH: Final = "/doonce/completions"
EVENTS_PATH: Final = "/doonce/events"

OpenAnyTransaction = Callable[[], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]
"""Opens a transaction of the application's, commits on leaving and rolls back on an exception."""

AnyProjection = Projection | AsyncProjection

AnyEventHandler = EventHandler | AsyncEventHandler
AnyEventHandlers = EventHandlers[EventHandler] | EventHandlers[AsyncEventHandler]

_log: Final = structlog.get_logger("doonce.inbox")


def inbox_app(
    open_transaction: OpenAnyTransaction,
    project: AnyProjection,
    credential: Secret,
    *,
    note: AnyProjection | None = None,
    events: AnyEventHandlers | None = None,
) -> Starlette:
    """Return the ASGI application that applies completion notices (`inbox.apply`) and takes events (`inbox.take`).

    `open_transaction` returns a context manager (then each notice is applied in a worker thread) or an async
    one (then `project`, `note` and the handlers are coroutine functions). The receipt is answered after the
    commit, so the service either learns that the notice is durably applied or pushes it again.

    A caller without `credential` gets 401, an over-long or malformed body 400 before anything is opened;
    every error has the body `{"error": {"class", "message", "hint"}}`. A fault of the application's own (its
    database, its projection) is logged and answered as 500 without its text.
    """

    async def completions(request: Request) -> msgspec.Struct:
        notice = decode(
            await _body(request, NOTICE_BODY_BYTES_MAX), CompletionNotice, bytes_max=NOTICE_BODY_BYTES_MAX
        )
        return await _apply(open_transaction, notice, project, note)

    routes = [_route(COMPLETIONS_PATH, completions, credential)]
    if events is not None:
        routes.append(_events_route(open_transaction, events, credential))
    return Starlette(routes=routes)


def events_app(
    open_transaction: OpenAnyTransaction, events: AnyEventHandlers, credential: Secret
) -> Starlette:
    """Return the ASGI application that takes events alone, for an application that emits nothing; as `inbox_app`."""
    return Starlette(routes=[_events_route(open_transaction, events, credential)])


def _events_route(
    open_transaction: OpenAnyTransaction, events: AnyEventHandlers, credential: Secret
) -> Route:
    async def take(request: Request) -> msgspec.Struct:
        notice = decode(
            await _body(request, EVENT_BODY_BYTES_MAX), EventNotice, bytes_max=EVENT_BODY_BYTES_MAX
        )
        handler = events.find(event_of(notice))
        if handler is None:
            raise MissingOrDenied("no handler of this application takes this event", hint="register one")
        return await _take(open_transaction, notice, handler)

    return _route(EVENTS_PATH, take, credential)


def _route(path: str, answer: Callable[[Request], Awaitable[msgspec.Struct]], credential: Secret) -> Route:
    """A POST of the service's: its credential, one document in, one out, and no fault of the application's leaves."""

    async def endpoint(request: Request) -> Response:
        try:
            _require(request, credential)
            return _answer(200, encode(await answer(request)))
        except DoonceError as refused:
            _log.warning("inbox.refused", error_class=refused.error_class.value, message=refused.message)
            return _answer(status_of(refused.error_class), encode(error_document(refused)))
        except Exception as failed:  # noqa: BLE001  # the edge
            # As text: a renderer of traces may show the variables of each frame, and with them what was told.
            _log.error("inbox.failed", trace="".join(traceback.format_exception(failed)))
            hidden = Internal("the application could not apply this", hint="push it again later")
            return _answer(status_of(hidden.error_class), encode(error_document(hidden)))

    return Route(path, endpoint, methods=["POST"])


async def _take(
    open_transaction: OpenAnyTransaction, notice: EventNotice, handler: AnyEventHandler
) -> EventReceipt:
    opened = open_transaction()
    if isinstance(opened, AbstractAsyncContextManager):
        async with opened as connection:
            return await inbox.take_async(connection, notice, cast("AsyncEventHandler", handler))

    def inside() -> EventReceipt:
        with opened as connection:
            return inbox.take(connection, notice, cast("EventHandler", handler))

    return await run_in_threadpool(inside)


async def _apply(
    open_transaction: OpenAnyTransaction,
    notice: CompletionNotice,
    project: AnyProjection,
    note: AnyProjection | None,
) -> CompletionReceipt:
    opened = open_transaction()
    if isinstance(opened, AbstractAsyncContextManager):
        async with opened as connection:
            return await inbox.apply_async(
                connection,
                notice,
                cast("AsyncProjection", project),
                note=cast("AsyncProjection | None", note),
            )

    def inside() -> CompletionReceipt:
        with opened as connection:
            return inbox.apply(
                connection, notice, cast("Projection", project), note=cast("Projection | None", note)
            )

    return await run_in_threadpool(inside)


def _require(request: Request, credential: Secret) -> None:
    """Compare as bytes and in constant time; a header that is not there is compared as an empty one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    matches = hmac.compare_digest(token.strip().encode("latin-1", "replace"), credential.reveal_bytes())
    if scheme.lower() != "bearer" or not matches:
        raise Unauthenticated("the completion inbox needs its bearer credential")


async def _body(request: Request, bytes_max: int) -> bytes:
    """Read the whole body; stop at its bound, whatever length was announced."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Invalid("the body must be application/json")
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        check_size("the body", size, bytes_max)
        chunks.append(chunk)
    return b"".join(chunks)


def _answer(status: int, body: bytes) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return Response(body, status, headers, "application/json")
