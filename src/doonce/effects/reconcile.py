"""Settling what nobody knows: claims of reconciliations, and the one disposition of an attempt.

A disposition, the transfer of the lane's hold, the command's end or its successor are one transaction (PROTOCOL L5).
Lock order: ownership, lanes, work items, attempts.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import sqlalchemy as sa

from doonce.base.records import Record
from doonce.catalog.model import Verdict
from doonce.commands import store as commands
from doonce.commands.model import Command, EndedAs, NewEnd
from doonce.db.schema import COUNT, IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, clock, fetch, insert_many
from doonce.effects import linking
from doonce.effects.attempts import (
    READ_COLUMNS,
    attempts_of,
    certify_evidence,
    evidence_of,
    lock_attempts,
    read_attempt,
)
from doonce.effects.linking import Creation
from doonce.effects.model import Attempt, Ending, Evidence, Lineage, Question, Verdicted
from doonce.effects.reads import EndedRead, end_reads
from doonce.effects.store import first_dispatched_at
from doonce.effects.tables import disposition, effect_attempt
from doonce.ownership import store as ownership
from doonce.ownership.model import Family
from doonce.work import lanes as lane_store
from doonce.work import settle
from doonce.work import store as work
from doonce.work.lanes import Lane
from doonce.work.model import Claimed, Event, Item, LanePolicy, NewItem, Settlement, live

DISPOSITION_COLUMNS = tuple(column.name for column in disposition.c)


def _attempts_by_id(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(*[effect_attempt.c[name] for name in (*READ_COLUMNS, "status")]).where(
        effect_attempt.c.id.in_(sa.select(ids.c.id).select_from(ids.source))
    )


def _dispositions(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(disposition).where(
        disposition.c.attempt_id.in_(sa.select(ids.c.id).select_from(ids.source))
    )


def _give_successor(dialect: Dialect) -> sa.Update:
    return (
        sa.update(disposition)
        .where(
            disposition.c.attempt_id == sa.bindparam("attempt", type_=IDENTITY),
            disposition.c.successor_item_id.is_(None),
        )
        .values(
            successor_item_id=sa.bindparam("successor", type_=IDENTITY),
            evidence_version=sa.bindparam("version", type_=COUNT),
        )
    )


ATTEMPTS_BY_ID = Statement("effects.attempts_by_id", _attempts_by_id)
DISPOSITIONS = Statement("effects.dispositions", _dispositions)
GIVE_SUCCESSOR = Statement("effects.give_successor", _give_successor)


def dispositions_of(attempt_ids: Iterable[str]) -> Txn[dict[str, Row]]:
    """The disposition rows of those attempts that have one."""
    rows = yield from fetch(DISPOSITIONS, ids=[(attempt_id,) for attempt_id in sorted(set(attempt_ids))])
    return {row["attempt_id"]: row for row in rows}


def claim_questions(request: work.ClaimRequest) -> Txn[list[Question]]:
    """Claim reconciliations, with the attempt in question, its command and whatever evidence there is."""
    claimed = yield from work.claim(request)
    if not claimed:
        return []
    ids = [c.item.subject_id for c in claimed]
    rows = yield from fetch(ATTEMPTS_BY_ID, ids=[(attempt_id,) for attempt_id in sorted(set(ids))])
    by_id = {row["id"]: row for row in rows}
    known = yield from commands.load(row["subject_id"] for row in rows)
    evidence = yield from evidence_of(ids)
    siblings = yield from attempts_of(row["subject_id"] for row in rows)
    probes = yield from attempts_of(ids)
    decided = yield from dispositions_of(ids)
    questions: list[Question] = []
    for c in claimed:
        row = by_id.get(c.item.subject_id)
        attempt = read_attempt(row) if row is not None else None
        open_probes = [probe for probe in probes[c.item.subject_id] if probe.outcome is None]
        questions.append(
            Question(
                claimed=c,
                attempt=attempt,
                command=known.get(attempt.subject_id) if attempt is not None else None,
                attempt_status=row["status"] if row is not None else None,
                evidence=tuple(evidence[c.item.subject_id]),
                first_dispatched_at=first_dispatched_at(siblings[attempt.subject_id]) if attempt else None,
                open_probe=open_probes[-1] if open_probes else None,
                decided=c.item.subject_id in decided,
            )
        )
    return questions


def look_at(attempt_id: str) -> Txn[tuple[Lineage, list[Evidence]]]:
    """All late evidence on an attempt and the version that stands for it, read as one (PROTOCOL H4)."""
    attempts = yield from lock_attempts([attempt_id])
    evidence = yield from evidence_of([attempt_id])
    return Lineage(attempt_id, attempts[attempt_id].evidence_version), evidence[attempt_id]


class Resolve(Record, frozen=True):
    """What a reconciliation concluded, or that it must look again.

    `for_vanished`: it only ends the probe of a prober that died.

    `probe_id` and `probe_ending` end the probe's own attempt. Without a verdict the item is tried again after
    `delay_us`, or given to an operator when `to_operator`. `successor_id` is made before the transaction.
    `evidence_version`: of the late evidence that the look has seen; None for who did not look.
    """

    claimed: Claimed | None
    deployment: str
    attempt_id: str
    command: Command
    decided_by: str
    successor_id: str
    probe_id: str | None = None
    probe_ending: Ending | None = None
    verdict: Verdicted | None = None
    delay_us: int = 0
    to_operator: bool = False
    for_vanished: bool = False
    reason: str = ""
    evidence_version: int | None = None
    creates: str | None = None
    """The kind of object that the command has made if its effect is proven; None where it makes none."""


class Resolved(str, Enum):
    """What became of it."""

    RECORDED = "recorded"
    WAITING = "waiting"
    CHANGED = "changed"
    STALE = "stale"


class _Subject(Record, frozen=True):
    """The locked rows that a resolution is about."""

    attempt: Attempt
    item: Item
    held: dict[str, Lane]
    now_us: int


def resolve(row: Resolve) -> Txn[Resolved]:
    """End the probe, record the disposition with all that follows from it, and settle the reconciliation item.

    A verdict is recorded only while the evidence that it has seen is still all there is (PROTOCOL H4): otherwise
    `CHANGED`, and the item is due again at once. So it is where the look would wait, or give up. An operator's call has
    no claim and waits for no horizon.
    """
    ids = {row.claimed.item.id} if row.claimed is not None else set()
    owners = yield from ownership.fence([Family.RECONCILE.value])
    yield from linking.hold(_creations(row))
    rows = yield from fetch(ATTEMPTS_BY_ID, ids=[(row.attempt_id,)])
    if not rows:
        return Resolved.STALE
    # The work of a command that has ended may be history by now; its lanes never change, and are locked before it.
    effect_items = yield from work.plain_anywhere([rows[0]["work_id"]])
    lanes = {
        name
        for item in effect_items.values()
        for name in (item.source_lane, item.target_lane)
        if name is not None
    }
    held = yield from lane_store.lock(lanes)
    items = yield from work.lock_anywhere(ids | {rows[0]["work_id"]})
    attempts = yield from lock_attempts(
        {row.attempt_id} | ({row.probe_id} if row.probe_id is not None else set())
    )
    yield from certify_evidence([row.attempt_id])
    decided = yield from dispositions_of([row.attempt_id])
    now_us = yield from clock()
    if row.claimed is not None:
        owner = owners.get(Family.RECONCILE.value)
        if owner is None or not owner.lets_finish(row.deployment, row.claimed.epoch):
            return Resolved.STALE
        if not live(items.get(row.claimed.item.id), row.claimed, now_us):
            return Resolved.STALE
    attempt = attempts[row.attempt_id]
    if row.probe_id is not None and row.probe_ending is not None:
        token = row.claimed.token if row.claimed is not None else ""
        yield from end_reads([EndedRead(row.probe_id, token, row.probe_ending)], now_us)
    result = Resolved.WAITING
    verdict = row.verdict
    if row.attempt_id in decided:
        result = Resolved.RECORDED
        if row.claimed is None:
            result = yield from _amend(
                row, decided[row.attempt_id], _Subject(attempt, items[attempt.work_id], held, now_us)
            )
    elif verdict is not None and verdict.evidence_version != attempt.evidence_version:
        result = Resolved.CHANGED
    elif verdict is not None and verdict.verdict is not Verdict.CANNOT_TELL:
        yield from _record(row, verdict, _Subject(attempt, items[attempt.work_id], held, now_us))
        result = Resolved.RECORDED
    elif not row.for_vanished and row.evidence_version not in (None, attempt.evidence_version):
        result = Resolved.CHANGED
    if row.claimed is not None:
        yield from settle.apply([_settlement(row, row.claimed, result)], items, held, now_us)
    yield from lane_store.save(held.values())
    return result


def _settlement(row: Resolve, claimed: Claimed, result: Resolved) -> Settlement:
    if result is Resolved.RECORDED:
        return Settlement(claimed, Event.SUCCEED, summary=row.reason)
    if result is Resolved.CHANGED:
        return Settlement(claimed, Event.DEFER, summary="new evidence came in while looking")
    if row.to_operator:
        return Settlement(claimed, Event.DIE, failure_class="needs_operator", summary=row.reason)
    return Settlement(
        claimed, Event.DEFER, delay_us=row.delay_us, summary=row.reason, for_vanished=row.for_vanished
    )


def _record(row: Resolve, verdict: Verdicted, subject: _Subject) -> Txn[None]:
    """Write the disposition and do what it entails, all under the lanes' locks."""
    resends = verdict.verdict is Verdict.NO_EFFECT_PROVEN and verdict.resend
    yield from insert_many(
        disposition,
        DISPOSITION_COLUMNS,
        [
            (
                row.attempt_id, verdict.verdict.value, verdict.evidence_version, int(verdict.names_attempt),
                row.decided_by, verdict.reason, verdict.result_json, row.successor_id if resends else None,
                subject.now_us,
            )
        ],
    )  # fmt: skip
    if resends:
        yield from _succeed(row, subject)
    elif verdict.verdict is Verdict.EFFECT_PROVEN:
        yield from _conclude(row, EndedAs.ACCEPTED, verdict, subject)
    elif verdict.ends_rejected:
        yield from _conclude(row, EndedAs.REJECTED, verdict, subject)
    elif verdict.verdict is Verdict.SUPERSEDED or row.claimed is None:
        yield from _conclude(row, EndedAs.DEAD, verdict, subject)


def _amend(row: Resolve, stored: Row, subject: _Subject) -> Txn[Resolved]:
    """An operator decides what to do about a proven *no effect* that nobody may resend by itself."""
    verdict = row.verdict
    waits = stored["verdict"] == Verdict.NO_EFFECT_PROVEN.value and stored["successor_item_id"] is None
    ends = yield from commands.load_ends([row.command.id])
    if verdict is None or not waits or ends:
        return Resolved.STALE
    if verdict.resend:
        if subject.attempt.evidence_version != verdict.evidence_version:
            return Resolved.CHANGED
        yield from fetch(
            GIVE_SUCCESSOR,
            attempt=row.attempt_id,
            successor=row.successor_id,
            version=verdict.evidence_version,
        )
        yield from _succeed(row, subject)
    else:
        yield from _conclude(row, EndedAs.DEAD, verdict, subject)
    return Resolved.RECORDED


def _succeed(row: Resolve, subject: _Subject) -> Txn[None]:
    """A new work item for the same command; it inherits positions, and the lane's hold passes to it (L2, L5)."""
    item = subject.item
    if item.target_lane is not None:
        subject.held[item.target_lane].hold(row.successor_id)
    yield from work.insert(
        [
            NewItem(
                id=row.successor_id,
                family=item.family,
                scope=item.scope,
                subject_kind=item.subject_kind,
                subject_id=item.subject_id,
                view_digest=item.view_digest,
                capability_version=item.capability_version,
                source_lane=item.source_lane,
                target_lane=item.target_lane,
                replay_of=item.id,
                predecessor=item.id,
                source_position=item.source_position,
                target_position=item.target_position,
            )
        ],
        subject.held,
    )


def _creations(row: Resolve) -> list[Creation]:
    """What a proven effect has made."""
    proven = row.verdict is not None and row.verdict.verdict is Verdict.EFFECT_PROVEN
    if row.creates is None or row.verdict is None or not proven:
        return []
    return [Creation(row.command, row.creates, row.verdict.result_json)]


def _conclude(row: Resolve, ended_as: EndedAs, verdict: Verdicted, subject: _Subject) -> Txn[None]:
    """End the command and free its lanes: the target lane at once only if the evidence names this attempt (L4)."""
    item, held = subject.item, subject.held
    reason = verdict.reason
    if ended_as is EndedAs.ACCEPTED:
        for linked in (yield from linking.finalize(_creations(row))):
            reason = linked.said(reason)
    yield from commands.end(
        [NewEnd(row.command, ended_as, row.attempt_id, verdict.result_json, reason)], subject.now_us
    )
    targets: set[str] = set()
    sources: set[str] = set()
    if item.target_lane is not None and held[item.target_lane].holder == row.attempt_id:
        horizon = 0 if verdict.names_attempt else subject.attempt.horizon_at or 0
        held[item.target_lane].hold(None, horizon)
        targets.add(item.target_lane)
    if item.source_lane is not None and item.source_position is not None:
        lane = held[item.source_lane]
        if lane.policy is LanePolicy.BLOCK and lane.nominee == item.id:
            yield from lane_store.drop_entries([(item.source_lane, item.source_position)])
            sources.add(item.source_lane)
    yield from lane_store.promote(held, sources, targets, subject.now_us)


__all__ = ["Resolve", "Resolved", "claim_questions", "resolve"]
