"""The application's inbox as a small ASGI application: `POST /doonce/completions`, and nothing else.

    app = inbox_app(engine.begin, project, Secret(token))

Mount it beside the application's own routes, or serve it alone.
"""

import hmac
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Final, cast

import structlog
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from doonce.base.errors import DoonceError, Internal, Invalid, Unauthenticated
from doonce.base.limits import check_size
from doonce.base.secrets import Secret
from doonce.runtime import inbox
from doonce.runtime.inbox import AsyncProjection, Projection
from doonce.wire import (
    NOTICE_BODY_BYTES_MAX,
    CompletionNotice,
    CompletionReceipt,
    decode,
    encode,
    error_document,
    status_of,
)

COMPLETIONS_PATH: Final = "/doonce/completions"

OpenAnyTransaction = Callable[[], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]
"""Opens a transaction of the application's, commits on leaving and rolls back on an exception."""

AnyProjection = Projection | AsyncProjection

_log: Final = structlog.get_logger("doonce.inbox")


def inbox_app(
    open_transaction: OpenAnyTransaction,
    project: AnyProjection,
    credential: Secret,
    *,
    note: AnyProjection | None = None,
) -> Starlette:
    """Return the ASGI application that applies completion notices; see `inbox.apply`.

    `open_transaction` returns a context manager (then each notice is applied in a worker thread) or an async
    one (then `project` and `note` are coroutine functions). The receipt is answered after the commit, so the
    service either learns that the notice is durably applied or pushes it again.

    A caller without `credential` gets 401, an over-long or malformed body 400 before anything is opened;
    every error has the body `{"error": {"class", "message", "hint"}}`. A fault of the application's own (its
    database, its projection) is logged and answered as 500 without its text.
    """

    async def completions(request: Request) -> Response:
        try:
            _require(request, credential)
            notice = decode(await _body(request), CompletionNotice, bytes_max=NOTICE_BODY_BYTES_MAX)
            receipt = await _apply(open_transaction, notice, project, note)
        except DoonceError as refused:
            _log.warning("inbox.refused", error_class=refused.error_class.value, message=refused.message)
            return _answer(status_of(refused.error_class), encode(error_document(refused)))
        except Exception as failed:  # noqa: BLE001  # the edge: no fault of the application's leaves it
            _log.error("inbox.failed", exc_info=failed)
            hidden = Internal("the application could not apply the notice", hint="push it again later")
            return _answer(status_of(hidden.error_class), encode(error_document(hidden)))
        return _answer(200, encode(receipt))

    return Starlette(routes=[Route(COMPLETIONS_PATH, completions, methods=["POST"])])


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


async def _body(request: Request) -> bytes:
    """Read the whole body; stop at its bound, whatever length was announced."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Invalid("the body must be application/json")
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        check_size("the body", size, NOTICE_BODY_BYTES_MAX)
        chunks.append(chunk)
    return b"".join(chunks)


def _answer(status: int, body: bytes) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return Response(body, status, headers, "application/json")
