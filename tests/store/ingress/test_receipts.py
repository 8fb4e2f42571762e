"""I1: every delivery that is answered with success is one receipt, whatever is sent again, together or otherwise."""

import asyncio

import pytest
from tests.store.ingress.routes import Receiver, key, receiver, signed

from doonce.base.digests import digest_bytes
from doonce.base.errors import Exhausted, MissingOrDenied, Unavailable
from doonce.base.secrets import Secret
from doonce.db.database import Database
from doonce.ingress import secrets
from doonce.ingress.endpoint import IngressEndpoint
from doonce.ingress.receipts import RouteKey, identity_of
from doonce.ingress.service import Ingress
from doonce.ingress.store import QUARANTINE_SLOTS
from doonce.ingress.verify import SECRETS_MAX
from doonce.principals.vault import KeyRing, Vault

BODY = b'{"events":[{"id":1,"type":"made"}]}'


def named(delivery: str, body: bytes) -> dict[str, str]:
    """The headers of a delivery with an id."""
    return {"Shop-Signature": signed(body), "Shop-Delivery": delivery}


async def test_a_delivery_becomes_a_receipt_and_one_work_item(database: Database) -> None:
    at = await receiver(database)
    assert await at.deliver("batch", BODY, headers=named("d1", BODY)) == 202
    assert at.answers[0][2] == b"ok"
    (receipt,) = await at.rows("ingress_receipt")
    (item,) = await at.rows("work_item")
    assert (item["family"], item["subject_id"], item["state"]) == ("event", receipt["id"], "pending")
    assert item["view_digest"] == receipt["view_digest"]
    assert await at.ingress.body(receipt["id"]) == BODY


async def test_the_body_is_not_readable_at_rest_nor_with_another_key(database: Database) -> None:
    at = await receiver(database)
    await at.deliver("batch", BODY)
    (receipt,) = await at.rows("ingress_receipt")
    assert b"made" not in receipt["sealed"]
    at.ingress._vault = Vault(KeyRing.generate())
    with pytest.raises(Unavailable, match="not in the key ring"):
        await at.ingress.body(receipt["id"])


async def test_duplicates_answer_like_the_first_and_make_nothing(database: Database) -> None:
    at = await receiver(database)
    together = [at.deliver("batch", BODY, headers=named("d1", BODY)) for _ in range(20)]
    assert set(await asyncio.gather(*together)) == {202}
    assert await at.deliver("batch", BODY, headers=named("d1", BODY)) == 202
    assert len({answer[2] for answer in at.answers}) == 1
    assert len(await at.rows("ingress_receipt")) == len(await at.rows("work_item")) == 1
    counted = at.metrics.text().decode()
    assert 'doonce_deliveries_total{fate="received"} 1.0' in counted
    assert 'doonce_deliveries_total{fate="duplicate"} 20.0' in counted


async def test_without_an_id_the_raw_body_is_the_identity(database: Database) -> None:
    at = await receiver(database)
    for body in (BODY, BODY, BODY + b" "):
        assert await at.deliver("batch", body) == 202
    assert len(await at.rows("ingress_receipt")) == 2


async def test_the_same_id_with_another_body_is_quarantined_in_bounded_room(database: Database) -> None:
    at = await receiver(database)
    await at.deliver("batch", BODY, headers=named("d1", BODY))
    odd = [BODY + b" " * count for count in range(1, 60)]
    statuses = [await at.deliver("batch", body, headers=named("d1", body)) for body in odd]
    kept = await at.rows("ingress_quarantine")
    assert statuses[:QUARANTINE_SLOTS] == [202] * QUARANTINE_SLOTS
    assert set(statuses[QUARANTINE_SLOTS:]) == {503}  # what is not durable is not taken
    assert {row["body_digest"] for row in kept} == {digest_bytes(body) for body in odd[:QUARANTINE_SLOTS]}
    assert len(await at.rows("ingress_receipt")) == len(await at.rows("work_item")) == 1
    for body in odd[:QUARANTINE_SLOTS]:
        assert await at.deliver("batch", body, headers=named("d1", body)) == 202
    assert await at.rows("ingress_quarantine") == kept


async def test_one_body_on_two_routes_is_two_receipts(database: Database) -> None:
    at = await receiver(database)
    assert await at.deliver("batch", BODY) == 202
    assert await at.deliver("once", BODY) == 200
    assert len(await at.rows("ingress_receipt")) == 2


@pytest.mark.parametrize("delivery_id", [b"d1", None])
def test_an_identity_is_always_within_its_whole_route(delivery_id: bytes | None) -> None:
    """Nobody's delivery is a duplicate of another tenant's, whatever ids their providers give."""
    here = RouteKey("acme", "main", "shop.events", "batch")
    routes = [
        here,
        RouteKey("other", "main", "shop.events", "batch"),
        RouteKey("acme", "other", "shop.events", "batch"),
        RouteKey("acme", "main", "other", "batch"),
        RouteKey("acme", "main", "shop.events", "other"),
        RouteKey("acmem", "ain", "shop.events", "batch"),
    ]
    digest = digest_bytes(BODY)
    assert len({identity_of(route, delivery_id, digest) for route in routes}) == len(routes)
    assert identity_of(here, digest.encode(), digest) != identity_of(here, None, digest)


async def test_an_id_that_came_twice_is_not_chosen_from(database: Database) -> None:
    at = await receiver(database)
    headers = named("d1", BODY)
    assert await at.deliver("batch", BODY, headers={**headers, "shop-delivery": "d2"}) == 400
    assert not await at.rows("ingress_receipt")


async def _add(at: Receiver, secret: str, *, alone: bool = False) -> list[str]:
    return [one.id for one in await at.ingress.add_secret(key("batch"), Secret(secret), alone=alone)]


async def test_secrets_rotate_without_a_gap(database: Database) -> None:
    at = await receiver(database)
    (old,) = [one.id for one in await database.read(secrets.active, key("batch"))]
    await _add(at, "new")
    for secret, body in (("s", b"[1]"), ("new", b"[2]")):
        assert await at.deliver("batch", body, headers={"Shop-Signature": signed(body, secret)}) == 202
    active = await _add(at, "newest", alone=True)
    assert len(active) == 1
    assert old not in active
    assert await at.deliver("batch", b"[3]", headers={"Shop-Signature": signed(b"[3]", "new")}) == 401
    assert {receipt["secret_id"] for receipt in await at.rows("ingress_receipt")} > {old}


async def test_secrets_are_bounded_and_belong_to_a_published_route(database: Database) -> None:
    at = await receiver(database)
    for count in range(SECRETS_MAX - 1):
        await _add(at, f"s{count}")
    with pytest.raises(Exhausted):
        await _add(at, "one too many")
    with pytest.raises(MissingOrDenied):
        await at.ingress.add_secret(
            RouteKey("other", "main", "shop.events", "batch"), Secret("s"), alone=True
        )


async def test_a_process_sees_what_another_made_within_its_bound(database: Database) -> None:
    at = await receiver(database)
    now_ns = [0]
    late = Ingress(database, at.views, at.vault, at.metrics, now_ns=lambda: now_ns[0])
    other = Receiver(database, late, at.views, at.vault, at.metrics, IngressEndpoint(late))
    assert await other.deliver("batch", BODY) == 202
    await at.ingress.add_secret(key("batch"), Secret("new"), alone=True)
    now_ns[0] = late.settings.routes_every_ms * 1_000_000
    assert await other.deliver("batch", BODY) == 401
