"""Transactions over catch-ups and their pages. Whoever changes one holds its route's lock, as who counts losses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import sqlalchemy as sa

from doonce.base.errors import Conflict, MissingOrDenied
from doonce.base.records import Record
from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS, TEXT
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, clock, fetch, insert_many, lock_exclusive
from doonce.ingress import gaps
from doonce.ingress.catch_ups import CatchUp, NewPage, cursor_digest
from doonce.ingress.gaps import OPEN_GAPS, ROUTE, Cause, Gap, lock_name, read_gap
from doonce.ingress.receipts import RouteKey
from doonce.ingress.tables import ingress_catch_up, ingress_gap, ingress_page
from doonce.ownership.model import Family
from doonce.work import store as work
from doonce.work.model import TERMINAL, NewItem, Scope
from doonce.work.tables import work_item

CATCH_UP_COLUMNS = tuple(column.name for column in ingress_catch_up.c)
PAGE_COLUMNS = tuple(column.name for column in ingress_page.c)
GAP_COLUMNS = tuple(column.name for column in ingress_gap.c)
MOVED: Final[dict[str, sa.types.TypeEngine[Any]]] = {
    "covered_since": MICROSECONDS, "covered_until": MICROSECONDS, "passes": COUNT, "from_at": MICROSECONDS,
    "since_at": MICROSECONDS, "until_at": MICROSECONDS, "losses": COUNT, "page_id": IDENTITY, "page_number": COUNT,
    "page_cursor": TEXT, "pages": COUNT, "items": COUNT, "events": COUNT,
}  # fmt: skip
"""What of a catch-up moves on; everything else stays as it began."""

ENDED: Final = sorted(state.value for state in TERMINAL)


class NewCatchUp(Record, frozen=True):
    """A catch-up to begin over a gap, with its first page's work. Ids are made before the transaction (PROTOCOL T1)."""

    id: str
    page_id: str
    work_id: str
    view_digest: str
    asked_by: str | None = None
    asked_why: str | None = None


class StartCatchUp(Record, frozen=True):
    """Begin a catch-up over an open gap. `first`: only where none ever was."""

    route: RouteKey
    sequence: int
    new: NewCatchUp
    first: bool


class OpenGap(Record, frozen=True):
    """An operator's gap: a time in which deliveries may be missing that nobody could count."""

    route: RouteKey
    since_us: int
    until_us: int
    new: NewCatchUp


def _of_pages(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(ingress_catch_up).where(
        ingress_catch_up.c.page_id.in_(sa.select(ids.c.id).select_from(ids.source))
    )


def _by_id(dialect: Dialect) -> sa.Select[Any]:
    return (
        sa.select(ingress_catch_up)
        .where(ingress_catch_up.c.id == sa.bindparam("the_id", type_=IDENTITY))
        .with_for_update()
    )


def _move(dialect: Dialect) -> sa.Update:
    values: dict[str, Any] = {name: sa.bindparam(f"new_{name}", type_=kind) for name, kind in MOVED.items()}
    return (
        sa.update(ingress_catch_up)
        .where(ingress_catch_up.c.id == sa.bindparam("the_id", type_=IDENTITY))
        .values(updated_at=sa.bindparam("now_us", type_=MICROSECONDS), **values)
    )


def _attach(dialect: Dialect) -> sa.Update:
    same = [ingress_gap.c[name] == sa.bindparam(f"the_{name}", type_=IDENTITY) for name in ROUTE]
    return (
        sa.update(ingress_gap)
        .where(*same, ingress_gap.c.sequence == sa.bindparam("the_sequence", type_=COUNT))
        .values(catch_up_id=sa.bindparam("new_catch_up", type_=IDENTITY))
    )


def _of_route(dialect: Dialect) -> sa.Select[Any]:
    same = [ingress_gap.c[name] == sa.bindparam(f"the_{name}", type_=IDENTITY) for name in ROUTE]
    return sa.select(ingress_gap).where(*same).order_by(ingress_gap.c.sequence)


def _unattended(dialect: Dialect) -> sa.Select[Any]:
    place = [ingress_gap.c[name] for name in (*ROUTE, "sequence")]
    after = [sa.bindparam(f"after_{name}", type_=IDENTITY) for name in ROUTE]
    after_sequence: Any = sa.bindparam("after_sequence", type_=COUNT)
    return (
        sa.select(ingress_gap)
        .where(
            ingress_gap.c.closed_at.is_(None),
            ingress_gap.c.catch_up_id.is_(None),
            sa.tuple_(*place) > sa.tuple_(*after, after_sequence),
        )
        .order_by(*place)
        .limit(sa.bindparam("rows", type_=COUNT))
    )


def _live_work(dialect: Dialect) -> sa.Select[Any]:
    return sa.select(work_item.c.id).where(
        work_item.c.subject_id == sa.bindparam("subject", type_=IDENTITY), work_item.c.state.not_in(ENDED)
    )


def _read_with(dialect: Dialect) -> sa.Select[Any]:
    return sa.select(ingress_page.c.id).where(
        ingress_page.c.catch_up_id == sa.bindparam("the_id", type_=IDENTITY),
        ingress_page.c["pass"] == sa.bindparam("the_pass", type_=COUNT),
        ingress_page.c.cursor_digest == sa.bindparam("the_cursor", type_=IDENTITY),
    )


OF_PAGES = Statement("catch_ups.of_pages", _of_pages)
LOCK = Statement("catch_ups.lock", _by_id)
MOVE = Statement("catch_ups.move", _move)
ATTACH = Statement("catch_ups.attach", _attach)
OF_ROUTE = Statement("catch_ups.gaps_of_route", _of_route)
UNATTENDED = Statement("catch_ups.unattended", _unattended)
LIVE_WORK = Statement("catch_ups.live_work", _live_work)
READ_WITH = Statement("catch_ups.read_with", _read_with)

Place = tuple[str, str, str, str, int]
BEGINNING: Final[Place] = ("", "", "", "", 0)


def unattended(after: Place, rows_max: int) -> Txn[list[Gap]]:
    """Open gaps over which there never was a catch-up, in order of their routes, after one of them; bounded."""
    named = {f"after_{name}": part for name, part in zip((*ROUTE, "sequence"), after, strict=True)}
    return [read_gap(row) for row in (yield from fetch(UNATTENDED, rows=rows_max, **named))]


def start_catch_up(asked: StartCatchUp) -> Txn[Gap | MissingOrDenied | Conflict]:
    """Begin a catch-up over an open gap, with its work; at most one is under way over each. Refusals are values.

    A rerun after an unknown commit finds its own.
    """
    yield from lock_exclusive([lock_name(asked.route)])
    now_us = yield from clock()
    gap = yield from gaps.find(asked.route, asked.sequence)
    if gap is None:
        return MissingOrDenied("there is no such gap", hint=OPEN_GAPS)
    if gap.catch_up_id == asked.new.id:
        return gap
    if gap.closed_at is not None:
        return Conflict(f"the gap has been closed by {gap.closed_by}: {gap.reason}")
    earlier = yield from locked(gap.catch_up_id)
    if earlier is not None:
        if asked.first:
            return gap
        live = yield from fetch(LIVE_WORK, subject=earlier.page_id)
        if live:
            return Conflict(
                f"{earlier.id} is reading this gap already", hint="`doonce show` says how far it has come"
            )
    return (yield from _begin(gap, asked.new, earlier, now_us))


def open_gap(asked: OpenGap) -> Txn[Gap | Conflict]:
    """Open an operator's gap and begin its catch-up; at most one such gap is open at a route.

    A rerun after an unknown commit finds its own.
    """
    yield from lock_exclusive([lock_name(asked.route)])
    now_us = yield from clock()
    named = {f"the_{name}": part for name, part in zip(ROUTE, asked.route.parts, strict=True)}
    known = [read_gap(row) for row in (yield from fetch(OF_ROUTE, **named))]
    for gap in known:
        if gap.catch_up_id == asked.new.id:
            return gap
        if gap.closed_at is None and gap.cause is Cause.OPERATOR:
            return Conflict(
                f"gap {gap.sequence} of this route is open for {gap.asked_by}: {gap.asked_why}",
                hint="wait for its end, start its reading again by its number, or close it",
            )
    sequence = max((gap.sequence for gap in known), default=0) + 1
    new = asked.new
    gap = Gap(
        asked.route, sequence, 0, asked.since_us, asked.until_us, None, None, None, Cause.OPERATOR, new.asked_by,
        new.asked_why, None,
    )  # fmt: skip
    row = (
        *asked.route.parts, sequence, 0, asked.since_us, asked.until_us, None, None, None, Cause.OPERATOR.value,
        new.asked_by, new.asked_why, None,
    )  # fmt: skip
    yield from insert_many(ingress_gap, GAP_COLUMNS, [row])
    return (yield from _begin(gap, new, None, now_us))


def _begin(gap: Gap, new: NewCatchUp, earlier: CatchUp | None, now_us: int) -> Txn[Gap]:
    """A catch-up over a gap; what an earlier one has covered is not read again."""
    catch_up = CatchUp(
        id=new.id,
        route=gap.route,
        sequence=gap.sequence,
        view_digest=new.view_digest,
        asked_by=new.asked_by,
        asked_why=new.asked_why,
        covered_since=earlier.covered_since if earlier is not None else None,
        covered_until=earlier.covered_until if earlier is not None else None,
        passes=0,
        from_at=None,
        since_at=None,
        until_at=None,
        losses=None,
        page_id=new.page_id,
        page_number=0,
        page_cursor=None,
        pages=0,
        items=0,
        events=0,
    )
    values = {
        name: getattr(catch_up, name) for name in ("id", "sequence", "view_digest", "asked_by", "asked_why")
    }
    values |= dict(zip(ROUTE, gap.route.parts, strict=True)) | {"created_at": now_us, "updated_at": now_us}
    values |= {name: getattr(catch_up, name) for name in MOVED}
    yield from insert_many(
        ingress_catch_up, CATCH_UP_COLUMNS, [tuple(values[name] for name in CATCH_UP_COLUMNS)]
    )
    named = {f"the_{name}": part for name, part in zip(ROUTE, gap.route.parts, strict=True)}
    yield from fetch(ATTACH, **named, the_sequence=gap.sequence, new_catch_up=new.id)
    yield from work.insert([page_work(catch_up, new.work_id)], now_us=now_us)
    return (yield from gaps.find(gap.route, gap.sequence)) or gap


def page_work(catch_up: CatchUp, work_id: str, *, after: str | None = None, delay_us: int = 0) -> NewItem:
    """The work of reading a catch-up's next page; `after` is the work item of the page before."""
    return NewItem(
        id=work_id,
        family=Family.CATCH_UP.value,
        scope=Scope(catch_up.route.org, catch_up.route.installation),
        subject_kind="page",
        subject_id=catch_up.page_id,
        view_digest=catch_up.view_digest,
        predecessor=after,
        delay_us=delay_us,
    )


def of_pages(page_ids: Iterable[str]) -> Txn[dict[str, CatchUp]]:
    """The catch-ups that are to read these pages next, by the page, without a lock."""
    wanted = [(page_id,) for page_id in sorted(set(page_ids))]
    rows = (yield from fetch(OF_PAGES, ids=wanted)) if wanted else []
    return {row["page_id"]: read_catch_up(row) for row in rows}


def locked(catch_up_id: str | None) -> Txn[CatchUp | None]:
    """A catch-up as it stands, held until the end of the transaction."""
    rows = [] if catch_up_id is None else (yield from fetch(LOCK, the_id=catch_up_id))
    return read_catch_up(rows[0]) if rows else None


def move(catch_up: CatchUp, now_us: int) -> Txn[None]:
    """Write how far a catch-up has come, under its lock."""
    values = {f"new_{name}": getattr(catch_up, name) for name in MOVED}
    yield from fetch(MOVE, the_id=catch_up.id, now_us=now_us, **values)


def was_read_with(catch_up: CatchUp, cursor: str) -> Txn[bool]:
    """Whether a page of the pass under way was asked for with this cursor: to ask again would never end."""
    digest = cursor_digest(cursor)
    rows = yield from fetch(READ_WITH, the_id=catch_up.id, the_pass=catch_up.passes, the_cursor=digest)
    return bool(rows)


def store_page(catch_up: CatchUp, page: NewPage, new_events: int, now_us: int) -> Txn[None]:
    """Store the page that a catch-up was to read next."""
    row = (
        page.id, *catch_up.route.parts, catch_up.id, catch_up.passes, catch_up.page_number,
        cursor_digest(catch_up.page_cursor), catch_up.view_digest, page.attempt_id, page.items, new_events, page.fault,
        page.body_digest, page.body_bytes, page.sealed.raw, page.sealed.key_id, now_us,
    )  # fmt: skip
    yield from insert_many(ingress_page, PAGE_COLUMNS, [row])


def read_catch_up(row: Row) -> CatchUp:
    """The catch-up of a row."""
    route = RouteKey(row["org"], row["installation"], row["capability"], row["webhook"])
    names = ("id", "sequence", "view_digest", "asked_by", "asked_why", *MOVED)
    return CatchUp(route=route, **{name: row[name] for name in names})
