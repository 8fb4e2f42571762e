"""I2: a receipt's events are made once, whatever batch they come in; what cannot be read is dead with its receipt."""

import json

from tests.store.ingress.routes import BINDING, PACK, receiver, signed

from doonce.catalog.binding import read_binding
from doonce.catalog.compile import OriginPolicy, compile_view
from doonce.catalog.pack import read_pack
from doonce.db.database import Database
from doonce.events.making import content_place


def batch(*ids: int, **more: object) -> bytes:
    """A delivery of these events."""
    events = [{"id": number, "type": "made", "price": 1.5} for number in ids]
    return json.dumps({"events": events, **more}).encode()


async def test_a_regrouped_batch_makes_no_event_twice(database: Database) -> None:
    at = await receiver(database)
    for number, body in enumerate([batch(1, 2), batch(2, 3, attempt=2), batch(3), batch(1, 2)]):
        headers = {"Shop-Signature": signed(body), "Shop-Delivery": f"d{number}"}
        assert await at.deliver("batch", body, headers=headers) == 202
    assert await at.derive() == 4
    events = await at.rows("event")
    assert len(events) == 3
    assert {item["state"] for item in await at.rows("work_item")} == {"succeeded"}


async def test_content_is_exact_and_sealed_for_its_event(database: Database) -> None:
    at = await receiver(database)
    body = b'{"events":[{"id":9007199254740993,"type":"made","price":1.10,"new":{"a":null}}]}'
    await at.deliver("batch", body)
    await at.derive()
    (made,) = await at.rows("event")
    content = at.vault.open_bytes(content_place(made["id"]), made["sealed"], made["key_id"])
    assert content == b'{"id":9007199254740993,"type":"made","price":1.10,"new":{"a":null}}'
    assert b"made" not in made["sealed"]
    assert (made["type"], made["position"], made["webhook"]) == ("made", 0, "batch")


async def test_a_body_that_cannot_be_read_is_dead_and_stays(database: Database) -> None:
    at = await receiver(database)
    bodies = [b"{", b'{"events":{}}', b'{"events":[{"id":1}]}', b'{"events":[{"type":"a"}]}', b"\xff"]
    for body in bodies:
        assert await at.deliver("batch", body) == 202
    await at.derive()
    items = await at.rows("work_item")
    assert [(item["state"], item["failure_class"]) for item in items] == [("dead", "undecodable")] * 5
    assert len(await at.rows("ingress_receipt")) == 5
    assert not await at.rows("event")


async def test_a_raw_body_is_one_event(database: Database) -> None:
    at = await receiver(database)
    await at.deliver("once", b"\x00\xff")
    await at.derive()
    (made,) = await at.rows("event")
    assert made["type"] == "once"
    assert at.vault.open_bytes(content_place(made["id"]), made["sealed"], made["key_id"]) == b"\x00\xff"


async def test_a_type_that_only_a_header_has_is_kept_with_the_receipt(database: Database) -> None:
    """It is what came first that counts; a delivery without it is dead, with its receipt."""
    at = await receiver(database)
    pack = PACK.replace(b'format = "raw" }', b'type_header = "Shop-Event" }')
    await at.views.publish([compile_view(read_pack(pack, {}), read_binding(BINDING), origins=OriginPolicy())])
    sent = [(b"1", "order paid"), (b"1", "order lost"), (b"2", None), (b"3", "order lost")]
    for body, kind in sent:
        named = {"Shop-Event": kind} if kind is not None else {}
        assert await at.deliver("once", body, headers={"Shop-Signature": signed(body)} | named) == 200
    assert await at.derive() == 3
    assert sorted(made["type"] for made in await at.rows("event")) == ["order lost", "order paid"]
    assert len(await at.rows("ingress_receipt")) == 3
    dead = [item for item in await at.rows("work_item") if item["state"] == "dead"]
    assert [item["summary"] for item in dead] == ["the delivery had no type in shop-event"]
