"""One operation: lock the row, check the notice, project, write the receipt (PROTOCOL K1, K3)."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from tests.store.runtime.applications import Application, asyncio_engine, database
from tests.store.runtime.authority import Authority
from tests.store.runtime.relays import Died, drain, emit, later, run_once, status

from doonce.base.errors import Conflict, MissingOrDenied, Quarantined
from doonce.runtime import inbox, outbox, schema
from doonce.runtime.handoffs import EmbeddedHandoffs
from doonce.runtime.model import OutboxState
from doonce.wire import (
    CompletionNotice,
    CompletionOutcome,
    CompletionReceipt,
    HandoffScope,
    ReceiptState,
    seal_notice,
)

Projection = Callable[[Any, CompletionNotice], None]


def projecting(app: Application) -> Projection:
    """A projection that can run once only: a second one breaks the primary key."""

    def project(connection: Any, notice: CompletionNotice) -> None:
        app.execute(connection, "INSERT INTO things (id, title) VALUES (1, ?)", notice.outcome.value)

    return project


def apply(app: Application, notice: CompletionNotice, note: Projection | None = None) -> CompletionReceipt:
    with app.transaction() as connection:
        return inbox.apply(connection, notice, projecting(app), note=note)


async def accepted(app: Application, scope: HandoffScope, authority: Authority) -> str:
    """Emit one row, hand it over, and return its key."""
    outbox_id = emit(app, scope)
    await drain(app, authority)
    return status(app, outbox_id).handoff_key


@pytest.mark.parametrize("outcome", [one for one in CompletionOutcome if one.terminal])
async def test_a_terminal_notice_is_projected_with_its_receipt(
    plain: Application, scope: HandoffScope, authority: Authority, outcome: CompletionOutcome
) -> None:
    notice = authority.complete(await accepted(plain, scope, authority), outcome)
    receipt = apply(plain, notice)

    assert (receipt.state, receipt.command_id, receipt.notice_digest) == (
        ReceiptState.APPLIED,
        notice.command_id,
        notice.digest,
    )
    row = status(plain, notice.outbox_id)
    assert (row.state, row.outcome) == (OutboxState.COMPLETED, outcome.value)
    assert plain.rows("SELECT title FROM things") == [(outcome.value,)]


async def test_an_exact_repetition_gets_the_same_receipt_and_projects_nothing(
    app: Application, scope: HandoffScope, authority: Authority
) -> None:
    notice = authority.complete(await accepted(app, scope, authority), CompletionOutcome.ACCEPTED)
    first = apply(app, notice)
    second = apply(app, notice)

    assert (first.state, second.state) == (ReceiptState.APPLIED, ReceiptState.DUPLICATE)
    assert second.receipt_id == first.receipt_id
    assert app.count("things") == 1


async def test_a_projection_that_fails_leaves_no_receipt(
    app: Application, scope: HandoffScope, authority: Authority
) -> None:
    notice = authority.complete(await accepted(app, scope, authority), CompletionOutcome.ACCEPTED)

    def failing(connection: Any, notice: CompletionNotice) -> None:
        projecting(app)(connection, notice)
        raise Died

    with pytest.raises(Died), app.transaction() as connection:
        inbox.apply(connection, notice, failing)
    assert (app.count("things"), app.count("doonce_inbox")) == (0, 0)
    assert status(app, notice.outbox_id).state is OutboxState.ACCEPTED

    assert apply(app, notice).state is ReceiptState.APPLIED


async def test_a_projection_must_leave_the_transaction_open(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    notice = authority.complete(await accepted(plain, scope, authority), CompletionOutcome.ACCEPTED)

    def ending(connection: Any, _notice: CompletionNotice) -> None:
        connection.commit()

    with plain.without_transaction() as connection:
        connection.begin()
        with pytest.raises(Conflict, match="no transaction"):
            inbox.apply(connection, notice, ending)
    assert plain.count("doonce_inbox") == 0


async def test_an_unknown_is_noted_and_never_blocks_the_end(
    app: Application, scope: HandoffScope, authority: Authority
) -> None:
    key = await accepted(app, scope, authority)
    unknown = authority.complete(key, CompletionOutcome.UNKNOWN)
    notes: list[str] = []

    def note(_connection: Any, notice: CompletionNotice) -> None:
        notes.append(notice.outcome.value)

    noted, again = apply(app, unknown, note), apply(app, unknown, note)
    assert (noted.state, again.state, notes) == (ReceiptState.NOTED, ReceiptState.DUPLICATE, ["unknown"])
    assert noted.receipt_id == again.receipt_id
    assert (status(app, unknown.outbox_id).state, status(app, unknown.outbox_id).outcome) == (
        OutboxState.ACCEPTED,
        "unknown",
    )
    assert app.count("things") == 0

    terminal = authority.complete(key, CompletionOutcome.ACCEPTED)
    assert apply(app, terminal).state is ReceiptState.APPLIED
    late = authority.complete(key, CompletionOutcome.UNKNOWN)
    assert apply(app, late, note).state is ReceiptState.NOTED
    row = status(app, terminal.outbox_id)
    assert (row.state, row.outcome) == (OutboxState.COMPLETED, "accepted")


@pytest.mark.parametrize("outcome", [CompletionOutcome.ACCEPTED, CompletionOutcome.UNKNOWN])
async def test_a_notice_may_come_before_the_acceptance_was_recorded(
    app: Application, scope: HandoffScope, authority: Authority, outcome: CompletionOutcome
) -> None:
    outbox_id = emit(app, scope)
    authority.faults = ["lost"]
    await run_once(app, authority)
    notice = authority.complete(status(app, outbox_id).handoff_key, outcome)
    apply(app, notice)
    row = status(app, outbox_id)
    assert row.state is (OutboxState.COMPLETED if outcome.terminal else OutboxState.ACCEPTED)
    assert (row.command_id, row.receipt_id) == (notice.command_id, None)

    later(app)
    assert (await run_once(app, authority)).claimed == 0


async def test_a_notice_between_answer_and_record_loses_neither(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    outbox_id = emit(plain, scope)

    async def accept(requests: Any) -> Any:
        answers = await authority.accept(requests)
        apply(plain, authority.complete(requests[0].key, CompletionOutcome.ACCEPTED))
        return answers

    assert (await run_once(plain, EmbeddedHandoffs(accept, authority.reject))).accepted == 1
    row = status(plain, outbox_id)
    assert row.state is OutboxState.COMPLETED
    assert row.receipt_id == authority.admissions[row.handoff_key].receipt_id


async def test_a_row_that_a_person_gave_up_still_learns_its_end(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    outbox_id = emit(plain, scope)
    authority.faults = ["lost"]
    await run_once(plain, authority)
    with plain.transaction() as connection:
        plain.execute(connection, "UPDATE doonce_outbox SET state = 'refused'")
        outbox.dismiss(connection, outbox_id, reason="given up")
    notice = authority.complete(status(plain, outbox_id).handoff_key, CompletionOutcome.ACCEPTED)

    assert apply(plain, notice).state is ReceiptState.APPLIED


# --------------------------------------------------------------------------------------- what must not match


def resealed(notice: CompletionNotice, **changed: Any) -> CompletionNotice:
    """Another notice with a valid digest."""
    fields = {
        "command_id": notice.command_id,
        "key": notice.key,
        "outbox_id": notice.outbox_id,
        "payload_digest": notice.payload_digest,
        "outcome": notice.outcome,
        "result": bytes(notice.result),
        "attempt_id": notice.attempt_id,
        "recorded_at_us": notice.recorded_at_us,
    }
    return seal_notice(**{**fields, **changed})


OTHER = "sha256:" + "f" * 64


@pytest.mark.parametrize(
    "changed", [{"key": "another"}, {"payload_digest": OTHER}, {"command_id": "cmd_other"}], ids=str
)
async def test_a_notice_of_something_else_is_quarantined(
    app: Application, scope: HandoffScope, authority: Authority, changed: dict[str, Any]
) -> None:
    notice = authority.complete(await accepted(app, scope, authority), CompletionOutcome.ACCEPTED)
    with pytest.raises(Quarantined):
        apply(app, resealed(notice, **changed))

    assert (app.count("things"), app.count("doonce_inbox")) == (0, 0)
    assert apply(app, notice).state is ReceiptState.APPLIED


async def test_a_notice_whose_digest_lies_is_quarantined(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    notice = authority.complete(await accepted(plain, scope, authority), CompletionOutcome.ACCEPTED)
    for changed in ({"digest": OTHER}, {"recorded_at_us": 9}, {"result": msgspec.Raw(b'{"a":1}')}):
        with pytest.raises(Quarantined):
            apply(plain, msgspec.structs.replace(notice, **changed))

    assert plain.count("things") == 0


async def test_a_second_different_end_is_quarantined(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    notice = authority.complete(await accepted(plain, scope, authority), CompletionOutcome.ACCEPTED)
    apply(plain, notice)
    with pytest.raises(Quarantined, match="already ended"):
        apply(plain, resealed(notice, outcome=CompletionOutcome.REJECTED))

    assert plain.rows("SELECT title FROM things") == [("accepted",)]


async def test_a_notice_for_a_rejected_handoff_is_quarantined(
    plain: Application, scope: HandoffScope, authority: Authority
) -> None:
    outbox_id = emit(plain, scope)
    with plain.transaction() as connection:
        outbox.withdraw(connection, outbox_id)
    await drain(plain, authority)
    row = status(plain, outbox_id)
    notice = seal_notice(
        command_id="cmd_1",
        key=row.handoff_key,
        outbox_id=outbox_id,
        payload_digest=authority.requests[row.handoff_key].payload_digest,
        outcome=CompletionOutcome.ACCEPTED,
        result=b"{}",
        attempt_id=None,
        recorded_at_us=1,
    )
    with pytest.raises(Quarantined, match="rejected"):
        apply(plain, notice)


async def test_a_notice_for_no_row_is_missing(
    app: Application, scope: HandoffScope, authority: Authority
) -> None:
    notice = authority.complete(await accepted(app, scope, authority), CompletionOutcome.ACCEPTED)
    with pytest.raises(MissingOrDenied):
        apply(app, resealed(notice, outbox_id="obx_nowhere"))


async def test_apply_refuses_without_an_open_transaction(
    app: Application, scope: HandoffScope, authority: Authority
) -> None:
    notice = authority.complete(await accepted(app, scope, authority), CompletionOutcome.ACCEPTED)
    with app.without_transaction() as connection, pytest.raises(Conflict, match="no transaction"):
        inbox.apply(connection, notice, projecting(app))


# ----------------------------------------------------------------------------------------------- concurrency


async def test_two_at_once_project_once(app: Application, scope: HandoffScope, authority: Authority) -> None:
    notice = authority.complete(await accepted(app, scope, authority), CompletionOutcome.ACCEPTED)
    both = threading.Barrier(2)

    def one() -> CompletionReceipt:
        with app.transaction() as connection:
            both.wait(timeout=10)
            return inbox.apply(connection, notice, projecting(app))

    if app.engine == "sqlite" and app.library == "django":
        both = threading.Barrier(1)  # Django begins with the write lock, so two cannot both be inside
    with ThreadPoolExecutor(2) as threads:
        receipts = [future.result() for future in [threads.submit(one), threads.submit(one)]]

    assert {receipt.state for receipt in receipts} == {ReceiptState.APPLIED, ReceiptState.DUPLICATE}
    assert len({receipt.receipt_id for receipt in receipts}) == 1
    assert app.count("things") == 1


async def test_once_is_true_for_one_of_two_at_once(app: Application) -> None:
    both = threading.Barrier(1 if (app.engine, app.library) == ("sqlite", "django") else 2)

    def one() -> bool:
        with app.transaction() as connection:
            both.wait(timeout=10)
            return inbox.once(connection, "job-1")

    with ThreadPoolExecutor(2) as threads:
        answers = [future.result() for future in [threads.submit(one), threads.submit(one)]]

    assert sorted(answers) == [False, True]


async def test_once_is_rolled_back_with_the_changes(app: Application) -> None:
    def first() -> None:
        with app.transaction() as connection:
            assert inbox.once(connection, "job-1")
            raise Died

    with pytest.raises(Died):
        first()
    with app.transaction() as connection:
        assert inbox.once(connection, "job-1")
        assert not inbox.once(connection, "job-1")
    with app.transaction() as connection:
        assert not inbox.once(connection, "job-1")
        assert inbox.once(connection, "job-2")


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
async def test_the_asyncio_variant_awaits_its_projection(
    server: str, tmp_path: Any, scope: HandoffScope, authority: Authority
) -> None:
    with database(server, tmp_path) as address:
        engine = asyncio_engine(server, address)
        async with engine.begin() as connection:
            await connection.run_sync(schema.create)
            outbox_id = await outbox.emit_async(
                connection, scope=scope, operation="person.update", payload={}, local_ref="42"
            )
            row = await outbox.status_async(connection, outbox_id)
        (digest,) = ["sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"]
        notice = seal_notice(
            command_id="cmd_1",
            key=row.handoff_key,
            outbox_id=outbox_id,
            payload_digest=digest,
            outcome=CompletionOutcome.ACCEPTED,
            result=b"{}",
            attempt_id=None,
            recorded_at_us=1,
        )
        projected: list[str] = []

        async def project(connection: Any, notice: CompletionNotice) -> None:
            assert (await connection.exec_driver_sql("SELECT 1")).scalar() == 1
            projected.append(notice.command_id)

        states = []
        for _ in range(2):
            async with engine.begin() as connection:
                states.append((await inbox.apply_async(connection, notice, project)).state)
        assert states == [ReceiptState.APPLIED, ReceiptState.DUPLICATE]
        assert projected == ["cmd_1"]
        await engine.dispose()
