"""The service's HTTP contract in front of the oracle, or of whatever answers a test wants."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.store.runtime.authority import Authority

from doonce.base.secrets import Secret
from doonce.runtime.http_port import HttpHandoffs
from doonce.wire import (
    ACCEPT_BODY_BYTES_MAX,
    REJECT_BODY_BYTES_MAX,
    AcceptBatch,
    AcceptResults,
    RejectBody,
    decode,
    encode,
)

TOKEN = "the service's token"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def answering(accept: Handler, reject: Handler | None = None) -> AsyncIterator[str]:
    """The URL of a service whose two answers a test decides."""
    app = web.Application(client_max_size=ACCEPT_BODY_BYTES_MAX)
    app.router.add_post("/v1/handoffs/accept", accept)
    app.router.add_post("/v1/handoffs/reject", reject or accept)
    async with TestServer(app) as server:
        yield str(server.make_url("/"))


@asynccontextmanager
async def service(accept: Handler, reject: Handler | None = None) -> AsyncIterator[HttpHandoffs]:
    """A port to such a service."""
    async with (
        answering(accept, reject) as url,
        HttpHandoffs(url, Secret(TOKEN), timeout_us=2_000_000) as port,
    ):
        yield port


@asynccontextmanager
async def serving(authority: Authority) -> AsyncIterator[str]:
    """The URL of a service that answers what the oracle says."""

    async def accept(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        batch = decode(await request.read(), AcceptBatch, bytes_max=ACCEPT_BODY_BYTES_MAX)
        results = AcceptResults(results=tuple(await authority.accept(batch.requests)))
        return web.Response(body=encode(results), content_type="application/json")

    async def reject(request: web.Request) -> web.Response:
        body = decode(await request.read(), RejectBody, bytes_max=REJECT_BODY_BYTES_MAX)
        return web.Response(
            body=encode(await authority.reject(body.request)), content_type="application/json"
        )

    async with answering(accept, reject) as url:
        yield url


@asynccontextmanager
async def honest(authority: Authority) -> AsyncIterator[HttpHandoffs]:
    """A port to the oracle."""
    async with serving(authority) as url, HttpHandoffs(url, Secret(TOKEN)) as port:
        yield port
