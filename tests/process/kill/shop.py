"""A route that receives, processes that serve it and die, and a sender that remembers what it was told.

Nothing of what is held against the database in the end was written by the processes under test: the sender keeps each
answer, and knows each body.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import sqlalchemy as sa
from tests.process.effects.journal import Journal
from tests.process.effects.processes import Process
from tests.process.effects.settings import Armed, WorkerSettings, key_ring
from tests.process.effects.worker import engine_of, open_for_test

from doonce.app import installing
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import OriginPolicy, compile_view
from doonce.catalog.pack import read_pack
from doonce.db.migrate import migrate
from doonce.events.making import content_place
from doonce.events.tables import event
from doonce.ingress.receipts import RouteKey
from doonce.ingress.tables import ingress_quarantine, ingress_receipt, ingress_rejection
from doonce.ownership import store as ownership
from doonce.principals.vault import Vault

ROUTE = RouteKey("acme", "main", "shop.events", "order")
PATH = "/in/acme/main/shop.events/order"
SECRET = "the shop's secret"
AT_ONCE = 6

PACK = b"""
format = "doonce.pack/1"
name = "shop"
version = "1.0.0"
title = "A shop"
auth = { scheme = "none" }

[webhooks.order]
summary = "An order"
response_deadline = "5s"
redelivery = "window"
redelivery_window = "3d"
delivery_id = "Shop-Delivery"
events = { type = "/type", identity = ["/id"] }
verifier = { algorithm = "hmac-sha256", header = "Shop-Signature", encoding = "hex", content = "{body}" }
"""
BINDING = {
    "format": "doonce.binding/1", "org": ROUTE.org, "installation": ROUTE.installation,
    "capability": ROUTE.capability, "pack": "shop@1.0.0", "principal": "nobody", "operations": [],
    "webhooks": {"order": {"handle": ["*"], "push": "away"}},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery, as often as it may be sent. `event` is what it tells of."""

    id: str
    event: str
    body: bytes
    honest: bool = True

    @property
    def digest(self) -> str:
        """As a receipt has it."""
        return "sha256:" + hashlib.sha256(self.body).hexdigest()

    @property
    def headers(self) -> dict[str, str]:
        """Its id and its signature, which a dishonest one has wrong."""
        secret = SECRET if self.honest else "guessed"
        signature = hmac.digest(secret.encode(), self.body, "sha256").hex()
        return {"Shop-Delivery": self.id, "Shop-Signature": signature}


@dataclass(slots=True)
class Sender:
    """A provider: it sends in parallel, again and out of order, and keeps what it was answered."""

    rng: random.Random
    sent: list[Delivery] = field(default_factory=list)
    taken: set[Delivery] = field(default_factory=set)
    refused: int = 0

    def another(self) -> Delivery:
        """Mostly a new delivery; sometimes one again, one with a body of its own under a known id, or a lie."""
        draw = self.rng.random()
        if draw < 0.25 and self.sent:
            return self.rng.choice(self.sent)
        if draw < 0.30 and self.taken:
            first = self.rng.choice(sorted(self.taken, key=lambda one: one.id))
            return self._made(first.id, first.event)
        number = len(self.sent)
        name = (
            f"e{number if draw < 0.9 else self.rng.randint(0, number)}"  # the same event in another delivery
        )
        return self._made(f"d{number}", name, honest=draw > 0.35)

    def _made(self, delivery_id: str, name: str, *, honest: bool = True) -> Delivery:
        body = json.dumps({"type": "order", "id": name, "try": len(self.sent)}).encode()
        made = Delivery(delivery_id, name, body, honest)
        self.sent.append(made)
        return made

    def send_until_dead(self, url: str, process: Process) -> None:
        """Send and send, until the process is dead."""

        async def lane(session: aiohttp.ClientSession) -> None:
            while not process.is_dead():
                await self._send(session, url, self.another())

        async def all_lanes() -> None:
            async with aiohttp.ClientSession() as session, asyncio.timeout(30):
                await asyncio.gather(*(lane(session) for _ in range(AT_ONCE)))

        asyncio.run(all_lanes())

    def send_rest(self, url: str) -> None:
        """Send what was not taken yet, and some that was; all of it is taken now."""

        async def run() -> None:
            rest = [one for one in self.sent if one.honest and one not in self.taken]
            again = self.rng.sample(sorted(self.taken, key=lambda one: one.body), min(20, len(self.taken)))
            async with aiohttp.ClientSession() as session, asyncio.timeout(30):
                for one in [*rest, *again]:
                    status = await self._send(session, url, one)
                    assert status == 200, (status, one)

        asyncio.run(run())

    async def _send(self, session: aiohttp.ClientSession, url: str, one: Delivery) -> int:
        """Send it once; 0 where no answer came."""
        try:
            async with session.post(url + PATH, data=one.body, headers=one.headers) as answer:
                await answer.read()
        except (aiohttp.ClientError, ConnectionError):
            return 0
        if answer.status == 200:
            assert one.honest, "a lie was believed"
            self.taken.add(one)
        else:
            assert answer.status == (503 if one.honest else 401), (answer.status, one)
            self.refused += 1
        return answer.status


@dataclass(slots=True)
class Receivers(ABC):
    """A prepared database, and the processes on it, which receive."""

    url: str
    folder: Path
    key: str
    journal: Journal
    processes: list[Process] = field(default_factory=list)

    @abstractmethod
    def settings(self, **changes: Any) -> WorkerSettings:
        """Of one of the processes."""

    def spawn(self) -> Process:
        """A process that waits for its settings."""
        process = Process("receiver", self.folder / f"receiver-{len(self.processes)}.log")
        self.processes.append(process)
        return process

    def serve(self, process: Process, *armed: Armed) -> str:
        """Let it receive; its address."""
        process.begin(self.settings(armed=armed))
        said = process.hear()
        assert said.startswith(b"http://"), process.tail()
        return said.decode()

    def points(self) -> set[str]:
        """Every named point that any process has reached."""
        return set((self.folder / "points").read_text().split())

    def close(self) -> None:
        """End the processes."""
        for process in self.processes:
            process.close()
        self.journal.close()


@dataclass(slots=True)
class Shop(Receivers):
    """Where orders come in, and nothing goes out."""

    def settings(self, **changes: Any) -> WorkerSettings:
        """Of a process that receives and derives."""
        return WorkerSettings(
            **{
                "url": self.url, "key": self.key, "origin": "http://127.0.0.1:1", "inbox_origin": "http://127.0.0.1:1",
                "inbox_credential": "none", "families": ("event", "push"), "watch": str(self.folder / "points"),
                **changes,
            }
        )  # fmt: skip

    def receipts(self) -> dict[str, set[str]]:
        """The bodies of receipts and of what is quarantined beside one, by table."""
        tables = {"receipt": ingress_receipt, "quarantine": ingress_quarantine}
        return {
            name: {row.body_digest for row in self.journal.rows(sa.select(table.c.body_digest))}
            for name, table in tables.items()
        }

    def is_quiet(self) -> bool:
        """Whether every derivation has ended."""
        return all(item.finished_at is not None for item in self.journal.items("event"))

    def check(self, sender: Sender) -> None:
        """Every success that the sender saw has its receipt and its event; no receipt has two; a lie has none."""
        held = self.receipts()
        for one in sender.taken:
            assert one.digest in held["receipt"] | held["quarantine"], f"{one} was answered, and is lost"
        assert held["receipt"] | held["quarantine"] <= {one.digest for one in sender.sent if one.honest}
        receipts = self.journal.rows(sa.select(ingress_receipt))
        identities = [row.identity for row in receipts]
        assert len(identities) == len(set(identities)), "an identity has two receipts"
        assert len(receipts) == len({one.id for one in sender.sent if one.honest})
        items = self.journal.items("event")
        assert sorted(item.subject_id for item in items) == sorted(row.id for row in receipts)
        assert {item.state for item in items} == {"succeeded"}
        self._check_events({row.id: row for row in receipts}, sender)

    def _check_events(self, receipts: dict[str, Any], sender: Sender) -> None:
        vault = Vault(key_ring(self.key))
        by_body = {one.digest: one for one in sender.sent}
        told = []
        for row in self.journal.rows(sa.select(event)):
            content = json.loads(vault.open_bytes(content_place(row.id), bytes(row.sealed), row.key_id))
            told.append(content["id"])
            assert by_body[receipts[row.receipt_id].body_digest].event == content["id"]
        assert len(told) == len(set(told)), "an event was made twice"
        assert set(told) == {by_body[row.body_digest].event for row in receipts.values()}
        pushes = [item.subject_id for item in self.journal.items("push")]
        assert sorted(pushes) == sorted(row.id for row in self.journal.rows(sa.select(event.c.id))), (
            "not one each"
        )
        firsts = [row.receipt_id for row in self.journal.rows(sa.select(event))]
        assert len(firsts) == len(set(firsts)), "a receipt has two events"

    def rejections(self) -> int:
        """How many lies are counted durably."""
        rows = self.journal.rows(
            sa.select(ingress_rejection).where(ingress_rejection.c.reason == "proof_wrong")
        )
        return sum(row.count for row in rows)


@contextmanager
def opened(url: str, folder: Path) -> Iterator[Shop]:
    """A shop on an empty database; its processes end with it."""
    asyncio.run(migrate(url, install=lambda: ownership.install("default", "test", "first")))
    shop = Shop(url, folder, os.urandom(32).hex(), Journal(url))
    try:
        asyncio.run(_set_up(shop))
        yield shop
    finally:
        shop.close()


async def _set_up(shop: Shop) -> None:
    engine = engine_of(shop.settings(watch=None), open_for_test(shop.url))
    view = compile_view(read_pack(PACK, {}), read_binding(BINDING), origins=OriginPolicy())
    await installing.install(engine, view, None, reason="a test")
    await engine.ingress.add_secret(ROUTE, Secret(SECRET), alone=False)
    await engine.stop()
