"""Gaps as an operator sees and ends them: list, close, read again, and read a time that nobody counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doonce.app.engine import Engine
from doonce.app.operate.gap_model import CatchUpView, GapView
from doonce.app.operate.store import by, items_of, rows_of
from doonce.base.errors import DoonceError, Invalid, MissingOrDenied
from doonce.base.limits import LIMITS, check_text
from doonce.base.records import Record
from doonce.db.transaction import Txn
from doonce.ingress.catch_up_service import Asked
from doonce.ingress.gaps import OPEN_GAPS, CloseGap, Gap, open_gaps
from doonce.ingress.gaps import close as close_gap
from doonce.ingress.receipts import RouteKey
from doonce.ingress.tables import ingress_catch_up
from doonce.work.model import Scope, State

CATCH_UPS = by(ingress_catch_up, "id", "id")

STATES: dict[State, str] = {
    State.PENDING: "waiting",
    State.PROCESSING: "being read",
    State.RETRY: "waiting",
    State.SUCCEEDED: "read",
    State.SKIPPED: "not needed",
    State.DEAD: "dead",
    State.CANCELLED: "cancelled",
}


class Reconcile(Record, frozen=True):
    """What is to be read, and who wants it: an open gap by its number, or a time, until now where no end is given."""

    route: RouteKey
    who: str
    reason: str
    sequence: int | None = None
    since_us: int | None = None
    until_us: int | None = None


class GapOperator:
    """The operators' side of gaps. `scope` None is an operator of the whole deployment."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def gaps(self, scope: Scope | None = None) -> tuple[GapView, ...]:
        """Open gaps of deliveries, the oldest first; bounded."""
        found = await self._engine.database.read(open_gaps, scope)
        return await self._engine.database.read(gap_views, found)

    async def close_gap(self, asked: CloseGap, scope: Scope | None = None) -> GapView:
        """Record that the losses of a gap were looked into; once, for ever (PROTOCOL I4).

        Raises `MissingOrDenied`, `Stale` when more was lost meanwhile, `Conflict` when somebody else has closed it.
        """
        _check(asked.route, asked.who, asked.reason, scope)
        closed = await self._engine.database.transact(close_gap, asked)
        if isinstance(closed, DoonceError):
            raise closed
        return await self._view(closed)

    async def reconcile_gap(self, asked: Reconcile, scope: Scope | None = None) -> GapView:
        """Have the provider read for a gap once more, or for a time in which nobody could count (PROTOCOL I4).

        The gap that it returns closes by itself when all of it has been read. Raises `Invalid` unless it names one of
        the two, `MissingOrDenied` for no such gap and for a route without a reconciliation, `Conflict` while the gap is
        being read, is closed, or another operator's is open there.
        """
        _check(asked.route, asked.who, asked.reason, scope)
        if (asked.sequence is None) == (asked.since_us is None):
            raise Invalid(
                "what is to be read is a gap by its number, or a time",
                hint="give sequence, or since and until",
            )
        word = Asked(asked.who, asked.reason)
        catch_ups = self._engine.catch_ups
        if asked.sequence is not None:
            if asked.until_us is not None:
                raise Invalid(
                    "a gap has its own end", hint="leave until out, or give since instead of sequence"
                )
            return await self._view(await catch_ups.again(asked.route, asked.sequence, word))
        until_us = asked.until_us if asked.until_us is not None else await catch_ups.now_us()
        return await self._view(await catch_ups.over(asked.route, asked.since_us or 0, until_us, word))

    async def _view(self, gap: Gap) -> GapView:
        (view,) = await self._engine.database.read(gap_views, [gap])
        return view


def _check(route: RouteKey, who: str, reason: str, scope: Scope | None) -> None:
    check_text("reason", reason, LIMITS.reason_bytes_max)
    check_text("who", who, LIMITS.name_bytes_max)
    if scope is not None and (route.org, route.installation) != (scope.org, scope.installation):
        raise MissingOrDenied("there is no such gap", hint=OPEN_GAPS)


def gap_views(gaps: Sequence[Gap]) -> Txn[tuple[GapView, ...]]:
    """Gaps as they are shown, with how far each has been read."""
    rows = yield from rows_of(ingress_catch_up, CATCH_UPS, [gap.catch_up_id for gap in gaps])
    known = {row["id"]: row for row in rows}
    items = yield from items_of(row["page_id"] for row in rows)
    newest = {item["subject_id"]: item for item in items}
    return tuple(_gap_view(gap, _catch_up_view(known.get(gap.catch_up_id or ""), newest)) for gap in gaps)


def _catch_up_view(
    row: Mapping[str, Any] | None, newest: Mapping[str, Mapping[str, Any]]
) -> CatchUpView | None:
    item = None if row is None else newest.get(row["page_id"])
    if row is None or item is None:
        return None
    state = State(item["state"])
    reason = ": ".join(part for part in (item["failure_class"], item["summary"]) if part)
    return CatchUpView(
        catch_up_id=row["id"],
        work_id=item["id"],
        state=STATES[state],
        reason=reason,
        dead=state is State.DEAD,
        pages=row["pages"],
        items=row["items"],
        events=row["events"],
    )


def _gap_view(gap: Gap, catch_up: CatchUpView | None) -> GapView:
    return GapView(
        org=gap.route.org,
        installation=gap.route.installation,
        capability=gap.route.capability,
        webhook=gap.route.webhook,
        sequence=gap.sequence,
        losses=gap.losses,
        opened_at_us=gap.opened_at,
        last_at_us=gap.last_at,
        closed_at_us=gap.closed_at,
        closed_by=gap.closed_by,
        reason=gap.reason,
        cause=gap.cause.value,
        asked_by=gap.asked_by,
        asked_why=gap.asked_why,
        catch_up=catch_up,
    )
