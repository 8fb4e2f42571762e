"""Reading whole objects for events: the claim, under whose authority, and the end with all that follows from it.

| what is durable                                   | after a crash here                                             |
|---------------------------------------------------|----------------------------------------------------------------|
| the event and this work, from its derivation      | claimed                                                        |
| the claim, a `prepared` attempt                   | the next claimant ends it as not sent, and tries again         |
| the mark; perhaps an answer that nobody kept      | the next claimant ends it as harmless to repeat, and reads anew|
| object, attempt's end, this work's end, and the   | the event is handed over, in the place that this work had      |
| work of handing over in its place: one transaction|                                                                |

Lock order (PROTOCOL T4): ownership, lanes, work items, attempts.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from doonce.base.records import Record
from doonce.commands.model import Pins
from doonce.db.transaction import Txn, clock
from doonce.effects.attempts import attempts_of, lock_attempts
from doonce.effects.finish import Finished
from doonce.effects.model import Attempt, Ending, NextStep, Terms, next_step
from doonce.effects.reads import EndedRead, end_reads
from doonce.events import objects
from doonce.events import store as events
from doonce.events.objects import ObjectRead
from doonce.events.store import StoredEvent
from doonce.links import store as links
from doonce.links.model import RemoteKey
from doonce.ownership import store as ownership
from doonce.principals import store as principals
from doonce.principals.model import PrincipalName
from doonce.wire.handoffs import fitted
from doonce.work import lanes as lane_store
from doonce.work import settle
from doonce.work import store as work
from doonce.work.lanes import Lane
from doonce.work.model import Claimed, Event, Item, NewItem, Settled, Settlement, State, live


class Reading(Record, frozen=True):
    """A claimed event whose object is to be read, and the attempt that a vanished claimant left open."""

    claimed: Claimed
    event: StoredEvent | None
    open_attempt: Attempt | None
    made_at: int
    """When this work was made: a binding generation that began later is not the one that it came under."""


def claim_hydrations(request: work.ClaimRequest) -> Txn[list[Reading]]:
    """Claim events whose objects are to be read, with their content, sealed."""
    claimed = yield from work.claim(request)
    if not claimed:
        return []
    ids = [one.item.subject_id for one in claimed]
    found = yield from events.load(ids)
    past = yield from attempts_of(one.item.subject_id for one in claimed if one.item.claims > 0)
    made = yield from work.made_at(one.item.id for one in claimed)
    return [
        Reading(
            one, found.get(one.item.subject_id), _open(past.get(one.item.subject_id, ())), made[one.item.id]
        )
        for one in claimed
    ]


def _open(attempts: Sequence[Attempt]) -> Attempt | None:
    return attempts[-1] if attempts and attempts[-1].outcome is None else None


class Authority(Record, frozen=True):
    """Under whom an object may be read now. `generation` is None while the principal is disconnected."""

    principal_id: str
    generation: int | None
    began_at: int
    link_id: str | None
    link_version: int | None

    def pins(self, view_digest: str, generation: int) -> Pins:
        """What the attempt pins; its mark rechecks each."""
        return Pins(view_digest, self.principal_id, generation, self.link_id, self.link_version)


def authority(name: PrincipalName, kind: str, remote_id: str) -> Txn[Authority | None]:
    """The principal of this name with its current generation, and the active link of the object; None: no principal.

    A plain read: the mark fences what is pinned from it (PROTOCOL D2).
    """
    found = (yield from principals.by_name([name])).get(name)
    if found is None:
        return None
    began = yield from principals.began(found.id, found.generation)
    key: RemoteKey = (found.org, found.installation, found.id, kind, remote_id)
    link = (yield from links.find_remote([key])).get(key)
    active = link if link is not None and link.current else None
    return Authority(
        principal_id=found.id,
        generation=found.current,
        began_at=began,
        link_id=None if active is None else active.id,
        link_version=None if active is None else active.version,
    )


class Hydrated(Record, frozen=True):
    """How the live claimant says that a reading ended; `object` is what was read, None where nothing was.

    `attempt_id` is None where none was prepared. `handing` is the work that follows an object: it gets this item's
    place. `for_vanished`: it only ends what a dead claimant left open.
    """

    claimed: Claimed
    deployment: str
    ending: Ending
    terms: Terms
    attempt_id: str | None = None
    object: ObjectRead | None = None
    handing: NewItem | None = None
    for_vanished: bool = False


def finish_hydrations(rows: Sequence[Hydrated]) -> Txn[list[tuple[Finished, NextStep | None]]]:
    """End readings: what was read is kept and its event goes on to be handed over, or the reading is tried again.

    One that has died keeps its place and holds its lane up, for `replay` or `release` (PROTOCOL L3). A stale claim
    changes nothing. A rerun after an unknown commit answers as before.
    """
    claims = [row.claimed for row in rows]
    owners = yield from ownership.fence(claimed.item.family for claimed in claims)
    held = yield from lane_store.lock(settle.lanes_of(claims))
    items = yield from work.lock_claimed(claims)
    attempts = yield from lock_attempts(row.attempt_id for row in rows if row.attempt_id is not None)
    now_us = yield from clock()
    results: list[tuple[Finished, NextStep | None]] = []
    steps: list[tuple[Hydrated, NextStep]] = []
    for row in rows:
        item, owner = items.get(row.claimed.item.id), owners.get(row.claimed.item.family)
        if item is not None and item.state is not State.PROCESSING and item.lease_token == row.claimed.token:
            results.append((Finished.REPEATED, None))
        elif (
            item is None
            or owner is None
            or not owner.lets_finish(row.deployment, row.claimed.epoch)
            or not live(item, row.claimed, now_us)
            or not _is_open(row, attempts)
        ):
            results.append((Finished.STALE, None))
        else:
            steps.append((row, _step(row, item, now_us)))
            results.append((Finished.DONE, steps[-1][1]))
    yield from _end(steps, items, held, now_us)
    return results


def _is_open(row: Hydrated, attempts: dict[str, Attempt]) -> bool:
    if row.attempt_id is None:
        return True
    attempt = attempts.get(row.attempt_id)
    return attempt is not None and attempt.outcome is None


def _step(row: Hydrated, item: Item, now_us: int) -> NextStep:
    if row.object is not None:
        return NextStep(row.ending.outcome, Event.SUCCEED)
    return next_step(item, row.ending, row.terms, now_us, poison=row.claimed.poison)


def _end(
    steps: Sequence[tuple[Hydrated, NextStep]], items: dict[str, Item], held: dict[str, Lane], now_us: int
) -> Txn[None]:
    if not steps:
        return
    ended = [
        EndedRead(row.attempt_id, row.claimed.token, row.ending)
        for row, _ in steps
        if row.attempt_id is not None
    ]
    yield from end_reads(ended, now_us)
    outcomes = yield from settle.apply([_settlement(row, step) for row, step in steps], items, held, now_us)
    if any(outcome is not Settled.DONE for outcome in outcomes):
        raise AssertionError("an item that was live under its lock refused its settlement")
    yield from objects.insert([row.object for row, _ in steps if row.object is not None])
    follow = [
        _placed(row.handing, items[row.claimed.item.id], held) for row, _ in steps if row.handing is not None
    ]
    yield from work.insert(follow, held, now_us=now_us)
    yield from lane_store.save(held.values())


def _settlement(row: Hydrated, step: NextStep) -> Settlement:
    return Settlement(
        claimed=row.claimed,
        event=step.event,
        delay_us=step.delay_us,
        failed=step.failed,
        failure_class=step.failure_class,
        summary=fitted(row.ending.reason),
        leaves_place=row.handing is not None,
        for_vanished=row.for_vanished,
    )


def _placed(handing: NewItem, item: Item, held: dict[str, Lane]) -> NewItem:
    """The work of handing over, in the place of the reading before it (PROTOCOL L2)."""
    if item.source_lane is None:
        return handing
    return replace(
        handing,
        source_lane=item.source_lane,
        source_policy=held[item.source_lane].policy,
        source_position=item.source_position,
    )
