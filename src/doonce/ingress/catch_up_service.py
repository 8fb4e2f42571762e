"""Beginning catch-ups: by a pass over open gaps, and when an operator asks.

A pass finds what has to be read, rather than the transaction that counts losses: that one may run twice and knows no
view, and a gap that is older than its binding's reconciliation is found as well.
"""

from __future__ import annotations

from typing import Final

import structlog

from doonce.base.errors import DoonceError, Invalid, MissingOrDenied
from doonce.base.ids import new_id
from doonce.base.records import Record
from doonce.catalog.compile import BindingView
from doonce.catalog.service import Views
from doonce.db.database import Database
from doonce.db.faults import DatabaseFault
from doonce.db.transaction import Txn, clock
from doonce.ingress.catch_up_store import (
    BEGINNING,
    NewCatchUp,
    OpenGap,
    Place,
    StartCatchUp,
    open_gap,
    start_catch_up,
    unattended,
)
from doonce.ingress.gaps import Gap
from doonce.ingress.receipts import RouteKey

log = structlog.get_logger("doonce.catch_up")

ROWS_MAX: Final = 100
"""Gaps that one pass looks at; the next one goes on after them."""


class Asked(Record, frozen=True):
    """Who wants something read, and why."""

    who: str
    why: str


class CatchUps:
    """Begins catch-ups of one database. Several processes may do so at once: a gap has one."""

    def __init__(self, database: Database, views: Views) -> None:
        self._database = database
        self._views = views
        self._after: Place = BEGINNING

    async def attend(self) -> int:
        """Begin the catch-ups of open gaps whose binding knows how; how many. Bounded: the next call goes on after."""
        found = await self._database.read(unattended, self._after, ROWS_MAX)
        self._after = (*found[-1].route.parts, found[-1].sequence) if len(found) == ROWS_MAX else BEGINNING
        begun = 0
        for gap in found:
            try:
                view = await self._reading_view(gap.route)
                new = _new(view)
                asked = StartCatchUp(gap.route, gap.sequence, new, first=True)
                started = await self._database.transact(start_catch_up, asked)
            except MissingOrDenied:
                continue  # an operator looks into it
            except (DoonceError, DatabaseFault) as error:
                log.warning("a gap could not be attended to", webhook=gap.route.webhook, error=str(error))
                continue
            begun += isinstance(started, Gap) and started.catch_up_id == new.id
        return begun

    async def again(self, route: RouteKey, sequence: int, asked: Asked) -> Gap:
        """Begin a catch-up over an open gap by the newest view: after one that is dead, or where none ever was.

        What earlier passes have covered is not read again. Raises `MissingOrDenied` where there is no such gap or no
        reconciliation, `Conflict` when the gap is closed or is being read.
        """
        new = _new(await self._reading_view(route), asked)
        return _or_raise(
            await self._database.transact(start_catch_up, StartCatchUp(route, sequence, new, first=False))
        )

    async def over(self, route: RouteKey, since_us: int, until_us: int, asked: Asked) -> Gap:
        """Open an operator's gap over a time that has passed, and begin its catch-up.

        Raises `Invalid` for a time that is none or to come, `MissingOrDenied` where there is no reconciliation,
        `Conflict` while another operator's gap of the route is open.
        """
        if not 0 <= since_us < until_us:
            raise Invalid("the time to read begins before it ends", hint="give since, then until")
        now_us = await self._database.read(_now)
        if until_us > now_us:
            raise Invalid(
                "the time to read is not over yet", hint="give an end that has passed; leave it out for now"
            )
        new = _new(await self._reading_view(route), asked)
        return _or_raise(await self._database.transact(open_gap, OpenGap(route, since_us, until_us, new)))

    async def now_us(self) -> int:
        """The database's time."""
        return await self._database.read(_now)

    async def _reading_view(self, route: RouteKey) -> BindingView:
        """The newest view of a route's scope, if it declares a reconciliation for it; raises `MissingOrDenied`."""
        view = await self._views.latest(route.org, route.installation, route.capability)
        webhook = (view.document.webhooks or {}).get(route.webhook)
        if webhook is None or webhook.reconciliation is None:
            raise MissingOrDenied(
                "no published binding has a reconciliation for this route",
                hint="compare with the provider yourself, then close the gap",
            )
        return view


def _now() -> Txn[int]:
    return (yield from clock())


def _new(view: BindingView, asked: Asked | None = None) -> NewCatchUp:
    return NewCatchUp(
        new_id("ctu"),
        new_id("pag"),
        new_id("wrk"),
        view.digest,
        None if asked is None else asked.who,
        None if asked is None else asked.why,
    )


def _or_raise(found: Gap | DoonceError) -> Gap:
    if isinstance(found, DoonceError):
        raise found
    return found
