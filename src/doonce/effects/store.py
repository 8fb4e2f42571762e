"""Transactions of the journal: claim and prepare, mark, end, late evidence. All take and return batches.

Lock order: ownership, binding generations, links, lanes, work items, attempts (PROTOCOL T4). Every fence is checked on
locked rows, after which the clock is read and written (T3, D2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from doonce.base.records import Record
from doonce.catalog.model import Outcome
from doonce.commands import store as commands
from doonce.db import incarnation
from doonce.db.schema import IDENTITY, MICROSECONDS
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, clock, fetch, insert_many
from doonce.effects.attempts import (
    ATTEMPT_COLUMNS,
    EVIDENCE_COLUMNS,
    attempt_row,
    attempts_of,
    certify_evidence,
    evidence_of,
    lock_attempts_then_clock,
    lock_evidence,
)
from doonce.effects.model import (
    Attempt,
    AttemptKind,
    AttemptState,
    EvidenceKind,
    Lineage,
    Marked,
    MarkResult,
    Start,
    judge_mark,
)
from doonce.effects.tables import attempt_evidence, disposition, effect_attempt
from doonce.links import store as links
from doonce.links.model import RemoteLink
from doonce.ownership import store as ownership
from doonce.ownership.model import Family
from doonce.principals import store as principals
from doonce.work import settle
from doonce.work import store as work
from doonce.work.model import Claimed, Item, NewItem, live


def _dispositions_of_work(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(disposition).where(
        disposition.c.successor_item_id.in_(sa.select(ids.c.id).select_from(ids.source))
    )


def _mark(dialect: Dialect) -> sa.Update:
    marks = dialect.batch(
        "marks", id=IDENTITY, nonce=IDENTITY, horizon_us=MICROSECONDS, request_digest=IDENTITY
    )
    return (
        sa.update(effect_attempt)
        .where(effect_attempt.c.id == marks.c.id, effect_attempt.c.state == AttemptState.PREPARED.value)
        .values(
            state=AttemptState.DISPATCHED.value,
            dispatched_at=sa.bindparam("now_us", type_=MICROSECONDS),
            mark_nonce=marks.c.nonce,
            horizon_at=marks.c.horizon_us,
            request_digest=marks.c.request_digest,
        )
    )


def _bump_evidence(dialect: Dialect) -> sa.Update:
    ids = dialect.batch("ids", id=IDENTITY)
    return (
        sa.update(effect_attempt)
        .where(effect_attempt.c.id == ids.c.id)
        .values(evidence_version=effect_attempt.c.evidence_version + 1)
    )


LINEAGE_OF = Statement("effects.lineage_of", _dispositions_of_work)
MARK = Statement("effects.mark", _mark)
BUMP_EVIDENCE = Statement("effects.bump_evidence", _bump_evidence)


class PrepareRequest(Record, frozen=True):
    """A claim of effects; `attempt_ids` are made before the transaction, at least one per row it may take."""

    claim: work.ClaimRequest
    attempt_ids: tuple[str, ...]


def claim_and_prepare(request: PrepareRequest) -> Txn[list[Start]]:
    """Claim effects and journal a `prepared` attempt for each, in one transaction.

    An item whose earlier claimant vanished comes back with that attempt still open: it is settled first, and only
    then may the command be tried again. A crash after this commit leaves attempts that are proven not sent.
    """
    claimed = yield from work.claim(request.claim)
    if not claimed:
        return []
    known = yield from commands.load(c.item.subject_id for c in claimed)
    used = [c for c in claimed if c.item.claims > 0 or c.item.predecessor is not None]
    past = yield from attempts_of(c.item.subject_id for c in used)
    open_attempts = {
        subject_id: attempts[-1]
        for subject_id, attempts in past.items()
        if attempts and attempts[-1].outcome is None
    }
    evidence = yield from evidence_of(attempt.id for attempt in open_attempts.values())
    lineage = yield from _lineage(c.item.id for c in claimed if c.item.predecessor is not None)
    lossy_at = yield from incarnation.last_lossy()
    now_us = claimed[0].lease_until - request.claim.lease_us  # when the claim's last lock was had
    starts: list[Start] = []
    rows: list[tuple[Any, ...]] = []
    for c, attempt_id in zip(claimed, request.attempt_ids, strict=False):
        command = known.get(c.item.subject_id)
        open_attempt = open_attempts.get(c.item.subject_id)
        if open_attempt is None and command is not None:
            number = len(past.get(c.item.subject_id, ()))
            digest = command.request.body_digest
            rows.append(
                attempt_row(
                    attempt_id, AttemptKind.EFFECT, number, c, command.pins, command.operation, digest, now_us
                )
            )
        starts.append(
            Start(
                claimed=c,
                command=command,
                attempt_id=open_attempt.id if open_attempt is not None else attempt_id,
                open_attempt=open_attempt,
                evidence=tuple(evidence[open_attempt.id]) if open_attempt is not None else (),
                earlier=_earlier(past.get(c.item.subject_id, [])),
                first_dispatched_at=first_dispatched_at(past.get(c.item.subject_id, [])),
                lineage=lineage.get(c.item.id),
                lossy_at=lossy_at,
            )
        )
    yield from insert_many(effect_attempt, ATTEMPT_COLUMNS, rows)
    return starts


def _earlier(attempts: Sequence[Attempt]) -> Attempt | None:
    unproven = (
        attempt
        for attempt in reversed(attempts)
        if attempt.outcome is Outcome.REPLAY_SAFE_RETRY and not attempt.effect_free
    )
    return next(unproven, None)


def first_dispatched_at(attempts: Sequence[Attempt]) -> int | None:
    """When the first attempt was dispatched that is not proven to have done nothing; None when there is none."""
    times = [attempt.dispatched_at for attempt in attempts if not attempt.effect_free]
    return min((time for time in times if time is not None), default=None)


def _lineage(work_ids: Iterable[str]) -> Txn[dict[str, Lineage]]:
    wanted = sorted(set(work_ids))
    if not wanted:
        return {}
    rows = yield from fetch(LINEAGE_OF, ids=[(work_id,) for work_id in wanted])
    return {row["successor_item_id"]: Lineage(row["attempt_id"], row["evidence_version"]) for row in rows}


class MarkRequest(Record, frozen=True):
    """A prepared attempt whose connection is open. `budget_us` is how long the call may take from now on.

    `settle_us`: send window plus the pack's in-flight horizon; until then bytes may still arrive (PROTOCOL H3).
    """

    claimed: Claimed
    deployment: str
    attempt_id: str
    nonce: str
    principal_id: str
    generation: int
    link_id: str | None
    link_version: int | None
    request_digest: str
    lineage: Lineage | None
    budget_us: int
    margin_us: int
    settle_us: int


def mark(requests: Sequence[MarkRequest]) -> Txn[list[MarkResult]]:
    """Make attempts `dispatched`, durably, before a byte can leave; each refused mark says which fence failed.

    Locks and rechecks ownership, binding generation, link snapshot, predecessor's evidence, work item and attempt
    (PROTOCOL D2, H4), counts the dispatch (W3) and sets the lease to outlast the call (C4). A rerun after an unknown
    commit recognises its own nonce.
    """
    pinned = {r.principal_id for r in requests}
    owners = yield from ownership.fence(
        (r.claimed.item.family for r in requests), map(principals.lock_name, pinned)
    )
    generations = yield from principals.current(pinned)
    linked = yield from links.share(r.link_id for r in requests if r.link_id is not None)
    items = yield from work.lock_claimed(r.claimed for r in requests)
    before = {r.lineage.attempt_id for r in requests if r.lineage is not None}
    yield from certify_evidence(before)
    attempts, now_us = yield from lock_attempts_then_clock({r.attempt_id for r in requests} | before)
    results: list[MarkResult] = []
    marks: list[tuple[str, str, int, str]] = []
    leases: list[tuple[str, int]] = []
    for r in requests:
        item = items.get(r.claimed.item.id)
        attempt = attempts.get(r.attempt_id)
        owner = owners.get(r.claimed.item.family)
        if (
            attempt is not None
            and attempt.mark_nonce == r.nonce
            and attempt.dispatched_at is not None
            and item
        ):
            results.append(Marked(attempt.dispatched_at, item.lease_until))
            continue
        refused = judge_mark(
            owned=owner is not None and owner.lets_finish(r.deployment, r.claimed.epoch),
            leased=live(item, r.claimed, now_us),
            attempt=attempt,
            generation_current=generations.get(r.principal_id) == r.generation,
            link_current=r.link_id is None or _pinned(linked.get(r.link_id), r.link_version),
            evidence_unchanged=r.lineage is None or _unchanged(attempts.get(r.lineage.attempt_id), r.lineage),
            cancelled=item is not None and item.cancel_requested and item.attempts == 0,
        )
        if refused is not None:
            results.append(refused)
            continue
        until_us = now_us + r.budget_us + r.margin_us
        marks.append((r.attempt_id, r.nonce, now_us + r.settle_us, r.request_digest))
        leases.append((r.claimed.item.id, max(until_us, r.claimed.lease_until)))
        results.append(Marked(now_us, leases[-1][1]))
    if marks:
        yield from fetch(MARK, marks=marks, now_us=now_us)
        yield from settle.count_dispatch(leases, now_us)
    return results


def _pinned(link: RemoteLink | None, version: int | None) -> bool:
    return link is not None and link.current and link.version == version


def _unchanged(attempt: Attempt | None, lineage: Lineage) -> bool:
    return attempt is not None and attempt.evidence_version == lineage.evidence_version


class LateEvidence(Record, frozen=True):
    """What a sender saw after it had lost its claim, or could not store in time."""

    id: str
    attempt_id: str
    token: str
    kind: EvidenceKind
    outcome: Outcome | None
    result_json: str
    reason: str


def append_evidence(rows: Sequence[LateEvidence]) -> Txn[list[None]]:
    """Append late evidence, bump each attempt's evidence version, and make its reconciliation due now.

    No transition: a verdict taken without it can no longer be acted on (PROTOCOL H4). Where reconciliation had
    given up, a new item looks again. A rerun appends nothing twice.
    """
    ordered = sorted(rows, key=lambda row: row.attempt_id)
    looking: list[bool] = []
    for row in ordered:
        found = yield from settle.bring_forward(row.attempt_id, Family.RECONCILE.value)
        looking.append(found)
    attempts = yield from lock_evidence(row.attempt_id for row in rows)
    known = yield from evidence_of(row.attempt_id for row in rows)
    scopes = yield from work.plain_anywhere(attempt.work_id for attempt in attempts.values())
    now_us = yield from clock()
    fresh = [row for row in ordered if all(row.id != seen.id for seen in known[row.attempt_id])]
    yield from insert_many(attempt_evidence, EVIDENCE_COLUMNS, [_evidence_row(row, now_us) for row in fresh])
    if fresh:
        yield from fetch(BUMP_EVIDENCE, ids=[(row.attempt_id,) for row in fresh])
    unattended = [row for row, found in zip(ordered, looking, strict=True) if not found and row in fresh]
    yield from work.insert(
        [
            _look_again(row, scopes[attempts[row.attempt_id].work_id])
            for row in unattended
            if row.attempt_id in attempts and attempts[row.attempt_id].outcome is Outcome.OUTCOME_UNKNOWN
        ]
    )
    return [None for _ in rows]


def _evidence_row(row: LateEvidence, now_us: int) -> tuple[Any, ...]:
    outcome = row.outcome.value if row.outcome is not None else None
    return (row.id, row.attempt_id, row.kind.value, outcome, row.result_json, row.reason, row.token, now_us)


def _look_again(row: LateEvidence, item: Item) -> NewItem:
    return NewItem(
        id=f"wrk_{row.id[4:]}",
        family=Family.RECONCILE.value,
        scope=item.scope,
        subject_kind="attempt",
        subject_id=row.attempt_id,
        view_digest=item.view_digest,
    )
