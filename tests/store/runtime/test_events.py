"""K3: an event is taken once, by the application's own transaction, whatever library opened it."""

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from tests.store.runtime.applications import Application, asyncio_engine, database
from tests.store.runtime.relays import Died
from tests.store.runtime.service import TOKEN
from tests.store.runtime.test_http import error_of, never, post
from tests.unit.wire.test_events import notice

from doonce.base.errors import Conflict, Invalid, Quarantined
from doonce.base.secrets import Secret
from doonce.runtime import inbox, schema
from doonce.runtime.asgi import EVENTS_PATH, events_app, inbox_app
from doonce.runtime.events import Event, EventHandlers
from doonce.wire import EVENT_BODY_BYTES_MAX, EventReceipt, EventState, decode, encode

CONTENT = b'{"id":9007199254740993,"price":1.10}'
PAID = notice(content=CONTENT)


def receipt_of(answer: tuple[int, bytes]) -> EventReceipt:
    code, body = answer
    assert code == 200, body
    return decode(body, EventReceipt, bytes_max=10_000)


def inserting(app: Application) -> EventHandlers[inbox.EventHandler]:
    """A handler that can run once only: a second run breaks the primary key."""
    handlers: EventHandlers[inbox.EventHandler] = EventHandlers()

    @handlers.on("shop.order.paid")
    def paid(connection: Any, event: Event) -> None:
        app.execute(connection, "INSERT INTO things (id, title) VALUES (1, ?)", event.name)

    return handlers


async def push(app: Starlette, body: bytes, **more: Any) -> tuple[int, bytes]:
    return await post(app, body, path=EVENTS_PATH, **more)


async def test_k3_a_pushed_event_is_applied_once_and_answered_alike(app: Application) -> None:
    taking = events_app(app.transaction, inserting(app), Secret(TOKEN))
    first, second = [receipt_of(await push(taking, encode(PAID))) for _ in range(2)]
    assert (first.state, second.state) == (EventState.APPLIED, EventState.DUPLICATE)
    assert (first.event_id, first.notice_digest) == (PAID.event_id, PAID.digest)
    assert second.receipt_id == first.receipt_id
    assert app.rows("SELECT title FROM things") == [("shop.order.paid",)]


async def test_k3_a_handler_that_fails_leaves_nothing_and_is_run_again(plain: Application) -> None:
    handlers: EventHandlers[inbox.EventHandler] = EventHandlers()
    failing = [True]

    @handlers.on("shop.*")
    def handler(connection: Any, event: Event) -> None:
        plain.execute(connection, "INSERT INTO things (id, title) VALUES (1, ?)", event.id)
        if failing.pop() if failing else False:
            raise Died("with a secret in it")

    taking = events_app(plain.transaction, handlers, Secret(TOKEN))
    refused = await push(taking, encode(PAID))
    assert error_of(refused) == (500, "INTERNAL")
    assert b"secret" not in refused[1]
    assert (plain.count("things"), plain.count("doonce_inbox")) == (0, 0)
    assert receipt_of(await push(taking, encode(PAID))).state is EventState.APPLIED


async def test_k3_a_handler_may_ask_once_with_the_same_id(plain: Application) -> None:
    handlers: EventHandlers[inbox.EventHandler] = EventHandlers()
    asked: list[bool] = []

    @handlers.on("shop.*")
    def handler(connection: Any, event: Event) -> None:
        asked.append(inbox.once(connection, event.id))

    taking = events_app(plain.transaction, handlers, Secret(TOKEN))
    await push(taking, encode(PAID))
    assert asked == [True]


async def test_k3_a_handler_that_ends_the_transaction_is_a_fault(plain: Application) -> None:
    handlers: EventHandlers[inbox.EventHandler] = EventHandlers()

    @handlers.on("shop.*")
    def handler(connection: Any, event: Event) -> None:
        connection.commit()

    taking = events_app(plain.transaction, handlers, Secret(TOKEN))
    assert (await push(taking, encode(PAID)))[0] != 200


async def test_k3_it_takes_part_in_the_open_transaction_and_opens_none(app: Application) -> None:
    handler = inserting(app).find(seen())
    assert handler is not None
    with app.without_transaction() as connection, pytest.raises((Conflict, Invalid)):
        inbox.take(connection, PAID, handler)
    assert app.count("doonce_inbox") == 0
    with pytest.raises(Died), app.transaction() as connection:
        taken_and_died(connection, handler)
    assert (app.count("things"), app.count("doonce_inbox")) == (0, 0)


def test_a_notice_that_lies_is_not_taken(plain: Application) -> None:
    lying = decode(
        encode(PAID).replace(PAID.digest.encode(), b"sha256:" + b"f" * 64), type(PAID), bytes_max=10_000
    )
    with plain.transaction() as connection, pytest.raises(Quarantined):
        inbox.take(connection, lying, never)
    assert plain.count("doonce_inbox") == 0


async def test_who_may_not_push_learns_nothing(plain: Application) -> None:
    taking = events_app(plain.transaction, inserting(plain), Secret(TOKEN))
    for token in (None, "", "wrong"):
        assert error_of(await push(taking, encode(PAID), token=token)) == (401, "UNAUTHENTICATED")
    assert plain.count("doonce_inbox") == 0


async def test_what_no_handler_takes_and_what_is_malformed_opens_nothing() -> None:
    taking = events_app(never, EventHandlers(), Secret(TOKEN))
    assert error_of(await push(taking, encode(PAID))) == (404, "MISSING_OR_DENIED")
    for body in (b"", b"{}", b"x" * (EVENT_BODY_BYTES_MAX + 1), encode(PAID)[:-1]):
        assert error_of(await push(taking, body)) == (400, "INVALID")


async def test_both_paths_are_one_application(plain: Application) -> None:
    both = inbox_app(plain.transaction, never, Secret(TOKEN), events=inserting(plain))
    assert receipt_of(await push(both, encode(PAID))).state is EventState.APPLIED
    alone = inbox_app(plain.transaction, never, Secret(TOKEN))
    assert (await push(alone, encode(PAID)))[0] == 404


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
async def test_an_asyncio_application(server: str, tmp_path: Any) -> None:
    with database(server, tmp_path) as address:
        engine = asyncio_engine(server, address)
        async with engine.begin() as connection:
            await connection.run_sync(schema.create)
        taken: list[Event] = []
        handlers: EventHandlers[inbox.AsyncEventHandler] = EventHandlers()

        @handlers.on("shop.*")
        async def handler(_connection: Any, event: Event) -> None:
            taken.append(event)

        taking = events_app(engine.begin, handlers, Secret(TOKEN))
        states = [receipt_of(await push(taking, encode(PAID))).state for _ in range(2)]
        assert states == [EventState.APPLIED, EventState.DUPLICATE]
        assert taken == [seen()]
        assert json.dumps(taken[0].content["id"]) == "9007199254740993"  # type: ignore[index,call-overload]
        await engine.dispose()


def taken_and_died(connection: Any, handler: inbox.EventHandler) -> None:
    """An application that takes the event and dies before its commit."""
    assert inbox.take(connection, PAID, handler).state is EventState.APPLIED
    raise Died


def seen() -> Event:
    """The event of the notice, as a handler gets it."""
    return Event(
        id="evt_1",
        pack="shop",
        type="order.paid",
        org="acme",
        installation="main",
        capability="shop.events",
        webhook="batch",
        receipt_id="ing_1",
        recorded_at_us=7,
        raw=CONTENT,
    )
