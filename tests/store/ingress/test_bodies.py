"""Raw bodies have an end of their own; receipts, identities and digests do not (PROTOCOL I3)."""

import asyncio

import pytest
from tests.store.ingress.routes import Receiver, receiver, signed

from doonce.app.operate import receipts
from doonce.base.errors import Conflict, MissingOrDenied, Unavailable
from doonce.base.ids import new_id
from doonce.db.database import Database
from doonce.events.making import content_place
from doonce.events.service import rewrap_events
from doonce.ingress import bodies
from doonce.ingress.receipts import Sealed
from doonce.ingress.rewrapping import Page, Rewrapped, page, replace
from doonce.ingress.service import IngressSettings
from doonce.principals.vault import KeyRing, Vault
from doonce.work import store as work

BODY = b'{"events":[{"id":1,"type":"made"}]}'
BROKEN = b'{"events":[{"id":1}]}'
OVER = {"bodies_kept_us": 1}


def named(delivery: str, body: bytes) -> dict[str, str]:
    """The headers of a delivery with an id."""
    return {"Shop-Signature": signed(body), "Shop-Delivery": delivery}


async def one(at: Receiver, body: bytes = BODY) -> str:
    """The receipt of one derived delivery."""
    await at.deliver("batch", body, headers=named("d1", body))
    await at.derive()
    (receipt,) = await at.rows("ingress_receipt")
    return str(receipt["id"])


async def test_a_body_whose_time_is_over_is_erased_and_nothing_else(database: Database) -> None:
    at = await receiver(database, **OVER)
    receipt_id = await one(at)
    (before,) = await at.rows("ingress_receipt")
    assert await at.ingress.erase_bodies(10) == 1
    (after,) = await at.rows("ingress_receipt")
    assert after == before | {"sealed": None}
    with pytest.raises(MissingOrDenied, match="no body any more"):
        await at.ingress.body(receipt_id)
    assert await at.ingress.erase_bodies(10) == 0


async def test_a_redelivery_after_that_is_still_a_duplicate(database: Database) -> None:
    at = await receiver(database, **OVER)
    await one(at)
    await at.ingress.erase_bodies(10)
    assert await at.deliver("batch", BODY, headers=named("d1", BODY)) == 202
    assert len(await at.rows("ingress_receipt")) == len(await at.rows("work_item")) == 1
    assert len(await at.rows("event")) == 1


async def test_a_body_is_kept_for_its_time_and_for_its_work(database: Database) -> None:
    at = await receiver(database)
    await one(at)
    assert await at.ingress.erase_bodies(10) == 0
    at.ingress.settings = IngressSettings(**OVER)
    await at.deliver("batch", b"{}", headers=named("d2", b"{}"))
    assert await at.ingress.erase_bodies(10) == 1  # the first one's, which has been read
    left = [row["id"] for row in await at.rows("ingress_receipt") if row["sealed"] is not None]
    assert len(left) == 1
    await at.derive()
    assert await at.ingress.erase_bodies(10) == 1


async def test_a_pass_is_bounded_and_takes_the_oldest(database: Database) -> None:
    at = await receiver(database, **OVER)
    for number in range(5):
        body = b"[%d]" % number
        await at.deliver("once", body)
    await at.derive()
    assert [await at.ingress.erase_bodies(2) for _ in range(4)] == [2, 2, 1, 0]


async def test_quarantined_bodies_end_too_and_stay_known(database: Database) -> None:
    at = await receiver(database, **OVER)
    await one(at)
    odd = BODY + b" "
    await at.deliver("batch", odd, headers=named("d1", odd))
    (kept,) = await at.rows("ingress_quarantine")
    assert await at.ingress.body(kept["receipt_id"]) == odd
    assert await at.ingress.erase_bodies(10) == 2
    assert await at.deliver("batch", odd, headers=named("d1", odd)) == 202
    assert await at.rows("ingress_quarantine") == [kept | {"sealed": None}]


async def test_a_dead_derivation_is_replayed_once_with_its_lineage(database: Database) -> None:
    at = await receiver(database)
    receipt_id = await one(at, BROKEN)
    (dead,) = await at.rows("work_item")
    assert dead["state"] == "dead"
    asked = work.Replay(dead["id"], new_id("wrk"))
    made = await database.transact(receipts.replay, receipt_id, asked)
    assert made == asked.successor_id
    again = work.Replay(dead["id"], new_id("wrk"))
    assert await database.transact(receipts.replay, receipt_id, again) == made
    rows = {row["id"]: row for row in await at.rows("work_item")}
    assert (rows[made]["replay_of"], rows[made]["subject_id"]) == (dead["id"], receipt_id)
    assert rows[dead["id"]] == dead


async def test_an_erased_body_is_not_replayed(database: Database) -> None:
    at = await receiver(database, **OVER)
    receipt_id = await one(at, BROKEN)
    (dead,) = await at.rows("work_item")
    await at.ingress.erase_bodies(10)
    with pytest.raises(Conflict, match="erased"):
        await database.transact(receipts.replay, receipt_id, work.Replay(dead["id"], new_id("wrk")))
    assert len(await at.rows("work_item")) == 1


async def test_a_replay_and_an_erasure_at_once_leave_work_with_its_body_or_neither(
    database: Database,
) -> None:
    at = await receiver(database, **OVER)
    for number in range(8):
        body = b'{"events":[{"id":%d}]}' % number
        await at.deliver("batch", body, headers=named(f"d{number}", body))
    await at.derive()
    dead = {row["subject_id"]: row["id"] for row in await at.rows("work_item")}
    replays = [
        database.transact(receipts.replay, receipt_id, work.Replay(item_id, new_id("wrk")))
        for receipt_id, item_id in dead.items()
    ]
    await asyncio.gather(*replays, at.ingress.erase_bodies(100), return_exceptions=True)
    kept = {row["id"] for row in await at.rows("ingress_receipt") if row["sealed"] is not None}
    waiting = {row["subject_id"] for row in await at.rows("work_item") if row["state"] == "pending"}
    assert waiting <= kept


async def test_everything_sealed_moves_to_a_new_key(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = KeyRing.generate(), KeyRing.generate()
    monkeypatch.setattr(KeyRing, "generate", lambda: old)
    at = await receiver(database)
    receipt_id = await one(at)
    odd = BODY + b" "
    await at.deliver("batch", odd, headers=named("d1", odd))
    at.ingress._vault = Vault(new)
    with pytest.raises(Unavailable, match="not in the key ring"):
        await at.ingress.rewrap()
    both = Vault(KeyRing(new.current, {**new.keys, **old.keys}))
    at.ingress._vault = both
    assert await at.ingress.rewrap() == 4  # two secrets, a receipt, a quarantined body
    assert await rewrap_events(database, both) == 1
    assert await at.ingress.rewrap() == await rewrap_events(database, both) == 0
    at.ingress._vault = alone = Vault(new)
    assert await at.ingress.body(receipt_id) == BODY
    (made,) = await at.rows("event")
    assert b'"made"' in alone.open_bytes(content_place(made["id"]), made["sealed"], made["key_id"])
    at.ingress._routes.clear()
    assert await at.deliver("batch", BODY, headers=named("d1", BODY)) == 202


async def test_what_is_erased_while_it_is_sealed_anew_stays_erased(database: Database) -> None:
    at = await receiver(database, **OVER)
    receipt_id = await one(at)
    ((name, read),) = await database.read(page, Page(bodies.RECEIPTS, "", "another key"))
    await at.ingress.erase_bodies(10)
    fresh = Rewrapped(name, read.key_id, Sealed(b"sealed anew", "another key"))
    await database.transact(replace, bodies.RECEIPTS, [fresh])
    assert await database.read(bodies.sealed_body, receipt_id) is None
