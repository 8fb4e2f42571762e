"""The ASGI endpoint of all routes: `/in/ORG/INSTALLATION/CAPABILITY/WEBHOOK`.

Route, then method and headers, then the body within its bound and time, then the verifier, then one durable receipt,
then the declared answer. What a sender does wrong costs it a fixed, short answer, and us a count.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

import structlog

from doonce.base.errors import DoonceError, Invalid
from doonce.base.limits import LIMITS, check_text
from doonce.db.faults import DatabaseFault
from doonce.ingress.challenge import answer_body, answer_query
from doonce.ingress.model import ChallengeAnswer, Delivery, Reason, Rejected
from doonce.ingress.receipts import Fate, RouteKey
from doonce.ingress.service import Ingress, OpenRoute
from doonce.ingress.verify import verify

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

PREFIX: Final = b"/in/"
HEAD_BYTES_MAX: Final = 16_384
"""Headers of one delivery, names and values; the longest known ones have some 3,000 bytes."""

PLAIN: Final = "text/plain"
SECOND_US: Final = 1_000_000
_IDENTITY: Final = frozenset({b"", b"identity"})

log = structlog.get_logger("doonce.ingress")


@dataclass(frozen=True, slots=True)
class Response:
    """An answer to a provider."""

    status: int
    body: bytes = b""
    content_type: str = PLAIN
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(slots=True, eq=False)
class Refusal(Exception):
    """A delivery that gets no receipt: what is counted, what is answered, and whether a true one may be lost."""

    reason: str
    response: Response
    lost: bool = False


class IngressEndpoint:
    """An ASGI application over one `Ingress`. It takes nothing more once it drains."""

    def __init__(self, ingress: Ingress, admits: Callable[[], bool] = lambda: True) -> None:
        self._ingress = ingress
        self._admits = admits
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; never raises for what is in it."""
        key = route_key(scope)
        if key is None:
            self._ingress.turned_away(None, "no_route", lost=False)
            await _send(send, Response(404))
            return
        known = self._ingress.known(key)
        try:
            response = await self._bounded(key, known, scope, receive)
        except Refusal as refused:
            route = self._ingress.known(key)
            self._ingress.turned_away(route, refused.reason, lost=refused.lost, unseen=key)
            response = refused.response
        await _send(send, response)

    async def _bounded(
        self, key: RouteKey, known: OpenRoute | None, scope: Scope, receive: Receive
    ) -> Response:
        """One delivery within the bounds of this process and the provider's patience."""
        if self._in_flight >= self._ingress.settings.in_flight_max:
            raise Refusal("shed", overload(known), lost=True)
        if not self._admits():
            raise Refusal("draining", overload(known), lost=True)
        self._in_flight += 1
        try:
            deadline_us = known.webhook.response_deadline_us if known is not None else SECOND_US * 3
            async with asyncio.timeout(deadline_us / SECOND_US):
                return await self._answered(key, scope, receive)
        except TimeoutError:
            raise Refusal("deadline", overload(known), lost=True) from None
        except (DoonceError, DatabaseFault) as error:
            log.warning("ingress.unavailable", webhook=key.webhook, fault=type(error).__name__)
            raise Refusal("unavailable", overload(known), lost=True) from error
        except Refusal:
            raise
        except Exception:  # the edge: no fault of ours leaves it
            log.exception("ingress.failed", webhook=key.webhook)
            raise Refusal("internal", overload(known), lost=True) from None
        finally:
            self._in_flight -= 1

    async def _answered(self, key: RouteKey, scope: Scope, receive: Receive) -> Response:
        route = await self._ingress.route(key)
        if route is None:
            raise Refusal("no_route", Response(404))
        headers = tuple((bytes(name), bytes(value)) for name, value in scope["headers"])
        method, query = scope["method"].encode("latin-1"), bytes(scope["query_string"])
        if method != b"POST":
            asked = answer_query(route.webhook, Delivery(method, query, headers, b""))
            if asked is None:
                raise Refusal("method", Response(405, headers=((b"allow", b"POST"),)))
            return _of_challenge(asked)
        self._check_headers(route, headers)
        delivery = Delivery(method, query, headers, await self._read(route, receive))
        decision = verify(route.verifier, delivery, now_us=time.time_ns() // 1_000)
        if isinstance(decision, Rejected):
            raise Refusal(decision.reason.value, Response(401))
        asked = answer_body(route.webhook, delivery)
        if asked is not None:
            return _of_challenge(asked)
        receipt = await self._ingress.receive(route, delivery, decision)
        if isinstance(receipt, Reason):
            raise Refusal(receipt.value, Response(400))
        if receipt.fate is Fate.FULL:
            raise Refusal("quarantine_full", overload(route), lost=True)
        answers = route.webhook.answers
        return Response(answers.status, answers.body.encode(), answers.content_type)

    def _check_headers(self, route: OpenRoute, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        """What the head alone says is refused before one byte of the body is read."""
        if sum(len(name) + len(value) for name, value in headers) > HEAD_BYTES_MAX:
            raise Refusal("head_long", Response(431))
        names = {name for name, _ in headers}
        if b"content-length" in names and b"transfer-encoding" in names:
            raise Refusal(
                "framing", Response(400)
            )  # two lengths: whoever stands before us may believe the other
        for name, value in headers:
            if name == b"content-encoding" and value.strip().lower() not in _IDENTITY:
                raise Refusal("content_encoding", Response(415))
            is_long = (
                name == b"content-length"
                and value.isdigit()
                and int(value[:20]) > route.webhook.body_bytes_max
            )
            if is_long:
                raise Refusal("body_long", Response(413), lost=True)

    async def _read(self, route: OpenRoute, receive: Receive) -> bytes:
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._ingress.settings.read_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal("disconnected", Response(400), lost=True)
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size > route.webhook.body_bytes_max:
                        raise Refusal("body_long", Response(413), lost=True)
                    chunks.append(chunk)
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError:
            raise Refusal("read_deadline", Response(408), lost=True) from None


def route_key(scope: Scope) -> RouteKey | None:
    """The route that a path names, byte for byte: four segments, each decoded once and fit to be stored."""
    if scope["type"] != "http":
        return None
    path = bytes(scope.get("raw_path") or scope["path"].encode())
    if not path.startswith(PREFIX):
        return None
    segments = path[len(PREFIX) :].split(b"/")
    if len(segments) != 4:
        return None
    try:
        org, installation, capability, webhook = (unquote_to_bytes(segment).decode() for segment in segments)
        return RouteKey(
            check_text("org", org, LIMITS.org_bytes_max),
            check_text("installation", installation, LIMITS.installation_bytes_max),
            check_text("capability", capability, LIMITS.capability_bytes_max),
            check_text("webhook", webhook, LIMITS.name_bytes_max),
        )
    except (Invalid, UnicodeDecodeError):
        return None


def path_of(key: RouteKey) -> str:
    """The path of a route, as `route_key` reads it."""
    return PREFIX.decode() + "/".join(quote(part, safe="") for part in key.parts)


def overload(route: OpenRoute | None) -> Response:
    """The provider's declared answer that makes it send again."""
    if route is None:
        return Response(503, headers=((b"retry-after", b"1"),))
    answers = route.webhook.answers
    wait = answers.retry_after_seconds
    return Response(
        answers.overload_status, headers=((b"retry-after", str(wait).encode()),) if wait is not None else ()
    )


def _of_challenge(answer: ChallengeAnswer) -> Response:
    return Response(200, answer.body, answer.content_type)


async def _send(send: Send, response: Response) -> None:
    headers = [
        (b"content-length", str(len(response.body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        *response.headers,
    ]
    if response.body:
        headers.append((b"content-type", response.content_type.encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
