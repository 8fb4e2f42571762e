"""Transactions of acceptance and of a command's end. All take and return batches.

Lock order: binding generations, lanes, handoff, command, work item (PROTOCOL T4). Who won a key is read by a locking
statement after the insert, by nonce (T7).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from doonce.base.digests import PREFIX, digest_document
from doonce.base.slots import Slots
from doonce.commands.model import (
    Acceptance,
    Admission,
    Admitted,
    Command,
    CommandEnd,
    ConflictFound,
    EndedAs,
    HandoffClaim,
    HandoffState,
    NewEnd,
    Origin,
    Pins,
    Rejection,
    Request,
    StoredHandoff,
    judge_admission,
)
from doonce.commands.tables import command, command_end, handoff, handoff_conflict
from doonce.db.schema import IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, clock, fetch, insert_many
from doonce.ownership.model import Family
from doonce.principals import store as principals
from doonce.work import lanes as lane_store
from doonce.work import store as work
from doonce.work.model import LanePolicy, NewItem, Scope

HANDOFF_COLUMNS = tuple(column.name for column in handoff.c)
CONFLICT_COLUMNS = tuple(column.name for column in handoff_conflict.c)
COMMAND_COLUMNS = tuple(column.name for column in command.c)
END_COLUMNS = tuple(column.name for column in command_end.c)
CONFLICT_SLOTS = 16
GENERATION_ENDED = "generation_ended"
LEFT = "left to be asked for"
"""The summary of a completion that nobody has to carry: the application's binding says that it asks."""


def _handoffs(dialect: Dialect) -> sa.Select[Any]:
    keys = dialect.batch("keys", key=IDENTITY)
    return (
        sa.select(*handoff.c, command.c.id.label("applied"))
        .select_from(handoff.outerjoin(command, command.c.id == handoff.c.command_id))
        .where(handoff.c.key.in_(sa.select(keys.c.key).select_from(keys.source)))
        .order_by(handoff.c.key)
    )


def _conflicts(dialect: Dialect) -> sa.Select[Any]:
    keys = dialect.batch("keys", key=IDENTITY)
    return sa.select(handoff_conflict.c.key, handoff_conflict.c.slot, handoff_conflict.c.asked).where(
        handoff_conflict.c.key.in_(sa.select(keys.c.key).select_from(keys.source))
    )


def _load_commands(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(command).where(command.c.id.in_(sa.select(ids.c.id).select_from(ids.source)))


def _load_ends(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(command_end).where(
        command_end.c.command_id.in_(sa.select(ids.c.id).select_from(ids.source))
    )


FIND_HANDOFFS = Statement("commands.find_handoffs", _handoffs)
LOCK_HANDOFFS = Statement(
    "commands.lock_handoffs", lambda dialect: _handoffs(dialect).with_for_update(of=handoff)
)
CONFLICTS = Statement("commands.conflicts", _conflicts)
LOAD = Statement("commands.load", _load_commands)
LOAD_ENDS = Statement("commands.load_ends", _load_ends)


def accept(acceptances: Sequence[Acceptance]) -> Txn[list[Admission]]:
    """Admit each handoff key once: with its command and one work item, all in this transaction.

    A key that is there already gets its stored receipt, a mismatch is recorded and quarantined, and a binding
    generation that has ended rejects the key durably, since it can never become current again (PROTOCOL F1).
    After a lost response the same call finds its own nonce and answers as before.
    """
    current = yield from principals.fence(acceptance.pins.principal_id for acceptance in acceptances)
    held, now_us = yield from lane_store.make_and_lock_then_clock(_lane_policies(acceptances))
    stale = {a.handoff.key for a in acceptances if current.get(a.pins.principal_id) != a.pins.generation}
    rows = [
        _handoff_row(a.handoff, a.nonce, a.receipt_id, None, now_us, GENERATION_ENDED)
        if a.handoff.key in stale
        else _handoff_row(a.handoff, a.nonce, a.receipt_id, a.command_id, now_us, "")
        for a in acceptances
    ]
    yield from insert_many(handoff, HANDOFF_COLUMNS, sorted(rows), skip_conflicts=True)
    stored = yield from _lock(a.handoff.key for a in acceptances)
    admissions = [judge_admission(stored[a.handoff.key], a.handoff, a.nonce) for a in acceptances]
    fresh = [
        a
        for a, admission in zip(acceptances, admissions, strict=True)
        if isinstance(admission, Admitted)
        and admission.first
        and admission.state is HandoffState.COMMAND_ACCEPTED
        and not stored[a.handoff.key].applied
    ]
    yield from insert_many(command, COMMAND_COLUMNS, [_command_row(a, now_us) for a in fresh])
    yield from work.insert([_work_of(a) for a in fresh], held, now_us)
    yield from lane_store.save(held.values())
    yield from _quarantine([a.handoff for a in acceptances], admissions, now_us)
    return admissions


def reject(rejections: Sequence[Rejection]) -> Txn[list[Admission]]:
    """Make sure that each key is decided: its stored receipt, or from now on and for ever HANDOFF_REJECTED."""
    now_us = yield from clock()
    rows = [_handoff_row(r.handoff, r.nonce, r.receipt_id, None, now_us, r.reason) for r in rejections]
    yield from insert_many(handoff, HANDOFF_COLUMNS, sorted(rows), skip_conflicts=True)
    stored = yield from _lock(r.handoff.key for r in rejections)
    admissions = [judge_admission(stored[r.handoff.key], r.handoff, r.nonce) for r in rejections]
    yield from _quarantine([r.handoff for r in rejections], admissions, now_us)
    return admissions


def find(claims: Sequence[HandoffClaim]) -> Txn[list[Admission | None]]:
    """What is stored for each key, judged; None where nothing is. A fact once committed is one for ever, so a plain
    read may repeat it; that nothing is there proves nothing.
    """
    rows = yield from fetch(FIND_HANDOFFS, keys=[(key,) for key in sorted({claim.key for claim in claims})])
    stored = {row["key"]: _stored(row) for row in rows}
    return [
        judge_admission(stored[claim.key], claim, "") if claim.key in stored else None for claim in claims
    ]


def load(ids: Iterable[str]) -> Txn[dict[str, Command]]:
    """Commands by id; they never change, so a plain read is enough."""
    rows = yield from fetch(LOAD, ids=[(command_id,) for command_id in sorted(set(ids))])
    return {row["id"]: read_command(row) for row in rows}


def load_ends(ids: Iterable[str]) -> Txn[dict[str, CommandEnd]]:
    """The ends of those commands that have one."""
    rows = yield from fetch(LOAD_ENDS, ids=[(command_id,) for command_id in sorted(set(ids))])
    return {
        row["command_id"]: CommandEnd(
            row["command_id"],
            EndedAs(row["ended_as"]),
            row["attempt_id"],
            row["result"],
            row["reason"],
            row["recorded_at"],
        )
        for row in rows
    }


def end(ends: Sequence[NewEnd], now_us: int) -> Txn[None]:
    """End commands, and create each one's completion (PROTOCOL K1): work, or done where the application asks.

    Only inside the transaction that ends their work, under its locks; a second end of one command is refused by key.
    """
    yield from insert_many(
        command_end,
        END_COLUMNS,
        [
            (one.command.id, one.ended_as.value, one.attempt_id, one.result_json, one.reason, now_us)
            for one in ends
        ],
    )
    yield from work.insert(
        [
            NewItem(
                id=completion_id(one.command.id),
                family=Family.COMPLETION.value,
                scope=one.command.scope,
                subject_kind="command",
                subject_id=one.command.id,
                view_digest=one.command.pins.view_digest,
                done=LEFT if one.asked_for else None,
            )
            for one in ends
        ],
        now_us=now_us,
    )


def completion_id(command_id: str) -> str:
    """The id of a command's completion item: derived, so that a command can have only one."""
    return f"wrk_{command_id[4:]}"


def _lane_policies(acceptances: Sequence[Acceptance]) -> dict[str, LanePolicy]:
    policies = {a.target_lane: LanePolicy.PASS for a in acceptances if a.target_lane is not None}
    return policies | {a.source_lane: a.source_policy for a in acceptances if a.source_lane is not None}


def _lock(keys: Iterable[str]) -> Txn[dict[str, StoredHandoff]]:
    rows = yield from fetch(LOCK_HANDOFFS, keys=[(key,) for key in sorted(set(keys))])
    return {row["key"]: _stored(row) for row in rows}


def _stored(row: Row) -> StoredHandoff:
    claim = HandoffClaim(
        key=row["key"],
        scope=Scope(row["org"], row["installation"]),
        capability=row["capability"],
        binding_digest=row["binding_digest"],
        outbox_id=row["outbox_id"],
        payload_digest=row["payload_digest"],
    )
    return StoredHandoff(
        claim=claim,
        state=HandoffState(row["state"]),
        command_id=row["command_id"],
        receipt_id=row["receipt_id"],
        recorded_at=row["recorded_at"],
        reason=row["reason"],
        nonce=row["nonce"],
        applied=row["applied"] is not None,
    )


def _handoff_row(
    claim: HandoffClaim, nonce: str, receipt_id: str, command_id: str | None, now_us: int, reason: str
) -> tuple[Any, ...]:
    state = HandoffState.HANDOFF_REJECTED if command_id is None else HandoffState.COMMAND_ACCEPTED
    return (
        claim.key, state.value, claim.scope.org, claim.scope.installation, claim.capability, claim.binding_digest,
        claim.outbox_id, claim.payload_digest, command_id, receipt_id, reason, nonce, now_us,
    )  # fmt: skip


def _command_row(a: Acceptance, now_us: int) -> tuple[Any, ...]:
    pins, request, claim = a.pins, a.request, a.handoff
    return (
        a.command_id, Origin.RUNTIME.value, claim.key, claim.scope.org, claim.scope.installation, claim.capability,
        a.operation, a.local_ref, claim.outbox_id, claim.payload_digest, a.payload, a.remote_id, pins.view_digest,
        pins.principal_id,
        pins.generation, pins.link_id, pins.link_version, request.method, request.origin, request.target,
        msgspec.json.encode(request.headers).decode(), request.body, request.body_digest, request.idempotency_key,
        now_us,
    )  # fmt: skip


def _work_of(a: Acceptance) -> NewItem:
    return NewItem(
        id=a.work_id,
        family=Family.EFFECT.value,
        scope=a.handoff.scope,
        subject_kind="command",
        subject_id=a.command_id,
        view_digest=a.pins.view_digest,
        source_lane=a.source_lane,
        source_policy=a.source_policy,
        target_lane=a.target_lane,
    )


def read_command(row: Row) -> Command:
    """The command of a whole row."""
    return Command(
        id=row["id"],
        origin=Origin(row["origin"]),
        handoff_key=row["origin_key"],
        scope=Scope(row["org"], row["installation"]),
        capability=row["capability"],
        operation=row["operation"],
        local_ref=row["local_ref"],
        outbox_id=row["outbox_id"],
        payload_digest=row["payload_digest"],
        payload=row["payload"],
        remote_id=row["remote_id"],
        pins=Pins(
            view_digest=row["view_digest"],
            principal_id=row["principal_id"],
            generation=row["generation"],
            link_id=row["link_id"],
            link_version=row["link_version"],
        ),
        request=Request(
            method=row["method"],
            origin=row["request_origin"],
            target=row["target"],
            headers=msgspec.json.decode(row["headers"], type=tuple[tuple[str, str], ...]),
            body=row["body"],
            body_digest=row["body_digest"],
            idempotency_key=row["idempotency_key"],
        ),
        accepted_at=row["accepted_at"],
    )


def _pins_of(claim: HandoffClaim) -> tuple[str, ...]:
    scope = claim.scope
    return (
        scope.org,
        scope.installation,
        claim.capability,
        claim.binding_digest,
        claim.outbox_id,
        claim.payload_digest,
    )


def _quarantine(claims: Sequence[HandoffClaim], admissions: Sequence[Admission], now_us: int) -> Txn[None]:
    """Record what was asked beside what stands, each once, while there is room. Only under the handoffs' locks."""
    found = [
        (claim, admission.mismatch, digest_document("doonce.conflict.v1", [*_pins_of(claim)])[len(PREFIX) :])
        for claim, admission in zip(claims, admissions, strict=True)
        if isinstance(admission, ConflictFound)
    ]
    if not found:
        return
    stored = yield from fetch(
        CONFLICTS, keys=[(key,) for key in sorted({claim.key for claim, _, _ in found})]
    )
    known = {(row["key"], row["asked"]) for row in stored}
    slots = Slots(CONFLICT_SLOTS, ((row["key"], row["slot"]) for row in stored))
    rows = []
    for claim, mismatch, asked in sorted(found, key=lambda one: one[0].key):
        if (claim.key, asked) not in known and (slot := slots.take(claim.key)) is not None:
            known.add((claim.key, asked))
            rows.append((claim.key, slot, asked, mismatch, claim.outbox_id, claim.payload_digest, now_us))
    yield from insert_many(handoff_conflict, CONFLICT_COLUMNS, rows)
