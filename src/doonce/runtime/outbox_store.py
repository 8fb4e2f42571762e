"""The outbox row's transactions on the application's side, as generators of statements.

Each that decides begins with a write, so that SQLite takes its write lock before anything is read, and reads
a row only after it was written or locked (PROTOCOL T2, T7). Lock order: lane, outbox row (PROTOCOL T4).
"""

from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Executable, literal, null, select, update

from doonce.base.errors import Conflict, MissingOrDenied
from doonce.runtime.model import OPEN, OutboxId, OutboxState, Wish, Withdrawal
from doonce.runtime.statements import (
    Engine,
    Row,
    Transaction,
    constant,
    fetch,
    fetch_one,
    given,
    insert_or_change,
    insert_or_keep,
    now_us,
    one_of,
    statement,
)
from doonce.runtime.tables import lanes, outbox

_c = outbox.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What `emit` pins for ever (PROTOCOL F1)."""

    outbox_id: OutboxId
    handoff_key: str
    org: str
    installation: str
    capability: str
    binding_digest: str
    binding_generation: int
    operation: str
    local_ref: str
    link: str | None
    payload: bytes
    payload_digest: str
    source_lane: str | None


INTENT_COLUMNS = tuple(_c[field.name] for field in fields(Intent))
SAME_INTENT = frozenset(field.name for field in fields(Intent)) - {"outbox_id", "payload"}
"""What two emissions of one key must share; equal payload digests are equal payloads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxStatus:
    """What the application's database knows of one outbox row; receipts are durable facts of the service."""

    outbox_id: OutboxId
    handoff_key: str
    state: OutboxState
    wish: Wish
    tries: int
    command_id: str | None
    receipt_id: str | None
    admission_reason: str | None
    outcome: str | None
    error_class: str | None
    error_message: str | None


STATUS_COLUMNS = tuple(_c[field.name] for field in fields(OutboxStatus))


@statement
def advance_lane(engine: Engine) -> Executable:
    """Draw the lane's next position and hold the lane until the application commits (PROTOCOL L2)."""
    return insert_or_change(
        engine,
        lanes,
        {"tail": lanes.c.tail + literal(1)},
        org=given("org"),
        installation=given("installation"),
        source_lane=given("source_lane"),
        tail=literal(1),
    )


@statement
def lane_tail(_engine: Engine) -> Executable:
    return select(lanes.c.tail).where(
        lanes.c.org == given("org"),
        lanes.c.installation == given("installation"),
        lanes.c.source_lane == given("source_lane"),
    )


@statement
def insert_intent(engine: Engine) -> Executable:
    pinned = {column.name: given(column.name) for column in INTENT_COLUMNS}
    return insert_or_keep(
        engine,
        outbox,
        **pinned,
        lane_position=given("lane_position"),
        emitted_at_us=now_us(),
        due_at_us=now_us(),
        state=constant(OutboxState.PENDING),
        wish=constant(Wish.ACCEPT),
    )


@statement
def intent_by_key(_engine: Engine) -> Executable:
    return select(*INTENT_COLUMNS).where(_c.handoff_key == given("handoff_key")).with_for_update()


@statement
def ask_withdrawal(_engine: Engine) -> Executable:
    return (
        update(outbox)
        .where(_c.outbox_id == given("id"), one_of(_c.state, OPEN))
        .values(state=constant(OutboxState.PENDING), wish=constant(Wish.WITHDRAW), due_at_us=now_us())
    )


@statement
def reopen_refused(_engine: Engine) -> Executable:
    return (
        update(outbox)
        .where(_c.outbox_id == given("id"), _c.state == constant(OutboxState.REFUSED))
        .values(
            state=constant(OutboxState.PENDING),
            due_at_us=now_us(),
            tries=literal(0),
            error_class=null(),
            error_message=null(),
        )
    )


@statement
def dismiss_refused(_engine: Engine) -> Executable:
    return (
        update(outbox)
        .where(_c.outbox_id == given("id"), _c.state == constant(OutboxState.REFUSED))
        .values(state=constant(OutboxState.DISMISSED), ended_at_us=now_us(), error_message=given("reason"))
    )


@statement
def locked_status(_engine: Engine) -> Executable:
    return select(*STATUS_COLUMNS).where(_c.outbox_id == given("id")).with_for_update()


@statement
def status_by_id(_engine: Engine) -> Executable:
    return select(*STATUS_COLUMNS).where(_c.outbox_id == given("id"))


@statement
def refused_rows(_engine: Engine) -> Executable:
    return (
        select(*STATUS_COLUMNS)
        .where(_c.state == constant(OutboxState.REFUSED))
        .order_by(_c.emitted_at_us, _c.outbox_id)
        .limit(given("rows_max"))
    )


def emit(intent: Intent) -> Transaction[OutboxId]:
    """Write the row, or find the same intent under the same key; raise `Conflict` for another one."""
    position = None
    if intent.source_lane is not None:
        lane = {"org": intent.org, "installation": intent.installation, "source_lane": intent.source_lane}
        yield from fetch(advance_lane, **lane)
        tail = yield from fetch_one(lane_tail, **lane)
        position = None if tail is None else tail["tail"]
    values: dict[str, Any] = {field.name: getattr(intent, field.name) for field in fields(intent)}
    yield from fetch(insert_intent, **values, lane_position=position)
    winner = yield from fetch_one(intent_by_key, handoff_key=intent.handoff_key)
    if winner is None:
        raise Conflict("this outbox id already belongs to another key")
    if winner["outbox_id"] != intent.outbox_id and any(winner[name] != values[name] for name in SAME_INTENT):
        raise Conflict(
            "this key already names another intent",
            hint="a key means one effect for ever; give another effect another key",
        )
    return OutboxId(winner["outbox_id"])


def withdraw(outbox_id: OutboxId) -> Transaction[Withdrawal]:
    """Mark the wish where it can still count, and say what the row's durable state allows (PROTOCOL F3)."""
    yield from fetch(ask_withdrawal, id=outbox_id)
    row = yield from _status(outbox_id)
    match row.state:
        case OutboxState.PENDING | OutboxState.REFUSED:
            return Withdrawal.ASKED
        case OutboxState.REJECTED:
            return Withdrawal.WITHDRAWN
        case OutboxState.ACCEPTED | OutboxState.COMPLETED:
            return Withdrawal.TOO_LATE
        case OutboxState.DISMISSED:
            return Withdrawal.DISMISSED


def resend(outbox_id: OutboxId) -> Transaction[OutboxStatus]:
    """Send a refused row's same bytes again, after a person changed what it was refused for."""
    yield from fetch(reopen_refused, id=outbox_id)
    row = yield from _status(outbox_id)
    if row.state is not OutboxState.PENDING:
        raise Conflict(f"this outbox row is {row.state.value}, not refused")
    return row


def dismiss(outbox_id: OutboxId, reason: str) -> Transaction[OutboxStatus]:
    """End a refused row on a person's word; it proves nothing about the key."""
    yield from fetch(dismiss_refused, id=outbox_id, reason=reason)
    row = yield from _status(outbox_id)
    if row.state is not OutboxState.DISMISSED:
        raise Conflict(f"this outbox row is {row.state.value}, not refused")
    return row


def status(outbox_id: OutboxId) -> Transaction[OutboxStatus]:
    """Read one row's status."""
    return _found((yield from fetch_one(status_by_id, id=outbox_id)))


def refused(rows_max: int) -> Transaction[list[OutboxStatus]]:
    """Read the rows that wait for a person, the oldest first."""
    rows = yield from fetch(refused_rows, rows_max=rows_max)
    return [_found(row) for row in rows]


def _status(outbox_id: OutboxId) -> Transaction[OutboxStatus]:
    return _found((yield from fetch_one(locked_status, id=outbox_id)))


def _found(row: Row | None) -> OutboxStatus:
    if row is None:
        raise MissingOrDenied("there is no such outbox row in this database")
    return OutboxStatus(**{**row, "state": OutboxState(row["state"]), "wish": Wish(row["wish"])})
