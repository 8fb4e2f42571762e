"""WorkItem: its states, what moves it, and the decisions a claim and a finish take. Pure.

| from                | event      | to          | requires                                             |
|---------------------|------------|-------------|------------------------------------------------------|
| pending, retry      | CLAIM      | processing  | due, lanes free, active owner, exact scope           |
| processing          | RECLAIM    | processing  | `lease_until < now`; a new token                     |
| processing          | RENEW      | processing  | live token, epoch and lease; strictly advances       |
| processing          | HAND_BACK  | pending     | live token; undoes the claim's count                 |
| processing          | RETRY      | retry       | live token; a failure or an attempt was counted      |
| processing          | DEFER      | retry       | live token; counts a deferral, no attempt            |
| processing          | SUCCEED    | succeeded   | live token                                           |
| processing          | SKIP       | skipped     | live token                                           |
| processing          | DIE        | dead        | live token                                           |
| processing          | ACK_CANCEL | cancelled   | live token, a request, nothing dispatched            |
| pending, retry      | CANCEL     | cancelled   | -                                                    |

Terminal rows never reopen: a replay is a new row that names the old one.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from doonce.base.records import Record


class State(str, Enum):
    """Where a work item stands."""

    PENDING = "pending"
    PROCESSING = "processing"
    RETRY = "retry"
    SUCCEEDED = "succeeded"
    SKIPPED = "skipped"
    DEAD = "dead"
    CANCELLED = "cancelled"


TERMINAL = frozenset({State.SUCCEEDED, State.SKIPPED, State.DEAD, State.CANCELLED})
WAITING = frozenset({State.PENDING, State.RETRY})


class Event(str, Enum):
    """What may happen to a work item."""

    CLAIM = "claim"
    RECLAIM = "reclaim"
    RENEW = "renew"
    HAND_BACK = "hand_back"
    RETRY = "retry"
    DEFER = "defer"
    SUCCEED = "succeed"
    SKIP = "skip"
    DIE = "die"
    ACK_CANCEL = "ack_cancel"
    CANCEL = "cancel"


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.PENDING, Event.CLAIM): State.PROCESSING,
    (State.RETRY, Event.CLAIM): State.PROCESSING,
    (State.PROCESSING, Event.RECLAIM): State.PROCESSING,
    (State.PROCESSING, Event.RENEW): State.PROCESSING,
    (State.PROCESSING, Event.HAND_BACK): State.PENDING,
    (State.PROCESSING, Event.RETRY): State.RETRY,
    (State.PROCESSING, Event.DEFER): State.RETRY,
    (State.PROCESSING, Event.SUCCEED): State.SUCCEEDED,
    (State.PROCESSING, Event.SKIP): State.SKIPPED,
    (State.PROCESSING, Event.DIE): State.DEAD,
    (State.PROCESSING, Event.ACK_CANCEL): State.CANCELLED,
    (State.PENDING, Event.CANCEL): State.CANCELLED,
    (State.RETRY, Event.CANCEL): State.CANCELLED,
}

SETTLING = frozenset(
    {Event.HAND_BACK, Event.RETRY, Event.DEFER, Event.SUCCEED, Event.SKIP, Event.DIE, Event.ACK_CANCEL}
)
"""Events by which a live claimant gives up an item."""


class LanePolicy(str, Enum):
    """What a dead or unknown head of a source lane does to the items behind it (PROTOCOL L3)."""

    BLOCK = "block"
    PASS = "pass"  # noqa: S105 (a policy's name)


class Shelf(int, Enum):
    """Ready items are claimed from the open shelf; a suspected poison only from the other, alone (PROTOCOL W2).

    What needs a later engine has a shelf of its own for each capability version, so that no older worker ever meets
    it: `shelf_of`.
    """

    OPEN = 0
    ALONE = 1


ENGINE: Final = 1
"""The capability version of this release's engine: items that need a later one are left to a later release."""


def shelf_of(capability_version: int) -> int:
    """Where the hint of an ordinary item stands that needs an engine of this capability version."""
    return Shelf.OPEN.value if capability_version <= 1 else capability_version


def shelves_of(engine: int, *, alone: bool) -> tuple[int, ...]:
    """Where a worker looks whose engine has this capability version; `alone`, for suspects only."""
    if alone:
        return (Shelf.ALONE.value,)
    return tuple(shelf_of(version) for version in range(1, engine + 1))


class Scope(Record, frozen=True):
    """The organization and installation that a row belongs to and a worker may act for."""

    org: str
    installation: str


class NewItem(Record, frozen=True):
    """A work item to insert. Ids are made by the caller, before the transaction (PROTOCOL T1).

    `delay_us` counts from the database's now. `done`: there is nothing to run, and why; the item is there for what it
    records, succeeded from the start. `inherits` names a terminal item whose lane positions this one takes
    over; `predecessor` is unique, so one item has one successor.
    """

    id: str
    family: str
    scope: Scope
    subject_kind: str
    subject_id: str
    view_digest: str
    capability_version: int = 1
    source_lane: str | None = None
    source_policy: LanePolicy = LanePolicy.BLOCK
    target_lane: str | None = None
    delay_us: int = 0
    replay_of: str | None = None
    predecessor: str | None = None
    source_position: int | None = None
    target_position: int | None = None
    done: str | None = None


class Item(Record, frozen=True):
    """A work item as its row has it. Times are microseconds UTC of the database."""

    id: str
    family: str
    scope: Scope
    subject_kind: str
    subject_id: str
    view_digest: str
    capability_version: int
    source_lane: str | None
    source_position: int | None
    target_lane: str | None
    target_position: int | None
    state: State
    run_after: int
    attempts: int
    claims: int
    failures: int
    first_failed_at: int | None
    deferrals: int
    first_deferred_at: int | None
    expiries: int
    alone: bool
    lease_owner: str | None
    lease_token: str | None
    lease_until: int
    ownership_epoch: int
    cancel_requested: bool
    predecessor: str | None


class Claimed(Record, frozen=True):
    """An item under a live lease: what its holder names in every later step."""

    item: Item
    token: str
    epoch: int
    lease_until: int
    poison: bool
    """It was claimed alone and its lease still ran out: settle what is open, then dead-letter it."""


class ClaimVerdict(str, Enum):
    """What to do with one ready row whose item is locked."""

    TAKE = "take"
    TAKE_POISON = "take_poison"
    SHELVE = "shelve"
    LATER = "later"
    NEWER = "newer"
    DROP = "drop"


def judge_claim(
    item: Item, now_us: int, *, alone: bool, expiries_max: int, engine: int = ENGINE
) -> tuple[ClaimVerdict, int]:
    """What a ready row is worth: take its item, shelve or postpone the row, or drop it; with the row's next due time.

    A row is only a hint: the decision is the item's (PROTOCOL W7). Reclaim needs `lease_until < now` (C3). An item
    whose lease ran out too often is taken only alone, and convicted only if it dies alone (W2).
    """
    if item.state in TERMINAL:
        return ClaimVerdict.DROP, 0
    if item.capability_version > engine:
        return ClaimVerdict.NEWER, item.lease_until + 1 if item.state is State.PROCESSING else item.run_after
    if item.state is State.PROCESSING:
        if item.lease_until >= now_us:
            return ClaimVerdict.LATER, item.lease_until + 1
        if item.alone:
            return ClaimVerdict.TAKE_POISON, 0
        if item.expiries + 1 >= expiries_max and not alone:
            return ClaimVerdict.SHELVE, item.lease_until + 1
        return ClaimVerdict.TAKE, 0
    if item.run_after > now_us:
        return ClaimVerdict.LATER, item.run_after
    if item.expiries >= expiries_max and not alone:
        return ClaimVerdict.SHELVE, item.run_after
    return ClaimVerdict.TAKE, 0


class RetryPolicy(Record, frozen=True):
    """Exponential backoff with full jitter. Times in microseconds.

    `tries_max` bounds what was sent; `failures_max` and `failing_us_max` bound failures before anything was sent;
    `deferring_us_max` bounds waiting on something else.
    """

    base_us: int = 1_000_000
    cap_us: int = 300_000_000
    tries_max: int = 8
    failures_max: int = 30
    failing_us_max: int = 86_400_000_000
    deferring_us_max: int = 604_800_000_000

    def delay_us(self, count: int, jitter: float, floor_us: int = 0) -> int:
        """The wait before try number `count + 1`; `jitter` is uniform in [0, 1), drawn before the transaction."""
        ceiling_us = min(self.cap_us, self.base_us * 2 ** min(max(count - 1, 0), 40))
        return max(floor_us, int(ceiling_us * jitter))

    def exhausted_failures(self, failures: int, first_failed_at: int | None, now_us: int) -> bool:
        """Whether failures before the first byte have used up their bound."""
        since = now_us - first_failed_at if first_failed_at is not None else 0
        return failures >= self.failures_max or since >= self.failing_us_max


class Settlement(Record, frozen=True):
    """How a live claimant gives up one item.

    `delay_us` is for RETRY and DEFER. `failed` counts a failure before dispatch. `hold_lane_for` passes the target
    lane on to an unresolved attempt instead of freeing it (PROTOCOL L4, L5). `leaves_place`: the item's place in its
    source lane is for a successor, which the same transaction inserts after this (L2). `for_vanished`: it only ends
    what a dead claimant left open, so the item's count of deaths goes on (W2).
    """

    claimed: Claimed
    event: Event
    delay_us: int = 0
    failed: bool = False
    failure_class: str | None = None
    summary: str | None = None
    hold_lane_for: str | None = None
    leaves_place: bool = False
    for_vanished: bool = False


class Settled(str, Enum):
    """What became of a settlement."""

    DONE = "done"
    REPEATED = "repeated"
    STALE = "stale"


def live(item: Item | None, claimed: Claimed, now_us: int) -> bool:
    """Whether the claim still holds the item: same token and epoch, and a lease that has not run out (C3)."""
    return (
        item is not None
        and item.state is State.PROCESSING
        and item.lease_token == claimed.token
        and item.ownership_epoch == claimed.epoch
        and item.lease_until >= now_us
    )


def judge_settlement(item: Item | None, settlement: Settlement, now_us: int) -> Settled:
    """Whether a settlement may be written, was written before (a rerun after an unknown commit), or is stale."""
    claimed = settlement.claimed
    if item is not None and live(item, claimed, now_us):
        unasked = settlement.event is Event.ACK_CANCEL and not item.cancel_requested
        return Settled.STALE if unasked else Settled.DONE
    after = TRANSITIONS[(State.PROCESSING, settlement.event)]
    if item is not None and item.lease_token == claimed.token and item.state is after:
        return Settled.REPEATED
    return Settled.STALE
