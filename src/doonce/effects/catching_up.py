"""Transactions of catching up: claims of pages to read, the beginning of a pass, and the one end of a page.

Each page is one work item, whose subject the page is, and so are its attempts. What a crash leaves:

| what is durable                                  | after a crash here                                            |
|--------------------------------------------------|---------------------------------------------------------------|
| the gap                                          | a pass over open gaps finds it, and begins its catch-up       |
| the catch-up and its first page's work           | the work is claimed                                           |
| the pass                                         | its window stays as it is: the next claimant reads that one   |
| the read, prepared or dispatched                 | ends as vanished; the page is asked for again                 |
| page, events with their work, cursor, the end of | the next page's work is claimed; after the last one, the gap  |
| the item: one transaction                        | is closed                                                     |

Lock order (PROTOCOL T4): ownership, the route's gaps, links, lanes, work items, the catch-up, attempts; then the
events, in order of their identities.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace

from doonce.base.records import Record
from doonce.db.schema import COUNT, IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, clock, fetch, lock_exclusive
from doonce.effects.attempts import attempts_of, lock_attempts
from doonce.effects.model import Attempt, Ending, Terms, next_step
from doonce.effects.reads import EndedRead, end_reads
from doonce.events import store as events
from doonce.events.store import NewEvent, Source
from doonce.ingress import catch_up_store as catch_ups
from doonce.ingress import gaps
from doonce.ingress.catch_ups import (
    CLOSED_BY,
    Again,
    CatchUp,
    NewPage,
    Overlap,
    begin,
    covered,
    judge,
    turned,
)
from doonce.ingress.gaps import ROUTE, Gap, lock_name, read_gap
from doonce.ingress.tables import ingress_gap, ingress_page
from doonce.ownership import store as ownership
from doonce.work import settle
from doonce.work import store as work
from doonce.work.model import Claimed, Event, Item, RetryPolicy, Settled, Settlement, State, live


class CatchingUp(Record, frozen=True):
    """A claimed page, and all that is known of its catch-up. `is_stored`: it has been read already."""

    claimed: Claimed
    catch_up: CatchUp | None
    gap: Gap | None
    open_attempt: Attempt | None
    is_stored: bool


class BeginPass(Record, frozen=True):
    """The claimed page is the first of a pass, unless one is under way."""

    claimed: Claimed
    deployment: str
    catch_up: CatchUp
    overlap: Overlap


class Turn(Record, frozen=True):
    """What an answer comes to. `cursor` names the next page, None where this one was the last.

    `pages_max`: of one pass. The page after this one, if there is one, gets `next_page_id` and its work
    `next_work_id`; both are made before the transaction (PROTOCOL T1).
    """

    page: NewPage
    events: tuple[NewEvent, ...]
    cursor: str | None
    overlap: Overlap
    pages_max: int
    next_page_id: str
    next_work_id: str


class TurnPage(Record, frozen=True):
    """The end of one claimed page: by an answer that holds one, by a failure, or without having been asked for.

    `attempt_id` and `ending` are of the read, or of what a vanished reader left open (`for_vanished`). `skip`: why
    nothing is read.
    """

    claimed: Claimed
    deployment: str
    catch_up: CatchUp
    policy: RetryPolicy
    attempt_id: str | None = None
    ending: Ending | None = None
    turn: Turn | None = None
    skip: str | None = None
    for_vanished: bool = False


class Turned(Record, frozen=True):
    """What became of it: how its item ended, and which of its events are new. `gap_closed`: all has been read."""

    settled: Settled
    event: Event | None = None
    failure_class: str | None = None
    summary: str = ""
    new: frozenset[str] = frozenset()
    gap_closed: bool = False


def _gaps(dialect: Dialect) -> sa.Select[Any]:
    wanted = dialect.batch("wanted", **dict.fromkeys(ROUTE, IDENTITY), sequence=COUNT)
    same = [ingress_gap.c[name] == wanted.c[name] for name in (*ROUTE, "sequence")]
    return sa.select(ingress_gap).join(wanted.source, sa.and_(*same))


def _stored(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(ingress_page.c.id).where(
        ingress_page.c.id.in_(sa.select(ids.c.id).select_from(ids.source))
    )


GAPS = Statement("catching_up.gaps", _gaps)
STORED = Statement("catching_up.stored", _stored)


def claim_catch_ups(request: work.ClaimRequest) -> Txn[list[CatchingUp]]:
    """Claim pages to read, with their catch-ups and gaps."""
    claimed = yield from work.claim(request)
    if not claimed:
        return []
    page_ids = [one.item.subject_id for one in claimed]
    known = yield from catch_ups.of_pages(page_ids)
    found = yield from _gaps_of(known.values())
    past = yield from attempts_of(page_ids)
    ids = [(page_id,) for page_id in sorted(set(page_ids))]
    stored = {row[0] for row in (yield from fetch(STORED, ids=ids))}
    return [_unit(one, known.get(one.item.subject_id), found, past, stored) for one in claimed]


def _unit(
    claimed: Claimed,
    catch_up: CatchUp | None,
    found: dict[tuple[Any, ...], Gap],
    past: dict[str, list[Attempt]],
    stored: set[str],
) -> CatchingUp:
    page_id = claimed.item.subject_id
    gap = found.get((*catch_up.route.parts, catch_up.sequence)) if catch_up is not None else None
    newest = past[page_id][-1] if past[page_id] else None
    open_attempt = newest if newest is not None and newest.outcome is None else None
    return CatchingUp(claimed, catch_up, gap, open_attempt, page_id in stored)


def _gaps_of(known: Iterable[CatchUp]) -> Txn[dict[tuple[Any, ...], Gap]]:
    wanted = sorted({(*one.route.parts, one.sequence) for one in known})
    rows = (yield from fetch(GAPS, wanted=wanted)) if wanted else []
    return {(*gap.route.parts, gap.sequence): gap for gap in map(read_gap, rows)}


def begin_pass(row: BeginPass) -> Txn[CatchUp | None]:
    """Fix the window of a pass and the losses that it is about, before its first read; None when the claim is stale.

    A pass that is under way stays as it is, so a rerun and the next claimant read the same window.
    """
    owners = yield from ownership.fence([row.claimed.item.family])
    yield from lock_exclusive([lock_name(row.catch_up.route)])
    items = yield from work.lock_claimed([row.claimed])
    catch_up = yield from catch_ups.locked(row.catch_up.id)
    now_us = yield from clock()
    gap = yield from gaps.find(row.catch_up.route, row.catch_up.sequence)
    owner = owners.get(row.claimed.item.family)
    if owner is None or not owner.lets_finish(row.deployment, row.claimed.epoch):
        return None
    if catch_up is None or gap is None or not live(items.get(row.claimed.item.id), row.claimed, now_us):
        return None
    begun = begin(catch_up, gap, row.overlap, now_us)
    if begun != catch_up:
        yield from catch_ups.move(begun, now_us)
    return begun


def turn_page(row: TurnPage) -> Txn[Turned]:
    """End a page's item with all that follows, under its live claim; a stale one changes nothing.

    With an answer: the page, its new events with their work, the cursor, the next page's work or the end of the gap.
    A rerun after an unknown commit answers as before.
    """
    claimed = row.claimed
    told = row.turn.events if row.turn is not None else ()
    owners = yield from ownership.fence([claimed.item.family])
    yield from lock_exclusive([lock_name(row.catch_up.route)])
    linked, held = yield from events.lock_for(told, [claimed])
    items = yield from work.lock_claimed([claimed])
    catch_up = yield from catch_ups.locked(row.catch_up.id)
    yield from lock_attempts([row.attempt_id] if row.attempt_id is not None else [])
    now_us = yield from clock()
    owner, item = owners.get(claimed.item.family), items.get(claimed.item.id)
    if (
        owner is None
        or not owner.lets_finish(row.deployment, claimed.epoch)
        or item is None
        or catch_up is None
    ):
        return Turned(Settled.STALE)
    if not live(item, claimed, now_us):
        if item.lease_token != claimed.token or item.state is State.PROCESSING:
            return Turned(Settled.STALE)
        new = yield from events.make([(_source(row), told)], now_us)
        return Turned(Settled.REPEATED, new=new)
    if row.attempt_id is not None and row.ending is not None:
        yield from end_reads([EndedRead(row.attempt_id, claimed.token, row.ending)], now_us)
    if row.turn is None:
        end = _unread(row, item, now_us)
        yield from settle.apply([end], items, held, now_us)
        return _told(end)
    new = yield from events.make([(_source(row), told)], now_us)
    yield from events.follow([made for made in told if made.id in new], held, linked, now_us)
    end, closed = yield from _turn(row.turn, catch_up, claimed, len(new), now_us)
    yield from settle.apply([end], items, held, now_us)
    return replace(_told(end), new=new, gap_closed=closed)


def _source(row: TurnPage) -> Source:
    return Source(row.claimed.item.subject_id, row.catch_up.route, row.catch_up.view_digest)


def _told(end: Settlement) -> Turned:
    return Turned(Settled.DONE, end.event, end.failure_class, end.summary or "")


def _unread(row: TurnPage, item: Item, now_us: int) -> Settlement:
    """How an item ends, or waits, of which no page was read."""
    claimed, ending = row.claimed, row.ending
    if row.skip is not None:
        return Settlement(claimed, Event.SKIP, summary=row.skip)
    if claimed.poison:
        return Settlement(
            claimed, Event.DIE, failure_class="poison", summary="its workers keep dying, even alone"
        )
    if ending is None:
        raise AssertionError("a page that was not read has a reason")
    if row.for_vanished:
        return Settlement(claimed, Event.DEFER, summary=ending.reason, for_vanished=True)
    step = next_step(item, ending, Terms(row.policy, wants_rejected_result=False), now_us)
    return Settlement(
        claimed,
        step.event,
        delay_us=step.delay_us,
        failed=step.failed,
        failure_class=step.failure_class,
        summary=ending.reason,
    )


def _turn(
    turn: Turn, before: CatchUp, claimed: Claimed, new_events: int, now_us: int
) -> Txn[tuple[Settlement, bool]]:
    """Store the page and move the cursor; how the item ends, and whether the gap is closed."""
    yield from catch_ups.store_page(before, turn.page, new_events, now_us)
    catch_up = turned(before, turn.page, new_events)
    summary = f"page {before.page_number} of pass {before.passes}: {turn.page.items} items, {new_events} new"
    gap = yield from gaps.find(before.route, before.sequence)
    dead = yield from _dead_end(turn, before)
    if dead is not None:
        yield from catch_ups.move(catch_up, now_us)
        return Settlement(claimed, Event.DIE, failure_class=dead[0], summary=dead[1]), False
    done = Settlement(claimed, Event.SUCCEED, summary=summary)
    if gap is None or gap.closed_at is not None or gap.catch_up_id != before.id:
        yield from catch_ups.move(covered(catch_up) if turn.cursor is None else catch_up, now_us)
        return replace(done, summary=f"{summary}; nothing more is needed of it"), False
    if turn.cursor is not None:
        following = replace(
            catch_up, page_id=turn.next_page_id, page_number=before.page_number + 1, page_cursor=turn.cursor
        )
        return (yield from _go_on(following, done, turn, 0, now_us)), False
    verdict = judge(catch_up, gap, turn.overlap, now_us)
    if isinstance(verdict, Again):
        following = replace(covered(catch_up), page_id=turn.next_page_id)
        again = replace(done, summary=f"{summary}; once more, since {verdict.reason}")
        return (yield from _go_on(following, again, turn, verdict.delay_us, now_us)), False
    yield from gaps.end(gap, CLOSED_BY, verdict.reason, now_us)
    yield from catch_ups.move(covered(catch_up), now_us)
    return replace(done, summary=f"{summary}; the gap is closed"), True


def _go_on(following: CatchUp, done: Settlement, turn: Turn, delay_us: int, now_us: int) -> Txn[Settlement]:
    yield from catch_ups.move(following, now_us)
    next_item = catch_ups.page_work(
        following, turn.next_work_id, after=done.claimed.item.id, delay_us=delay_us
    )
    yield from work.insert([next_item], now_us=now_us)
    return done


def _dead_end(turn: Turn, before: CatchUp) -> Txn[tuple[str, str] | None]:
    """Why the catch-up cannot go on after this page, which has been stored."""
    if turn.page.fault is not None:
        return "undecodable", turn.page.fault
    if turn.cursor is None:
        return None
    if (yield from catch_ups.was_read_with(before, turn.cursor)):
        return "cursor_repeated", f"page {before.page_number} leads back to one that was read in this pass"
    if before.page_number >= turn.pages_max:
        return "pages_exhausted", f"after {turn.pages_max} pages there is still another one"
    return None
