"""Reading an object is journaled, fenced, and one transaction with what follows from it; on every engine."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec.structs import replace
from tests.store.effects.calls import Provider
from tests.store.ingress.routes import CAPABILITY, DEPLOYMENT, INSTALLATION, ORG, signed
from tests.store.work.test_rerun import Interruption, interrupted

from doonce.app.metrics import Metrics
from doonce.base.errors import Unavailable
from doonce.base.ids import new_id, new_token
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import OriginPolicy, compile_view
from doonce.catalog.pack import read_pack
from doonce.catalog.service import Views
from doonce.db.database import Database
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch
from doonce.effects import hydration
from doonce.effects.caller import Caller, DispatchSettings
from doonce.effects.finish import Finished
from doonce.effects.handing import Hander, HandlerSettings, claim_handings
from doonce.effects.hydration import Reading, claim_hydrations
from doonce.effects.hydrator import HydrationSettings, Hydrator
from doonce.effects.tables import effect_attempt
from doonce.events.objects import object_place
from doonce.events.service import Deriver, rewrap_events
from doonce.events.store import claim_unread
from doonce.events.tables import event, event_object
from doonce.http import NotSent, Replied, Sent, Stage, Unanswered
from doonce.http import Request as Outgoing
from doonce.ingress.endpoint import IngressEndpoint
from doonce.ingress.receipts import RouteKey
from doonce.ingress.service import Ingress, IngressSettings
from doonce.links import store as links
from doonce.links.model import LinkEvent, LinkMove, NewLink, RemoteLink
from doonce.ownership import store as ownership
from doonce.ownership.model import Family
from doonce.principals.service import Principals
from doonce.principals.vault import KeyRing, Vault
from doonce.runtime.events import Event, event_of
from doonce.work.model import RetryPolicy, Scope
from doonce.work.store import ClaimRequest, Replay, replay
from doonce.work.tables import work_item, work_lane_entry, work_lease, work_ready

PACK = b"""
format = "doonce.pack/1"
name = "shop"
version = "1.0.0"
title = "A shop"
origins = ["https://api.shop.example"]
auth = { scheme = "header", header = "Authorization", prefix = "Bearer " }

[objects.item]
fields = ["label", "price", "stock"]

[operations."item.read"]
summary = "Read an item"
method = "GET"
target = "/items/{remote_id}"
query = { fields = "{fields}" }
object = "item"
payload_schema = "empty.json"
link = "existing"
call_budget = "10s"
send_window = "2s"
evidence = [{ json = "/id" }]

[webhooks.batch]
summary = "A batch"
response_deadline = "5s"
redelivery = "window"
redelivery_window = "3d"
verifier = { algorithm = "hmac-sha256", header = "Shop-Signature", encoding = "hex", content = "{body}" }

[webhooks.batch.events]
each = ""
type = "/type"
identity = ["/n"]
object_id = ["/id"]

[webhooks.batch.events.objects.item]
types = ["item.*"]
remote_id = "/id"
deletes = ["item.gone"]
hydrate = { operation = "item.read", fields = "/fields", missing_status = [404] }
"""
EMPTY = json.dumps({"type": "object", "properties": {}, "additionalProperties": False}).encode()
BINDING = {
    "format": "doonce.binding/1", "org": ORG, "installation": INSTALLATION, "capability": CAPABILITY,
    "pack": "shop@1.0.0", "principal": "portal", "operations": [],
    "fields": {"item": {"inbound": {"cost": "price", "left": "stock"}, "outbound": {}}},
    "webhooks": {"batch": {"handle": ["*"], "hydrate": ["item"]}},
}  # fmt: skip
WHOLE = Replied(
    200, (), b'{"id": 7, "fields": {"price": 1.10, "stock": null, "n": 9007199254740993}}', complete=True
)
ROUTE = RouteKey(ORG, INSTALLATION, CAPABILITY, "batch")
TABLES = (effect_attempt, event, event_object, work_item, work_lane_entry, work_ready)
ALL = {
    table.name: Statement(f"test.hydration.all_{table.name}", lambda dialect, table=table: sa.select(table))
    for table in TABLES
}


@dataclass(slots=True)
class Shop:
    """A process that receives, reads and hands over, a step at a time."""

    database: Database
    views: Views
    vault: Vault
    principals: Principals
    ingress: Ingress
    provider: Provider
    policy: RetryPolicy

    async def told(self, *events: dict[str, Any]) -> None:
        """Take one delivery of these events, and derive them."""
        body = json.dumps([{"type": "item.changed"} | one for one in events]).encode()
        at = f"/in/{ORG}/{INSTALLATION}/{CAPABILITY}/batch"
        scope = {
            "type": "http", "method": "POST", "headers": [(b"shop-signature", signed(body).encode())],
            "query_string": b"", "path": at, "raw_path": at.encode(),
        }  # fmt: skip
        answers: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            answers.append(message)

        await IngressEndpoint(self.ingress)(scope, receive, send)
        assert answers[0]["status"] == 200
        deriver = Deriver(self.database, self.views, self.vault, self.principals, DEPLOYMENT)
        for unread in await self.database.transact(claim_unread, self.request(Family.EVENT)):
            await deriver.run(unread)

    def request(self, family: Family, *, lease_us: int = 30_000_000) -> ClaimRequest:
        """Claim all that is due of a family."""
        return ClaimRequest(
            family=family.value, scopes=(Scope(ORG, INSTALLATION),), deployment=DEPLOYMENT, owner="prc_test",
            token=new_token(), rows_max=100, lease_us=lease_us, expiries_max=5, alone=False,
        )  # fmt: skip

    async def claim(self, *, lease_us: int = 30_000_000) -> list[Reading]:
        """Claim what is to be read."""
        return await self.database.transact(claim_hydrations, self.request(Family.HYDRATE, lease_us=lease_us))

    async def reading(self) -> Reading:
        """The one."""
        (found,) = await self.claim()
        return found

    def hydrator(self) -> Hydrator:
        settings = DispatchSettings(margin_us=5_000_000, evidence_tries_max=1, evidence_pause_seconds=0)
        caller = Caller(self.database, self.provider, self.principals, DEPLOYMENT, Metrics(), settings)
        return Hydrator(
            self.database,
            self.views,
            self.vault,
            caller,
            DEPLOYMENT,
            Metrics(),
            HydrationSettings(self.policy),
        )

    async def read(self) -> None:
        """Read all that is due, once."""
        for one in await self.claim():
            await self.hydrator().run(one)

    async def until_read(self) -> None:
        """Read what waits for another try, without the wait."""
        await self.database.transact(_due)
        await self.read()

    async def handed(self) -> list[Event]:
        """Every event that is due, as a handler would get it; none of them is settled."""
        hander = Hander(self.database, self.views, self.vault, self.principals, _nobody, HandlerSettings())
        found = await self.database.transact(claim_handings, self.request(Family.HANDLER))
        events: list[Event] = []
        for one in found:
            assert one.event is not None
            view = await self.views.get(one.event.view_digest)
            events.append(event_of(await hander._notice(view, one.event, one.object)))
        return events

    async def rows(self, table: sa.Table) -> list[dict[str, Any]]:
        """A whole table."""

        def everything() -> Txn[list[Any]]:
            return (yield from fetch(ALL[table.name]))

        rows = await self.database.read(everything)
        return [{column.name: row[at] for at, column in enumerate(table.c)} for row in rows]

    async def items(self, family: Family) -> list[dict[str, Any]]:
        """The work of a family, in the order in which it was made."""
        rows = [row for row in await self.rows(work_item) if row["family"] == family.value]
        return sorted(rows, key=lambda row: (row["created_at"], row["id"]))

    async def everything(self) -> dict[str, list[str]]:
        """All that a reading may change, comparable."""
        return {table.name: sorted(map(str, await self.rows(table))) for table in TABLES}


async def _nobody(*_: object) -> str:
    raise AssertionError("nobody is called")


@pytest.fixture
async def shop(database: Database) -> Shop:
    await database.transact(ownership.install, DEPLOYMENT, "release", "op")
    ring = KeyRing.generate()
    views, vault = Views(database), Vault(ring)
    RINGS[ring.current] = dict(ring.keys)
    pack = read_pack(PACK, {"empty.json": EMPTY})
    await views.publish([compile_view(pack, read_binding(BINDING), origins=OriginPolicy())])
    principals = Principals(database, vault)
    await principals.connect(
        org=ORG, installation=INSTALLATION, pack="shop@1.0.0", name="portal", secret=Secret("token")
    )
    ingress = Ingress(database, views, vault, Metrics(), IngressSettings())
    await ingress.add_secret(ROUTE, Secret("s"), alone=False)
    provider = Provider()
    provider.answer = WHOLE
    return Shop(database, views, vault, principals, ingress, provider, RetryPolicy(base_us=1, cap_us=1))


async def test_an_object_is_read_once_kept_and_handed_over_in_the_place_of_its_reading(shop: Shop) -> None:
    await shop.told({"n": 1, "id": 7}, {"n": 2, "id": 7}, {"n": 3, "id": 8, "type": "item.gone"})
    first, second = await shop.items(Family.HYDRATE)
    assert [item["source_position"] for item in (first, second)] == [1, 2]
    assert len(await shop.items(Family.HANDLER)) == 1, "what is deleted is not read"
    await shop.read()
    (request,) = shop.provider.sent
    assert (request.method, request.target) == ("GET", "/items/7?fields=price%2Cstock")
    first, second = await shop.items(Family.HYDRATE)
    (handing,) = [
        one for one in await shop.items(Family.HANDLER) if one["source_lane"] == first["source_lane"]
    ]
    assert (first["state"], first["attempts"], second["state"]) == ("succeeded", 1, "pending")
    assert (handing["predecessor"], handing["source_position"]) == (first["id"], 1)
    assert (handing["subject_id"], handing["view_digest"]) == (first["subject_id"], first["view_digest"])
    assert await shop.claim() == [], "the second waits until the first is handed over"
    (attempt,) = await shop.rows(effect_attempt)
    assert (attempt["kind"], attempt["subject_id"], attempt["outcome"]) == (
        "hydration", first["subject_id"], "ACCEPTED",
    )  # fmt: skip
    assert (attempt["generation"], attempt["operation"], attempt["link_version"]) == (1, "item.read", None)
    (stored,) = await shop.rows(event_object)
    assert (stored["event_id"], stored["attempt_id"]) == (first["subject_id"], attempt["id"])
    assert stored["read_at"] == attempt["dispatched_at"]
    assert b"price" not in bytes(stored["sealed"])
    told = {one.id: one for one in await shop.handed()}[first["subject_id"]]
    assert told.object is not None
    assert told.object.raw_document == WHOLE.body
    assert {name: str(value) for name, value in told.object.fields.items()} == {
        "cost": "1.10",
        "left": "None",
    }
    document: Any = told.object.document
    assert document["fields"]["n"] == 9007199254740993


async def test_t1_a_reading_interrupted_anywhere_is_the_same_run_again(shop: Shop) -> None:
    await shop.told({"n": 1, "id": 7}, {"n": 2, "id": 7})
    reading = await shop.reading()
    ended = await shop.hydrator()._read(reading)
    assert ended is not None
    before = await shop.everything()
    seen: list[int] = []
    after = 0
    while not seen:
        after += 1
        try:
            await shop.database.driver.run(
                lambda after=after: interrupted(hydration.finish_hydrations([ended]), after, seen),
                readonly=False,
            )
        except Interruption:
            assert await shop.everything() == before
    assert after > 8
    once = await shop.everything()
    assert once != before
    ((finished, step),) = await shop.database.transact(hydration.finish_hydrations, [ended])
    assert (finished, step) == (Finished.REPEATED, None), "after an unknown commit"
    assert await shop.everything() == once


async def test_a_reading_that_lost_its_claim_stores_nothing(shop: Shop) -> None:
    await shop.told({"n": 1, "id": 7})
    ended = await shop.hydrator()._read(await shop.reading())
    assert ended is not None
    before = await shop.everything()
    late = replace(ended, claimed=replace(ended.claimed, token="another"))
    ((finished, _),) = await shop.database.transact(hydration.finish_hydrations, [late])
    assert finished is Finished.STALE
    assert await shop.everything() == before


RINGS: dict[str, dict[str, Secret]] = {}
"""The keys of each test's ring, for the one that takes a key out."""


class Died(Exception):
    """What the process is killed at, as far as one test's process can be."""


class Deadly(Provider):
    """The reader dies as it is about to ask for its mark, or with its request on the way."""

    def __init__(self, *, marked: bool) -> None:
        super().__init__()
        self._marked = marked

    async def send(self, request: Outgoing, *, gate: object, **given: object) -> Sent:  # type: ignore[override]
        if self._marked:
            await gate()  # type: ignore[operator]  # a Gate
            self.sent.append(request)
        raise Died


@pytest.mark.parametrize(
    "marked, outcome, failures, attempts",
    [(False, "RETRYABLE_PRE_DISPATCH", 1, 0), (True, "REPLAY_SAFE_RETRY", 0, 1)],
    ids=["prepared", "dispatched"],
)
async def test_what_a_vanished_reader_left_open_is_settled_before_it_is_read_again(
    shop: Shop, *, marked: bool, outcome: str, failures: int, attempts: int
) -> None:
    await shop.told({"n": 1, "id": 7})
    shop.provider = Deadly(marked=marked)
    with pytest.raises(Died):
        await shop.read()
    assert await shop.claim() == [], "it is under a lease"
    await shop.database.transact(_expired)
    (reading,) = await shop.claim()
    assert reading.open_attempt is not None
    before = shop.provider = Provider()
    await shop.hydrator().run(reading)
    assert not before.sent, "what was left open is ended first"
    (attempt,) = await shop.rows(effect_attempt)
    assert (attempt["outcome"], attempt["effect_free"]) == (outcome, 1)
    (item,) = await shop.items(Family.HYDRATE)
    assert (item["state"], item["failures"], item["attempts"]) == ("retry", failures, attempts)
    assert item["expiries"] == 1, "the next one may die of it as well (W2)"
    before.answer = WHOLE
    await shop.until_read()
    assert len(before.sent) == 1
    assert [one.object is not None for one in await shop.handed()] == [True]
    assert [row["outcome"] for row in await shop.rows(effect_attempt) if row["number"] == 1] == ["ACCEPTED"]


@pytest.mark.parametrize("marked", [False, True])
async def test_w2_a_poisonous_read_is_dead_and_nothing_of_it_stays_open(shop: Shop, *, marked: bool) -> None:
    await shop.told({"n": 1, "id": 7})
    shop.provider = Deadly(marked=marked)
    with pytest.raises(Died):
        await shop.read()
    await shop.database.transact(_expired)
    (reading,) = await shop.claim()
    shop.provider = Provider()
    await shop.hydrator().run(replace(reading, claimed=replace(reading.claimed, poison=True)))
    (item,) = await shop.items(Family.HYDRATE)
    assert (item["state"], item["failure_class"]) == ("dead", "poison")
    assert all(row["outcome"] is not None for row in await shop.rows(effect_attempt))
    assert not shop.provider.sent


@pytest.mark.parametrize(
    "answer, state, failure, outcome",
    [
        (Replied(403, (), b"{}", complete=True), "dead", "rejected", "REJECTED"),
        (Replied(400, (), b"", complete=True), "dead", "rejected", "REJECTED"),
        (Replied(302, (("location", "https://x.example/"),), b"", complete=True), "retry", None, "REPLAY_SAFE_RETRY"),
        (Replied(503, (), b"", complete=True), "retry", None, "REPLAY_SAFE_RETRY"),
        (Replied(429, (("retry-after", "0"),), b"", complete=True), "retry", None, "REPLAY_SAFE_RETRY"),
        (Replied(200, (), b"", complete=True), "retry", None, "REPLAY_SAFE_RETRY"),
        (Replied(200, (), b'{"id": 7}', complete=True), "retry", None, "REPLAY_SAFE_RETRY"),
        (Replied(200, (), b'{"id": 7, "fields": []}', complete=True), "retry", None, "REPLAY_SAFE_RETRY"),
        (Replied(200, (), WHOLE.body, complete=False, reason="too long"), "retry", None, "REPLAY_SAFE_RETRY"),
        (Replied(404, (), b"", complete=False, reason="cut"), "retry", None, "REPLAY_SAFE_RETRY"),
        (Unanswered("reset"), "retry", None, "REPLAY_SAFE_RETRY"),
        (NotSent(Stage.CONNECT, "refused"), "retry", None, "RETRYABLE_PRE_DISPATCH"),
    ],
)  # fmt: skip
async def test_what_comes_back_has_a_typed_end_and_is_never_unknown(
    shop: Shop, answer: Sent, state: str, failure: str | None, outcome: str
) -> None:
    await shop.told({"n": 1, "id": 7})
    shop.provider.answer = answer
    await shop.read()
    (item,) = await shop.items(Family.HYDRATE)
    (attempt,) = await shop.rows(effect_attempt)
    assert (item["state"], item["failure_class"], attempt["outcome"]) == (state, failure, outcome)
    assert attempt["effect_free"] == 1
    assert not await shop.rows(event_object)
    assert not await shop.items(Family.HANDLER)
    assert not await shop.items(Family.RECONCILE)


async def test_an_object_that_is_not_there_is_handed_over_as_missing(shop: Shop) -> None:
    link = await _linked(shop, "7")
    await shop.told({"n": 1, "id": 7, "fields": {"price": 1}})
    shop.provider.answer = Replied(404, (), b"", complete=True)
    await shop.read()
    (told,) = await shop.handed()
    assert told.object is not None
    assert (told.object.missing, told.object.deleted, told.object.document) == (True, False, None)
    assert told.object.link == link.id
    assert (await shop.database.read(links.get, [link.id]))[link.id].current, "a 404 suspends nothing"
    (attempt,) = await shop.rows(effect_attempt)
    assert (attempt["outcome"], attempt["status"]) == ("REJECTED", 404)
    (stored,) = await shop.rows(event_object)
    assert stored["sealed"] is None


async def test_a_dead_reading_holds_its_object_up_and_its_replay_reads_anew_in_its_place(shop: Shop) -> None:
    await shop.told({"n": 1, "id": 7}, {"n": 2, "id": 7})
    shop.provider.answer = Replied(403, (), b"", complete=True)
    await shop.read()
    first, second = await shop.items(Family.HYDRATE)
    assert (first["state"], second["state"]) == ("dead", "pending")
    assert await shop.claim() == []
    shop.provider.answer = WHOLE
    successor = await shop.database.transact(replay, Replay(first["id"], new_id("wrk")))
    (reading,) = await shop.claim()
    assert reading.claimed.item.id == successor
    await shop.hydrator().run(reading)
    (told,) = await shop.handed()
    assert told.id == first["subject_id"]
    attempts = [row for row in await shop.rows(effect_attempt) if row["subject_id"] == first["subject_id"]]
    assert [row["number"] for row in sorted(attempts, key=lambda row: int(row["number"]))] == [0, 1]


async def test_the_active_link_is_pinned_and_fenced(shop: Shop) -> None:
    link = await _linked(shop, "7")
    await shop.told({"n": 1, "id": 7})
    suspend = LinkMove(link.id, ORG, INSTALLATION, LinkEvent.SUSPEND)

    class Meanwhile(Provider):
        async def send(self, request: Outgoing, *, gate: object, **given: object) -> Sent:  # type: ignore[override]
            await shop.database.transact(links.move, [suspend])
            return await super().send(request, gate=gate, **given)

    shop.provider = Meanwhile()
    await shop.read()
    (attempt,) = await shop.rows(effect_attempt)
    assert (attempt["link_version"], attempt["outcome"]) == (1, "RETRYABLE_PRE_DISPATCH")
    assert not shop.provider.sent
    shop.provider = Provider()
    shop.provider.answer = WHOLE
    await shop.until_read()
    newest = max(await shop.rows(effect_attempt), key=lambda row: int(row["number"]))
    assert (newest["link_version"], newest["outcome"]) == (None, "ACCEPTED"), "a suspended one pins nothing"


async def test_a_generation_that_ends_before_the_mark_sends_nothing(shop: Shop) -> None:
    await shop.told({"n": 1, "id": 7})
    known = await shop.principals.find(ORG, INSTALLATION, "portal")

    class Meanwhile(Provider):
        async def send(self, request: Outgoing, *, gate: object, **given: object) -> Sent:  # type: ignore[override]
            await shop.principals.reconnect(known, Secret("another"), reason="a test")
            return await super().send(request, gate=gate, **given)

    shop.provider = Meanwhile()
    await shop.read()
    assert not shop.provider.sent
    await shop.until_read()
    (item,) = await shop.items(Family.HYDRATE)
    assert (item["state"], item["failure_class"]) == ("dead", "never_dispatched")
    assert "began after this event came" in item["summary"], "no reconnect retargets what waits"
    shop.provider = Provider()
    shop.provider.answer = WHOLE
    await shop.database.transact(replay, Replay(item["id"], new_id("wrk")))
    await shop.until_read()
    assert len(shop.provider.sent) == 1, "an operator's word is under the generation of its time"


async def test_w2_a_poisonous_reading_that_left_nothing_open_asks_for_nothing(shop: Shop) -> None:
    await shop.told({"n": 1, "id": 7})
    reading = await shop.reading()
    await shop.hydrator().run(replace(reading, claimed=replace(reading.claimed, poison=True)))
    (item,) = await shop.items(Family.HYDRATE)
    assert (item["state"], item["failure_class"]) == ("dead", "poison")
    assert not await shop.rows(effect_attempt)
    assert not shop.provider.sent


async def test_without_its_secret_nothing_is_prepared_and_it_is_tried_again(shop: Shop) -> None:
    await shop.told({"n": 1, "id": 7})
    shop.principals = Principals(shop.database, Vault(KeyRing.generate()))
    await shop.read()
    (item,) = await shop.items(Family.HYDRATE)
    assert (item["state"], item["failures"], item["attempts"]) == ("retry", 1, 0)
    assert item["summary"].startswith("no secret: ")
    assert not await shop.rows(effect_attempt)


async def test_what_was_read_opens_for_its_own_event_alone(shop: Shop) -> None:
    await shop.told({"n": 1, "id": 7}, {"n": 2, "id": 8})
    await shop.read()
    one, other = await shop.rows(event_object)
    place = object_place(str(one["event_id"]))
    assert shop.vault.open_bytes(place, bytes(one["sealed"]), one["key_id"]) == WHOLE.body
    with pytest.raises(Unavailable):
        shop.vault.open_bytes(place, bytes(other["sealed"]), other["key_id"])


async def test_what_was_read_is_sealed_anew_with_the_ring(shop: Shop) -> None:
    await shop.told({"n": 1, "id": 7})
    await shop.read()
    ring = KeyRing.generate()
    old = shop.vault
    both = Vault(KeyRing(ring.current, ring.keys | _keys(old)))
    assert await rewrap_events(shop.database, both) == 2, "the event, and its object"
    assert await rewrap_events(shop.database, both) == 0
    shop.vault = Vault(ring)
    (told,) = await shop.handed()
    assert told.object is not None
    assert told.object.raw_document == WHOLE.body


def _keys(vault: Vault) -> dict[str, Secret]:
    return RINGS[vault.key_id]


async def _linked(shop: Shop, remote_id: str) -> RemoteLink:
    known = await shop.principals.find(ORG, INSTALLATION, "portal")
    new = NewLink(
        new_id("lnk"), ORG, INSTALLATION, known.id, known.generation, "item", f"our {remote_id}", remote_id
    )
    (adopted,) = await shop.database.transact(links.adopt, [new])
    assert isinstance(adopted, RemoteLink)
    return adopted


EXPIRE = Statement("test.hydration.expire", lambda dialect: sa.update(work_item).values(lease_until=1))
DUE = Statement("test.hydration.due", lambda dialect: sa.update(work_ready).values(due=2))
OVER = Statement("test.hydration.over", lambda dialect: sa.update(work_lease).values(due=1))
NOW = Statement("test.hydration.now", lambda dialect: sa.update(work_item).values(run_after=1))


def _expired() -> Txn[None]:
    """Every lease has run out, and is looked at."""
    yield from fetch(EXPIRE)
    yield from fetch(OVER)


def _due() -> Txn[None]:
    """Whatever waits for its time is due."""
    yield from fetch(NOW)
    yield from fetch(DUE)
