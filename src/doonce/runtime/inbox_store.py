"""The inbox's transactions as generators of statements; the row is locked by changing it (PROTOCOL S5).

An update that changes a value is the one lock that every engine has: it blocks on PostgreSQL and MySQL, is
certified on a replicated one, and takes SQLite's write lock before anything is read.
"""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Executable, literal, select, update

from doonce.base.errors import Conflict, Internal, MissingOrDenied, Quarantined
from doonce.runtime.model import ADMITTED, NoticedRow, OutboxState, Reading, read_notice
from doonce.runtime.statements import (
    Engine,
    Transaction,
    constant,
    fetch,
    fetch_one,
    given,
    insert_or_keep,
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
    columns = (_c.handoff_key, _c.payload_digest, _c.state, _c.command_id, _c.terminal_digest, _c.notices)
    return select(*columns).where(_c.outbox_id == given("id")).with_for_update()


@statement
def insert_entry(engine: Engine) -> Executable:
    return insert_or_keep(
        engine,
        inbox,
        kind=given("kind"),
        inbox_id=given("inbox_id"),
        receipt_id=given("receipt_id"),
        command_id=given("command_id"),
        outcome=given("outcome"),
        recorded_at_us=now_us(),
    )


_FOUND: Final = inbox.c.kind == given("kind"), inbox.c.inbox_id == given("inbox_id")


@statement
def entry_receipt(_engine: Engine) -> Executable:
    """The stored receipt as it is now, for an entry that is there: whatever the transaction's snapshot has."""
    return select(inbox.c.receipt_id).where(*_FOUND).with_for_update()


@statement
def earlier_receipt(engine: Engine) -> Executable:
    """The receipt of an entry that is mostly not there.

    A locking read of what is not there locks the gap on the MySQL wire, and two who hold one gap and then insert are
    a deadlock. What a plain read misses in an old snapshot, the notice's own entry finds when it is written.
    """
    found = select(inbox.c.receipt_id).where(*_FOUND)
    return found if engine == "mysql" else found.with_for_update()


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


@dataclass(frozen=True, slots=True)
class Examined:
    """What a notice does, and the row's count of notices: this transaction's own, as long as it lasts."""

    reading: Reading
    notices: int


def examine(notice: CompletionNotice) -> Transaction[Examined]:
    """Lock the outbox row of `notice` and say what the notice does to it; see `model.read_notice`."""
    yield from fetch(lock_row, id=notice.outbox_id)
    found = yield from fetch_one(noticed_row, id=notice.outbox_id)
    if found is None:
        raise MissingOrDenied("there is no such outbox row in this database")
    earlier = yield from fetch_one(earlier_receipt, kind=NOTICE, inbox_id=notice.digest)
    if earlier is None and found["terminal_digest"] == notice.digest:
        # The row, which was read as it is now, says that this very notice was applied: the snapshot is older.
        earlier = yield from fetch_one(entry_receipt, kind=NOTICE, inbox_id=notice.digest)
    row = NoticedRow(
        key=found["handoff_key"],
        payload_digest=found["payload_digest"],
        state=OutboxState(found["state"]),
        command_id=found["command_id"],
        terminal_digest=found["terminal_digest"],
    )
    reading = read_notice(notice, row, None if earlier is None else earlier["receipt_id"])
    return Examined(reading, found["notices"])


def settle(notice: CompletionNotice, receipt_id: str, notices: int) -> Transaction[CompletionReceipt]:
    """Write the receipt of a notice that `examine` let through in this same transaction.

    Raises `Conflict` where it is another one: `notices` is not what the row says, or the entry is somebody else's.
    """
    held = yield from fetch_one(noticed_row, id=notice.outbox_id)
    if held is None or held["notices"] != notices:
        raise _torn()
    yield from fetch(
        insert_entry,
        kind=NOTICE,
        inbox_id=notice.digest,
        receipt_id=receipt_id,
        command_id=notice.command_id,
        outcome=notice.outcome.value,
    )
    yield from hold(NOTICE, notice.digest, receipt_id)
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


def hold(kind: str, entry_id: str, receipt_id: str) -> Transaction[None]:
    """Return when this transaction still has the entry that it wrote; raise `Conflict` otherwise."""
    stored = yield from fetch_one(entry_receipt, kind=kind, inbox_id=entry_id)
    if stored is None or stored["receipt_id"] != receipt_id:
        raise _torn()


def _torn() -> Conflict:
    return Conflict(
        "the transaction in which this began is over, or began before another one's receipt",
        hint="roll back; let a deadlock's error leave the handler; it comes again",
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
