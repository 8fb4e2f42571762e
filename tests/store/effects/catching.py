"""A route that loses deliveries, a provider that lists its events, and the real reader between them."""

from __future__ import annotations

import hmac
import json
import time
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from tests.event_list import EventList

from doonce.app.metrics import Metrics
from doonce.base.ids import new_token
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view
from doonce.catalog.pack import read_pack
from doonce.catalog.service import Views
from doonce.db.database import Database
from doonce.db.points import Points
from doonce.db.schema import MICROSECONDS
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch
from doonce.effects.caller import Caller, DispatchSettings
from doonce.effects.catch_up_reader import CatchUpReader
from doonce.effects.catching_up import CatchingUp, claim_catch_ups
from doonce.effects.tables import effect_attempt
from doonce.events.service import Deriver
from doonce.events.store import claim_unread
from doonce.events.tables import event
from doonce.http import Client, NotSent, Replied, Sent, Stage, Stop
from doonce.http import Request as Outgoing
from doonce.ingress.catch_up_service import CatchUps
from doonce.ingress.endpoint import IngressEndpoint
from doonce.ingress.receipts import RouteKey
from doonce.ingress.service import Ingress
from doonce.ingress.tables import ingress_catch_up, ingress_gap, ingress_page, ingress_receipt
from doonce.ownership import store as ownership
from doonce.ownership.model import Family
from doonce.principals.model import Principal
from doonce.principals.service import Principals
from doonce.principals.vault import KeyRing, Vault
from doonce.work.model import Scope
from doonce.work.store import ClaimRequest
from doonce.work.tables import work_item, work_lease, work_ready

ORG, INSTALLATION, CAPABILITY = "acme", "main", "shop.events"
ROUTE = RouteKey(ORG, INSTALLATION, CAPABILITY, "once")
DEPLOYMENT = "default"
SECOND_US = 1_000_000

PACK = """
format = "doonce.pack/1"
name = "shop"
version = "1.0.0"
title = "A shop"
origins = ["https://api.shop.example"]
auth = { scheme = "header", header = "Authorization", prefix = "Bearer " }

[operations."event.list"]
summary = "List events"
method = "GET"
target = "/events"
payload_schema = "empty.json"
link = "none"
call_budget = "10s"
send_window = "2s"
evidence = [{ json = "/data" }]

[webhooks.once]
summary = "Sent once"
response_deadline = "5s"
redelivery = "none"
events = { type = "/type", identity = ["/id"], object_id = ["/thing"] }
verifier = { algorithm = "hmac-sha256", header = "Shop-Signature", encoding = "hex", content = "{body}" }

[webhooks.once.reconciliation]
operation = "event.list"
query = { since = "{since}", until = "{until}", after = "{cursor}" }
time_format = "milliseconds"
before = "10s"
after = "1ms"
items = "/data"
cursor = { last_item = "/id" }
more = { json = "/has_more", equals = true }
newest_first = true
pages_max = 5
"""
BINDING = {
    "format": "doonce.binding/1",
    "org": ORG,
    "installation": INSTALLATION,
    "capability": CAPABILITY,
    "pack": "shop@1.0.0",
    "principal": "shop",
    "operations": [],
    "webhooks": {"once": {"handle": ["*"], "push": "app"}},
    "policies": {"retry": {"base": "1ms", "cap": "2ms", "attempts_max": 3}},
}
EMPTY = {"empty.json": b'{"type": "object", "properties": {}, "additionalProperties": false}'}
TABLES = {
    table.name: Statement(f"test.catching.all_{table.name}", lambda dialect, table=table: sa.select(table))
    for table in (
        effect_attempt, event, ingress_catch_up, ingress_gap, ingress_page, ingress_receipt, work_item,
    )
}  # fmt: skip
RUN_NOW = Statement("test.catching.run_now", lambda dialect: sa.update(work_item).values(run_after=1))
READY_NOW = Statement("test.catching.ready_now", lambda dialect: sa.update(work_ready).values(due=1))
LAPSE = Statement(
    "test.catching.lapse",
    lambda dialect: sa.update(work_item).values(lease_until=sa.bindparam("at_us", type_=MICROSECONDS)),
)


OVER = Statement("test.catching.over", lambda dialect: sa.update(work_lease).values(due=1))


def _due_now() -> Txn[None]:
    yield from fetch(RUN_NOW)
    yield from fetch(READY_NOW)


def _lapsed() -> Txn[None]:
    yield from fetch(LAPSE, at_us=1)
    yield from fetch(OVER)


def view(pack: str = PACK, **binding: Any) -> BindingView:
    """The binding's view over a pack."""
    read = read_binding(BINDING | binding)
    return compile_view(read_pack(pack.encode(), EMPTY), read, origins=OriginPolicy())


class Listed(Client):
    """The outbound client's port: it asks the gate, and answers as the provider does."""

    def __init__(self, provider: EventList) -> None:
        self.provider = provider
        self.authorized: list[str] = []
        self.down: list[Sent] = []

    async def send(self, request: Outgoing, *, gate: Any, secret_headers: Any, **given: Any) -> Sent:  # type: ignore[override]
        """As the client does: not one byte before the gate, and none after a Stop."""
        del given
        allowed = await gate()
        if isinstance(allowed, Stop):
            return NotSent(Stage.GATE, allowed.reason)
        if self.down:
            return self.down.pop(0)
        self.authorized.append(secret_headers["Authorization"].reveal_bytes().decode())
        scaled = EventList.answer(self.provider, request.target)
        return Replied(scaled[0], (("content-type", "application/json"),), scaled[1], complete=True)


@dataclass(slots=True)
class Caught:
    """One process that receives and catches up."""

    database: Database
    views: Views
    vault: Vault
    principals: Principals
    principal: Principal
    ingress: Ingress
    endpoint: IngressEndpoint
    catch_ups: CatchUps
    provider: EventList
    client: Listed
    metrics: Metrics
    points: list[str] = field(default_factory=list)

    async def deliver(self, body: bytes) -> int:
        """One signed delivery; the status of the answer."""
        signature = hmac.digest(b"s", body, "sha256").hex()
        path = f"/in/{ORG}/{INSTALLATION}/{CAPABILITY}/once".encode()
        scope = {
            "type": "http", "method": "POST", "headers": [(b"shop-signature", signature.encode())],
            "query_string": b"", "path": path.decode(), "raw_path": path,
        }  # fmt: skip
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.endpoint(scope, receive, send)
        return int(sent[0]["status"])

    async def happens(self, name: str, *, lost: bool, thing: str | None = None) -> None:
        """Something happens at the provider, and its one delivery arrives or is turned away."""
        made = self.provider.make(name, time.time() * 1_000, thing=thing)
        if lost:
            self.ingress.turned_away(await self.ingress.route(ROUTE), "shed", lost=True)
            await self.ingress.flush_tallies()
        else:
            assert await self.deliver(json.dumps(made).encode()) == 200

    def claim_request(self, family: Family, *, alone: bool = False) -> ClaimRequest:
        """Claim all that is due of a family."""
        return ClaimRequest(
            family=family.value, scopes=(Scope(ORG, INSTALLATION),), deployment=DEPLOYMENT, owner="prc_test",
            token=new_token(), rows_max=100, lease_us=30_000_000, expiries_max=5, alone=alone,
        )  # fmt: skip

    async def claim(self) -> list[CatchingUp]:
        """Claim every page that is due, whatever it waits for."""
        await self.database.transact(_due_now)
        return await self.database.transact(claim_catch_ups, self.claim_request(Family.CATCH_UP))

    async def lapse(self) -> None:
        """Every lease has run out: whoever claimed something has died."""
        await self.database.transact(_lapsed)

    def reader(self, database: Database | None = None) -> CatchUpReader:
        """The real one."""
        used = database or self.database
        settings = DispatchSettings(margin_us=5_000_000, evidence_tries_max=1, evidence_pause_seconds=0)
        caller = Caller(used, self.client, self.principals, DEPLOYMENT, self.metrics, settings)
        return CatchUpReader(used, self.views, self.vault, self.principals, caller, DEPLOYMENT, self.metrics)

    async def turn(self) -> int:
        """Work what is due, once; how many pages were claimed."""
        units = await self.claim()
        for unit in units:
            await self.reader().run(unit)
        return len(units)

    async def catch_up(self, turns_max: int = 40) -> None:
        """Begin what has to be read, and read it to its end."""
        await self.catch_ups.attend()
        for _ in range(turns_max):
            if not await self.turn():
                return
        raise AssertionError("there is no end of it")

    async def derive(self) -> None:
        """Work what waits in the family `event`."""
        units = await self.database.transact(claim_unread, self.claim_request(Family.EVENT))
        deriver = Deriver(self.database, self.views, self.vault, self.principals, DEPLOYMENT)
        for unit in units:
            await deriver.run(unit)

    async def rows(self, table: str) -> list[dict[str, Any]]:
        """Every row of a table."""

        def read() -> Txn[list[Any]]:
            return (yield from fetch(TABLES[table]))

        names = [column.name for column in TABLES[table].build(None).selected_columns]  # type: ignore[arg-type,attr-defined]
        return [dict(zip(names, row, strict=True)) for row in await self.database.read(read)]

    async def gap(self) -> dict[str, Any]:
        """The newest gap."""
        return max(await self.rows("ingress_gap"), key=lambda row: row["sequence"])

    async def items(self, family: Family = Family.CATCH_UP) -> list[dict[str, Any]]:
        """Work items of a family, in the order of their making."""
        rows = [row for row in await self.rows("work_item") if row["family"] == family.value]
        return sorted(rows, key=lambda row: (row["created_at"], row["id"]))


async def caught(database: Database, pack: str = PACK, **binding: Any) -> Caught:
    """A process with a published binding, a connected principal and an active secret of the route."""
    await database.transact(ownership.install, DEPLOYMENT, "release", "op")
    views, vault, metrics = Views(database), Vault(KeyRing.generate()), Metrics()
    principals = Principals(database, vault)
    await views.publish([view(pack, **binding)])
    principal = await principals.connect(
        org=ORG, installation=INSTALLATION, pack="shop", name="shop", secret=Secret("the key")
    )
    ingress = Ingress(database, views, vault, metrics)
    await ingress.add_secret(ROUTE, Secret("s"), alone=False)
    provider = EventList()
    at = Caught(
        database, views, vault, principals, principal, ingress, IngressEndpoint(ingress), CatchUps(database, views),
        provider, Listed(provider), metrics,
    )  # fmt: skip
    database.points = Points(watch=at.points.append)
    return at
