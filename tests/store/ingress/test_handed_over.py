"""An event and its work are one transaction: each new event gets one item, and nothing else gets any."""

import json
from typing import Any

import pytest
from msgspec.structs import replace
from tests.store.ingress.routes import CAPABILITY, DEPLOYMENT, INSTALLATION, ORG, Receiver, receiver, signed
from tests.store.work.test_rerun import Interruption, interrupted

from doonce.base.ids import new_id
from doonce.base.secrets import Secret
from doonce.db.database import Database
from doonce.events import store
from doonce.events.model import lane_of
from doonce.events.service import Deriver
from doonce.events.store import Derivation, Made, claim_unread
from doonce.links import store as links
from doonce.links.model import LinkEvent, LinkMove, NewLink, RemoteLink
from doonce.ownership.model import Family
from doonce.principals.service import Principals
from doonce.work.model import Settled
from doonce.work.store import claim

HANDLED = {"handle": ["made", "paid.*"]}


def body(*events: dict[str, Any]) -> bytes:
    """A delivery of these events."""
    return json.dumps({"events": [{"type": "made"} | one for one in events]}).encode()


async def deliver(at: Receiver, name: str, *events: dict[str, Any]) -> None:
    raw = body(*events)
    assert (
        await at.deliver("batch", raw, headers={"Shop-Signature": signed(raw), "Shop-Delivery": name}) == 202
    )


async def work(at: Receiver) -> list[dict[str, Any]]:
    """The work of handing over, in the order in which it was made."""
    rows = [row for row in await at.rows("work_item") if row["subject_kind"] == "event"]
    return sorted(rows, key=lambda row: (row["created_at"], row["source_position"] or 0, row["id"]))


async def derivation(at: Receiver) -> Derivation:
    """The one derivation that waits, claimed and read."""
    (unread,) = await at.database.transact(claim_unread, at.claim_request(Family.EVENT))
    return await Deriver(
        at.database, at.views, at.vault, Principals(at.database, at.vault), DEPLOYMENT
    ).derivation(unread)


async def test_a_new_event_of_a_routed_type_gets_one_item(database: Database) -> None:
    at = await receiver(database, HANDLED)
    await deliver(
        at, "a", {"id": 1}, {"id": 2, "type": "paid.late"}, {"id": 3, "type": "paid"}, {"id": 4, "type": "x"}
    )
    await at.derive()
    events = {row["id"]: row for row in await at.rows("event")}
    items = await work(at)
    assert [events[item["subject_id"]]["type"] for item in items] == ["made", "paid.late"]
    for item in items:
        assert (item["family"], item["org"], item["installation"]) == ("handler", ORG, INSTALLATION)
        assert (item["state"], item["source_lane"]) == ("pending", None)
        assert item["view_digest"] == events[item["subject_id"]]["view_digest"]
    (told,) = [row["summary"] for row in await at.rows("work_item") if row["family"] == "event"]
    assert told == "4 events, 2 of a type that the binding hands to nobody"


async def test_an_event_that_is_there_already_gets_no_other_item(database: Database) -> None:
    at = await receiver(database, {"handle": ["*"]})
    await deliver(at, "a", {"id": 1}, {"id": 2})
    await at.derive()
    await deliver(at, "b", {"id": 2}, {"id": 3})
    await deliver(at, "c", {"id": 3}, {"id": 3})
    await at.derive()
    assert len(await at.rows("event")) == 3
    assert len({item["subject_id"] for item in await work(at)}) == len(await work(at)) == 3


async def test_a_pushed_route_is_another_family(database: Database) -> None:
    at = await receiver(database, {"handle": ["*"], "push": "crm"})
    await deliver(at, "a", {"id": 1})
    await at.derive()
    assert [item["family"] for item in await work(at)] == ["push"]


async def test_without_a_route_there_is_no_work(database: Database) -> None:
    at = await receiver(database)
    await deliver(at, "a", {"id": 1})
    await at.derive()
    assert len(await at.rows("event")) == 1
    assert not await work(at)


async def test_one_object_is_one_lane_in_the_order_of_its_events(database: Database) -> None:
    at = await receiver(database, HANDLED)
    await deliver(
        at, "a", {"id": 1, "object": 7}, {"id": 2, "object": "7"}, {"id": 3, "object": 8}, {"id": 4}
    )
    await deliver(at, "b", {"id": 5, "object": 7}, {"id": 6, "object": [7]})
    await at.derive()
    route = (ORG, INSTALLATION, CAPABILITY, "batch")
    lanes = [(item["source_lane"], item["source_position"]) for item in await work(at)]
    seven, eight = lane_of(route, ("7",)), lane_of(route, ("8",))
    assert sorted(lanes, key=str) == sorted(
        [(seven, 1), (seven, 2), (eight, 1), (None, None), (seven, 3), (None, None)], key=str
    )
    ready = await database.transact(claim, at.claim_request(Family.HANDLER))
    assert len(ready) == 4, "of each lane only the head"


async def test_t1_a_derivation_interrupted_anywhere_is_the_same_run_again(database: Database) -> None:
    at = await receiver(database, {"handle": ["*"]})
    await deliver(at, "a", {"id": 1, "object": 7}, {"id": 2, "object": 7}, {"id": 3})
    made = await derivation(at)
    seen: list[int] = []
    after = 0
    while not seen:
        after += 1
        try:
            await database.driver.run(
                lambda after=after: interrupted(store.finish_derivations([made]), after, seen), readonly=False
            )
        except Interruption:
            assert not await at.rows("event")
            assert not await work(at)
    assert after > 5
    once = (await at.rows("event"), await at.rows("work_item"))
    (again,) = await database.transact(store.finish_derivations, [made])
    assert again == Made(Settled.REPEATED, frozenset(event.id for event in made.events)), (
        "after an unknown commit"
    )
    assert (await at.rows("event"), await at.rows("work_item")) == once
    assert [event["id"] for event in sorted(once[0], key=lambda row: row["position"])] == [
        event.id for event in made.events
    ]


async def linked(at: Receiver, *remote_ids: str) -> str:
    """A principal whose objects are linked; its id."""
    principal = await Principals(at.database, at.vault).connect(
        org=ORG, installation=INSTALLATION, pack="shop@1.0.0", name="nobody", secret=Secret("unused")
    )
    new = [
        NewLink(
            new_id("lnk"), ORG, INSTALLATION, principal.id, principal.generation, "item", f"our {name}", name
        )
        for name in remote_ids
    ]
    adopted = await at.database.transact(links.adopt, new)
    assert all(isinstance(one, RemoteLink) for one in adopted)
    return principal.id


async def states(at: Receiver, principal: str, *remote_ids: str) -> dict[str, tuple[str, int]]:
    """State and version of the links of these objects."""
    keys = [(ORG, INSTALLATION, principal, "item", name) for name in remote_ids]
    found = await at.database.read(links.find_remote, keys)
    return {link.remote_id: (link.state.value, link.version) for link in found.values()}


async def test_a_deleted_object_suspends_its_link_once_and_no_other(database: Database) -> None:
    at = await receiver(database, HANDLED)
    principal = await linked(at, "7", "8")
    gone = {"id": 1, "object": 7, "type": "item.gone"}
    await deliver(
        at, "a", gone, {"id": 2, "object": 8, "type": "item.new"}, {"id": 3, "object": 9, "type": "item.gone"}
    )
    await at.derive()
    assert await states(at, principal, "7", "8", "9") == {"7": ("suspended", 2), "8": ("active", 1)}
    assert not await work(at), "it is suspended whether or not somebody is told"
    (link,) = (await database.read(links.find_remote, [(ORG, INSTALLATION, principal, "item", "7")])).values()
    await database.transact(links.move, [LinkMove(link.id, ORG, INSTALLATION, LinkEvent.RESUME)])
    await deliver(at, "b", gone)
    await at.derive()
    assert (await states(at, principal, "7"))["7"] == ("active", 3), "an old event is no new one"


async def test_t1_a_deletion_and_its_suspension_are_one_transaction(database: Database) -> None:
    at = await receiver(database, {"handle": ["*"]})
    principal = await linked(at, "7")
    await deliver(at, "a", {"id": 1, "object": 7, "type": "item.gone"})
    made = await derivation(at)
    seen: list[int] = []
    after = 0
    while not seen:
        after += 1
        try:
            await database.driver.run(
                lambda after=after: interrupted(store.finish_derivations([made]), after, seen), readonly=False
            )
        except Interruption:
            assert not await at.rows("event")
            assert await states(at, principal, "7") == {"7": ("active", 1)}
    assert await states(at, principal, "7") == {"7": ("suspended", 2)}
    await database.transact(store.finish_derivations, [made])
    assert await states(at, principal, "7") == {"7": ("suspended", 2)}


async def test_a_derivation_that_lost_its_claim_makes_nothing(database: Database) -> None:
    at = await receiver(database, {"handle": ["*"]})
    await deliver(at, "a", {"id": 1})
    made = await derivation(at)
    claimed = replace(made.settlement.claimed, token="another")
    late = replace(made, settlement=replace(made.settlement, claimed=claimed))
    assert await database.transact(store.finish_derivations, [late]) == [Made(Settled.STALE, frozenset())]
    assert not await at.rows("event")
    assert not await work(at)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_two_receipts_of_one_event_make_it_once(database: Database, order: tuple[int, int]) -> None:
    at = await receiver(database, {"handle": ["*"]})
    for name in ("a", "b"):
        await deliver(at, name, {"id": 1, "object": 7})
    unread = await database.transact(claim_unread, at.claim_request(Family.EVENT))
    deriver = Deriver(database, at.views, at.vault, Principals(at.database, at.vault), DEPLOYMENT)
    both = [await deriver.derivation(one) for one in unread]
    together = await database.transact(store.finish_derivations, [both[number] for number in order])
    assert [one.settled for one in together] == [Settled.DONE, Settled.DONE]
    assert sum(len(one.new) for one in together) == 1
    (made,) = await at.rows("event")
    (item,) = await work(at)
    assert item["subject_id"] == made["id"]
