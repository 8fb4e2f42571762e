"""Recording what the service answered; `relay_claim` is the transaction before.

A receipt is a durable fact of the service and is recorded whoever holds the row now; a failure or a refusal
is only this relay's experience, so it needs the live lease. Nothing is locked while the service is asked:
losing a lease is harmless, because acceptance and rejection are idempotent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, assert_never

from sqlalchemy import (
    ColumnElement,
    Executable,
    and_,
    case,
    literal,
    null,
    or_,
    select,
    update,
)

from doonce.runtime.model import (
    ADMITTED,
    UNADMITTED,
    Accepted,
    OutboxId,
    OutboxState,
    RefusedForGood,
    Rejected,
    TryAgain,
    Verdict,
)
from doonce.runtime.relay_claim import Claimed
from doonce.runtime.statements import (
    Engine,
    Transaction,
    constant,
    fetch,
    fetch_one,
    given,
    now_us,
    one_of,
    statement,
)
from doonce.runtime.tables import outbox

_c = outbox.c


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back for a claimed row, and when to try again if it has to."""

    row: Claimed
    verdict: Verdict
    delay_us: int


class Recorded(str, Enum):
    """What recording an outcome changed."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    REFUSED = "refused"
    RETRY = "retry"
    STALE = "stale"
    CONTRADICTED = "contradicted"


_FREE: Final[dict[str, Any]] = {
    "lease_token": null(),
    "lease_until_us": literal(0),
    "error_class": null(),
    "error_message": null(),
}


@statement
def record_acceptance(_engine: Engine) -> Executable:
    """Each state becomes what the model says; one that contradicts an acceptance is not matched."""
    becomes = {before.value: after.value for before, after in ADMITTED.items()}
    return (
        update(outbox)
        .where(
            _c.outbox_id == given("id"),
            one_of(_c.state, ADMITTED),
            _c.receipt_id.is_(None),
            or_(_c.command_id.is_(None), _c.command_id == given("command")),
        )
        .values(
            state=case(becomes, value=_c.state),
            command_id=given("command"),
            receipt_id=given("receipt"),
            admission_reason=given("reason"),
            admitted_at_us=given("at_us"),
            **_FREE,
        )
    )


@statement
def record_rejection(_engine: Engine) -> Executable:
    return (
        update(outbox)
        .where(_c.outbox_id == given("id"), one_of(_c.state, UNADMITTED))
        .values(
            state=constant(OutboxState.REJECTED),
            receipt_id=given("receipt"),
            admission_reason=given("reason"),
            admitted_at_us=given("at_us"),
            ended_at_us=now_us(),
            **_FREE,
        )
    )


def _mine() -> ColumnElement[bool]:
    return and_(
        _c.outbox_id == given("id"),
        _c.lease_token == given("token"),
        _c.state == constant(OutboxState.PENDING),
    )


@statement
def record_refusal(_engine: Engine) -> Executable:
    """Only while the wish is the one that was refused: a withdrawal wished meanwhile is asked for next."""
    return (
        update(outbox)
        .where(_mine(), _c.wish == given("asked"))
        .values(
            **{
                **_FREE,
                "state": constant(OutboxState.REFUSED),
                "tries": _c.tries + literal(1),
                "error_class": given("kind"),
                "error_message": given("message"),
            }
        )
    )


@statement
def record_retry(_engine: Engine) -> Executable:
    return (
        update(outbox)
        .where(_mine())
        .values(
            **{
                **_FREE,
                "tries": _c.tries + literal(1),
                "due_at_us": now_us() + given("delay_us"),
                "error_class": given("kind"),
                "error_message": given("message"),
            }
        )
    )


@statement
def give_back(_engine: Engine) -> Executable:
    return update(outbox).where(_mine()).values(lease_token=null(), lease_until_us=literal(0))


@statement
def recorded_row(_engine: Engine) -> Executable:
    """The row as it is now: an update that did not match says nothing, and a snapshot may be older than it."""
    columns = (_c.state, _c.receipt_id, _c.command_id, _c.error_class)
    return select(*columns).where(_c.outbox_id == given("id")).with_for_update()


def record(token: str, outcomes: Sequence[Outcome]) -> Transaction[list[Recorded]]:
    """Write down each outcome; safe to run again after a crash or an unknown commit."""
    recorded = []
    # Two relays may record the same rows after a lost lease: one order keeps them from waiting in a circle.
    for outcome in sorted(outcomes, key=lambda one: one.row.intent.outbox_id):
        outbox_id = outcome.row.intent.outbox_id
        match outcome.verdict:
            case Accepted() as accepted:
                recorded.append((yield from _record_accepted(outbox_id, accepted)))
            case Rejected() as rejected:
                recorded.append((yield from _record_rejected(outbox_id, rejected)))
            case RefusedForGood() | TryAgain() as failed:
                recorded.append((yield from _record_failed(token, outcome, failed)))
            case _:
                assert_never(outcome.verdict)
    return recorded


def _record_accepted(outbox_id: OutboxId, fact: Accepted) -> Transaction[Recorded]:
    yield from fetch(
        record_acceptance,
        id=outbox_id,
        command=fact.command_id,
        receipt=fact.receipt_id,
        reason=fact.reason,
        at_us=fact.admitted_at_us,
    )
    row = yield from fetch_one(recorded_row, id=outbox_id)
    if row is None:
        return Recorded.STALE
    agrees = row["command_id"] == fact.command_id and row["receipt_id"] == fact.receipt_id
    return Recorded.ACCEPTED if agrees else Recorded.CONTRADICTED


def _record_rejected(outbox_id: OutboxId, fact: Rejected) -> Transaction[Recorded]:
    yield from fetch(
        record_rejection, id=outbox_id, receipt=fact.receipt_id, reason=fact.reason, at_us=fact.admitted_at_us
    )
    row = yield from fetch_one(recorded_row, id=outbox_id)
    if row is None:
        return Recorded.STALE
    agrees = row["state"] == OutboxState.REJECTED.value and row["receipt_id"] == fact.receipt_id
    return Recorded.REJECTED if agrees else Recorded.CONTRADICTED


def _record_failed(token: str, outcome: Outcome, failed: RefusedForGood | TryAgain) -> Transaction[Recorded]:
    outbox_id = outcome.row.intent.outbox_id
    facts = {"id": outbox_id, "token": token, "kind": failed.error_class.value, "message": failed.message}
    match failed:
        case RefusedForGood():
            yield from fetch(record_refusal, **facts, asked=outcome.row.wish.value)
            yield from fetch(give_back, id=outbox_id, token=token)
        case TryAgain():
            yield from fetch(record_retry, **facts, delay_us=outcome.delay_us)
    row = yield from fetch_one(recorded_row, id=outbox_id)
    if row is None or row["error_class"] != failed.error_class.value:
        return Recorded.STALE
    return Recorded.REFUSED if row["state"] == OutboxState.REFUSED.value else Recorded.RETRY
