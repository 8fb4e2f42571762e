"""Retention: what becomes history and what may not yet; nothing is lost, whatever happens beside the pass."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec.structs import replace
from tests.store.effects.calls import DEPLOYMENT, Calls, make_calls
from tests.store.effects.test_completions import AWAY, IMPATIENT, operator, receipt
from tests.store.work.test_rerun import Interruption, interrupted

from doonce.app.operate.model import Decision
from doonce.app.operate.service import Operator
from doonce.base.errors import Conflict
from doonce.base.ids import new_id
from doonce.catalog.model import Outcome, Verdict
from doonce.commands import store as commands
from doonce.db.database import Database
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch
from doonce.effects import reconcile
from doonce.effects import store as effects
from doonce.effects.finish import Finished
from doonce.effects.model import EvidenceKind, Start, Verdicted
from doonce.effects.reconcile import Resolve, Resolved
from doonce.effects.retire import ITEMS, Retire, Retired, Stays, preview, retire
from doonce.effects.store import LateEvidence
from doonce.http import Unanswered
from doonce.work import history, settle
from doonce.work.model import Event, LanePolicy, Settled, Settlement, State
from doonce.work.store import Replay
from doonce.work.store import replay as replay_work
from doonce.work.tables import work_item, work_item_history, work_retention

HOUR_US = 3_600_000_000
NOW = Retire(DEPLOYMENT, 0, 0, 100)
"""Everything that has ended is old enough."""

TABLES = {
    table.name: Statement(f"test.whole_{table.name}", lambda dialect, table=table: sa.select(table))
    for table in (work_item, work_item_history, work_retention)
}
OPEN_AGAIN = Statement(
    "test.attempt_without_outcome",
    lambda dialect: sa.text("UPDATE effect_attempt SET outcome = NULL, state = 'dispatched'"),
)


@pytest.fixture
async def calls(database: Database) -> Calls:
    return await make_calls(database)


async def rows(calls: Calls, table: sa.Table) -> list[dict[str, Any]]:
    found = await calls.database.read(lambda: fetch(TABLES[table.name]))
    return [{column.name: row[at] for at, column in enumerate(table.c)} for row in found]


async def where(calls: Calls) -> tuple[set[str], set[str]]:
    """The ids of what works, and of what is history; no id is both."""
    here = {row["id"] for row in await rows(calls, work_item)}
    there = {row["id"] for row in await rows(calls, work_item_history)}
    assert not here & there
    return here, there


async def passed(calls: Calls, asked: Retire = NOW) -> Retired:
    return await calls.database.transact(retire, asked)


async def ended(calls: Calls, key: str = "k1") -> Start:
    """A command that the provider accepted; its completion waits."""
    start = await calls.accepted(key)
    await calls.run(start)
    return start


async def told(calls: Calls, key: str = "k1") -> Start:
    """A command that has ended, and whose application was told."""
    start = await ended(calls, key)
    await tell(calls)
    return start


async def tell(calls: Calls) -> None:
    before, calls.provider.answer = calls.provider.answer, receipt
    for completion in await calls.completions():
        await calls.tell(completion)
    calls.provider.answer = before


async def untold(calls: Calls, key: str = "k1") -> str:
    """A command that has ended, and whose completion died: nobody could be told."""
    start = await ended(calls, key)
    before, calls.provider.answer = calls.provider.answer, AWAY
    for completion in await calls.completions():
        await calls.tell(completion, IMPATIENT)
    calls.provider.answer = before
    assert start.command is not None
    return commands.completion_id(start.command.id)


async def unknown(calls: Calls, key: str = "k1") -> Start:
    start = await calls.accepted(key)
    before, calls.provider.answer = calls.provider.answer, Unanswered("reset")
    await calls.run(start)
    calls.provider.answer = before
    return start


# --- what goes, and is still there ------------------------------------------------------------------------------------


async def test_a_command_that_is_over_becomes_history_and_its_story_stays_the_same(calls: Calls) -> None:
    start = await told(calls)
    assert start.command is not None
    ids = (
        start.command.id,
        start.claimed.item.id,
        start.attempt_id,
        commands.completion_id(start.command.id),
    )
    before = [await operator(calls).show(one) for one in ids]
    work = {row["id"]: row for row in await rows(calls, work_item)}
    seen = await passed(calls)
    assert seen.moved == {"effect": 1, "completion": 1}
    assert await where(calls) == (set(), set(work))
    for row in await rows(calls, work_item_history):
        moved_at = row.pop("moved_at")
        assert row == {name: work[row["id"]][name] for name in row}, "as it was, to the last character"
        assert moved_at >= row["finished_at"]
    assert [await operator(calls).show(one) for one in ids] == before
    assert (await operator(calls).command(start.command.id)).final


async def test_young_work_stays_and_a_dead_item_has_its_own_time(calls: Calls) -> None:
    dead = await untold(calls)
    young = await passed(calls, replace(NOW, ended_kept_us=HOUR_US, dead_kept_us=HOUR_US))
    assert (young.moved, young.looked) == ({}, 0), "what is that young is not even looked at"
    seen = await passed(calls, replace(NOW, dead_kept_us=HOUR_US))
    assert (seen.moved, seen.stays) == ({"effect": 1}, {Stays.YOUNG.value: 1})
    assert (await where(calls))[0] == {dead}
    assert (await passed(calls)).moved == {"completion": 1}


async def test_a_completion_that_the_application_asks_for_needs_no_work_to_be_asked_for(calls: Calls) -> None:
    start = await calls.accepted()
    calls.world.terms = replace(calls.world.terms, asks=True)
    await calls.world.mark(start)
    assert (await calls.world.finish(start, Outcome.ACCEPTED, result_json='{"id":"501"}'))[0] is Finished.DONE
    assert start.command is not None
    before = await operator(calls).command(start.command.id)
    assert (await passed(calls)).moved == {"effect": 1, "completion": 1}
    assert await operator(calls).command(start.command.id) == before
    assert bytes(before.result) == b'{"id":"501"}'


# --- what must not go -------------------------------------------------------------------------------------------------


async def waiting(calls: Calls) -> None:
    await calls.world.accept(calls.acceptance("k1"))


async def running(calls: Calls) -> None:
    await calls.accepted()


async def not_told_yet(calls: Calls) -> None:
    await ended(calls)


async def nobody_knows(calls: Calls) -> None:
    await unknown(calls)
    await tell(calls)


async def for_an_operator(calls: Calls) -> None:
    """Its reconciliation has died as well: an operator is asked."""
    await nobody_knows(calls)
    await calls.age(HOUR_US)
    found = await calls.question()
    assert found.command is not None
    row = Resolve(
        found.claimed, DEPLOYMENT, found.claimed.item.subject_id, found.command, "test", new_id("wrk"),
        to_operator=True, reason="cannot tell",
    )  # fmt: skip
    await calls.database.transact(reconcile.resolve, row)


async def blocking_its_lane(calls: Calls) -> None:
    await calls.world.accept(replace(calls.acceptance("k1"), source_lane="s", source_policy=LanePolicy.BLOCK))
    (start,) = await calls.world.claim()
    await calls.world.mark(start)
    calls.world.terms = replace(calls.world.terms, wants_rejected_result=False)
    await calls.world.finish(start, Outcome.REJECTED)
    assert (await calls.item(start.claimed.item.id))["state"] == "dead"
    await tell(calls)


async def without_an_outcome(calls: Calls) -> None:
    await told(calls)
    await calls.database.transact(open_again)


def open_again() -> Txn[None]:
    yield from fetch(OPEN_AGAIN)


NEEDED: list[tuple[Callable[[Calls], Awaitable[None]], dict[Stays, int]]] = [
    (waiting, {Stays.WORKING: 1}),
    (running, {Stays.WORKING: 1}),
    (not_told_yet, {Stays.SUBJECT: 1, Stays.WORKING: 1}),
    (nobody_knows, {Stays.COMMAND: 2, Stays.WORKING: 1}),
    (for_an_operator, {Stays.COMMAND: 3}),
    (without_an_outcome, {Stays.ATTEMPT: 2}),
]


@pytest.mark.parametrize("made, stays", NEEDED, ids=lambda one: getattr(one, "__name__", ""))
async def test_what_is_needed_stays(
    calls: Calls, made: Callable[[Calls], Awaitable[None]], stays: dict[Stays, int]
) -> None:
    await made(calls)
    before = await rows(calls, work_item)
    for seen in (await calls.database.read(preview, NOW), await passed(calls)):
        assert (seen.moved, seen.stays) == ({}, {why.value: count for why, count in stays.items()})
    assert await rows(calls, work_item) == before


async def test_a_head_that_blocks_its_lane_stays_until_the_lane_goes_on(calls: Calls) -> None:
    await blocking_its_lane(calls)
    assert (await passed(calls)).stays == {Stays.LANE.value: 1}
    ((head,), _) = await where(calls)
    assert await calls.database.transact(settle.release, head, "let go on")
    assert (await passed(calls)).moved == {"effect": 1}
    (story,) = await operator(calls).show(head)
    assert any(moment.detail.endswith("; let go on") for moment in story.moments)


async def test_another_deployments_work_is_left_alone(calls: Calls) -> None:
    await told(calls)
    assert (await passed(calls, replace(NOW, deployment="other"))).stays == {Stays.ELSEWHERE.value: 2}


async def resolved(calls: Calls) -> Start:
    """An outcome that nobody knew, until an operator said; looked into no more, and the application was told."""
    start = await unknown(calls)
    await operator(calls).resolve(start.attempt_id, Decision.HAPPENED, who="ann", reason="I looked")
    await calls.look(await calls.question())
    await tell(calls)
    return start


async def test_an_unknown_outcome_goes_once_it_is_resolved_and_told(calls: Calls) -> None:
    await resolved(calls)
    assert (await passed(calls)).moved == {"effect": 1, "reconcile": 1, "completion": 2}
    assert (await where(calls))[0] == set()


# --- what comes late --------------------------------------------------------------------------------------------------


async def test_a_dead_item_of_history_is_replayed_once_and_told(calls: Calls) -> None:
    dead = await untold(calls)
    await passed(calls)
    assert (await where(calls))[0] == set()
    view = await operator(calls).replay(dead)
    assert (view.replay_of, (await operator(calls).replay(dead)).work_id) == (dead, view.work_id)
    await tell(calls)
    assert (await calls.item(view.work_id))["state"] == "succeeded"
    await passed(calls)
    assert (await where(calls))[0] == set()
    with pytest.raises(Conflict, match=f"replayed as {view.work_id}, which is succeeded"):
        await operator(calls).replay(dead)


async def test_the_successor_that_has_moved_is_still_the_only_one(calls: Calls) -> None:
    """Of a dead item that has not: whoever asks for a replay looks for its successor in both tables."""
    dead = await untold(calls)
    view = await operator(calls).replay(dead)
    await tell(calls)
    assert (await passed(calls, replace(NOW, dead_kept_us=HOUR_US))).moved == {"effect": 1, "completion": 1}
    assert (await where(calls))[0] == {dead}
    with pytest.raises(Conflict, match=f"replayed as {view.work_id}"):
        await operator(calls).replay(dead)


async def test_an_effect_of_history_is_not_replayed_either(calls: Calls) -> None:
    start = await told(calls)
    await passed(calls)
    with pytest.raises(Conflict, match="never sent again"):
        await operator(calls).replay(start.claimed.item.id)
    with pytest.raises(Conflict, match="holds up no lane"):
        await operator(calls).release(start.claimed.item.id, who="ann", reason="none")


async def test_late_evidence_about_what_has_moved_is_kept_and_looked_into(calls: Calls) -> None:
    start = await resolved(calls)
    assert start.command is not None
    await passed(calls)
    assert (await where(calls))[0] == set(), "all of it is history"
    late = LateEvidence(
        new_id("evd"), start.attempt_id, start.claimed.token, EvidenceKind.ANSWERED, Outcome.ACCEPTED, "{}",
        "status 200",
    )  # fmt: skip
    await calls.database.transact(effects.append_evidence, [late])
    question = await calls.question()
    assert question.claimed.item.scope == calls.world.scope
    assert question.decided
    await calls.look(question)
    assert (await calls.item(question.claimed.item.id))["state"] == "succeeded"
    verdict = Verdicted(Verdict.EFFECT_PROVEN, "again", 1)
    row = Resolve(None, DEPLOYMENT, start.attempt_id, start.command, "ann", new_id("wrk"), verdict=verdict)
    assert await calls.database.transact(reconcile.resolve, row) is Resolved.STALE


async def test_a_late_step_of_a_worker_finds_nothing_to_settle(calls: Calls) -> None:
    start = await ended(calls)
    (completion,) = await calls.completions()
    (done,) = await calls.database.transact(
        settle.settle, [Settlement(completion.claimed, Event.SUCCEED)], DEPLOYMENT
    )
    assert done is Settled.DONE
    await passed(calls)
    before = await where(calls)
    (late,) = await calls.database.transact(
        settle.settle, [Settlement(completion.claimed, Event.DIE)], DEPLOYMENT
    )
    assert late is Settled.STALE
    assert (await calls.world.finish(start, Outcome.ACCEPTED))[0] in (Finished.REPEATED, Finished.STALE)
    assert await where(calls) == before


# --- the pass itself --------------------------------------------------------------------------------------------------


def test_at_equality_the_time_is_over() -> None:
    asked = Retire(DEPLOYMENT, 100, 200, 1)
    for state, kept_us in (
        (State.SUCCEEDED, 100),
        (State.SKIPPED, 100),
        (State.CANCELLED, 100),
        (State.DEAD, 200),
    ):
        assert not asked.over(state, 1_000, 1_000 + kept_us - 1)
        assert asked.over(state, 1_000, 1_000 + kept_us)


async def test_a_walk_goes_on_where_it_was_and_says_what_it_had_to_leave(calls: Calls) -> None:
    for number in range(3):
        await told(calls, f"k{number}")
    left = await ended(calls, "k3")
    step = replace(NOW, rows_max=2)
    seen = [await passed(calls, step) for _ in range(4)]
    assert [one.looked for one in seen] == [2, 2, 2, 2]
    assert [one.passed for one in seen] != [seen[0].passed] * 4
    last = await passed(calls, step)
    assert (last.looked, last.passed) == (0, "")
    assert sum(sum(one.moved.values()) for one in seen) == 6
    walk = await calls.database.read(history.read_walk, ITEMS)
    assert walk is not None
    row = await calls.item(left.claimed.item.id)
    assert (walk.moved, walk.passed, walk.overdue_since) == (6, "", row["finished_at"])
    status = await operator_with_settings(calls).retention()
    assert (status.moved, status.overdue_us > 0) == (6, True)
    await tell(calls)
    await passed(calls)
    walk = await calls.database.read(history.read_walk, ITEMS)
    assert walk is not None
    assert (walk.moved, walk.overdue_since) == (8, None)


def operator_with_settings(calls: Calls) -> Operator:
    made = operator(calls)
    made._engine.settings.retention = type("Retention", (), {"enabled": True})  # type: ignore[misc]
    return made


async def test_a_walk_of_somebodys_own_leaves_the_shared_one_where_it_is(calls: Calls) -> None:
    for number in range(3):
        await told(calls, f"k{number}")
    await passed(calls, replace(NOW, rows_max=2))
    before = await calls.database.read(history.read_walk, ITEMS)
    assert before is not None
    seen = await passed(calls, replace(NOW, after=""))
    after = await calls.database.read(history.read_walk, ITEMS)
    assert after == replace(before, moved=before.moved + sum(seen.moved.values()))
    assert after.moved == 6


async def test_c1_nothing_goes_while_the_clock_is_not_trusted(calls: Calls) -> None:
    await told(calls)
    calls.database.clock_watch._hold_until_us = 2**62
    assert await passed(calls) == Retired(0, {}, {}, "", paused=True)
    assert len((await where(calls))[0]) == 2
    calls.database.clock_watch._hold_until_us = 0
    assert (await passed(calls)).moved == {"effect": 1, "completion": 1}


async def test_t5_the_same_step_again_moves_nothing_more(calls: Calls) -> None:
    await told(calls)
    first = await passed(calls)
    before = await rows(calls, work_item_history)
    again = await passed(calls)
    assert (first.moved, again.moved) == ({"effect": 1, "completion": 1}, {})
    assert await rows(calls, work_item_history) == before


async def test_t1_a_step_rolled_back_after_any_statement_leaves_nothing(calls: Calls) -> None:
    await told(calls)
    await ended(calls, "k2")

    async def all_rows() -> list[Any]:
        return [
            sorted(map(str, await rows(calls, table)))
            for table in (work_item, work_item_history, work_retention)
        ]

    before = await all_rows()
    for after in range(1, 100):
        seen: list[int] = []
        try:
            await calls.database.driver.run(
                lambda after=after, seen=seen: interrupted(retire(NOW), after, seen), readonly=False
            )
        except Interruption:
            assert await all_rows() == before, f"statement {after} left something behind"
        else:
            break
    assert after > 8
    assert len((await where(calls))[1]) == 2


async def test_two_passes_at_once_move_each_item_once(calls: Calls) -> None:
    for number in range(6):
        await told(calls, f"k{number}")
    seen = await asyncio.gather(*(passed(calls, replace(NOW, rows_max=3)) for _ in range(8)))
    assert sum(sum(one.moved.values()) for one in seen) == 12
    assert len((await where(calls))[1]) == 12
    (walk,) = await rows(calls, work_retention)
    assert walk["moved"] == 12


async def test_replays_against_passes_make_one_successor_each(calls: Calls) -> None:
    dead = [await untold(calls, f"k{number}") for number in range(6)]

    async def asked(item_id: str) -> str:
        return await calls.database.transact(replay_work, Replay(item_id, new_id("wrk")))

    results = await asyncio.gather(
        *(asked(item_id) for item_id in dead for _ in range(2)),
        *(passed(calls, replace(NOW, rows_max=5)) for _ in range(6)),
    )
    made = [one for one in results if isinstance(one, str)]
    assert set(Counter(made).values()) == {2}, "whoever asks hears of the same one"
    here, there = await where(calls)
    assert len(here | there) == 6 + 6 + 6, "effects, dead completions, and one successor each"
    successors = [*await rows(calls, work_item), *await rows(calls, work_item_history)]
    assert Counter(row["predecessor"] for row in successors if row["predecessor"]) == Counter(dead)
    await tell(calls)
    await passed(calls, replace(NOW, after=""))
    assert (await where(calls))[0] == set()


async def test_settlements_against_passes_lose_nothing(calls: Calls) -> None:
    for number in range(8):
        await ended(calls, f"k{number}")
    completions = await calls.completions()
    settlements = [Settlement(one.claimed, Event.SUCCEED) for one in completions]
    done = await asyncio.gather(
        *(calls.database.transact(settle.settle, [one], DEPLOYMENT) for one in settlements),
        *(passed(calls, replace(NOW, rows_max=4)) for _ in range(8)),
    )
    assert [one for one in done if isinstance(one, list)] == [[Settled.DONE]] * 8
    await passed(calls, replace(NOW, after=""))
    here, there = await where(calls)
    assert (len(here), len(there)) == (0, 16)
