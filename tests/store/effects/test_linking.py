"""An accepted create's link: made in the transaction that ends the command, and never against one that stands."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.store.effects.test_journal import late_answer, question, verdict
from tests.store.effects.world import DEPLOYMENT, INSTALLATION, ORG, World, make_world

from doonce.base.ids import new_id
from doonce.catalog.model import Outcome, Verdict
from doonce.commands import store as commands
from doonce.commands.model import Acceptance, CommandEnd, EndedAs
from doonce.db.database import Database
from doonce.effects import finish as finish_store
from doonce.effects import reconcile
from doonce.effects import store as effects
from doonce.effects.finish import Finish, Finished
from doonce.effects.linking import UNLINKED, Linked
from doonce.effects.model import Ending, Start
from doonce.effects.reconcile import Resolved
from doonce.links import store as links
from doonce.links.model import LinkEvent, LinkMove, LinkState, NewLink, RemoteLink
from doonce.ownership import store as ownership

MADE = '{"remote_id":"900"}'


@pytest.fixture
async def world(database: Database) -> World:
    await database.transact(ownership.install, DEPLOYMENT, "test", "first")
    made = await make_world(database)
    made.terms = replace(made.terms, creates="record")
    return made


def create(world: World, key: str = "k1", local_ref: str = "new") -> Acceptance:
    """A create: nothing is linked, and the object has no id yet."""
    plain = world.acceptance(key)
    pins = replace(plain.pins, link_id=None, link_version=None)
    return replace(plain, operation="record.create", local_ref=local_ref, remote_id=None, pins=pins)


async def started(world: World, *acceptances: Acceptance) -> list[Start]:
    await world.accept(*acceptances)
    starts = await world.claim()
    for start in starts:
        await world.mark(start)
    return starts


async def link_at(world: World, local_ref: str) -> RemoteLink | None:
    key = (ORG, INSTALLATION, "record", local_ref)
    return (await world.database.read(links.find, [key])).get(key)


async def adopt(world: World, local_ref: str, remote_id: str) -> RemoteLink:
    principal = world.principal
    new = NewLink(
        new_id("lnk"), ORG, INSTALLATION, principal.id, principal.generation, "record", local_ref, remote_id
    )
    (link,) = await world.database.transact(links.adopt, [new])
    assert isinstance(link, RemoteLink)
    return link


async def end_of(world: World, start: Start) -> CommandEnd | None:
    command_id = start.claimed.item.subject_id
    return (await world.database.read(commands.load_ends, [command_id])).get(command_id)


async def finished(world: World, start: Start, result: str = MADE) -> Linked | None:
    done, step = await world.finish(start, Outcome.ACCEPTED, result_json=result)
    assert done is Finished.DONE
    assert step is not None
    return None if step.linked is None else Linked(step.linked)


async def test_an_accepted_create_links_its_record(world: World) -> None:
    (start,) = await started(world, create(world))
    assert await link_at(world, "new") is None
    assert await finished(world, start) is Linked.MADE
    link = await link_at(world, "new")
    assert link is not None
    assert (link.remote_id, link.principal_id, link.generation) == (
        "900", world.principal.id, world.principal.generation,
    )  # fmt: skip
    assert (link.state, link.version) == (LinkState.ACTIVE, 1)
    end = await end_of(world, start)
    assert end is not None
    assert (end.ended_as, end.reason) == (EndedAs.ACCEPTED, "test")


async def test_a_rerun_after_an_unknown_commit_finds_its_own_link(world: World) -> None:
    (start,) = await started(world, create(world))
    await finished(world, start)
    first = await link_at(world, "new")
    assert (await world.finish(start, Outcome.ACCEPTED, result_json=MADE))[0] is Finished.REPEATED
    assert await link_at(world, "new") == first


async def test_a_link_that_says_the_same_is_kept_as_it_is(world: World) -> None:
    (start,) = await started(world, create(world))
    before = await adopt(world, "new", "900")
    move = LinkMove(before.id, ORG, INSTALLATION, LinkEvent.SUSPEND)
    await world.database.transact(links.move, [move])
    assert await finished(world, start) is Linked.KEPT
    after = await link_at(world, "new")
    assert after is not None
    assert (after.id, after.state, after.version) == (before.id, LinkState.SUSPENDED, 2)


@pytest.mark.parametrize(
    "local_ref,remote_id,why", [("new", "800", "the local record"), ("other", "900", "the remote record")]
)
async def test_a_link_that_stands_is_never_moved_and_the_effect_stays_accepted(
    world: World, local_ref: str, remote_id: str, why: str
) -> None:
    (start,) = await started(world, create(world))
    before = await adopt(world, local_ref, remote_id)
    assert await finished(world, start) is Linked.REFUSED
    assert await link_at(world, local_ref) == before
    if local_ref != "new":
        assert await link_at(world, "new") is None
    end = await end_of(world, start)
    assert end is not None
    assert end.ended_as is EndedAs.ACCEPTED
    assert f"{UNLINKED}{why} is linked to another" in end.reason
    assert end.result_json == MADE


@pytest.mark.parametrize("result", ["{}", '{"remote_id":"' + "x" * 513 + '"}', '{"remote_id":"a\\u0007"}'])
async def test_an_id_that_cannot_be_kept_undoes_nothing(world: World, result: str) -> None:
    (start,) = await started(world, create(world))
    assert await finished(world, start, result) is Linked.REFUSED
    end = await end_of(world, start)
    assert end is not None
    assert (end.ended_as, UNLINKED in end.reason) == (EndedAs.ACCEPTED, True)
    assert await link_at(world, "new") is None


async def test_one_flush_makes_one_link_of_a_record_and_says_so_of_the_other(world: World) -> None:
    starts = await started(world, create(world, "k1"), create(world, "k2"), create(world, "k3", "third"))
    rows = [
        Finish(
            start.claimed, DEPLOYMENT, start.command, start.attempt_id,
            Ending(Outcome.ACCEPTED, "test", result_json=f'{{"remote_id":"90{number}"}}'), world.terms, None,
        )  # type: ignore[arg-type]  # there is a command
        for number, start in enumerate(starts)
    ]  # fmt: skip
    answers = await world.database.transact(finish_store.finish, rows)
    fates = {
        start.command.local_ref + str(number): step.linked
        for number, (start, (_, step)) in enumerate(zip(starts, answers, strict=True))
        if start.command is not None and step is not None
    }
    assert sorted(fate for fate in fates.values() if fate is not None) == ["made", "made", "refused"]
    ends = [await end_of(world, start) for start in starts]
    assert [end.ended_as for end in ends if end is not None] == [EndedAs.ACCEPTED] * 3
    assert sum(UNLINKED in end.reason for end in ends if end is not None) == 1


async def test_who_lost_its_claim_links_nothing(world: World) -> None:
    (start,) = await started(world, create(world))
    lost = replace(start.claimed, token="somebody-else")  # a claim's, no secret
    done, _ = await world.finish(start, Outcome.ACCEPTED, claimed=lost, result_json=MADE)
    assert done is Finished.STALE
    assert await link_at(world, "new") is None


@pytest.mark.parametrize("outcome", [Outcome.REJECTED, Outcome.OUTCOME_UNKNOWN])
async def test_what_is_not_accepted_links_nothing(world: World, outcome: Outcome) -> None:
    (start,) = await started(world, create(world))
    await world.finish(start, outcome, result_json=MADE)
    assert await link_at(world, "new") is None


async def test_an_operation_that_creates_nothing_links_nothing(world: World) -> None:
    world.terms = replace(world.terms, creates=None)
    (start,) = await started(world, create(world))
    assert await finished(world, start) is None
    assert await link_at(world, "new") is None


@pytest.mark.parametrize("taken", [False, True])
async def test_a_proven_effect_links_as_an_answer_does(world: World, taken: bool) -> None:
    (start,) = await started(world, create(world))
    await world.finish(start, Outcome.OUTCOME_UNKNOWN)
    await world.database.transact(effects.append_evidence, [late_answer(start)])
    if taken:
        await adopt(world, "new", "800")
    found = await question(world)
    proven = verdict(found, Verdict.EFFECT_PROVEN, result_json=MADE, names_attempt=True)
    row = replace(proven, creates="record")
    assert await world.database.transact(reconcile.resolve, row) is Resolved.RECORDED
    link, end = await link_at(world, "new"), await end_of(world, start)
    assert link is not None
    assert end is not None
    assert end.ended_as is EndedAs.ACCEPTED
    assert link.remote_id == ("800" if taken else "900")
    assert (UNLINKED in end.reason) is taken


async def test_a_proven_absence_links_nothing(world: World) -> None:
    (start,) = await started(world, create(world))
    await world.finish(start, Outcome.OUTCOME_UNKNOWN)
    found = await question(world)
    row = replace(verdict(found, Verdict.NO_EFFECT_PROVEN, result_json=MADE), creates="record")
    assert await world.database.transact(reconcile.resolve, row) is Resolved.RECORDED
    assert await link_at(world, "new") is None


async def test_a_retired_link_makes_room(world: World) -> None:
    (start,) = await started(world, create(world))
    old = await adopt(world, "new", "800")
    await world.database.transact(links.move, [LinkMove(old.id, ORG, INSTALLATION, LinkEvent.RETIRE)])
    assert await finished(world, start) is Linked.MADE
    link = await link_at(world, "new")
    assert link is not None
    assert link.remote_id == "900"
