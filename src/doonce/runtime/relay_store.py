"""The relay's two transactions: claim a batch of due rows, record what the service answered.

A receipt is a durable fact of the service and is recorded whoever holds the row now; a failure or a refusal
is only this relay's experience, so it needs the live lease. Nothing is locked while the service is asked:
losing a lease is harmless, because acceptance and rejection are idempotent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, assert_never

from sqlalchemy import ColumnElement, Executable, and_, case, exists, literal, null, or_, select, update

from doonce.runtime.model import (
    ADMITTED,
    OPEN,
    UNADMITTED,
    Accepted,
    OutboxId,
    OutboxState,
    RefusedForGood,
    Rejected,
    TryAgain,
    Verdict,
    Wish,
)
from doonce.runtime.outbox_store import INTENT_COLUMNS, Intent
from doonce.runtime.statements import (
    Engine,
    Statement,
    Transaction,
    constant,
    fetch,
    fetch_one,
    given,
    now_us,
    now_us_once,
    one_of,
    statement,
)
from doonce.runtime.tables import outbox

_c = outbox.c


@dataclass(frozen=True, slots=True)
class Claimed:
    """One row that this relay may ask about until its lease ends."""

    intent: Intent
    wish: Wish
    tries: int


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


class HeadPolicy(str, Enum):
    """What a refused row does to the later rows of its source lane (PROTOCOL L3)."""

    BLOCK = "block"
    PASS = "pass"  # noqa: S105  # a policy, not a password


_HOLDING: Final[dict[HeadPolicy, tuple[OutboxState, ...]]] = {
    HeadPolicy.BLOCK: OPEN,
    HeadPolicy.PASS: (OutboxState.PENDING,),
}


def _claim(policy: HeadPolicy) -> Statement:
    def build(engine: Engine) -> Executable:
        row = outbox.alias("candidate")
        earlier = outbox.alias("earlier")
        # Lane positions are drawn under the lane's lock until commit, so no earlier row can appear later.
        held_up = exists().where(
            earlier.c.org == row.c.org,
            earlier.c.installation == row.c.installation,
            earlier.c.source_lane == row.c.source_lane,
            one_of(earlier.c.state, _HOLDING[policy]),
            earlier.c.lane_position < row.c.lane_position,
        )
        due = (
            select(row.c.outbox_id)
            .where(
                row.c.state == constant(OutboxState.PENDING),
                row.c.due_at_us <= now_us_once(),
                row.c.lease_until_us < now_us_once(),
                # A withdrawal need not wait for its turn: it asks for nothing to be done.
                or_(row.c.source_lane.is_(None), row.c.wish == constant(Wish.WITHDRAW), ~held_up),
            )
            .order_by(row.c.due_at_us, row.c.outbox_id)
            .limit(given("rows_max"))
            .with_for_update(skip_locked=True, of=row)
        )
        if engine == "postgresql":
            # In a CTE it runs once; a subquery may be planned as the inner side of a loop, and claim too much.
            due = select(due.cte("due").c.outbox_id)
        return (
            update(outbox)
            .where(_c.outbox_id.in_(due))
            .values(lease_token=given("token"), lease_until_us=now_us() + given("lease_us"))
        )

    return Statement("claim_" + policy.value, build)


_CLAIMS: Final[dict[HeadPolicy, Statement]] = {policy: _claim(policy) for policy in HeadPolicy}


@statement
def claimed_rows(_engine: Engine) -> Executable:
    return (
        select(*INTENT_COLUMNS, _c.wish, _c.tries)
        .where(_c.lease_token == given("token"), _c.state == constant(OutboxState.PENDING))
        .order_by(_c.due_at_us, _c.outbox_id)
    )


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
    return select(_c.state, _c.receipt_id, _c.command_id, _c.error_class).where(_c.outbox_id == given("id"))


def claim(token: str, *, rows_max: int, lease_us: int, policy: HeadPolicy) -> Transaction[list[Claimed]]:
    """Lease up to `rows_max` due rows under `token`, at most one of each source lane (PROTOCOL L2)."""
    yield from fetch(_CLAIMS[policy], token=token, rows_max=rows_max, lease_us=lease_us)
    rows = yield from fetch(claimed_rows, token=token)
    claimed = []
    for row in rows:
        pinned = {column.name: row[column.name] for column in INTENT_COLUMNS}
        pinned["payload"] = bytes(pinned["payload"])
        claimed.append(Claimed(Intent(**pinned), Wish(row["wish"]), row["tries"]))
    return claimed


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
