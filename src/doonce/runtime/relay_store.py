"""The relay's two transactions: claim a batch of due rows, record what the service answered.

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
    Select,
    and_,
    bindparam,
    case,
    exists,
    literal,
    null,
    or_,
    select,
    update,
)
from sqlalchemy import text as sql_text

from doonce.base.json import dumps
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
    Rows,
    Statement,
    Transaction,
    constant,
    engine_name,
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


_candidate: Final = outbox.alias("candidate")


def _due(policy: HeadPolicy, now: ColumnElement[int]) -> Select[Any]:
    """The rows to hand over now, the longest due first."""
    row = _candidate
    earlier = outbox.alias("earlier")
    # Lane positions are drawn under the lane's lock until commit, so no earlier row can appear later.
    ahead = select(literal(1)).where(
        earlier.c.org == row.c.org,
        earlier.c.installation == row.c.installation,
        earlier.c.source_lane == row.c.source_lane,
        one_of(earlier.c.state, _HOLDING[policy]),
        earlier.c.lane_position < row.c.lane_position,
    )
    held_up = exists(ahead.with_hint(earlier, "FORCE INDEX (doonce_outbox_lane_open)", "mysql"))
    return (
        select(row.c.outbox_id)
        .where(
            row.c.state == constant(OutboxState.PENDING),
            row.c.due_at_us <= now,
            row.c.lease_until_us < now,
            # A withdrawal need not wait for its turn: it asks for nothing to be done.
            or_(row.c.source_lane.is_(None), row.c.wish == constant(Wish.WITHDRAW), ~held_up),
        )
        .order_by(row.c.due_at_us, row.c.outbox_id)
        .limit(given("rows_max"))
    )


def _claim(policy: HeadPolicy) -> Statement:
    def build(engine: Engine) -> Executable:
        due = _due(policy, now_us_once()).with_for_update(skip_locked=True, of=_candidate)
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


def _find(policy: HeadPolicy) -> Statement:
    def build(_engine: Engine) -> Executable:
        return _due(policy, now_us()).with_hint(_candidate, "FORCE INDEX (doonce_outbox_due)", "mysql")

    return Statement("find_" + policy.value, build)


_FINDS: Final[dict[HeadPolicy, Statement]] = {policy: _find(policy) for policy in HeadPolicy}

CROWD: Final = 4
"""How many relays may find the same rows first, and still each take others."""


@statement
def lock_found(_engine: Engine) -> Executable:
    """Those of the found rows that nobody else holds and that are still free. Ids are given in hexadecimal."""
    return (
        sql_text(
            "SELECT o.outbox_id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id VARCHAR(512) PATH '$')) AS found"
            " STRAIGHT_JOIN doonce_outbox AS o FORCE INDEX (PRIMARY) ON o.outbox_id = UNHEX(found.id)"
            " WHERE o.state = :pending"
            " AND o.due_at_us <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
            " AND o.lease_until_us < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
            " LIMIT :rows_max FOR UPDATE SKIP LOCKED"
        )
        .bindparams(bindparam("pending", OutboxState.PENDING.value))
        .columns(_c.outbox_id)
    )


@statement
def lease_locked(_engine: Engine) -> Executable:
    """Lease rows that this transaction has locked."""
    return sql_text(
        "UPDATE JSON_TABLE(:ids, '$[*]' COLUMNS (id VARCHAR(512) PATH '$')) AS found"
        " STRAIGHT_JOIN doonce_outbox AS o FORCE INDEX (PRIMARY) ON o.outbox_id = UNHEX(found.id)"
        " SET o.lease_token = :token,"
        " o.lease_until_us = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :lease_us"
    ).bindparams(bindparam("token", type_=_c.lease_token.type))


def _claim_apart(token: str, *, rows_max: int, lease_us: int, policy: HeadPolicy) -> Transaction[None]:
    """Find, lock and lease one after the other, where one statement cannot do it, or locks what it only looks at.

    The search locks nothing and may be of an old snapshot. What it says of a lane stays true for ever, since no
    earlier row of it can appear; whether a row is still free is looked at again under its lock.
    """
    found = yield from fetch(_FINDS[policy], rows_max=CROWD * rows_max)
    if not found:
        return
    locked = yield from fetch(lock_found, ids=_hexadecimal(found), rows_max=rows_max)
    if locked:
        yield from fetch(lease_locked, ids=_hexadecimal(locked), token=token, lease_us=lease_us)


def _hexadecimal(rows: Rows) -> str:
    return dumps([row["outbox_id"].encode().hex() for row in rows]).decode()


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
    """The row as it is now: an update that did not match says nothing, and a snapshot may be older than it."""
    columns = (_c.state, _c.receipt_id, _c.command_id, _c.error_class)
    return select(*columns).where(_c.outbox_id == given("id")).with_for_update()


def claim(token: str, *, rows_max: int, lease_us: int, policy: HeadPolicy) -> Transaction[list[Claimed]]:
    """Lease up to `rows_max` due rows under `token`, at most one of each source lane (PROTOCOL L2)."""
    if (yield from engine_name()) == "mysql":
        yield from _claim_apart(token, rows_max=rows_max, lease_us=lease_us, policy=policy)
    else:
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
