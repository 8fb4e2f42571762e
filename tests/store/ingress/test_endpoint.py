"""Whatever is wrong with a request costs a short answer and a reasoned count; what may be lost for good opens a gap."""

import asyncio
from typing import Any

import pytest
from tests.store.ingress.routes import BINDING, PACK, receiver, signed

from doonce.catalog.binding import read_binding
from doonce.catalog.compile import OriginPolicy, compile_view
from doonce.catalog.pack import read_pack
from doonce.db.database import Database
from doonce.ingress import secrets

BODY = b'{"events":[]}'
END = {"type": "http.request", "body": b"", "more_body": False}


def part(body: bytes) -> dict[str, Any]:
    """A piece of a body that goes on."""
    return {"type": "http.request", "body": body, "more_body": True}


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "a wrong signature": ({"headers": {"Shop-Signature": signed(b"x")}}, 401, "proof_wrong"),
    "no signature": ({"headers": {}}, 401, "proof_missing"),
    "another method": ({"method": "PUT"}, 405, "method"),
    "a GET that asks nothing": ({"method": "GET"}, 405, "method"),
    "a compressed body": ({"headers": {"Content-Encoding": "gzip"}}, 415, "content_encoding"),
    "a length over the bound": ({"headers": {"Content-Length": "1025"}}, 413, "body_long"),
    "a body over the bound": ({"chunks": [part(b"x" * 1_000), part(b"x" * 25), END]}, 413, "body_long"),
    "a sender that leaves": ({"chunks": [part(b"x"), {"type": "http.disconnect"}]}, 400, "disconnected"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_each_fault_has_its_answer_and_its_count(database: Database, case: str) -> None:
    request, status, reason = REFUSED[case]
    at = await receiver(database)
    for _ in range(3):
        assert await at.deliver("batch", BODY, **request) == status
        await at.ingress.flush_tallies()
    (row,) = await at.rows("ingress_rejection")
    assert (row["reason"], row["count"], row["webhook"]) == (reason, 3, "batch")
    assert not await at.rows("ingress_receipt")
    assert not await at.rows("ingress_gap")  # this provider sends again


@pytest.mark.parametrize(
    "path",
    [
        "/in/acme/main/shop.events", "/in/acme/main/shop.events/batch/", "/in/acme/main/shop.events/other",
        "/in/other/main/shop.events/batch", "/in/acme/main/../shop.events/batch", "/in//main/shop.events/batch",
        "/in/acme%2Fmain/main/shop.events/batch", "/in/acme/main/shop.events/batch%00", "/in/%ff/a/b/c", "/in/",
        "/in/" + "x" * 5_000 + "/main/shop.events/batch",
    ],
)  # fmt: skip
async def test_a_path_that_is_no_route_is_missing(database: Database, path: str) -> None:
    at = await receiver(database)
    assert await at.deliver("batch", BODY, path=path) == 404
    await at.ingress.flush_tallies()
    assert not await at.rows("ingress_rejection")


async def test_a_challenge_is_answered_and_leaves_nothing(database: Database) -> None:
    at = await receiver(database)
    assert await at.deliver("batch", b'{"type":"ping","challenge":"c1"}') == 200
    status, headers, body = at.answers[0]
    assert (status, headers["content-type"], body) == (200, "text/plain", b"c1")
    assert headers["x-content-type-options"] == "nosniff"
    assert not await at.rows("ingress_receipt")


async def test_a_challenge_that_nobody_proves_is_not_answered(database: Database) -> None:
    at = await receiver(database)
    asked = b'{"type":"ping","challenge":"c1"}'
    assert await at.deliver("batch", asked, headers={"Shop-Signature": signed(asked, "guessed")}) == 401
    assert at.answers[0][2] == b""


async def test_a_challenge_by_get_is_answered_where_the_pack_says_so(database: Database) -> None:
    """Before any body, on a route with a secret; whatever does not ask exactly so is another method."""
    at = await receiver(database)
    asking = b'query_challenge = { when = { "hub.mode" = "subscribe" }, echo = "hub.challenge" }\nevents = {'
    pack = PACK.replace(b"events = {", asking)
    await at.views.publish([compile_view(read_pack(pack, {}), read_binding(BINDING), origins=OriginPolicy())])
    asked = "hub.mode=subscribe&hub.challenge=c%201&hub.verify_token=x"
    assert await at.deliver("once", b"", method="GET", query=asked, headers={}) == 200
    status, headers, body = at.answers[0]
    assert (status, headers["content-type"], body) == (200, "text/plain", b"c 1")
    for query in ("hub.mode=subscribe", asked + "&hub.challenge=d", asked.replace("subscribe", "leave")):
        assert await at.deliver("once", b"", method="GET", query=query, headers={}) == 405
    assert await at.deliver("batch", b"", method="GET", query=asked, headers={}) == 405
    assert not await at.rows("ingress_receipt")


async def test_a_body_that_does_not_end_is_given_up(database: Database) -> None:
    at = await receiver(database, read_seconds=0.05)
    stuck = asyncio.Event()

    async def receive() -> Any:
        await stuck.wait()

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    path = "/in/acme/main/shop.events/once"
    scope = {
        "type": "http", "method": "POST", "headers": [], "query_string": b"", "path": path,
        "raw_path": path.encode(),
    }  # fmt: skip
    await at.endpoint(scope, receive, send)
    assert sent[0]["status"] == 408
    await at.ingress.flush_tallies()
    (gap,) = await at.rows("ingress_gap")
    assert (gap["webhook"], gap["losses"], gap["closed_at"]) == ("once", 1, None)


async def test_overload_sheds_with_the_declared_answer_and_opens_one_gap(database: Database) -> None:
    at = await receiver(database)
    assert await at.deliver("once", BODY) == 200
    assert await at.deliver("batch", BODY) == 202
    at.endpoint._in_flight = at.ingress.settings.in_flight_max
    for _ in range(3):
        assert await at.deliver("once", BODY) == 503
        assert await at.deliver("batch", BODY) == 503
        assert at.answers[-1][1]["retry-after"] == "7"
        await at.ingress.flush_tallies()
    (gap,) = await at.rows("ingress_gap")
    assert (gap["webhook"], gap["sequence"], gap["losses"]) == ("once", 1, 3)
    assert {row["reason"] for row in await at.rows("ingress_rejection")} == {"shed"}


async def test_what_is_counted_survives_a_database_that_does_not_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from doonce.base.errors import Unavailable

    at = await receiver(database)
    await at.deliver("batch", BODY, headers={})

    async def failing(*_: Any) -> Any:
        raise Unavailable("down")

    with monkeypatch.context() as patched:
        patched.setattr(type(database), "transact", failing)
        await at.ingress.flush_tallies()
        assert await at.deliver("once", BODY) == 503
    await at.ingress.flush_tallies()
    counted = {row["reason"]: row["count"] for row in await at.rows("ingress_rejection")}
    assert counted == {"proof_missing": 1, "unavailable": 1}
    assert len(await at.rows("ingress_gap")) == 1


async def test_deliveries_that_come_together_open_their_route_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = await receiver(database, routes_every_ms=1)
    opened: list[Any] = []
    read = type(database).read

    async def counted(self: Database, operation: Any, *args: Any) -> Any:
        opened.append(operation)
        return await read(self, operation, *args)

    monkeypatch.setattr(type(database), "read", counted)
    bodies = [b"%d" % number for number in range(30)]
    assert await asyncio.gather(*(at.deliver("once", body) for body in bodies)) == [200] * 30
    assert opened.count(secrets.active) == 1
    assert len(await at.rows("ingress_receipt")) == 30


async def test_a_route_that_does_not_open_is_told_to_all_who_wait(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from doonce.base.errors import Unavailable

    at = await receiver(database)

    async def failing(*_: Any) -> Any:
        await asyncio.sleep(0)
        raise Unavailable("down")

    with monkeypatch.context() as patched:
        patched.setattr(type(database), "read", failing)
        answers = await asyncio.gather(*(at.deliver("once", b"%d" % number) for number in range(10)))
        assert answers == [503] * 10
    assert await at.deliver("once", b"again") == 200
