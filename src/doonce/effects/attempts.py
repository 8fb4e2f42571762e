"""Rows of attempts and of late evidence: making, reading, locking. Everybody locks attempts in order of their ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from doonce.catalog.model import Outcome
from doonce.commands.model import Pins
from doonce.db.schema import IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, certify, clock, fetch, fetch_then_clock
from doonce.effects.model import Attempt, AttemptKind, AttemptState, Evidence, EvidenceKind
from doonce.effects.tables import attempt_evidence, effect_attempt
from doonce.work.model import Claimed

ATTEMPT_COLUMNS = tuple(column.name for column in effect_attempt.c)
EVIDENCE_COLUMNS = tuple(column.name for column in attempt_evidence.c)
READ_COLUMNS = (
    "id", "kind", "subject_id", "work_id", "state", "outcome", "reason", "effect_free", "mark_nonce", "prepared_at",
    "dispatched_at", "settled_by", "evidence_version", "horizon_at",
)  # fmt: skip


def _of_subjects(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return (
        sa.select(*[effect_attempt.c[name] for name in READ_COLUMNS])
        .where(effect_attempt.c.subject_id.in_(sa.select(ids.c.id).select_from(ids.source)))
        .order_by(effect_attempt.c.subject_id, effect_attempt.c.number)
    )


def _lock_attempts(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return (
        sa.select(*[effect_attempt.c[name] for name in READ_COLUMNS])
        .where(effect_attempt.c.id.in_(sa.select(ids.c.id).select_from(ids.source)))
        .order_by(effect_attempt.c.id)
        .with_for_update()
    )


def _evidence_of(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return (
        sa.select(attempt_evidence)
        .where(attempt_evidence.c.attempt_id.in_(sa.select(ids.c.id).select_from(ids.source)))
        .order_by(attempt_evidence.c.attempt_id, attempt_evidence.c.recorded_at, attempt_evidence.c.id)
    )


OF_SUBJECTS = Statement("effects.of_subjects", _of_subjects)
LOCK_ATTEMPTS = Statement("effects.lock_attempts", _lock_attempts)
EVIDENCE_OF = Statement("effects.evidence_of", _evidence_of)


_KINDS = {kind.value: kind for kind in AttemptKind}
_STATES = {state.value: state for state in AttemptState}
_OUTCOMES: dict[str | None, Outcome | None] = {None: None} | {outcome.value: outcome for outcome in Outcome}


def read_attempt(row: Iterable[Any]) -> Attempt:
    """The attempt of a row that has `READ_COLUMNS`, in their order; whatever follows them is left alone."""
    v = tuple(row)
    return Attempt(v[0], _KINDS[v[1]], v[2], v[3], _STATES[v[4]], _OUTCOMES[v[5]], v[6], v[7] == 1, *v[8:14])


def lock_attempts(ids: Iterable[str]) -> Txn[dict[str, Attempt]]:
    """Lock these attempts in order of their ids."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    rows = yield from fetch(LOCK_ATTEMPTS, ids=[(attempt_id,) for attempt_id in wanted])
    return {row[0]: read_attempt(row) for row in rows}


def lock_attempts_then_clock(ids: Iterable[str]) -> Txn[tuple[dict[str, Attempt], int]]:
    """The same, and the time after the last lock (PROTOCOL T3)."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}, (yield from clock())
    rows, now_us = yield from fetch_then_clock(LOCK_ATTEMPTS, ids=[(attempt_id,) for attempt_id in wanted])
    return {row[0]: read_attempt(row) for row in rows}, now_us


def lock_evidence(ids: Iterable[str]) -> Txn[dict[str, Attempt]]:
    """Lock attempts against late evidence: for who adds some, and for who acts on what there is (PROTOCOL H4)."""
    locked = yield from lock_attempts(ids)
    yield from certify_evidence(locked)
    return locked


def certify_evidence(ids: Iterable[str]) -> Txn[None]:
    """The same for attempts that are locked already."""
    yield from certify(f"evidence:{attempt_id}" for attempt_id in ids)


def attempts_of(subject_ids: Iterable[str]) -> Txn[dict[str, list[Attempt]]]:
    """The attempts of each subject, oldest first."""
    wanted = sorted(set(subject_ids))
    found: dict[str, list[Attempt]] = {subject_id: [] for subject_id in wanted}
    if wanted:
        for row in (yield from fetch(OF_SUBJECTS, ids=[(subject_id,) for subject_id in wanted])):
            found[row[2]].append(read_attempt(row))
    return found


def evidence_of(attempt_ids: Iterable[str]) -> Txn[dict[str, list[Evidence]]]:
    """The late evidence on each attempt, oldest first."""
    wanted = sorted(set(attempt_ids))
    found: dict[str, list[Evidence]] = {attempt_id: [] for attempt_id in wanted}
    if wanted:
        for row in (yield from fetch(EVIDENCE_OF, ids=[(attempt_id,) for attempt_id in wanted])):
            outcome = Outcome(row["outcome"]) if row["outcome"] is not None else None
            found[row["attempt_id"]].append(
                Evidence(
                    row["id"],
                    row["attempt_id"],
                    EvidenceKind(row["kind"]),
                    outcome,
                    row["result"],
                    row["reason"],
                )
            )
    return found


def attempt_row(
    attempt_id: str,
    kind: AttemptKind,
    number: int,
    claimed: Claimed,
    pins: Pins,
    operation: str,
    request_digest: str,
    now_us: int,
) -> tuple[Any, ...]:
    """The row of a new `prepared` attempt; `number` are its subject's earlier ones, all of which have ended."""
    values: dict[str, Any] = dict.fromkeys(ATTEMPT_COLUMNS)
    values |= {
        "id": attempt_id, "kind": kind.value, "subject_id": claimed.item.subject_id, "number": number,
        "work_id": claimed.item.id,
        "operation": operation, "state": AttemptState.PREPARED.value, "reason": "", "token": claimed.token,
        "epoch": claimed.epoch, "generation": pins.generation, "link_version": pins.link_version,
        "request_digest": request_digest, "prepared_at": now_us, "effect_free": 0,
        "evidence_version": 0,
    }  # fmt: skip
    return tuple(values[name] for name in ATTEMPT_COLUMNS)
