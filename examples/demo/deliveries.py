"""The fifth story: a thousand signed deliveries, out of order and again, to a service that is killed in the middle."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import random
import secrets
import signal
import sqlite3
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from examples.demo.scene import INSTALLATION, ORG, Scene
from examples.demo.stage import ROOT

from doonce.app import installing
from doonce.base.secrets import Secret
from doonce.ingress.endpoint import path_of
from doonce.ingress.receipts import RouteKey

ROUTE: Final = RouteKey(ORG, INSTALLATION, "orders.read", "message")
HONEST: Final = 1_000
AGAIN: Final = 300
FORGED: Final = 100
AT_ONCE: Final = 16
KILLED_AFTER: Final = HONEST // 2
ANSWER_SECONDS: Final = 10.0
EVENTS_SECONDS: Final = 30.0
RECEIPTS: Final = "SELECT id FROM ingress_receipt"
EVENTS: Final = """SELECT event.receipt_id, ingress_receipt.body_digest
    FROM event JOIN ingress_receipt ON ingress_receipt.id = event.receipt_id"""


@dataclass(frozen=True)
class Delivery:
    """One message as its provider would sign it."""

    id: str
    body: bytes
    secret: bytes

    def headers(self) -> dict[str, str]:
        """Signed now, as every try is."""
        at = str(int(time.time()))
        signed = b".".join([self.id.encode(), at.encode(), self.body])
        proof = base64.b64encode(hmac.digest(self.secret, signed, "sha256")).decode()
        return {"webhook-id": self.id, "webhook-timestamp": at, "webhook-signature": f"v1,{proof}"}


@dataclass
class Provider:
    """Sends until it hears a success, or a refusal that is final; keeps what it was answered."""

    url: str
    pending: list[Delivery]
    taken: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    unanswered: int = 0

    async def send_all(self) -> None:
        """All of it, so many at a time."""
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            await asyncio.gather(*(self._lane(session) for _ in range(AT_ONCE)))

    async def _lane(self, session: aiohttp.ClientSession) -> None:
        while self.pending:
            delivery = self.pending.pop()
            status = await self._send(session, delivery)
            if 200 <= status < 300:
                self.taken[delivery.id] += 1
            elif status == 401:
                self.refused.append(delivery.id)
            else:
                self.unanswered += 1
                self.pending.insert(0, delivery)
                await asyncio.sleep(0.2)

    async def _send(self, session: aiohttp.ClientSession, delivery: Delivery) -> int:
        try:
            async with session.post(self.url, data=delivery.body, headers=delivery.headers()) as answer:
                await answer.read()
                return answer.status
        except (aiohttp.ClientError, ConnectionError, TimeoutError):
            return 0


async def deliveries(scene: Scene) -> None:
    """Every delivery that was answered with success is one receipt and one event; a forged one is nothing."""
    stage = scene.stage
    stage.act(
        "5  Every delivery is one event",
        f"A provider sends {HONEST:,} signed messages out of order, {AGAIN} of them twice, and a stranger forges "
        f"{FORGED}. The service is killed in the middle.",
    )
    url, secret = await receive(scene)
    provider = Provider(url, messages(secret))
    sending = asyncio.create_task(provider.send_all())
    await stage.until("half of it is taken", lambda: provider.taken.total() >= KILLED_AFTER)
    os.kill(scene.service.pid, signal.SIGKILL)
    stage.check("the service was killed by SIGKILL", await stage.died(scene.service), -signal.SIGKILL)
    stage.say(
        f"{provider.taken.total():,} successes had been answered by then, {len(told(scene))} events made"
    )
    scene.service = await asyncio.to_thread(scene.start_service)
    stage.say(f"a new process (pid {scene.service.pid}) goes on; the provider sends again what got no answer")
    await sending
    stage.say(
        f"{provider.taken.total():,} successes, {len(provider.refused)} refusals, {provider.unanswered} tries without"
    )
    stage.check("every message was answered with success", len(provider.taken), HONEST)
    stage.check("each repetition too", provider.taken.total(), HONEST + AGAIN)
    stage.check("no forged one was", len(provider.refused), FORGED)
    await stage.until("every event is derived", lambda: len(told(scene)) >= HONEST, EVENTS_SECONDS)
    stage.check("the database holds one receipt for each", len(rows(scene, RECEIPTS)), HONEST)
    by_receipt = Counter(row[0] for row in told(scene))
    stage.check("and one event for each receipt", (len(by_receipt), by_receipt.total()), (HONEST, HONEST))
    digests = {f"sha256:{hashlib.sha256(body_of(name)).hexdigest()}" for name in provider.taken}
    stage.check("of exactly the bodies that were answered", {row[1] for row in told(scene)} == digests, True)


async def receive(scene: Scene) -> tuple[str, bytes]:
    """Publish a binding that receives, with a secret; where the provider is to send, and what it signs with."""
    binding: dict[str, Any] = {
        "format": "doonce.binding/1",
        "org": ORG,
        "installation": INSTALLATION,
        "capability": ROUTE.capability,
        "pack": "standard-webhooks@1.0.0",
        "principal": "shop",
        "operations": [],
        "webhooks": {ROUTE.webhook: {}},
    }
    pack = ROOT / "packs" / "standard-webhooks"
    view = await asyncio.to_thread(installing.compiled, pack, binding, scene.settings.egress.origins())
    await installing.install(scene.engine, view, None, reason="the demo")
    secret = secrets.token_bytes(24)
    written = Secret(f"whsec_{base64.b64encode(secret).decode()}")
    await scene.engine.ingress.add_secret(ROUTE, written, alone=False)
    path = path_of(ROUTE)
    scene.stage.say(f"published {view.document.pack}: deliveries come in at {path}")
    return scene.url + path, secret


def messages(secret: bytes) -> list[Delivery]:
    """Everything that is to be sent, shuffled."""
    honest = [Delivery(name, body_of(name), secret) for name in (f"msg_{n:04}" for n in range(HONEST))]
    forged = [Delivery(f"forged_{n}", b'{"type":"order.paid"}', b"guessed") for n in range(FORGED)]
    everything = [*honest, *random.sample(honest, AGAIN), *forged]
    random.shuffle(everything)
    return everything


def body_of(name: str) -> bytes:
    """What a message says."""
    return json.dumps({"type": "order.placed", "data": {"order": name}}).encode()


def rows(scene: Scene, query: str) -> list[tuple[Any, ...]]:
    """What the database's file says, read without doonce."""
    file = scene.stage.folder / "doonce.db"
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def told(scene: Scene) -> list[tuple[Any, ...]]:
    """Each event's receipt, and the digest of that receipt's body."""
    return rows(scene, EVENTS)
