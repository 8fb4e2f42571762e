"""How a deployment stands, in bounded reads: depth, age and owner of each family, and what nobody knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from doonce.app.operate.model import FamilyStatus, Unresolved
from doonce.catalog.model import Outcome, Verdict
from doonce.commands.tables import command_end
from doonce.db.schema import COUNT, IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, clock, fetch
from doonce.effects.tables import disposition, effect_attempt
from doonce.ownership import store as ownership
from doonce.ownership.model import Family
from doonce.work.model import TERMINAL, Scope, Shelf
from doonce.work.tables import work_item, work_lane_entry, work_ready

DEPTH_MAX = 10_000
"""Waiting items are counted up to here: the exact number of a larger backlog is worth no scan."""

UNKNOWN_MAX = 100
"""Unresolved attempts that are listed; the oldest first."""

SCOPES_MAX = 1_000
"""Installations whose oldest item is looked at."""


def _depth(dialect: Dialect) -> sa.Select[Any]:
    """Ready rows and items that wait behind others in a target lane, up to the bound."""
    family = sa.bindparam("family", type_=IDENTITY)
    bound = sa.bindparam("rows", type_=COUNT)
    rows = sa.select(work_ready.c.item_id).where(work_ready.c.family == family).limit(bound).subquery("rows")
    return sa.select(sa.func.count()).select_from(rows)


def _waiting_in_lanes(dialect: Dialect) -> sa.Select[Any]:
    bound = sa.bindparam("rows", type_=COUNT)
    rows = sa.select(work_lane_entry.c.item_id).distinct().limit(bound).subquery("rows")
    return sa.select(sa.func.count()).select_from(rows)


def _oldest(dialect: Dialect) -> sa.Select[Any]:
    """The earliest due time of each scope: one index seek a scope."""
    scopes = dialect.batch("scopes", org=IDENTITY, installation=IDENTITY)
    first = (
        sa.select(work_ready.c.due)
        .where(
            work_ready.c.family == sa.bindparam("family", type_=IDENTITY),
            work_ready.c.shelf == Shelf.OPEN.value,
            work_ready.c.org == scopes.c.org,
            work_ready.c.installation == scopes.c.installation,
        )
        .order_by(work_ready.c.due)
        .limit(1)
        .correlate(scopes.source)
        .scalar_subquery()
    )
    return sa.select(sa.func.min(first)).select_from(scopes.source)


def _unresolved(dialect: Dialect) -> sa.Select[Any]:
    """Attempts whose command waits because nobody knows, or because only an operator may send again."""
    looked_into = work_item.alias("looked_into")
    effect = work_item.alias("effect")
    waits = sa.or_(
        disposition.c.attempt_id.is_(None),
        sa.and_(
            disposition.c.verdict == Verdict.NO_EFFECT_PROVEN.value, disposition.c.successor_item_id.is_(None)
        ),
    )
    joined = (
        effect_attempt.join(
            looked_into,
            sa.and_(
                looked_into.c.subject_id == effect_attempt.c.id,
                looked_into.c.family == Family.RECONCILE.value,
            ),
        )
        .join(effect, effect.c.id == effect_attempt.c.work_id)
        .outerjoin(disposition, disposition.c.attempt_id == effect_attempt.c.id)
        .outerjoin(command_end, command_end.c.command_id == effect_attempt.c.subject_id)
    )
    ended = looked_into.c.state.in_([state.value for state in TERMINAL])
    return (
        sa.select(
            effect_attempt.c.id,
            effect_attempt.c.subject_id,
            effect_attempt.c.operation,
            effect_attempt.c.ended_at,
            effect_attempt.c.reason,
            sa.func.min(sa.case((ended, 1), else_=0)),
            effect.c.target_lane,
        )
        .select_from(joined)
        .where(
            effect_attempt.c.outcome.in_([Outcome.OUTCOME_UNKNOWN.value, Outcome.REPLAY_SAFE_RETRY.value]),
            command_end.c.command_id.is_(None),
            waits,
        )
        .group_by(
            effect_attempt.c.id,
            effect_attempt.c.subject_id,
            effect_attempt.c.operation,
            effect_attempt.c.ended_at,
            effect_attempt.c.reason,
            effect.c.target_lane,
        )
        .order_by(effect_attempt.c.ended_at, effect_attempt.c.id)
        .limit(UNKNOWN_MAX + 1)
    )


DEPTH = Statement("operate.depth", _depth)
WAITING_IN_LANES = Statement("operate.waiting_in_lanes", _waiting_in_lanes)
OLDEST = Statement("operate.oldest", _oldest)
UNRESOLVED = Statement("operate.unresolved", _unresolved)


@dataclass(frozen=True, slots=True)
class Counts:
    """What the status and the gauges are made of."""

    now_us: int
    families: tuple[FamilyStatus, ...]
    unresolved: tuple[Unresolved, ...]
    more: bool


def counts(scopes: Sequence[Scope]) -> Txn[Counts]:
    """Count what waits, in the scopes that are published; bounded whatever the backlog."""
    now_us = yield from clock()
    owners = {owner.family: owner for owner in (yield from ownership.read_all())}
    in_lanes = (yield from fetch(WAITING_IN_LANES, rows=DEPTH_MAX))[0][0]
    families: list[FamilyStatus] = []
    for family in Family:
        waiting = (yield from fetch(DEPTH, family=family.value, rows=DEPTH_MAX))[0][0]
        due = yield from fetch(
            OLDEST, family=family.value, scopes=[(scope.org, scope.installation) for scope in scopes[:SCOPES_MAX]]
        )
        oldest_us = due[0][0]
        owner = owners.get(family.value)
        depth = max(waiting, in_lanes) if family is Family.EFFECT else waiting
        families.append(
            FamilyStatus(
                family=family.value,
                owner=owner.deployment if owner is not None else "",
                epoch=owner.epoch if owner is not None else 0,
                ownership=owner.state.value if owner is not None else "nobody",
                waiting=depth,
                bounded=depth >= DEPTH_MAX,
                oldest_due_us=max(0, now_us - oldest_us) if oldest_us is not None else 0,
            )
        )
    rows = yield from fetch(UNRESOLVED)
    unresolved = tuple(
        Unresolved(
            attempt_id=row[0],
            command_id=row[1],
            operation=row[2],
            since_us=row[3] or 0,
            reason=row[4],
            needs_operator=bool(row[5]),
            lane=row[6],
        )
        for row in rows
    )
    return Counts(now_us, tuple(families), unresolved[:UNKNOWN_MAX], len(unresolved) > UNKNOWN_MAX)
