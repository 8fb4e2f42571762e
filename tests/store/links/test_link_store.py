"""Links in the database: adoption is once, contradictions are typed, transitions keep to their scope."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from doonce.base.errors import Conflict, Invalid, MissingOrDenied, Stale
from doonce.base.ids import new_id
from doonce.db.database import Database
from doonce.db.transaction import Txn
from doonce.links import store
from doonce.links.model import LinkEvent, LinkMove, LinkState, NewLink, RemoteLink, authority_of


def new_link(
    local_ref: str = "L1", remote_id: str = "R1", *, generation: int = 1, org: str = "acme"
) -> NewLink:
    return NewLink(new_id("lnk"), org, "main", "prn_1", generation, "person", local_ref, remote_id)


async def adopt_one(database: Database, link: NewLink) -> RemoteLink:
    (adopted,) = await database.transact(store.adopt, [link])
    assert isinstance(adopted, RemoteLink)
    return adopted


def move(link: RemoteLink, event: LinkEvent, version: int | None = None) -> LinkMove:
    return LinkMove(link.id, link.org, link.installation, event, version)


async def test_adopted_links_are_found_by_key_and_id(database: Database) -> None:
    wanted = [new_link("L2", "R2"), new_link("L1", "R1"), new_link("L1", "R1", org="other")]
    adopted = await database.transact(store.adopt, wanted)
    assert [link.id for link in adopted if isinstance(link, RemoteLink)] == [link.id for link in wanted]
    first = adopted[0]
    assert isinstance(first, RemoteLink)
    assert (first.state, first.version) == (LinkState.ACTIVE, 1)
    assert first.authority == authority_of("prn_1", 1, "person", "R2")
    absent = ("acme", "main", "person", "L3")
    assert await database.read(store.find, [wanted[0].key, absent]) == {wanted[0].key: first}
    assert await database.read(store.get, [first.id, "lnk_absent"]) == {first.id: first}
    assert await database.transact(store.share, [first.id]) == {first.id: first}
    assert await database.read(store.find, []) == {}


async def test_t7_adopting_the_same_identity_again_gives_the_first_link(database: Database) -> None:
    first = await adopt_one(database, new_link())
    assert await adopt_one(database, new_link()) == first


async def test_t7_one_link_comes_of_a_race(database: Database) -> None:
    wanted = [new_link() for _ in range(12)]
    adopted = await asyncio.gather(*[adopt_one(database, link) for link in wanted])
    assert len({link.id for link in adopted}) == 1


async def test_one_batch_may_name_a_link_twice(database: Database) -> None:
    results = await database.transact(store.adopt, [new_link(), new_link(), new_link("L1", "R2")])
    assert isinstance(results[0], RemoteLink)
    assert results[0] == results[1]
    assert isinstance(results[2], Conflict)


async def test_contradicting_adoptions_conflict_and_change_nothing(database: Database) -> None:
    first = await adopt_one(database, new_link())
    results = await database.transact(
        store.adopt, [new_link("L1", "R2"), new_link("L2", "R1"), new_link("L3", "R3")]
    )
    assert isinstance(results[0], Conflict)
    assert "local record is linked" in results[0].message
    assert isinstance(results[1], Conflict)
    assert "remote record is linked" in results[1].message
    assert isinstance(results[2], RemoteLink)
    assert await database.read(store.get, [first.id]) == {first.id: first}
    assert await database.read(store.find, [("acme", "main", "person", "L2")]) == {}


async def test_a_newer_generation_renews_the_authority_and_an_older_one_is_stale(database: Database) -> None:
    first = await adopt_one(database, new_link())
    renewed = await adopt_one(database, new_link(generation=3))
    assert renewed == dataclasses.replace(
        first, generation=3, version=2, authority=authority_of("prn_1", 3, "person", "R1")
    )
    (outdated,) = await database.transact(store.adopt, [new_link(generation=2)])
    assert isinstance(outdated, Stale)
    assert outdated.axis == "generation"
    assert await adopt_one(database, new_link(generation=3)) == renewed


async def test_an_unstorable_text_stops_the_batch_before_it_starts(database: Database) -> None:
    with pytest.raises(Invalid):
        await database.transact(store.adopt, [new_link(), new_link("x" * 256)])
    assert await database.read(store.find, [new_link().key]) == {}


async def test_moves_raise_the_version_once(database: Database) -> None:
    link = await adopt_one(database, new_link())
    for version, (event, state) in enumerate(
        [
            (LinkEvent.SUSPEND, LinkState.SUSPENDED),
            (LinkEvent.RESUME, LinkState.ACTIVE),
            (LinkEvent.RETIRE, LinkState.RETIRED),
        ],
        start=2,
    ):
        for _ in range(2):  # again, as after an unknown commit
            (moved,) = await database.transact(store.move, [move(link, event)])
            assert isinstance(moved, RemoteLink)
            assert (moved.state, moved.version) == (state, version)


async def test_an_illegal_move_or_another_version_conflicts(database: Database) -> None:
    link = await adopt_one(database, new_link())
    (changed,) = await database.transact(store.move, [move(link, LinkEvent.SUSPEND, version=7)])
    assert isinstance(changed, Conflict)
    await database.transact(store.move, [move(link, LinkEvent.RETIRE)])
    (illegal,) = await database.transact(store.move, [move(link, LinkEvent.RESUME)])
    assert isinstance(illegal, Conflict)


async def test_another_scope_looks_like_a_missing_link(database: Database) -> None:
    link = await adopt_one(database, new_link())
    foreign = LinkMove(link.id, "other", "main", LinkEvent.RETIRE)
    absent = LinkMove("lnk_absent", "acme", "main", LinkEvent.RETIRE)
    results = await database.transact(store.move, [foreign, absent])
    assert all(isinstance(result, MissingOrDenied) for result in results)
    assert len({str(result) for result in results}) == 1
    assert await database.read(store.get, [link.id]) == {link.id: link}


async def test_a_retired_link_frees_its_local_and_its_remote_record(database: Database) -> None:
    link = await adopt_one(database, new_link())
    await database.transact(store.move, [move(link, LinkEvent.RETIRE)])
    assert await database.read(store.find, [link.key]) == {}
    replaced = await adopt_one(database, new_link("L1", "R2"))
    moved = await adopt_one(database, new_link("L2", "R1"))
    assert len({link.id, replaced.id, moved.id}) == 3
    retired = (await database.read(store.get, [link.id]))[link.id]
    assert retired.state is LinkState.RETIRED


async def test_t1_an_adoption_rolled_back_after_any_statement_can_run_again(database: Database) -> None:
    wanted = [new_link(), new_link("L2", "R2")]
    taken = 0
    while True:
        taken += 1
        try:
            await database.transact(stop_after, store.adopt(wanted), taken)
        except StoppedError:
            assert await database.read(store.find, [link.key for link in wanted]) == {}
            continue
        break
    assert taken > 3
    assert set(await database.read(store.find, [link.key for link in wanted])) == {
        link.key for link in wanted
    }


class StoppedError(Exception):
    """The test stopped a transaction."""


def stop_after(transaction: Txn[object], statements: int) -> Txn[object]:
    value = None
    for _ in range(statements):
        try:
            call = transaction.send(value)
        except StopIteration as stop:
            return stop.value
        value = yield call
    raise StoppedError
