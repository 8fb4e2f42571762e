"""One journaled call, rule by rule: its order, its deadlines, what is counted, what is sent again and what is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.store.effects.calls import GOOD, MARGIN_US, Calls, make_calls

from doonce.base.ids import new_id
from doonce.catalog.model import Outcome
from doonce.commands.model import EndedAs
from doonce.commands.tables import command, command_end
from doonce.db.database import Database
from doonce.db.faults import CommitUnknown, RefusedData
from doonce.db.transaction import Txn, insert_many
from doonce.effects import store as effects
from doonce.effects.attempts import attempts_of
from doonce.effects.model import AttemptKind, Start
from doonce.effects.reads import PrepareRead, prepare_reads
from doonce.effects.tables import disposition, effect_attempt
from doonce.http import Go, NotSent, Replied, Request, Sent, Stage, Unanswered, boottime_ns
from doonce.work.model import State
from doonce.work.tables import work_item

NOBODY_KNOWS = Unanswered("reset")
HOUR_US = 3_600_000_000


@pytest.fixture
async def calls(database: Database) -> Calls:
    return await make_calls(database)


async def test_d1_connect_then_mark_then_send_then_outcome(calls: Calls) -> None:
    start = await calls.accepted()
    calls.points.clear()

    async def answering(request: Request) -> Sent:
        calls.points.append("first byte")
        return GOOD

    calls.provider.answer = answering
    await calls.run(start)
    assert calls.points == [
        "call.connected", "mark.before_commit", "mark.after_commit", "call.marked", "first byte", "call.answered",
        "finish.before_commit", "finish.after_commit",
    ]  # fmt: skip


async def test_d1_the_mark_is_durable_before_the_first_byte(calls: Calls) -> None:
    start = await calls.accepted()
    seen: list[object] = []

    async def answering(request: Request) -> Sent:
        seen.append((await calls.attempt(start.attempt_id))["state"])
        return GOOD

    calls.provider.answer = answering
    await calls.run(start)
    assert seen == ["dispatched"]


async def test_c4_deadlines_count_from_before_the_mark_and_the_lease_outlasts_them(calls: Calls) -> None:
    start = await calls.accepted()
    reached: dict[str, int] = {}
    watch = calls.points.append

    def noting(name: str) -> None:
        watch(name)
        reached[name] = boottime_ns()

    calls.database.points._watch = noting
    contract = calls.view.operations["item.change"].contract
    await calls.run(start)
    (go,) = calls.provider.gates
    assert isinstance(go, Go)
    for deadline_ns, window_us in (
        (go.send_by_ns, contract.send_window_us),
        (go.abort_at_ns, contract.call_budget_us),
    ):
        began_ns = deadline_ns - window_us * 1000
        assert reached["call.connected"] <= began_ns <= reached["mark.before_commit"]
    attempt = await calls.attempt(start.attempt_id)
    item = await calls.item(start.claimed.item.id)
    assert item["lease_until"] == max(
        attempt["dispatched_at"] + contract.call_budget_us + MARGIN_US,  # type: ignore[operator]
        start.claimed.lease_until,
    )


async def test_c4_a_mark_late_in_the_lease_lengthens_it(calls: Calls) -> None:
    await calls.world.accept(calls.acceptance("k1"))
    (start,) = await calls.world.claim(lease_us=3_000_000)
    await calls.run(start)
    attempt, item = await calls.attempt(start.attempt_id), await calls.item(start.claimed.item.id)
    budget_us = calls.view.operations["item.change"].contract.call_budget_us
    assert item["lease_until"] == attempt["dispatched_at"] + budget_us + MARGIN_US  # type: ignore[operator]


async def test_d4_a_live_sender_that_sent_nothing_says_so_after_its_mark(calls: Calls) -> None:
    start = await calls.accepted()
    calls.provider.answer = NotSent(Stage.WINDOW, "too late")
    await calls.run(start)
    attempt = await calls.attempt(start.attempt_id)
    assert attempt["dispatched_at"] is not None
    assert (attempt["outcome"], attempt["effect_free"]) == (Outcome.RETRYABLE_PRE_DISPATCH.value, 1)
    item = await calls.item(start.claimed.item.id)
    assert (item["state"], item["attempts"], item["failures"]) == (State.RETRY.value, 1, 1)


async def test_w3_a_dispatch_is_counted_by_its_mark_alone(calls: Calls) -> None:
    start = await calls.accepted()
    await calls.world.principals.disconnect(calls.world.principal, reason="test")
    calls.points.clear()
    await calls.run(start)
    item = await calls.item(start.claimed.item.id)
    assert (item["claims"], item["attempts"]) == (1, 0)
    assert calls.provider.sent == []


async def test_w3_failures_before_dispatch_have_a_bound_of_their_own(calls: Calls) -> None:
    start = await calls.accepted()
    calls.provider.answer = NotSent(Stage.CONNECT, "refused")
    bound = calls.view.policies.predispatch_failures_max
    for _ in range(bound - 1):
        await calls.run(start)
        await calls.age(0)
        start = await calls.start()
    await calls.run(start)
    item = await calls.item(start.claimed.item.id)
    assert (item["state"], item["failure_class"], item["failures"]) == ("dead", "never_dispatched", bound - 1)
    assert [row["ended_as"] for row in await calls.rows(command_end)] == [EndedAs.DEAD.value]
    assert calls.provider.sent == []


async def test_d5_a_probe_is_a_fenced_and_journaled_attempt(calls: Calls) -> None:
    start = await calls.accepted()
    calls.provider.answer = NOBODY_KNOWS
    await calls.run(start)
    states: list[object] = []

    async def answering(request: Request) -> Sent:
        (probe,) = [row for row in await calls.rows(effect_attempt) if row["kind"] == "probe"]
        states.append((probe["subject_id"], probe["state"], request.method))
        return Replied(500, (), b"", complete=True)

    calls.provider.answer = answering
    found = await calls.question()
    await calls.look(found)
    assert states == [(start.attempt_id, "dispatched", "GET")]
    (probe,) = [row for row in await calls.rows(effect_attempt) if row["kind"] == "probe"]
    assert (probe["state"], probe["status"], probe["outcome"]) == (
        "ended",
        500,
        Outcome.REPLAY_SAFE_RETRY.value,
    )
    stale = replace(found, claimed=replace(found.claimed, token="another"))
    await calls.look(stale)
    assert len(states) == 1, "a prober without a live claim asks nothing"
    assert len(await calls.rows(effect_attempt)) == 2, "and journals nothing"


async def test_d7_the_window_counts_from_the_first_dispatch(calls: Calls) -> None:
    start = await calls.accepted(operation="item.create", payload=b'{"name": "x"}')
    calls.provider.answer = NOBODY_KNOWS
    await calls.run(start)
    first = await calls.attempt(start.attempt_id)
    assert first["outcome"] == Outcome.REPLAY_SAFE_RETRY.value
    await calls.age(23 * HOUR_US)
    again = await calls.start()
    assert again.first_dispatched_at == first["dispatched_at"] - 23 * HOUR_US  # type: ignore[operator]
    await calls.run(again)
    assert len(calls.provider.sent) == 2
    await calls.age(2 * HOUR_US)
    third = await calls.start()
    await calls.run(third)
    assert len(calls.provider.sent) == 2, (
        "the second call was two hours ago, but the first is out of the window"
    )
    assert (await calls.item(third.claimed.item.id))["failure_class"] == "outcome_unknown"
    assert await calls.rows(command_end) == []
    found = await calls.question()
    assert found.attempt is not None
    assert found.attempt.id == again.attempt_id, "what is in question is the newest call that may have worked"


async def test_g3_marks_whose_flush_is_unknown_send_nothing_and_are_not_unknown(calls: Calls) -> None:
    await calls.world.accept(*[calls.acceptance(f"k{number}") for number in range(8)])
    starts = await calls.world.claim(rows=8)
    transact = calls.database.transact

    async def unanswered(operation: Callable[..., Txn[Any]], *args: Any) -> Any:
        result = await transact(operation, *args)
        if operation is effects.mark:
            raise CommitUnknown("the answer was lost")
        return result

    calls.database.transact = unanswered  # type: ignore[method-assign]  # the database, as its callers see it
    await asyncio.gather(*(calls.run(start) for start in starts))
    assert calls.provider.sent == []
    attempts = await calls.rows(effect_attempt)
    assert {row["dispatched_at"] is not None for row in attempts} == {True}, "the marks are durable"
    assert {row["outcome"] for row in attempts} == {Outcome.RETRYABLE_PRE_DISPATCH.value}
    assert {row["state"] for row in await calls.rows(work_item)} == {State.RETRY.value}


async def test_f5_every_attempt_sends_the_bytes_of_the_acceptance(calls: Calls) -> None:
    start = await calls.accepted(operation="item.create", payload=b'{"name": "x"}')
    calls.provider.answer = NOBODY_KNOWS
    await calls.run(start)
    await calls.age(0)
    calls.provider.answer = GOOD
    await calls.run(await calls.start())
    first, second = calls.provider.sent
    assert first == second
    (stored,) = await calls.rows(command)
    assert first.body == stored["body"]
    assert dict(first.headers)["Idempotency-Key"] == stored["idempotency_key"]
    digests = {row["request_digest"] for row in await calls.rows(effect_attempt)}
    assert digests == {stored["body_digest"]}


async def test_f5_an_attempt_keeps_who_made_it(calls: Calls) -> None:
    start = await calls.accepted()
    who = ("token", "epoch", "generation", "link_version", "work_id", "prepared_at")
    before = await calls.attempt(start.attempt_id)
    assert (before["token"], before["epoch"]) == (start.claimed.token, start.claimed.epoch)
    calls.provider.answer = replace_headers(GOOD, ("x-request-id", "r-1"))
    await calls.run(start)
    after = await calls.attempt(start.attempt_id)
    assert {name: after[name] for name in who} == {name: before[name] for name in who}
    assert (after["status"], after["receipt"]) == (200, '{"x-request-id":"r-1"}')


def replace_headers(reply: Replied, *headers: tuple[str, str]) -> Replied:
    return Replied(reply.status, headers, reply.body, complete=reply.complete)


async def test_h3_no_effect_waits_for_the_horizon_and_then_for_an_operator(calls: Calls) -> None:
    start = await calls.accepted()
    calls.provider.answer = NOBODY_KNOWS
    await calls.run(start)
    calls.provider.answer = Replied(404, (), b"{}", complete=True)
    await calls.look(await calls.question())
    assert await calls.rows(disposition) == [], "the request may still be on its way"
    contract = calls.view.operations["item.change"].contract
    assert contract.settle_after_us is not None
    await calls.age(contract.send_window_us + contract.settle_after_us)
    await calls.look(await calls.question())
    (row,) = await calls.rows(disposition)
    assert (row["verdict"], row["successor_item_id"]) == ("no_effect_proven", None)
    assert await calls.world.claim() == [], "the provider rejects no duplicates: only an operator sends again"
    assert await calls.rows(command_end) == []


def late(start: Start, kind: effects.EvidenceKind, outcome: Outcome | None = None) -> effects.LateEvidence:
    """What a sender says of its call after its claim."""
    return effects.LateEvidence(
        new_id("evd"), start.attempt_id, start.claimed.token, kind, outcome, "{}", "late"
    )


async def test_h3_what_the_sender_closed_unsent_is_sent_again_by_itself(calls: Calls) -> None:
    start = await calls.accepted()
    await calls.world.mark(start)
    await calls.world.finish(start, Outcome.OUTCOME_UNKNOWN)
    unsent = late(start, effects.EvidenceKind.CLOSED_UNSENT)
    await calls.database.transact(effects.append_evidence, [unsent])
    await calls.look(await calls.question())
    assert calls.provider.sent == [], "the evidence says enough"
    successor = await calls.start()
    assert successor.lineage is not None
    assert successor.lineage.attempt_id == start.attempt_id


async def test_h4_what_the_sender_learns_while_a_probe_asks_is_not_waited_for(calls: Calls) -> None:
    """The probe's own answer would have the next look wait until the request cannot be on its way any more."""
    start = await calls.accepted()
    await calls.world.mark(start)
    await calls.world.finish(start, Outcome.OUTCOME_UNKNOWN)
    unsent = late(start, effects.EvidenceKind.CLOSED_UNSENT)

    async def answering(request: Request) -> Sent:
        await calls.database.transact(effects.append_evidence, [unsent])
        return Replied(404, (), b"{}", complete=True)

    calls.provider.answer = answering
    await calls.look(await calls.question())
    assert len(calls.provider.sent) == 1
    await calls.look(await calls.question())
    assert len(calls.provider.sent) == 1, "the evidence says enough"
    successor = await calls.start()
    assert successor.lineage is not None
    assert successor.lineage.attempt_id == start.attempt_id


@pytest.mark.parametrize(
    "kind, outcome, sends",
    [(effects.EvidenceKind.ANSWERED, Outcome.ACCEPTED, 0), (effects.EvidenceKind.CLOSED_UNSENT, None, 1)],
)
async def test_h4_evidence_after_the_verdict_ends_the_command_or_is_seen_before_it_sends(
    calls: Calls, kind: effects.EvidenceKind, outcome: Outcome | None, sends: int
) -> None:
    start = await calls.accepted()
    await calls.world.mark(start)
    await calls.world.finish(start, Outcome.OUTCOME_UNKNOWN)
    await calls.database.transact(effects.append_evidence, [late(start, effects.EvidenceKind.CLOSED_UNSENT)])
    await calls.look(await calls.question())
    successor = await calls.start()
    await calls.database.transact(effects.append_evidence, [late(start, kind, outcome)])
    await calls.run(successor)
    assert len(calls.provider.sent) == sends
    (end,) = await calls.rows(command_end)
    assert end["ended_as"] == "accepted"


async def test_f4_an_origins_key_is_one_command(calls: Calls) -> None:
    await calls.accepted("k1")
    (row,) = await calls.rows(command)

    def again() -> Txn[None]:
        second = dict(row) | {"id": "cmd_" + "2" * 32}
        yield from insert_many(command, tuple(second), [tuple(second.values())])

    with pytest.raises(RefusedData):
        await calls.database.transact(again)
    assert row["origin"] == "runtime"
    assert len(await calls.rows(command)) == 1


async def test_w2_a_convicted_reconciliation_is_an_operators_and_asks_nothing(calls: Calls) -> None:
    start = await calls.accepted()
    calls.provider.answer = NOBODY_KNOWS
    await calls.run(start)
    found = await calls.question()
    assert found.command is not None
    pins, digest = found.command.pins, found.command.request.body_digest
    prepared = PrepareRead(
        found.claimed, "default", new_id("att"), AttemptKind.PROBE, pins, "item.read", digest
    )
    assert await calls.database.transact(prepare_reads, [prepared]) == [True]
    (probe,) = (await calls.database.read(attempts_of, [start.attempt_id]))[start.attempt_id]
    asked = len(calls.provider.sent)
    await calls.look(replace(found, open_probe=probe, claimed=replace(found.claimed, poison=True)))
    assert len(calls.provider.sent) == asked
    item = await calls.item(found.claimed.item.id)
    assert (item["state"], item["failure_class"]) == ("dead", "needs_operator")
    assert (await calls.attempt(prepared.attempt_id))["outcome"] is not None, (
        "no item ends over an open attempt (W4)"
    )


async def test_authority_6_the_outcome_of_an_attempt_is_never_the_schedule_of_its_item(calls: Calls) -> None:
    columns = {column.name for column in effect_attempt.c}
    assert not columns & {"run_after", "lease_until", "lease_token", "lease_owner"}
    assert "outcome" not in {column.name for column in work_item.c}
