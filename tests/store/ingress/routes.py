"""A database with one published binding that receives two webhooks, and short ways to sign for them."""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from doonce.app.metrics import Metrics
from doonce.base.ids import new_token
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view
from doonce.catalog.pack import read_pack
from doonce.catalog.service import Views
from doonce.db.database import Database
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch
from doonce.events.service import Deriver
from doonce.events.store import claim_unread
from doonce.events.tables import event
from doonce.ingress.endpoint import IngressEndpoint
from doonce.ingress.receipts import RouteKey
from doonce.ingress.service import Ingress, IngressSettings
from doonce.ingress.tables import ingress_gap, ingress_quarantine, ingress_receipt, ingress_rejection
from doonce.ownership import store as ownership
from doonce.ownership.model import Family
from doonce.principals.vault import KeyRing, Vault
from doonce.work.model import Scope
from doonce.work.store import ClaimRequest
from doonce.work.tables import work_item

ORG, INSTALLATION, CAPABILITY = "acme", "main", "shop.events"
DEPLOYMENT = "default"

PACK = b"""
format = "doonce.pack/1"
name = "shop"
version = "1.0.0"
title = "A shop"
auth = { scheme = "none" }

[webhooks.batch]
summary = "A batch of events that is sent again in other batches"
body_bytes_max = 1024
response_deadline = "5s"
answer = { status = 202, body = "ok", retry_after_seconds = 7 }
redelivery = "window"
redelivery_window = "3d"
delivery_id = "Shop-Delivery"
events = { each = "/events", type = "/type", identity = ["/id"] }
verifier = { algorithm = "hmac-sha256", header = "Shop-Signature", encoding = "hex", content = "{body}" }

[webhooks.batch.challenge]
when = [{ json = "/type", equals = "ping" }]
echo = "/challenge"

[webhooks.once]
summary = "Sent once"
response_deadline = "5s"
redelivery = "none"
events = { stable_bodies = true, format = "raw" }
verifier = { algorithm = "hmac-sha256", header = "Shop-Signature", encoding = "hex", content = "{body}" }
"""
BINDING = {
    "format": "doonce.binding/1",
    "org": ORG,
    "installation": INSTALLATION,
    "capability": CAPABILITY,
    "pack": "shop@1.0.0",
    "principal": "nobody",
    "operations": [],
    "webhooks": {"batch": {}, "once": {"accepts_loss": "a test"}},
}

TABLES = {
    table.name: Statement(f"test.ingress.all_{table.name}", lambda dialect, table=table: sa.select(table))
    for table in (event, ingress_gap, ingress_quarantine, ingress_receipt, ingress_rejection, work_item)
}


def view() -> BindingView:
    """The binding's view."""
    return compile_view(read_pack(PACK, {}), read_binding(BINDING), origins=OriginPolicy())


def key(webhook: str) -> RouteKey:
    """The route of a webhook."""
    return RouteKey(ORG, INSTALLATION, CAPABILITY, webhook)


def signed(body: bytes, secret: str = "s") -> str:
    """The signature of a body."""
    return hmac.digest(secret.encode(), body, "sha256").hex()


@dataclass(slots=True)
class Receiver:
    """One process that receives."""

    database: Database
    ingress: Ingress
    views: Views
    vault: Vault
    metrics: Metrics
    endpoint: IngressEndpoint
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)

    async def deliver(
        self,
        webhook: str,
        body: bytes,
        *,
        headers: dict[str, str] | None = None,
        method: str = "POST",
        query: str = "",
        chunks: list[dict[str, Any]] | None = None,
        path: str | None = None,
    ) -> int:
        """Send one delivery, signed unless `headers` are given; the status of the answer."""
        given = {"Shop-Signature": signed(body)} if headers is None else headers
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in given.items()]
        where = path or f"/in/{ORG}/{INSTALLATION}/{CAPABILITY}/{webhook}"
        scope = {
            "type": "http", "method": method, "headers": raw, "query_string": query.encode(), "path": where,
            "raw_path": where.encode(),
        }  # fmt: skip
        messages = list(chunks or [{"type": "http.request", "body": body, "more_body": False}])
        sent: list[Any] = []

        async def receive() -> Any:
            return messages.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        await self.endpoint(scope, receive, send)
        told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        self.answers.append((sent[0]["status"], told, sent[1]["body"]))
        return int(sent[0]["status"])

    async def rows(self, table: str) -> list[dict[str, Any]]:
        """Every row of a table."""

        def read() -> Txn[list[Any]]:
            return (yield from fetch(TABLES[table]))

        names = [column.name for column in TABLES[table].build(None).selected_columns]  # type: ignore[arg-type,attr-defined]
        return [dict(zip(names, row, strict=True)) for row in await self.database.read(read)]

    async def derive(self) -> int:
        """Work what waits in the family `event`; how many items were claimed."""
        request = ClaimRequest(
            family=Family.EVENT.value,
            scopes=(Scope(ORG, INSTALLATION),),
            deployment=DEPLOYMENT,
            owner="prc_test",
            token=new_token(),
            rows_max=100,
            lease_us=30_000_000,
            expiries_max=5,
            alone=False,
        )
        units = await self.database.transact(claim_unread, request)
        deriver = Deriver(self.database, self.views, self.vault, DEPLOYMENT)
        for unit in units:
            await deriver.run(unit)
        return len(units)


async def receiver(database: Database, **settings: Any) -> Receiver:
    """A process that receives, with one active secret for each route."""
    await database.transact(ownership.install, DEPLOYMENT, "release", "op")
    views, vault, metrics = Views(database), Vault(KeyRing.generate()), Metrics()
    await views.publish([view()])
    ingress = Ingress(database, views, vault, metrics, IngressSettings(**settings))
    for webhook in ("batch", "once"):
        await ingress.add_secret(key(webhook), Secret("s"), alone=False)
    return Receiver(database, ingress, views, vault, metrics, IngressEndpoint(ingress))


def now_us() -> int:
    """This host's time."""
    return time.time_ns() // 1_000
