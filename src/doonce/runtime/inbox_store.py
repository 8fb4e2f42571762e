"""The inbox's transactions as generators of statements; the row is locked by changing it (PROTOCOL S5).

An update that changes a value is the one lock that every engine has: it blocks on PostgreSQL and MySQL, is
certified on a replicated one, and takes SQLite's write lock before anything is read.
"""

from typing import Final

from sqlalchemy import Executable, literal, select, update

from doonce.base.errors import Internal, MissingOrDenied, Quarantined
from doonce.runtime.model import ADMITTED, NoticedRow, OutboxState, Reading, read_notice
from doonce.runtime.statements import (
    Engine,
    Transaction,
    constant,
    fetch,
    fetch_one,
    given,
    insert,
    now_us,
    statement,
)
from doonce.runtime.tables import inbox, outbox
from doonce.wire import CompletionNotice, CompletionReceipt, ReceiptState

NOTICE: Final = "notice"
ONCE: Final = "once"
EVENT: Final = "event"
"""Events that `inbox.take` has taken. A kind of their own: a handler may call `once` with the event's id as well."""

_c = outbox.c


@statement
def lock_row(_engine: Engine) -> Executable:
    return update(outbox).where(_c.outbox_id == given("id")).values(notices=_c.notices + literal(1))


@statement
def noticed_row(_engine: Engine) -> Executable:
    columns = (_c.handoff_key, _c.payload_digest, _c.state, _c.command_id, _c.terminal_digest)
    return select(*columns).where(_c.outbox_id == given("id")).with_for_update()


@statement
def insert_entry(engine: Engine) -> Executable:
    entry = insert(engine, inbox).values(
        kind=given("kind"),
        inbox_id=given("inbox_id"),
        receipt_id=given("receipt_id"),
        command_id=given("command_id"),
        outcome=given("outcome"),
        recorded_at_us=now_us(),
    )
    return entry.on_conflict_do_nothing()


@statement
def entry_receipt(_engine: Engine) -> Executable:
    found = inbox.c.kind == given("kind"), inbox.c.inbox_id == given("inbox_id")
    return select(inbox.c.receipt_id).where(*found).with_for_update()


@statement
def note_outcome(_engine: Engine) -> Executable:
    return (
        update(outbox)
        .where(_c.outbox_id == given("id"))
        .values(command_id=given("command"), state=given("next_state"), outcome=given("seen"))
    )


@statement
def end_row(_engine: Engine) -> Executable:
    return (
        update(outbox)
        .where(_c.outbox_id == given("id"))
        .values(
            command_id=given("command"),
            state=constant(OutboxState.COMPLETED),
            outcome=given("seen"),
            terminal_digest=given("digest"),
            ended_at_us=now_us(),
        )
    )


def examine(notice: CompletionNotice) -> Transaction[Reading]:
    """Lock the outbox row of `notice` and say what the notice does to it; see `model.read_notice`."""
    yield from fetch(lock_row, id=notice.outbox_id)
    found = yield from fetch_one(noticed_row, id=notice.outbox_id)
    if found is None:
        raise MissingOrDenied("there is no such outbox row in this database")
    earlier = yield from fetch_one(entry_receipt, kind=NOTICE, inbox_id=notice.digest)
    row = NoticedRow(
        key=found["handoff_key"],
        payload_digest=found["payload_digest"],
        state=OutboxState(found["state"]),
        command_id=found["command_id"],
        terminal_digest=found["terminal_digest"],
    )
    return read_notice(notice, row, None if earlier is None else earlier["receipt_id"])


def settle(notice: CompletionNotice, receipt_id: str) -> Transaction[CompletionReceipt]:
    """Write the receipt of a notice that `examine` let through in this same transaction."""
    yield from fetch(
        insert_entry,
        kind=NOTICE,
        inbox_id=notice.digest,
        receipt_id=receipt_id,
        command_id=notice.command_id,
        outcome=notice.outcome.value,
    )
    facts = {"id": notice.outbox_id, "command": notice.command_id, "seen": notice.outcome.value}
    if notice.terminal:
        yield from fetch(end_row, **facts, digest=notice.digest)
    else:
        yield from _note(notice, facts)
    return CompletionReceipt(
        command_id=notice.command_id,
        notice_digest=notice.digest,
        state=ReceiptState.APPLIED if notice.terminal else ReceiptState.NOTED,
        receipt_id=receipt_id,
    )


def _note(notice: CompletionNotice, facts: dict[str, str]) -> Transaction[None]:
    """A late unknown changes nothing about an ended row; before the end it also proves the acceptance."""
    found = yield from fetch_one(noticed_row, id=notice.outbox_id)
    state = None if found is None else ADMITTED.get(OutboxState(found["state"]))
    if state is None:
        raise Quarantined("the outbox row changed under its lock")
    if state is not OutboxState.COMPLETED:
        yield from fetch(note_outcome, **facts, next_state=state.value)


def once(entry_id: str, receipt_id: str) -> Transaction[bool]:
    """Write the dedupe row of a handler's own; True for the one that came first (PROTOCOL K3)."""
    return (yield from first(ONCE, entry_id, receipt_id)) == receipt_id


def first(kind: str, entry_id: str, receipt_id: str) -> Transaction[str]:
    """Write a dedupe row, and say whose receipt is stored: the one that came first (PROTOCOL T7)."""
    yield from fetch(
        insert_entry, kind=kind, inbox_id=entry_id, receipt_id=receipt_id, command_id=None, outcome=None
    )
    winner = yield from fetch_one(entry_receipt, kind=kind, inbox_id=entry_id)
    if winner is None:
        raise Internal("a row that was written under its lock is gone")
    return str(winner["receipt_id"])
