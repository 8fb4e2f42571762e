"""Events about a provider's contacts, processes that read each contact and die, and an application of its own.

Nothing of what is held against the journal in the end was written by the processes under test: the simulator keeps a
ledger of every request, and the application's own transaction has each effect.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
import uvicorn
from simulators.launch import Simulator
from tests.e2e.conftest import PACK
from tests.e2e.hydrating import PATH, ROUTE, SECRET, binding, event, signed
from tests.process.effects.journal import Journal
from tests.process.effects.processes import Process
from tests.process.effects.settings import INBOX, WorkerSettings
from tests.process.effects.waiting import until
from tests.process.effects.worker import engine_of, open_for_test
from tests.process.kill.shop import Receivers

from doonce.app import installing
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import OriginPolicy, compile_view
from doonce.catalog.files import load_pack
from doonce.db.migrate import migrate
from doonce.events import tables as event_tables
from doonce.ownership import store as ownership
from doonce.runtime import schema
from doonce.runtime.asgi import EVENTS_PATH, events_app
from doonce.runtime.events import Event, EventHandlers
from doonce.runtime.inbox import EventHandler

CREDENTIAL = "the application's"
CONTACTS = ("1001", "1002", "1003", "1004")
EFFECT = """CREATE TABLE effect (
    seen INTEGER PRIMARY KEY, event TEXT, contact TEXT, number INTEGER, stage TEXT, town TEXT, read_at INTEGER
)"""


@dataclass(slots=True)
class Application:
    """Takes pushed events in transactions of its own, which also have what it saw of each object."""

    engine: sa.Engine
    origin: str = ""

    def take(self, connection: sa.Connection, told: Event) -> None:
        """The handler: one row an event."""
        about, content = told.object, told.content
        assert about is not None
        assert isinstance(content, dict)
        row = (
            told.id,
            about.remote_id,
            content["eventId"],
            *(about.fields.get(name) for name in ("stage", "town")),
        )
        connection.exec_driver_sql(
            "INSERT INTO effect (event, contact, number, stage, town, read_at) VALUES (?, ?, ?, ?, ?, ?)",
            (*row, about.read_at_us),
        )

    def effects(self) -> list[Any]:
        """Every effect, in the order of its commit."""
        with self.engine.connect() as connection:
            return list(connection.exec_driver_sql("SELECT * FROM effect ORDER BY seen").all())


@contextmanager
def application(folder: Path) -> Iterator[Application]:
    """An application that serves while the test runs; it is not among those that die."""
    engine = sa.create_engine(f"sqlite:///{folder / 'application.db'}", connect_args={"timeout": 30})
    with engine.begin() as connection:
        connection.exec_driver_sql(EFFECT)
        schema.create(connection)
    app = Application(engine)
    handlers: EventHandlers[EventHandler] = EventHandlers()
    handlers.on("hubspot.contact.*")(app.take)
    config = uvicorn.Config(
        events_app(engine.begin, handlers, Secret(CREDENTIAL)), port=0, log_level="warning", lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started, "the application")
    app.origin = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield app
    finally:
        server.should_exit = True
        thread.join(30)
        engine.dispose()


@dataclass(slots=True, kw_only=True)
class People(Receivers):
    """What the provider has told of, and whom it is handed over to."""

    simulator: Simulator
    app: Application
    told: list[dict[str, Any]] = field(default_factory=list)
    _unanswered: list[dict[str, Any]] = field(default_factory=list)

    def settings(self, **changes: Any) -> WorkerSettings:
        """Of a process that receives, derives, reads and pushes."""
        return WorkerSettings(
            **{
                "url": self.url, "key": self.key, "origin": self.simulator.url, "inbox_origin": self.app.origin,
                "inbox_credential": CREDENTIAL, "inbox_target": EVENTS_PATH,
                "families": ("event", "hydrate", "push"), "watch": str(self.folder / "points"), **changes,
            }
        )  # fmt: skip

    def tell(self, url: str, process: Process, rng: random.Random) -> None:
        """The provider tells of more changes, and again of what it has no success for, until it has one."""
        for contact in CONTACTS:
            more = [event(contact) for _ in range(rng.randint(1, 2))]
            self.told += more
            self._unanswered += more
        self.tell_rest(url, process)

    def tell_rest(self, url: str, process: Process) -> None:
        """Tell what was not answered; a process that dies first leaves it to the next."""
        if not self._unanswered:
            return
        body = msgspec.json.encode(self._unanswered)
        asked = urllib.request.Request(url + PATH, body, signed(body))
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                assert answer.status == 200
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            until(process.is_dead, "the end of a process that gave no answer")
            return
        self._unanswered.clear()

    def is_quiet(self) -> bool:
        """Whether everything that was told has been handed over."""
        items = [item for family in ("event", "hydrate", "push") for item in self.journal.items(family)]
        return not self._unanswered and all(item.finished_at is not None for item in items)

    def reads(self) -> list[dict[str, Any]]:
        """Every read that reached the provider. It was asked for nothing else."""
        ledger = self.simulator.ledger()
        assert {one["method"] for one in ledger} == {"GET"}
        return ledger

    def check(self) -> None:
        """Each event has had its effect once, in its object's order, with the whole object; none is unknown or dead."""
        effects = self.app.effects()
        assert [row.contact for row in effects if row.stage != "customer" or row.town != row.contact] == []
        assert len({row.event for row in effects}) == len(effects) == len(self.told)
        assert {row.number for row in effects} == {one["eventId"] for one in self.told}
        self._check_order(effects)
        self._check_journal({row.event: row for row in effects})

    def _check_order(self, effects: list[Any]) -> None:
        """An object's places were drawn in the order of a delivery's events, and every successor kept its own."""
        lanes = {
            item.subject_id: (item.source_lane, item.source_position)
            for item in self.journal.items("hydrate")
        }
        receipts = {row.id: row.receipt_id for row in self.journal.rows(sa.select(event_tables.event))}
        for contact in CONTACTS:
            mine = [row for row in effects if row.contact == contact]
            assert [lanes[row.event] for row in mine] == sorted(lanes[row.event] for row in mine)
            for receipt in {receipts[row.event] for row in mine}:
                numbers = [row.number for row in mine if receipts[row.event] == receipt]
                assert numbers == sorted(numbers)

    def _check_journal(self, effects: dict[str, Any]) -> None:
        stored = {row.event_id: row for row in self.journal.rows(sa.select(event_tables.event_object))}
        assert {name: row.read_at for name, row in effects.items()} == {
            name: row.read_at for name, row in stored.items()
        }
        attempts = self.journal.attempts()
        assert {one.kind for one in attempts} == {"hydration"}
        assert all(one.outcome in READ_ENDS for one in attempts)
        accepted = {one.subject_id: one.id for one in attempts if one.outcome == "ACCEPTED"}
        assert accepted == {name: row.attempt_id for name, row in stored.items()}, (
            "one good read an event, and kept"
        )
        assert len(accepted) == len([one for one in attempts if one.outcome == "ACCEPTED"])
        arrived = len(self.reads())
        assert len(accepted) <= arrived <= len([one for one in attempts if one.dispatched_at is not None])
        assert not self.journal.items("reconcile")
        for family in ("event", "hydrate", "push"):
            assert {item.state for item in self.journal.items(family)} == {"succeeded"}
        read, handed = (
            {item.id: item for item in self.journal.items(family)} for family in ("hydrate", "push")
        )
        assert sorted(item.predecessor for item in handed.values()) == sorted(read)
        for item in handed.values():
            before = read[item.predecessor]
            assert (item.source_lane, item.source_position) == (before.source_lane, before.source_position)


READ_ENDS = frozenset({"ACCEPTED", "RETRYABLE_PRE_DISPATCH", "REPLAY_SAFE_RETRY"})


@contextmanager
def opened(url: str, folder: Path, simulator: Simulator) -> Iterator[People]:
    """People on an empty database; their processes end with them."""
    asyncio.run(migrate(url, install=lambda: ownership.install("default", "test", "first")))
    simulator.seed(
        *({"id": name, "properties": {"lifecyclestage": "customer", "city": name}} for name in CONTACTS)
    )
    with application(folder) as app:
        people = People(url, folder, os.urandom(32).hex(), Journal(url), simulator=simulator, app=app)
        try:
            asyncio.run(_set_up(people))
            yield people
        finally:
            people.close()


async def _set_up(people: People) -> None:
    engine = engine_of(people.settings(watch=None), open_for_test(people.url))
    view = compile_view(
        load_pack(PACK),
        read_binding(binding(people.simulator.url, push=INBOX)),
        origins=OriginPolicy(undeclared=True, plain_http=True),
    )
    await installing.install(engine, view, Secret("token"), reason="a test")
    await engine.ingress.add_secret(ROUTE, Secret(SECRET), alone=False)
    await engine.stop()
