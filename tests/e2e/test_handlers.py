"""Handlers of an application that embeds doonce: each event once, in its object's order, whatever they do."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.e2e.conftest import QUICK, deployment, until
from tests.store.ingress.routes import BINDING, INSTALLATION, ORG, PACK, Receiver, key, signed

from doonce import Doonce, Event
from doonce.app.operate.service import Operator
from doonce.base.errors import Conflict, Invalid, MissingOrDenied
from doonce.base.secrets import Secret
from doonce.ingress.endpoint import IngressEndpoint
from doonce.runtime import inbox, schema
from doonce.work.model import Scope

pytestmark = pytest.mark.e2e

SOON = {"base_us": 20_000, "cap_us": 50_000}


def shop(url: str, folder: Path, **policy: Any) -> Doonce:
    """An embedded deployment that tries again soon."""
    return deployment(url, folder, events=QUICK, handlers=QUICK, handler={"policy": SOON | policy})


def bound(**route: Any) -> dict[str, Any]:
    """The binding with this route of its one webhook that is delivered."""
    return BINDING | {"webhooks": {"batch": route, "once": {"accepts_loss": "a test"}}}


@asynccontextmanager
async def receiving(app: Doonce, folder: Path, **route: Any) -> AsyncIterator[Receiver]:
    """The deployment running, with a binding that receives."""
    pack = folder / "shop"
    pack.mkdir(exist_ok=True)
    (pack / "pack.toml").write_bytes(PACK)
    async with app:
        await app.installation(ORG, INSTALLATION, pack=pack, binding=bound(**{"handle": ["*"]} | route))
        await app.engine.ingress.add_secret(key("batch"), Secret("s"), alone=True)
        yield receiver_of(app)


def receiver_of(app: Doonce) -> Receiver:
    """Ways to deliver to a running deployment, and to look at its rows."""
    engine = app.engine
    endpoint = IngressEndpoint(engine.ingress)
    return Receiver(engine.database, engine.ingress, engine.views, engine._vault, engine.metrics, endpoint)


async def deliver(at: Receiver, *events: dict[str, Any], name: str | None = None) -> None:
    raw = json.dumps({"events": [{"type": "made"} | event for event in events]}).encode()
    headers = {"Shop-Signature": signed(raw)} | ({} if name is None else {"Shop-Delivery": name})
    assert await at.deliver("batch", raw, headers=headers) == 202


async def handings(at: Receiver) -> list[dict[str, Any]]:
    """The work of handing events over."""
    return [row for row in await at.rows("work_item") if row["family"] == "handler"]


async def settled(at: Receiver, count: int) -> list[dict[str, Any]]:
    """The work, once so many items have ended."""

    async def ended() -> list[dict[str, Any]]:
        items = await handings(at)
        done = [item for item in items if item["finished_at"] is not None]
        return done if len(done) >= count else []

    return list(await until(ended))


async def test_a_handler_gets_the_event_as_it_was(database_url: str, tmp_path: Path) -> None:
    app = shop(database_url, tmp_path)
    seen: list[Event] = []

    @app.on("shop.made")
    async def made(event: Event) -> None:
        seen.append(event)

    async with receiving(app, tmp_path) as at:
        raw = b'{"events":[{"id":9007199254740993,"type":"made","price":1.10,"new":{"a":null}}]}'
        await at.deliver("batch", raw)
        (item,) = await settled(at, 1)
        (stored,) = await at.rows("event")
    (event,) = seen
    assert event.raw == b'{"id":9007199254740993,"type":"made","price":1.10,"new":{"a":null}}'
    content = event.content
    assert content == {"id": 9007199254740993, "type": "made", "price": Decimal("1.10"), "new": {"a": None}}
    assert (event.name, event.org, event.installation) == ("shop.made", ORG, INSTALLATION)
    assert (event.id, event.receipt_id, event.recorded_at_us) == (
        stored["id"], stored["receipt_id"], stored["derived_at"],
    )  # fmt: skip
    assert (event.capability, event.webhook) == ("shop.events", "batch")
    assert (item["state"], item["summary"]) == ("succeeded", "handled")
    with pytest.raises(AttributeError):
        event.type = "other"  # type: ignore[misc]


async def test_each_event_has_its_effect_once_though_handlers_fail_after_their_commit(
    database_url: str, tmp_path: Path
) -> None:
    app = shop(database_url, tmp_path)
    mine = tmp_path / "mine.db"
    with closing(sqlite3.connect(mine)) as made:
        made.execute("CREATE TABLE effect (event TEXT)")
        made.execute("BEGIN IMMEDIATE")
        schema.create(made)
        made.commit()
    failures: dict[str, int] = {}

    @app.on("shop.*")
    def effect(event: Event) -> None:
        with closing(sqlite3.connect(mine, timeout=30)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            if inbox.once(connection, event.id):
                connection.execute("INSERT INTO effect VALUES (?)", (event.id,))
            failures[event.id] = failures.get(event.id, 0) + 1
            if failures[event.id] == 1:
                raise OSError("before the commit")
            connection.commit()
        if failures[event.id] == 2:
            raise OSError("after it")

    async with receiving(app, tmp_path) as at:
        for number in range(4):
            await deliver(at, {"id": number}, {"id": number + 1}, name=f"d{number}")
        items = await settled(at, 5)
        assert {item["state"] for item in items} == {"succeeded"}
        events = {row["id"] for row in await at.rows("event")}
    with closing(sqlite3.connect(mine)) as connection:
        effects = [row[0] for row in connection.execute("SELECT event FROM effect")]
    assert sorted(effects) == sorted(events)
    assert set(failures.values()) == {3}


async def test_an_object_keeps_its_order_while_one_fails_and_others_go_on(
    database_url: str, tmp_path: Path
) -> None:
    app = shop(database_url, tmp_path)
    order: list[tuple[Any, Any]] = []
    mended = asyncio.Event()

    @app.on("shop.made")
    async def made(event: Event) -> None:
        content: Any = event.content
        if content["id"] == 1 and not mended.is_set():
            raise ValueError("not yet")
        order.append((content["object"], content["id"]))

    async with receiving(app, tmp_path) as at:
        await deliver(at, *({"id": number, "object": 7} for number in (1, 2, 3)), {"id": 4, "object": 8})
        await settled(at, 1)
        first = min(await handings(at), key=lambda row: row["created_at"])
        assert order == [(8, 4)]

        async def tried() -> bool:
            return max(row["failures"] for row in await handings(at)) >= 3

        await until(tried)
        assert order == [(8, 4)], "nothing of the object overtakes the one that fails"
        mended.set()
        await settled(at, 4)
    assert order[1:] == [(7, 1), (7, 2), (7, 3)]
    assert first["source_lane"]


async def test_what_fails_for_good_is_dead_visibly_blocks_its_object_and_is_replayed(
    database_url: str, tmp_path: Path
) -> None:
    app = shop(database_url, tmp_path, failures_max=3)
    mended = threading.Event()
    done: list[int] = []

    @app.on("shop.made")
    def made(event: Event) -> None:
        content: Any = event.content
        if not mended.is_set():
            raise LookupError(f"the password is {'s3cret'}")
        done.append(content["id"])

    async with receiving(app, tmp_path) as at:
        await deliver(at, {"id": 1, "object": 7}, {"id": 2, "object": 7})
        (dead,) = await settled(at, 1)
        assert (dead["state"], dead["failure_class"], dead["failures"]) == ("dead", "not_delivered", 2)
        assert dead["summary"].startswith("LookupError in made (test_handlers.py, line ")
        assert "s3cret" not in dead["summary"]
        mended.set()
        for elsewhere in (Scope("other", INSTALLATION), Scope(ORG, "other")):
            with pytest.raises(MissingOrDenied):
                await Operator(app.engine).replay(dead["id"], elsewhere)
            with pytest.raises(MissingOrDenied):
                await Operator(app.engine).show(dead["subject_id"], elsewhere)
        again = await Operator(app.engine).replay(dead["id"], Scope(ORG, INSTALLATION))
        assert (again.replay_of, again.family) == (dead["id"], "handler")
        await settled(at, 3)
        with pytest.raises(Conflict, match="only dead work is replayed"):
            await Operator(app.engine).replay(again.work_id)
        items = {item["id"]: item for item in await handings(at)}
        assert items[again.work_id]["predecessor"] == dead["id"]
        assert items[again.work_id]["source_position"] == dead["source_position"]
        assert items[dead["id"]]["state"] == "dead"
        (story,) = await app.show(dead["subject_id"])
        assert (story.kind, story.state, story.facts["type"]) == ("event", "handed over", "made")
        assert [moment.event for moment in story.moments] == [
            "event derived", "handler work created", "handler work dead", "handler work created",
            "handler work succeeded",
        ]  # fmt: skip
        assert await app.show(again.work_id) == [msgspec.structs.replace(story, asked=again.work_id)]
    assert done == [1, 2]


async def test_an_event_that_the_binding_hands_to_nobody_says_so(database_url: str, tmp_path: Path) -> None:
    app = shop(database_url, tmp_path)
    async with receiving(app, tmp_path, handle=["paid"]) as at:
        await deliver(at, {"id": 1})

        async def derived() -> list[dict[str, Any]]:
            return await at.rows("event")

        (event,) = await until(derived)
        (story,) = await app.show(event["id"])
        assert (story.state, len(story.moments)) == ("handed to nobody", 1)
        assert b'doonce_events_total{fate="nobody"} 1.0' in at.metrics.text()


async def test_the_most_particular_handler_runs_and_only_that_one(database_url: str, tmp_path: Path) -> None:
    app = shop(database_url, tmp_path)
    ran: list[tuple[str, str]] = []
    for name in ("shop.*", "shop.order.*", "shop.order.paid"):

        @app.on(name)
        def handler(event: Event, name: str = name) -> None:
            ran.append((name, event.type))

    async with receiving(app, tmp_path) as at:
        await deliver(at, *({"id": n, "type": t} for n, t in enumerate(("order.paid", "order.made", "else"))))
        await settled(at, 3)
    assert sorted(ran) == [
        ("shop.*", "else"),
        ("shop.order.*", "order.made"),
        ("shop.order.paid", "order.paid"),
    ]


async def test_plain_functions_do_not_stop_the_loop_and_are_bounded(
    database_url: str, tmp_path: Path
) -> None:
    app = deployment(
        database_url, tmp_path, events=QUICK, handlers=QUICK, handler={"policy": SOON, "threads": 2}
    )
    go, running, most = threading.Event(), threading.Semaphore(0), [0, 0]
    lock = threading.Lock()

    @app.on("shop.made")
    def made(event: Event) -> None:
        with lock:
            most[0] += 1
            most[1] = max(most)
        running.release()
        assert go.wait(30)
        with lock:
            most[0] -= 1

    async with receiving(app, tmp_path) as at:
        await deliver(at, *({"id": number} for number in range(5)))
        for _ in range(2):
            await asyncio.to_thread(running.acquire, timeout=30)  # the loop is free while both threads wait
        go.set()
        await settled(at, 5)
    assert most[1] == 2


async def test_stop_iteration_is_a_failure_and_not_a_handler_that_never_ends(
    database_url: str, tmp_path: Path
) -> None:
    app = shop(database_url, tmp_path, failures_max=1)

    @app.on("shop.made")
    def made(event: Event) -> None:
        next(iter(()))

    async with receiving(app, tmp_path) as at:
        await deliver(at, {"id": 1})
        (dead,) = await settled(at, 1)
    assert (dead["state"], dead["summary"].split(" ")[0]) == ("dead", "RuntimeError")


async def test_an_event_that_no_handler_takes_waits_and_says_so(database_url: str, tmp_path: Path) -> None:
    app = shop(database_url, tmp_path)

    @app.on("shop.other")
    def other(event: Event) -> None:
        pass

    async with receiving(app, tmp_path) as at:
        await deliver(at, {"id": 1})

        async def said() -> list[str]:
            return [row["summary"] for row in await handings(at) if row["failures"]]

        assert (await until(said))[0] == "no handler of this process takes shop.made"
        taken: list[str] = []

        @app.on("shop.made")
        def made(event: Event) -> None:
            taken.append(event.id)

        await settled(at, 1)
    assert len(taken) == 1


async def test_a_name_that_no_binding_hands_over_is_refused(database_url: str, tmp_path: Path) -> None:
    app = shop(database_url, tmp_path)

    @app.on("shop.payed")
    def payed(event: Event) -> None:
        pass

    with pytest.raises(Invalid, match=r"hands 'shop.payed' to a handler here; handed over is shop.paid"):
        async with receiving(app, tmp_path, handle=["paid"]):
            pass


async def test_the_binding_maps_what_the_provider_owns(database_url: str, tmp_path: Path) -> None:
    app = shop(database_url, tmp_path)
    seen: list[Event] = []

    @app.on("shop.*")
    async def item(event: Event) -> None:
        seen.append(event)

    async with receiving(app, tmp_path) as at:
        crm = await app.installation(ORG, INSTALLATION, pack=tmp_path / "shop", binding=bound(handle=["*"]))
        link = await crm.link("item", local="42", remote="7")
        with pytest.raises(Invalid, match="links no 'deal'"):
            await crm.link("deal", local="42", remote="7")
        raw = b'{"events":[{"id":1,"type":"item.new","object":7,"fields":{"price":1.10,"label":"x","stock":null}}]}'
        await at.deliver("batch", raw)
        await settled(at, 1)
        await deliver(
            at, {"id": 2, "type": "item.gone", "object": 7}, {"id": 3, "type": "item.new", "object": 8}
        )
        await deliver(at, {"id": 4, "type": "order.paid", "object": 7})
        await settled(at, 4)
        (story,) = await app.show(link.id)
        assert (story.state, story.facts["record"]) == ("suspended", "42")
    told = {event.content["id"]: event.object for event in seen}  # type: ignore[index,call-overload]
    assert told[1] is not None
    assert told[1].fields == {"cost": Decimal("1.10"), "left": None}
    assert (told[1].kind, told[1].remote_id, told[1].deleted) == ("item", "7", False)
    assert (told[1].link, told[1].local_ref) == (link.id, "42")
    assert told[2] is not None
    assert (told[2].deleted, told[2].fields, told[2].local_ref) == (True, {}, "42")
    assert told[3] is not None
    assert (told[3].remote_id, told[3].link, told[3].local_ref) == ("8", None, None)
    assert told[4] is None


@pytest.mark.parametrize("name", ["", "shop", "shop.", ".made", "*", "*.made", "shop.ma*de", "shop.\n"])
def test_a_text_that_names_no_event_is_refused(name: str) -> None:
    with pytest.raises(Invalid):
        Doonce("sqlite:///nowhere.db").on(name)


def test_a_name_is_taken_once() -> None:
    app = Doonce("sqlite:///nowhere.db")
    app.on("shop.made")(lambda event: None)
    with pytest.raises(Invalid, match="has a handler already"):
        app.on("shop.made")
