"""The two HTTP edges of the application's side: asking the service, and being told by it."""

import asyncio
import itertools
from collections.abc import Iterable
from typing import Any

import pytest
from aiohttp import web
from starlette.applications import Starlette
from starlette.types import Message
from tests.store.runtime.applications import Application, asyncio_engine, database
from tests.store.runtime.authority import Authority
from tests.store.runtime.relays import Died, drain, emit, status
from tests.store.runtime.service import TOKEN, Handler, honest, service

from doonce.base.digests import digest_bytes
from doonce.base.errors import (
    DeadlineExceeded,
    DoonceError,
    Forbidden,
    Invalid,
    Quarantined,
    Unauthenticated,
    Unavailable,
)
from doonce.base.secrets import Secret
from doonce.runtime import outbox, schema
from doonce.runtime.asgi import inbox_app
from doonce.runtime.handoffs import EmbeddedHandoffs
from doonce.runtime.http_port import HttpHandoffs
from doonce.runtime.model import OutboxState
from doonce.wire import (
    NOTICE_BODY_BYTES_MAX,
    AcceptRequest,
    Admission,
    AdmissionState,
    CompletionNotice,
    CompletionOutcome,
    CompletionReceipt,
    ErrorDocument,
    HandoffScope,
    ReceiptState,
    RejectRequest,
    decode,
    encode,
    error_document,
    status_of,
)


async def test_rows_are_accepted_and_rejected_over_http(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    kept, withdrawn = emit(plain, scope, payload=b'{"n": 1.50}'), emit(plain, scope)
    with plain.transaction() as connection:
        outbox.withdraw(connection, withdrawn)
    async with honest(authority) as port:
        await drain(plain, port)

    assert status(plain, kept).state is OutboxState.ACCEPTED
    assert status(plain, withdrawn).state is OutboxState.REJECTED
    (request,) = [one for one in authority.requests.values() if isinstance(one, AcceptRequest)]
    assert request.payload == b'{"n": 1.50}'


@pytest.mark.parametrize("error", [Forbidden("no", hint="ask"), Unauthenticated("no"), Quarantined("no")])
async def test_a_named_error_comes_back_as_itself(scope: HandoffScope, error: DoonceError) -> None:
    async def refuse(_request: web.Request) -> web.Response:
        return web.Response(body=encode(error_document(error)), status=status_of(error.error_class))

    async with service(refuse) as port:
        with pytest.raises(type(error), match="no") as raised:
            await port.reject(rejection(scope))
    assert raised.value.hint == error.hint


async def _silent(_request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError("never")


async def _redirect(request: web.Request) -> web.Response:
    if "followed" not in request.query:
        return web.Response(status=307, headers={"Location": "?followed"})
    admission = Admission(
        key="handoff:1.a",
        state=AdmissionState.HANDOFF_REJECTED,
        command_id=None,
        receipt_id="hnd_1",
        recorded_at_us=1,
        reason="",
    )
    return web.Response(body=encode(admission))


async def _html(_request: web.Request) -> web.Response:
    return web.Response(text="<html>", status=502)


async def _nonsense(_request: web.Request) -> web.Response:
    return web.Response(body=b'{"results":[]} {}')


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * 65_536)


async def _hang_up(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@pytest.mark.parametrize(
    "handler,expected",
    [
        (_silent, DeadlineExceeded),
        (_redirect, Unavailable),
        (_html, Unavailable),
        (_nonsense, Unavailable),
        (_endless, Unavailable),
        (_hang_up, Unavailable),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
async def test_whatever_is_no_answer_is_asked_again(
    scope: HandoffScope, handler: Handler, expected: type[DoonceError]
) -> None:
    async with service(handler) as port:
        with pytest.raises(expected):
            await port.reject(rejection(scope))


async def test_a_service_that_is_not_there(scope: HandoffScope) -> None:
    async with HttpHandoffs("http://127.0.0.1:9", Secret(TOKEN)) as port:
        with pytest.raises(Unavailable, match="cannot be reached"):
            await port.reject(rejection(scope))


def test_a_url_must_be_one() -> None:
    with pytest.raises(Invalid, match="http"):
        HttpHandoffs("localhost:80", Secret(TOKEN))


def rejection(scope: HandoffScope) -> RejectRequest:
    return RejectRequest(
        key="handoff:1.a", scope=scope, payload_digest="sha256:" + "a" * 64, outbox_id="obx_1"
    )


# ---------------------------------------------------------------------------------------------- the completion inbox

JSON = "application/json"


async def post(
    app: Starlette,
    body: bytes | Iterable[bytes],
    *,
    token: str | None = TOKEN,
    kind: str = JSON,
    path: str = "/doonce/completions",
    method: str = "POST",
) -> tuple[int, bytes]:
    """Call an ASGI application as a server would, the body in pieces."""
    headers = [(b"content-type", kind.encode())]
    if token is not None:
        headers.append((b"authorization", f"Bearer {token}".encode("latin-1")))
    if isinstance(body, bytes):
        body = [body[at : at + 100_000] for at in range(0, len(body), 100_000)]
    pieces = iter(body)
    sent: list[Message] = []

    async def receive() -> Message:
        piece = next(pieces, None)
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    async def send(message: Message) -> None:
        sent.append(message)

    connection: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    await app(connection, receive, send)
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


def error_of(answer: tuple[int, bytes]) -> tuple[int, str]:
    status_code, body = answer
    return status_code, decode(body, ErrorDocument, bytes_max=10_000).error.kind.value


async def ended(plain: Application, scope: HandoffScope, authority: Authority) -> CompletionNotice:
    outbox_id = emit(plain, scope)
    await drain(plain, EmbeddedHandoffs(authority.accept, authority.reject))
    return authority.complete(status(plain, outbox_id).handoff_key, CompletionOutcome.ACCEPTED)


async def test_a_pushed_notice_is_applied_and_answered(
    app: Application, scope: HandoffScope, authority: Authority
) -> None:
    notice = await ended(app, scope, authority)

    def project(connection: Any, notice: CompletionNotice) -> None:
        app.execute(connection, "INSERT INTO things (id, title) VALUES (1, ?)", notice.outcome.value)

    inbox = inbox_app(app.transaction, project, Secret(TOKEN))
    states = []
    for _ in range(2):
        code, body = await post(inbox, encode(notice))
        assert code == 200
        states.append(decode(body, CompletionReceipt, bytes_max=10_000).state)

    assert states == [ReceiptState.APPLIED, ReceiptState.DUPLICATE]
    assert app.rows("SELECT title FROM things") == [("accepted",)]


async def test_who_may_not_push_learns_nothing(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    notice = await ended(plain, scope, authority)
    inbox = inbox_app(plain.transaction, never, Secret(TOKEN))
    for token in (None, "", "wrong", TOKEN + "x", "ü"):
        assert error_of(await post(inbox, encode(notice), token=token)) == (401, "UNAUTHENTICATED")
        assert error_of(await post(inbox, b"{", token=token)) == (401, "UNAUTHENTICATED")

    assert plain.count("doonce_inbox") == 0


async def test_a_malformed_push_is_refused_before_anything_is_opened() -> None:
    inbox = inbox_app(never, never, Secret(TOKEN))
    for body in (b"", b"{", b"{}", b'{"a":1,"a":2}', b"x" * (NOTICE_BODY_BYTES_MAX + 1)):
        assert error_of(await post(inbox, body)) == (400, "INVALID")
    assert error_of(await post(inbox, b"{}", kind="text/plain")) == (400, "INVALID")
    assert (await post(inbox, b"{}", path="/elsewhere"))[0] == 404
    assert (await post(inbox, b"{}", method="GET"))[0] == 405


async def test_a_body_over_its_bound_is_not_read_to_its_end() -> None:
    inbox, read = inbox_app(never, never, Secret(TOKEN)), itertools.count()
    pieces = (b" " * 100_000 for _ in zip(range(100), read, strict=False))

    assert error_of(await post(inbox, pieces)) == (400, "INVALID")
    assert next(read) <= NOTICE_BODY_BYTES_MAX // 100_000 + 2


async def test_an_unknown_row_and_a_conflict_are_typed(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    notice = await ended(plain, scope, authority)
    inbox = inbox_app(plain.transaction, never, Secret(TOKEN))
    lying = encode(notice).replace(notice.digest.encode(), b"sha256:" + b"f" * 64)
    assert error_of(await post(inbox, lying)) == (422, "QUARANTINED")
    with plain.transaction() as connection:
        plain.execute(connection, "DELETE FROM doonce_outbox")
    assert error_of(await post(inbox, encode(notice))) == (404, "MISSING_OR_DENIED")


async def test_a_fault_of_the_application_stays_inside(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    notice = await ended(plain, scope, authority)

    def failing(_connection: Any, _notice: CompletionNotice) -> None:
        raise Died("with a secret in it")

    answer = await post(inbox_app(plain.transaction, failing, Secret(TOKEN)), encode(notice))

    assert error_of(answer) == (500, "INTERNAL")
    assert b"secret" not in answer[1]
    assert plain.count("doonce_inbox") == 0


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
async def test_an_asyncio_application(
    server: str, tmp_path: Any, authority: Authority, scope: HandoffScope
) -> None:
    with database(server, tmp_path) as address:
        engine = asyncio_engine(server, address)
        async with engine.begin() as connection:
            await connection.run_sync(schema.create)
            outbox_id = await outbox.emit_async(
                connection, scope=scope, operation="person.update", payload={}, local_ref="42"
            )
            row = await outbox.status_async(connection, outbox_id)
        await authority.accept(
            [
                AcceptRequest(
                    key=row.handoff_key,
                    scope=scope,
                    outbox_id=outbox_id,
                    operation="person.update",
                    local_ref="42",
                    link=None,
                    payload=b"{}",
                    payload_digest=digest_bytes(b"{}"),
                    source_lane=None,
                )
            ]
        )
        projected: list[str] = []

        async def project(_connection: Any, notice: CompletionNotice) -> None:
            projected.append(notice.outcome.value)

        notice = authority.complete(row.handoff_key, CompletionOutcome.ACCEPTED)
        code, _body = await post(inbox_app(engine.begin, project, Secret(TOKEN)), encode(notice))
        assert (code, projected) == (200, ["accepted"])
        await engine.dispose()


def never(*_arguments: Any) -> Any:
    raise AssertionError("nothing must be opened or projected")
