"""The effect journal (PROTOCOL D2, W3–W5, H4, T5): what each step needs, and what it leaves to the next claimant."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from msgspec.structs import replace
from tests.store.effects.world import World, make_world

from doonce.base.ids import new_id
from doonce.catalog.model import Outcome, Verdict
from doonce.commands import store as commands
from doonce.commands.model import EndedAs
from doonce.db.database import Database
from doonce.db.faults import RefusedData
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, clock, fetch, insert_many
from doonce.effects import reconcile
from doonce.effects import store as effects
from doonce.effects.attempts import ATTEMPT_COLUMNS, attempt_row, attempts_of
from doonce.effects.finish import Finished
from doonce.effects.model import (
    AttemptKind,
    AttemptState,
    EvidenceKind,
    Marked,
    Question,
    RefusedMark,
    Start,
    Verdicted,
)
from doonce.effects.reconcile import Resolve, Resolved
from doonce.effects.store import LateEvidence
from doonce.effects.tables import effect_attempt
from doonce.links import store as links
from doonce.links.model import LinkEvent, LinkMove
from doonce.ownership import store as ownership
from doonce.ownership.model import Family
from doonce.work import settle
from doonce.work.lanes import lock as lock_lanes
from doonce.work.model import State
from doonce.work.store import PLAIN_ITEMS, lock_items, read_item
from doonce.work.tables import work_item, work_lease

COMPLETIONS_OF = Statement(
    "test.completions_of",
    lambda _: sa.select(work_item.c.state, work_item.c.summary, work_item.c.finished_at).where(
        work_item.c.subject_id == sa.bindparam("subject"), work_item.c.family == "completion"
    ),
)
EXPIRE = Statement("test.expire", lambda dialect: sa.update(work_item).values(lease_until=1))


def expire() -> Txn[None]:
    """Let every lease have run out, so that it is looked at."""
    yield from fetch(EXPIRE)
    yield from fetch(DUE)


DUE = Statement(
    "test.due",
    lambda dialect: sa.update(work_lease).values(due=1),
)


@pytest.fixture
async def world(database: Database) -> World:
    await database.transact(ownership.install, "default", "test", "first")
    return await make_world(database)


async def item_state(world: World, item_id: str) -> State:
    rows = await world.database.read(lambda: fetch(PLAIN_ITEMS, ids=[(item_id,)]))
    return read_item(rows[0]).state


async def started(world: World, key: str = "k1", **lanes: str) -> Start:
    await world.accept(world.acceptance(key, **lanes))
    (start,) = await world.claim()
    return start


async def question(world: World) -> Question:
    (found,) = await world.database.transact(reconcile.claim_questions, world.claim_request(Family.RECONCILE))
    return found


def verdict(found: Question, what: Verdict, **changes: object) -> Resolve:
    assert found.attempt is not None
    assert found.command is not None
    values: dict[str, object] = {
        "verdict": what,
        "reason": "test",
        "evidence_version": found.attempt.evidence_version,
    }
    return Resolve(
        claimed=found.claimed,
        deployment="default",
        attempt_id=found.attempt.id,
        command=found.command,
        decided_by="test",
        successor_id=new_id("wrk"),
        verdict=Verdicted(**(values | changes)),  # type: ignore[arg-type]  # test shorthand
    )


async def test_a_claim_prepares_one_attempt(world: World) -> None:
    start = await started(world)
    (attempt,) = (await world.database.read(attempts_of, [start.claimed.item.subject_id])).values()
    assert [(a.id, a.state, a.outcome) for a in attempt] == [(start.attempt_id, AttemptState.PREPARED, None)]


async def test_the_whole_way_ends_the_command_and_makes_its_completion(world: World) -> None:
    start = await started(world, source="s", target="t")
    assert isinstance(await world.mark(start), Marked)
    finished, step = await world.finish(start, Outcome.ACCEPTED, result_json='{"id":"501"}')
    assert finished is Finished.DONE
    assert step is not None
    assert start.command is not None
    end = (await world.database.read(commands.load_ends, [start.command.id]))[start.command.id]
    assert (end.ended_as, end.result_json, end.attempt_id) == (
        EndedAs.ACCEPTED,
        '{"id":"501"}',
        start.attempt_id,
    )
    assert await item_state(world, start.claimed.item.id) is State.SUCCEEDED
    assert await item_state(world, commands.completion_id(start.command.id)) is State.PENDING
    held = await world.database.transact(lock_lanes, ["t"])
    assert held["t"].holder is None


async def test_t5_marking_and_finishing_again_change_nothing(world: World) -> None:
    start = await started(world)
    request = world.mark_request(start)
    first = await world.database.transact(effects.mark, [request])
    assert await world.database.transact(effects.mark, [request]) == first
    rows = await world.database.read(lambda: fetch(PLAIN_ITEMS, ids=[(start.claimed.item.id,)]))
    assert read_item(rows[0]).attempts == 1
    assert (await world.finish(start, Outcome.ACCEPTED))[0] is Finished.DONE
    assert (await world.finish(start, Outcome.ACCEPTED))[0] is Finished.REPEATED


async def test_d2_a_second_mark_of_a_dispatched_attempt_is_refused(world: World) -> None:
    start = await started(world)
    await world.mark(start)
    assert await world.mark(start) is RefusedMark.ATTEMPT


async def test_d2_a_lost_lease_refuses_the_mark_and_the_end(world: World) -> None:
    start = await started(world)
    await world.database.transact(expire)
    assert await world.mark(start) is RefusedMark.LEASE
    assert (await world.finish(start, Outcome.ACCEPTED))[0] is Finished.STALE


async def test_d2_a_reconnect_refuses_the_mark(world: World) -> None:
    start = await started(world)
    await world.principals.disconnect(world.principal, reason="test")
    assert await world.mark(start) is RefusedMark.GENERATION


async def test_d2_a_suspended_link_refuses_the_mark(world: World) -> None:
    start = await started(world)
    move = LinkMove(world.link.id, world.link.org, world.link.installation, LinkEvent.SUSPEND)
    await world.database.transact(links.move, [move])
    assert await world.mark(start) is RefusedMark.LINK


async def test_d2_another_deployment_or_epoch_refuses_the_mark(world: World) -> None:
    start = await started(world)
    assert await world.mark(start, deployment="other") is RefusedMark.OWNERSHIP


async def test_w5_a_cancel_before_the_mark_wins_and_after_it_does_not(world: World) -> None:
    def ask(start: Start) -> Txn[object]:
        items = yield from lock_items([start.claimed.item.id])
        return (yield from settle.cancel(items, {}, 1, "asked"))

    start = await started(world)
    await world.database.transact(ask, start)
    assert await world.mark(start) is RefusedMark.CANCELLED
    _, step = await world.finish(start, Outcome.RETRYABLE_PRE_DISPATCH)
    assert step is not None
    assert step.ended_as is EndedAs.CANCELLED
    late = await started(world, "k2")
    await world.mark(late)
    await world.database.transact(ask, late)
    _, step = await world.finish(late, Outcome.ACCEPTED)
    assert step is not None
    assert step.ended_as is EndedAs.ACCEPTED


async def test_w4_the_next_claimant_finds_the_open_attempt(world: World) -> None:
    start = await started(world)
    await world.mark(start)
    await world.database.transact(expire)
    (again,) = await world.claim()
    assert again.open_attempt is not None
    assert (again.open_attempt.id, again.open_attempt.state) == (start.attempt_id, AttemptState.DISPATCHED)
    attempts = await world.database.read(attempts_of, [again.claimed.item.subject_id])
    assert len(attempts[again.claimed.item.subject_id]) == 1
    assert (await world.finish(again, Outcome.OUTCOME_UNKNOWN))[0] is Finished.DONE
    assert (await world.finish(start, Outcome.ACCEPTED))[0] is Finished.STALE


async def test_an_unknown_outcome_holds_its_lane_and_makes_reconciliation_and_notice(world: World) -> None:
    start = await started(world, target="t")
    await world.accept(world.acceptance("k2", target="t"))
    await world.mark(start)
    _, step = await world.finish(start, Outcome.OUTCOME_UNKNOWN)
    assert step is not None
    assert await item_state(world, start.claimed.item.id) is State.DEAD
    assert (await world.database.transact(lock_lanes, ["t"]))["t"].holder == start.attempt_id
    assert await world.claim() == []
    found = await question(world)
    assert found.attempt is not None
    assert found.attempt.id == start.attempt_id
    (notice,) = await world.database.transact(reconcile_completions, world.claim_request(Family.COMPLETION))
    assert notice == start.attempt_id


def reconcile_completions(request: object) -> Txn[list[str | None]]:
    from doonce.effects.completions import claim_completions

    found = yield from claim_completions(request)  # type: ignore[arg-type]  # test shorthand
    return [completion.attempt_id for completion in found]


@pytest.mark.parametrize("outcome", [Outcome.ACCEPTED, Outcome.OUTCOME_UNKNOWN])
async def test_k1_what_the_application_asks_for_is_done_when_it_is_recorded(
    world: World, outcome: Outcome
) -> None:
    world.terms = replace(world.terms, asks=True)
    start = await started(world)
    await world.mark(start)
    await world.finish(start, outcome)
    about = start.attempt_id if outcome is Outcome.OUTCOME_UNKNOWN else start.claimed.item.subject_id
    (told,) = await world.database.read(lambda: fetch(COMPLETIONS_OF, subject=about))
    assert tuple(told)[:2] == ("succeeded", commands.LEFT)
    assert told[2] is not None
    assert await world.database.transact(reconcile_completions, world.claim_request(Family.COMPLETION)) == []


async def test_w4_a_second_attempt_beside_an_open_one_is_refused_by_its_key(world: World) -> None:
    start = await started(world)
    assert start.command is not None
    command, claimed = start.command, start.claimed

    def another() -> Txn[None]:
        now_us = yield from clock()
        digest = command.request.body_digest
        row = attempt_row(
            new_id("att"), AttemptKind.EFFECT, 0, claimed, command.pins, command.operation, digest, now_us
        )
        yield from insert_many(effect_attempt, ATTEMPT_COLUMNS, [row])

    with pytest.raises(RefusedData):
        await world.database.transact(another)


async def test_l4_a_proven_effect_ends_the_command_and_holds_the_lane_to_the_horizon(world: World) -> None:
    start = await started(world, target="t")
    await world.mark(start)
    await world.finish(start, Outcome.OUTCOME_UNKNOWN)
    found = await question(world)
    assert (
        await world.database.transact(reconcile.resolve, verdict(found, Verdict.EFFECT_PROVEN))
        is Resolved.RECORDED
    )
    assert start.command is not None
    end = (await world.database.read(commands.load_ends, [start.command.id]))[start.command.id]
    assert end.ended_as is EndedAs.ACCEPTED
    lane = (await world.database.transact(lock_lanes, ["t"]))["t"]
    assert found.attempt is not None
    assert (lane.holder, lane.hold_until) == (None, found.attempt.horizon_at)


async def test_l4_evidence_that_names_the_attempt_frees_the_lane_at_once(world: World) -> None:
    start = await started(world, target="t")
    await world.accept(world.acceptance("k2", target="t"))
    await world.mark(start)
    await world.finish(start, Outcome.OUTCOME_UNKNOWN)
    resolve = verdict(await question(world), Verdict.EFFECT_PROVEN, names_attempt=True)
    await world.database.transact(reconcile.resolve, resolve)
    (second,) = await world.claim()
    assert second.claimed.item.target_lane == "t"


async def test_h2_a_second_verdict_is_not_recorded(world: World) -> None:
    start = await started(world)
    await world.mark(start)
    await world.finish(start, Outcome.OUTCOME_UNKNOWN)
    found = await question(world)
    await world.database.transact(reconcile.resolve, verdict(found, Verdict.EFFECT_PROVEN))
    later = verdict(found, Verdict.NO_EFFECT_PROVEN, resend=True)
    assert await world.database.transact(reconcile.resolve, later) is Resolved.STALE
    assert await world.claim() == []


async def test_l5_no_effect_with_a_resend_makes_one_successor_in_the_held_lane(world: World) -> None:
    start = await started(world, source="s", target="t")
    await world.accept(world.acceptance("k2", source="s", target="t"))
    await world.mark(start)
    await world.finish(start, Outcome.OUTCOME_UNKNOWN)
    resolve = verdict(await question(world), Verdict.NO_EFFECT_PROVEN, resend=True)
    assert await world.database.transact(reconcile.resolve, resolve) is Resolved.RECORDED
    (successor,) = await world.claim()
    assert successor.claimed.item.id == resolve.successor_id
    assert successor.claimed.item.subject_id == start.claimed.item.subject_id
    assert successor.claimed.item.source_position == start.claimed.item.source_position
    assert successor.lineage is not None
    assert isinstance(await world.mark(successor), Marked)
    await world.finish(successor, Outcome.ACCEPTED)
    (behind,) = await world.claim()
    assert behind.claimed.item.subject_id != start.claimed.item.subject_id


async def test_h4_late_evidence_stops_the_successor(world: World) -> None:
    start = await started(world)
    await world.mark(start)
    await world.finish(start, Outcome.OUTCOME_UNKNOWN)
    resolve = verdict(await question(world), Verdict.NO_EFFECT_PROVEN, resend=True)
    await world.database.transact(reconcile.resolve, resolve)
    (successor,) = await world.claim()
    await world.database.transact(effects.append_evidence, [late_answer(start)])
    assert await world.mark(successor) is RefusedMark.EVIDENCE


async def test_h4_a_verdict_that_did_not_see_the_evidence_is_not_recorded(world: World) -> None:
    start = await started(world)
    await world.mark(start)
    await world.finish(start, Outcome.OUTCOME_UNKNOWN)
    found = await question(world)
    await world.database.transact(effects.append_evidence, [late_answer(start)])
    resolve = verdict(found, Verdict.NO_EFFECT_PROVEN, resend=True)
    assert await world.database.transact(reconcile.resolve, resolve) is Resolved.CHANGED
    again = await question(world)
    assert [seen.outcome for seen in again.evidence] == [Outcome.ACCEPTED]


async def test_late_evidence_is_appended_once_and_wakes_the_reconciliation(world: World) -> None:
    start = await started(world)
    await world.mark(start)
    await world.finish(start, Outcome.OUTCOME_UNKNOWN)
    found = await question(world)
    waiting = Resolve(
        found.claimed, "default", start.attempt_id, found.command, "test", new_id("wrk"), delay_us=10**12
    )  # type: ignore[arg-type]  # there is a command
    assert await world.database.transact(reconcile.resolve, waiting) is Resolved.WAITING
    row = late_answer(start)
    await world.database.transact(effects.append_evidence, [row])
    await world.database.transact(effects.append_evidence, [row])
    again = await question(world)
    assert len(again.evidence) == 1
    assert again.attempt is not None
    assert again.attempt.evidence_version == 1


@pytest.mark.parametrize("ending", ["waits", "gives up"])
async def test_h4_late_evidence_that_comes_during_a_look_is_seen_at_once(world: World, ending: str) -> None:
    """Nobody can bring forward what is being looked at: the look itself must not wait, and not give up."""
    start = await started(world)
    await world.mark(start)
    await world.finish(start, Outcome.OUTCOME_UNKNOWN)
    found = await question(world)
    assert found.attempt is not None
    look = Resolve(
        found.claimed,
        "default",
        start.attempt_id,
        found.command,  # type: ignore[arg-type]  # there is one
        "test",
        new_id("wrk"),
        delay_us=10**12,
        to_operator=ending == "gives up",
        evidence_version=found.attempt.evidence_version,
    )
    await world.database.transact(effects.append_evidence, [late_answer(start)])
    assert await world.database.transact(reconcile.resolve, look) is Resolved.CHANGED
    again = await question(world)
    assert [seen.outcome for seen in again.evidence] == [Outcome.ACCEPTED]


async def test_late_evidence_after_reconciliation_gave_up_looks_again(world: World) -> None:
    start = await started(world)
    await world.mark(start)
    await world.finish(start, Outcome.OUTCOME_UNKNOWN)
    found = await question(world)
    given_up = Resolve(
        found.claimed, "default", start.attempt_id, found.command, "test", new_id("wrk"), to_operator=True
    )  # type: ignore[arg-type]  # there is a command
    await world.database.transact(reconcile.resolve, given_up)
    await world.database.transact(effects.append_evidence, [late_answer(start)])
    again = await question(world)
    assert again.claimed.item.id != found.claimed.item.id


async def test_an_operator_decides_what_nobody_may_resend(world: World) -> None:
    start = await started(world)
    await world.mark(start)
    await world.finish(start, Outcome.OUTCOME_UNKNOWN)
    found = await question(world)
    await world.database.transact(reconcile.resolve, verdict(found, Verdict.NO_EFFECT_PROVEN))
    assert await world.claim() == []
    assert found.command is not None
    by_operator = Resolve(
        None,
        "default",
        start.attempt_id,
        found.command,
        "operator",
        new_id("wrk"),
        verdict=Verdicted(Verdict.NO_EFFECT_PROVEN, "looked myself", 0, resend=True),
    )
    assert await world.database.transact(reconcile.resolve, by_operator) is Resolved.RECORDED
    (successor,) = await world.claim()
    assert successor.claimed.item.id == by_operator.successor_id


def late_answer(start: Start) -> LateEvidence:
    return LateEvidence(
        new_id("evd"),
        start.attempt_id,
        start.claimed.token,
        EvidenceKind.ANSWERED,
        Outcome.ACCEPTED,
        "{}",
        "200",
    )
