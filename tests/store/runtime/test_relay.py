"""The relay hands over the pinned bytes until a durable answer, whatever fails (PROTOCOL F1, F3, L2)."""

import asyncio
import itertools
from collections.abc import Sequence

import msgspec
import pytest
from tests.store.runtime.applications import Application
from tests.store.runtime.authority import Authority
from tests.store.runtime.relays import (
    ABORT,
    FORGET,
    Died,
    Transactions,
    drain,
    emit,
    later,
    run_once,
    states,
    status,
)

from doonce.base.errors import (
    Conflict,
    DoonceError,
    Exhausted,
    Forbidden,
    Internal,
    Invalid,
    Quarantined,
    Stale,
    Unauthenticated,
    Unavailable,
)
from doonce.runtime import outbox
from doonce.runtime.connections import execute
from doonce.runtime.handoffs import EmbeddedHandoffs
from doonce.runtime.model import OutboxState, read_refusal
from doonce.runtime.relay import Relay, RelaySettings
from doonce.runtime.relay_claim import HeadPolicy, claim
from doonce.runtime.relay_store import Outcome, Recorded, record
from doonce.wire import AcceptRequest, Admission, HandoffScope, Refused


async def test_a_row_is_handed_over_as_it_was_pinned(
    app: Application, scope: HandoffScope, authority: Authority
) -> None:
    payload = b'{"title":  "CTO", "n": 1.50}'
    outbox_id = emit(app, scope, payload=payload, key="change-7", link="lnk_1", source_lane="person/42")
    report = await run_once(app, authority)

    (request,) = authority.requests.values()
    assert isinstance(request, AcceptRequest)
    assert (request.outbox_id, request.scope, request.payload) == (outbox_id, scope, payload)
    assert (request.link, request.source_lane, request.local_ref) == ("lnk_1", "person/42", "42")
    (admission,) = authority.admissions.values()
    row = status(app, outbox_id)
    assert (row.state, row.command_id, row.receipt_id) == (
        OutboxState.ACCEPTED,
        admission.command_id,
        admission.receipt_id,
    )
    assert (report.claimed, report.accepted) == (1, 1)
    assert (await run_once(app, authority)).claimed == 0


@pytest.mark.parametrize(
    "claim_fault,call_fault,record_fault",
    [
        one
        for one in itertools.product(("", ABORT, FORGET), ("", "down", "lost"), ("", ABORT, FORGET))
        if any(one)
    ],
)
async def test_a_crash_at_any_step_loses_and_repeats_nothing(
    plain: Application,
    scope: HandoffScope,
    authority: Authority,
    claim_fault: str,
    call_fault: str,
    record_fault: str,
) -> None:
    outbox_id = emit(plain, scope)
    authority.faults = [call_fault]
    try:
        await run_once(plain, authority, claim_fault, record_fault)
    except Died:
        assert claim_fault or record_fault
    authority.faults = []
    later(plain)
    await drain(plain, authority)

    (admission,) = authority.admissions.values()
    assert authority.accepted_order == [admission.key]
    row = status(plain, outbox_id)
    assert (row.state, row.receipt_id) == (OutboxState.ACCEPTED, admission.receipt_id)


async def test_a_failed_call_is_tried_again_later_and_says_why(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    outbox_id = emit(plain, scope)
    authority.faults = ["down", "down"]
    waits = []
    for tries in (1, 2):
        async with Relay(plain.transaction, authority, draw=lambda: 0.999) as relay:
            assert (await relay.run_once()).retry == 1
            assert (await relay.run_once()).claimed == 0
        row = status(plain, outbox_id)
        assert (row.state, row.tries, row.error_class) == (OutboxState.PENDING, tries, "UNAVAILABLE")
        ((due, now),) = plain.rows("SELECT due_at_us, emitted_at_us FROM doonce_outbox")
        waits.append(due - now)
        later(plain)
    await drain(plain, authority)

    assert waits[1] > waits[0] > 0
    assert status(plain, outbox_id).error_class is None
    assert status(plain, outbox_id).state is OutboxState.ACCEPTED


REFUSALS = (Invalid("no"), Forbidden("no"), Conflict("no"), Quarantined("no"), Stale("no"))
PASSING = (Unauthenticated("no"), Unavailable("no"), Exhausted("no"), Internal("no"))


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda one: one.error_class.value)
async def test_a_refused_row_waits_for_a_person(
    plain: Application, scope: HandoffScope, authority: Authority, refusal: DoonceError
) -> None:
    refused_id, other_id = emit(plain, scope, local_ref="bad"), emit(plain, scope)
    authority.refusals["bad"] = refusal
    await drain(plain, authority)
    later(plain)
    assert (await run_once(plain, authority)).claimed == 0

    row = status(plain, refused_id)
    assert (row.state, row.error_class, row.error_message) == (
        OutboxState.REFUSED,
        refusal.error_class.value,
        "no",
    )
    assert status(plain, other_id).state is OutboxState.ACCEPTED
    with plain.transaction() as connection:
        assert [one.outbox_id for one in outbox.refused(connection)] == [refused_id]

    authority.refusals.clear()
    with plain.transaction() as connection:
        outbox.resend(connection, refused_id)
    await drain(plain, authority)
    assert status(plain, refused_id).state is OutboxState.ACCEPTED


@pytest.mark.parametrize("failure", PASSING, ids=lambda one: one.error_class.value)
async def test_what_may_pass_is_never_a_refusal(
    plain: Application, scope: HandoffScope, authority: Authority, failure: DoonceError
) -> None:
    outbox_id = emit(plain, scope, local_ref="bad")
    authority.refusals["bad"] = failure
    assert (await run_once(plain, authority)).retry == 1

    assert status(plain, outbox_id).state is OutboxState.PENDING


async def test_a_dismissed_row_is_over_and_resend_says_so(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    outbox_id = emit(plain, scope, local_ref="bad")
    with plain.transaction() as connection, pytest.raises(Conflict, match="pending, not refused"):
        outbox.dismiss(connection, outbox_id, reason="not yet refused")
    authority.refusals["bad"] = Invalid("no")
    await drain(plain, authority)
    with plain.transaction() as connection:
        outbox.dismiss(connection, outbox_id, reason="a typing error")
    with plain.transaction() as connection, pytest.raises(Conflict, match="dismissed, not refused"):
        outbox.resend(connection, outbox_id)

    assert states(plain, [outbox_id]) == ["dismissed"]


async def test_a_batch_refused_as_a_whole_is_asked_row_by_row(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    bad, good = emit(plain, scope, local_ref="bad"), emit(plain, scope)

    async def accept(requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        if any(one.local_ref == "bad" for one in requests):
            raise Invalid("the body is malformed")
        return await authority.accept(requests)

    await drain(plain, EmbeddedHandoffs(accept, authority.reject))

    assert states(plain, [bad, good]) == ["refused", "accepted"]


async def test_a_row_damaged_at_rest_is_never_sent(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    damaged, good = emit(plain, scope), emit(plain, scope)
    with plain.transaction() as connection:
        plain.execute(connection, "UPDATE doonce_outbox SET payload = ? WHERE outbox_id = ?", b"{}", damaged)
    await drain(plain, authority)

    assert states(plain, [damaged, good]) == ["refused", "accepted"]
    assert len(authority.asked) == 1


@pytest.mark.parametrize("answers", ["none", "swapped", "raises"])
async def test_a_service_that_breaks_its_protocol_ends_nothing(
    plain: Application, scope: HandoffScope, authority: Authority, answers: str
) -> None:
    rows = [emit(plain, scope), emit(plain, scope)]

    async def accept(requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        given = list(await authority.accept(requests))
        if answers == "raises":
            raise ZeroDivisionError
        return [] if answers == "none" else given[::-1]

    report = await run_once(plain, EmbeddedHandoffs(accept, authority.reject))
    assert report.retry == 2
    assert states(plain, rows) == ["pending", "pending"]

    later(plain)
    await drain(plain, authority)
    assert states(plain, rows) == ["accepted", "accepted"]


async def test_a_silent_service_is_waited_for_no_longer_than_the_timeout(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    silent, answered = emit(plain, scope), emit(plain, scope)
    with plain.transaction() as connection:
        assert outbox.withdraw(connection, answered) is outbox.Withdrawal.ASKED

    async def accept(_requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        await asyncio.Event().wait()
        raise AssertionError("never")

    settings = RelaySettings(call_timeout_us=200_000, lease_us=400_000)
    report = await run_once(plain, EmbeddedHandoffs(accept, authority.reject), settings=settings)

    assert (report.retry, report.rejected) == (1, 1)
    assert status(plain, silent).error_class == "DEADLINE"


# ----------------------------------------------------------------------------------------------------- lanes


async def test_a_lane_is_handed_over_one_by_one_in_commit_order(
    app: Application, scope: HandoffScope, authority: Authority
) -> None:
    sent: list[str] = []

    async def accept(requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        sent.append("".join(one.local_ref for one in requests))
        return await authority.accept(requests)

    for local_ref, lane in (("1", "a"), ("2", "a"), ("3", "b"), ("4", "a"), ("5", None)):
        emit(app, scope, local_ref=local_ref, source_lane=lane)
    await drain(app, EmbeddedHandoffs(accept, authority.reject))

    assert [sorted(batch) for batch in sent] == [["1", "3", "5"], ["2"], ["4"]]


async def test_a_failed_head_is_waited_for(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    head, next_one = (emit(plain, scope, source_lane="a") for _ in range(2))
    authority.faults = ["down"]
    await drain(plain, authority)
    assert states(plain, [head, next_one]) == ["pending", "pending"]

    later(plain)
    await drain(plain, authority)
    assert authority.accepted_order == [status(plain, one).handoff_key for one in (head, next_one)]


@pytest.mark.parametrize("policy,expected", [(HeadPolicy.BLOCK, "pending"), (HeadPolicy.PASS, "accepted")])
async def test_a_refused_head_blocks_or_passes_as_declared(
    plain: Application, scope: HandoffScope, authority: Authority, policy: HeadPolicy, expected: str
) -> None:
    head = emit(plain, scope, source_lane="a", local_ref="bad")
    next_one = emit(plain, scope, source_lane="a")
    authority.refusals["bad"] = Invalid("no")
    settings = RelaySettings(refused_head=policy)
    await drain(plain, authority, settings=settings)
    assert states(plain, [head, next_one]) == ["refused", expected]

    with plain.transaction() as connection:
        outbox.dismiss(connection, head, reason="never mind")
    await drain(plain, authority, settings=settings)
    assert states(plain, [head, next_one]) == ["dismissed", "accepted"]


async def test_lanes_of_two_installations_do_not_meet(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    other = HandoffScope(
        org=scope.org,
        installation="second",
        capability=scope.capability,
        binding_digest=scope.binding_digest,
        binding_generation=1,
    )
    emit(plain, scope, source_lane="a")
    emit(plain, other, source_lane="a")

    assert (await run_once(plain, authority)).accepted == 2


# ----------------------------------------------------------------------------------------------- withdrawing


async def test_only_a_durable_rejection_ends_a_withdrawn_row(
    app: Application, scope: HandoffScope, authority: Authority
) -> None:
    outbox_id = emit(app, scope, source_lane="a")
    with app.transaction() as connection:
        assert outbox.withdraw(connection, outbox_id) is outbox.Withdrawal.ASKED
    assert status(app, outbox_id).state is OutboxState.PENDING

    authority.faults = ["lost"]
    await drain(app, authority)
    assert status(app, outbox_id).state is OutboxState.PENDING
    later(app)
    await drain(app, authority)

    row = status(app, outbox_id)
    (admission,) = authority.admissions.values()
    assert (row.state, row.receipt_id, row.command_id) == (OutboxState.REJECTED, admission.receipt_id, None)
    assert authority.accepted_order == []
    with app.transaction() as connection:
        assert outbox.withdraw(connection, outbox_id) is outbox.Withdrawal.WITHDRAWN


async def test_a_withdrawal_that_lost_learns_of_the_acceptance(
    app: Application, scope: HandoffScope, authority: Authority
) -> None:
    outbox_id = emit(app, scope)
    authority.faults = ["lost"]
    await drain(app, authority)
    with app.transaction() as connection:
        assert outbox.withdraw(connection, outbox_id) is outbox.Withdrawal.ASKED
    await drain(app, authority)

    assert status(app, outbox_id).state is OutboxState.ACCEPTED
    with app.transaction() as connection:
        assert outbox.withdraw(connection, outbox_id) is outbox.Withdrawal.TOO_LATE


async def test_a_withdrawal_that_rolled_back_was_never_wished(
    app: Application, scope: HandoffScope, authority: Authority
) -> None:
    outbox_id = emit(app, scope)

    def wish() -> None:
        with app.transaction() as connection:
            outbox.withdraw(connection, outbox_id)
            raise Died

    with pytest.raises(Died):
        wish()
    await drain(app, authority)

    assert status(app, outbox_id).state is OutboxState.ACCEPTED


async def test_a_refusal_of_the_acceptance_does_not_swallow_a_withdrawal(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    """The wish comes while the acceptance is under way; its refusal must not end the row unasked."""
    outbox_id = emit(plain, scope)

    async def accept(requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        with plain.transaction() as connection:
            outbox.withdraw(connection, outbox_id)
        raise Forbidden("no")

    report = await run_once(plain, EmbeddedHandoffs(accept, authority.reject))
    assert (report.stale, report.refused) == (1, 0)
    await drain(plain, authority)

    assert status(plain, outbox_id).state is OutboxState.REJECTED


async def test_a_refused_row_can_be_withdrawn(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    outbox_id = emit(plain, scope, local_ref="bad")
    authority.refusals["bad"] = Forbidden("no")
    await drain(plain, authority)
    with plain.transaction() as connection:
        assert outbox.withdraw(connection, outbox_id) is outbox.Withdrawal.ASKED
    await drain(plain, authority)

    assert status(plain, outbox_id).state is OutboxState.REJECTED


async def test_a_service_may_reject_at_acceptance(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    """A rejection by another process of the same application, told to an acceptance."""
    outbox_id = emit(plain, scope)
    with plain.transaction() as connection:
        outbox.withdraw(connection, outbox_id)
    authority.faults = ["lost"]
    await drain(plain, authority)
    with plain.transaction() as connection:
        plain.execute(connection, "UPDATE doonce_outbox SET wish = 'accept', due_at_us = 0")
    await drain(plain, authority)

    assert status(plain, outbox_id).state is OutboxState.REJECTED


# ------------------------------------------------------------------------------------------------ two relays


async def test_two_relays_at_once_share_the_rows(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    with plain.transaction() as connection:
        rows = [
            outbox.emit(
                connection,
                scope=scope,
                operation="person.update",
                payload={"n": number},
                local_ref=str(number),
                source_lane=f"lane/{number % 3}" if number % 2 else None,
            )
            for number in range(60)
        ]
    settings = RelaySettings(rows_max=5)
    await asyncio.gather(*(drain(plain, authority, settings=settings) for _ in range(3)))
    await drain(plain, authority)

    assert set(states(plain, rows)) == {"accepted"}
    assert len(authority.asked) == len(set(authority.asked)) == 60
    positions = dict(
        plain.rows("SELECT handoff_key, lane_position FROM doonce_outbox WHERE source_lane IS NOT NULL")
    )
    lanes = dict(
        plain.rows("SELECT handoff_key, source_lane FROM doonce_outbox WHERE source_lane IS NOT NULL")
    )
    for lane in set(lanes.values()):
        order = [positions[key] for key in authority.accepted_order if lanes.get(key) == lane]
        assert order == sorted(order)


async def test_a_relay_that_lost_its_lease_records_only_facts(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    """A slow relay meets a failure; meanwhile another one got the receipt, which stays."""
    outbox_id = emit(plain, scope)

    async def slow(_requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        later(plain)
        assert (await run_once(plain, authority)).accepted == 1
        raise Forbidden("the slow one's credential has ended meanwhile")

    report = await run_once(plain, EmbeddedHandoffs(slow, authority.reject))

    assert report.stale == 1
    assert status(plain, outbox_id).state is OutboxState.ACCEPTED


FIRST = "the first relay's token"


@pytest.mark.parametrize("failure", [Forbidden("no"), Unavailable("no")], ids=["refused", "failed"])
async def test_a_lost_lease_does_not_disturb_the_one_that_has_it(
    plain: Application, scope: HandoffScope, authority: Authority, failure: DoonceError
) -> None:
    outbox_id = emit(plain, scope)

    async def second(requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        # The first relay fails now, while this one is asking under the live lease.
        held = plain.rows("SELECT lease_token, tries, state FROM doonce_outbox")
        with plain.transaction() as connection:
            recorded = execute(connection, record(FIRST, [Outcome(mine, verdict, delay_us=1)]))
        assert recorded == [Recorded.STALE]
        assert plain.rows("SELECT lease_token, tries, state FROM doonce_outbox") == held
        return await authority.accept(requests)

    verdict = read_refusal(failure.error_class, failure.message)
    with plain.transaction() as connection:
        (mine,) = execute(connection, claim(FIRST, rows_max=1, lease_us=1, policy=HeadPolicy.BLOCK))
    later(plain)
    assert (await run_once(plain, EmbeddedHandoffs(second, authority.reject))).accepted == 1
    assert status(plain, outbox_id).state is OutboxState.ACCEPTED


async def test_a_slow_relays_receipt_is_the_same_fact(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    outbox_id = emit(plain, scope)

    async def slow(requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        answers = await authority.accept(requests)
        later(plain)
        assert (await run_once(plain, authority)).accepted == 1
        return answers

    assert (await run_once(plain, EmbeddedHandoffs(slow, authority.reject))).accepted == 1
    assert status(plain, outbox_id).receipt_id == next(iter(authority.admissions.values())).receipt_id


@pytest.mark.parametrize("same_command", [False, True])
async def test_contradicting_receipts_are_reported_and_change_nothing(
    plain: Application, scope: HandoffScope, authority: Authority, same_command: bool
) -> None:
    outbox_id = emit(plain, scope)

    async def forked(requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        later(plain)
        await run_once(plain, authority)
        if same_command:
            first = authority.admissions[requests[0].key]
            return [msgspec.structs.replace(first, receipt_id="hnd_another")]
        return await Authority().accept(requests)

    report = await run_once(plain, EmbeddedHandoffs(forked, authority.reject))

    assert report.contradicted == 1
    assert status(plain, outbox_id).receipt_id == next(iter(authority.admissions.values())).receipt_id


# -------------------------------------------------------------------------------------------------- the loop


async def test_run_stops_when_told_and_wakes_when_told(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    stop, asked = asyncio.Event(), asyncio.Event()

    async def accept(requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        asked.set()
        return await authority.accept(requests)

    settings = RelaySettings(idle_us=3_600_000_000)
    async with Relay(plain.transaction, EmbeddedHandoffs(accept, authority.reject), settings) as relay:
        running = asyncio.create_task(relay.run(stop))
        emit(plain, scope)
        async with asyncio.timeout(10):
            while not asked.is_set():
                relay.wake()
                await asyncio.sleep(0)
        stop.set()
        async with asyncio.timeout(10):
            await running

    assert set(states(plain, [row[0] for row in plain.rows("SELECT outbox_id FROM doonce_outbox")])) == {
        "accepted"
    }


async def test_run_survives_a_database_that_fails(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    stop = asyncio.Event()
    outbox_id = emit(plain, scope)

    async def accept(requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        stop.set()
        return await authority.accept(requests)

    failing, settings = [ABORT, ABORT, ABORT], RelaySettings(retry_base_us=1_000, retry_cap_us=1_000)
    handoffs = EmbeddedHandoffs(accept, authority.reject)
    async with Relay(Transactions(plain.transaction, *failing), handoffs, settings) as relay:
        async with asyncio.timeout(10):
            await relay.run(stop)

    assert status(plain, outbox_id).state is OutboxState.ACCEPTED


async def test_run_refuses_a_database_without_the_tables(plain: Application, authority: Authority) -> None:
    with plain.transaction() as connection:
        plain.execute(connection, "ALTER TABLE doonce_outbox DROP COLUMN notices")
    async with Relay(plain.transaction, authority) as relay:
        with pytest.raises(Invalid, match="doonce_outbox lacks notices"):
            await relay.run(asyncio.Event())


@pytest.mark.parametrize(
    "settings",
    [{"rows_max": 0}, {"rows_max": 501}, {"lease_us": 1}, {"idle_us": 0}, {"retry_cap_us": 1}],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(Invalid):
        RelaySettings(**settings)  # type: ignore[arg-type]  # every one of them is an integer
