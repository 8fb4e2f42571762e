"""How a deployment stands, in bounded reads: depth, age and owner of each family, and what nobody knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from doonce.app.operate.model import FamilyStatus, RetentionStatus, Unresolved
from doonce.catalog.model import Outcome, Verdict
from doonce.commands.tables import command_end
from doonce.db.schema import COUNT, IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, clock, fetch
from doonce.effects.retire import ITEMS
from doonce.effects.tables import disposition, effect_attempt
from doonce.ownership import store as ownership
from doonce.ownership.model import Family
from doonce.work import history
from doonce.work.model import ENGINE, TERMINAL, Scope, Shelf
from doonce.work.tables import work_item, work_lane_entry, work_ready

DEPTH_MAX = 10_000
"""Waiting items are counted up to here: the exact number of a larger backlog is worth no scan."""

UNKNOWN_MAX = 100
"""Unresolved attempts that are listed; the oldest first."""

RECONCILE: sa.ColumnElement[str] = sa.literal_column(f"'{Family.RECONCILE.value}'", IDENTITY)
"""A literal, so that a prepared statement can use the index of the reconciliations alone."""

SCOPES_MAX = 1_000
"""Installations whose oldest item is looked at."""


def _depth(_: Dialect, *, scoped: bool, newer: bool = False) -> sa.Select[Any]:
    """Ready rows of a family, up to the bound; `newer`: that need a later engine; `scoped`: of an installation."""
    rows = sa.select(work_ready.c.item_id).where(
        work_ready.c.family == sa.bindparam("family", type_=IDENTITY)
    )
    if newer:
        rows = rows.where(work_ready.c.shelf > sa.literal_column(str(max(ENGINE, Shelf.ALONE.value))))
    elif scoped:
        rows = rows.where(work_ready.c.shelf == Shelf.OPEN.value)
    if scoped:
        rows = rows.where(
            work_ready.c.org == sa.bindparam("the_org", type_=IDENTITY),
            work_ready.c.installation == sa.bindparam("the_installation", type_=IDENTITY),
        )
    bounded = rows.limit(sa.bindparam("rows", type_=COUNT)).subquery("bounded")
    return sa.select(sa.func.count()).select_from(bounded)


def _waiting_in_lanes(dialect: Dialect) -> sa.Select[Any]:
    """Items that have a place in a lane, up to the bound: those behind a head have no ready row."""
    bound = sa.bindparam("entries", type_=COUNT)
    rows = sa.select(work_lane_entry.c.item_id).limit(bound).subquery("bounded")
    return sa.select(sa.func.count(rows.c.item_id.distinct()))


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


def _unresolved(dialect: Dialect, *, scoped: bool) -> sa.Select[Any]:
    """Attempts whose command waits because nobody knows, or because only an operator may send again."""
    looked_into, effect = work_item.alias("looked_into"), work_item.alias("effect")
    attempt = effect_attempt
    only_an_operator = sa.and_(
        disposition.c.verdict == Verdict.NO_EFFECT_PROVEN.value, disposition.c.successor_item_id.is_(None)
    )
    joined = (
        looked_into.join(attempt, attempt.c.id == looked_into.c.subject_id)
        .join(effect, effect.c.id == attempt.c.work_id)
        .outerjoin(disposition, disposition.c.attempt_id == attempt.c.id)
        .outerjoin(command_end, command_end.c.command_id == attempt.c.subject_id)
    )
    ended = looked_into.c.state.in_([state.value for state in sorted(TERMINAL)])
    shown = (
        attempt.c.id, attempt.c.subject_id, attempt.c.operation, attempt.c.ended_at, attempt.c.reason,
        effect.c.target_lane,
    )  # fmt: skip
    rows = (
        sa.select(*shown, sa.func.min(sa.case((ended, 1), else_=0)))
        .select_from(joined)
        .where(
            looked_into.c.family == RECONCILE,
            attempt.c.outcome.in_([Outcome.OUTCOME_UNKNOWN.value, Outcome.REPLAY_SAFE_RETRY.value]),
            command_end.c.command_id.is_(None),
            sa.or_(disposition.c.attempt_id.is_(None), only_an_operator),
        )
        .group_by(*shown)
        .order_by(attempt.c.ended_at, attempt.c.id)
        .limit(UNKNOWN_MAX + 1)
    )
    if scoped:
        rows = rows.where(
            effect.c.org == sa.bindparam("the_org", type_=IDENTITY),
            effect.c.installation == sa.bindparam("the_installation", type_=IDENTITY),
        )
    return rows


DEPTH = Statement("operate.depth", lambda dialect: _depth(dialect, scoped=False))
DEPTH_IN_SCOPE = Statement("operate.depth_in_scope", lambda dialect: _depth(dialect, scoped=True))
NEWER = Statement("operate.newer", lambda dialect: _depth(dialect, scoped=False, newer=True))
NEWER_IN_SCOPE = Statement("operate.newer_in_scope", lambda dialect: _depth(dialect, scoped=True, newer=True))
WAITING_IN_LANES = Statement("operate.waiting_in_lanes", _waiting_in_lanes)
OLDEST = Statement("operate.oldest", _oldest)
UNRESOLVED = Statement("operate.unresolved", lambda dialect: _unresolved(dialect, scoped=False))
UNRESOLVED_IN_SCOPE = Statement(
    "operate.unresolved_in_scope", lambda dialect: _unresolved(dialect, scoped=True)
)


@dataclass(frozen=True, slots=True)
class Counts:
    """What the status and the gauges are made of."""

    now_us: int
    families: tuple[FamilyStatus, ...]
    unresolved: tuple[Unresolved, ...]
    more: bool


def counts(scopes: Sequence[Scope], scope: Scope | None = None) -> Txn[Counts]:
    """Count what waits and what nobody knows, in one installation or in all that are published; bounded."""
    now_us = yield from clock()
    owners = {owner.family: owner for owner in (yield from ownership.read_all())}
    looked_at = [scope] if scope is not None else list(scopes[:SCOPES_MAX])
    families: list[FamilyStatus] = []
    for family in Family:
        waiting = yield from _waiting(family, scope)
        due = yield from fetch(
            OLDEST, family=family.value, scopes=[(one.org, one.installation) for one in looked_at]
        )
        oldest_us = due[0][0]
        newer = yield from _counted(NEWER, NEWER_IN_SCOPE, family, scope)
        owner = owners.get(family.value)
        families.append(
            FamilyStatus(
                family=family.value,
                owner=owner.deployment if owner is not None else "",
                epoch=owner.epoch if owner is not None else 0,
                ownership=owner.state.value if owner is not None else "nobody",
                waiting=waiting,
                bounded=waiting >= DEPTH_MAX,
                newer=newer,
                oldest_due_us=max(0, now_us - oldest_us) if oldest_us is not None else 0,
            )
        )
    unresolved = yield from _listed(scope)
    return Counts(now_us, tuple(families), unresolved[:UNKNOWN_MAX], len(unresolved) > UNKNOWN_MAX)


def retention(enabled: bool) -> Txn[RetentionStatus]:
    """How the walk over ended work stands: one row."""
    now_us = yield from clock()
    walk = yield from history.read_walk(ITEMS)
    if walk is None:
        return RetentionStatus(enabled=enabled, moved=0, overdue_us=0, walked_us=None)
    since, walked = walk.overdue_since, walk.walked_at
    return RetentionStatus(
        enabled=enabled,
        moved=walk.moved,
        overdue_us=max(0, now_us - since) if since is not None else 0,
        walked_us=max(0, now_us - walked) if walked is not None else None,
    )


def _waiting(family: Family, scope: Scope | None) -> Txn[int]:
    ready = yield from _counted(DEPTH, DEPTH_IN_SCOPE, family, scope)
    if family is not Family.EFFECT or scope is not None:
        return ready
    return max(ready, int((yield from fetch(WAITING_IN_LANES, entries=2 * DEPTH_MAX))[0][0]))


def _counted(anywhere: Statement, inside: Statement, family: Family, scope: Scope | None) -> Txn[int]:
    if scope is None:
        rows = yield from fetch(anywhere, family=family.value, rows=DEPTH_MAX)
    else:
        rows = yield from fetch(
            inside,
            family=family.value,
            the_org=scope.org,
            the_installation=scope.installation,
            rows=DEPTH_MAX,
        )
    return int(rows[0][0])


def _listed(scope: Scope | None) -> Txn[tuple[Unresolved, ...]]:
    if scope is None:
        rows = yield from fetch(UNRESOLVED)
    else:
        rows = yield from fetch(UNRESOLVED_IN_SCOPE, the_org=scope.org, the_installation=scope.installation)
    return tuple(
        Unresolved(
            attempt_id=row[0],
            command_id=row[1],
            operation=row[2],
            since_us=row[3] or 0,
            reason=row[4],
            lane=row[5],
            needs_operator=bool(row[6]),
        )
        for row in rows
    )
