"""New work: rows, positions in lanes, and who of it is ready at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from doonce.db.transaction import Txn, clock, insert_many, notify
from doonce.work import history
from doonce.work import lanes as lane_store
from doonce.work.items import READY_COLUMNS, ReadyRow, topic
from doonce.work.lanes import ENTRY_COLUMNS, Lane
from doonce.work.model import LanePolicy, NewItem, State, shelf_of
from doonce.work.tables import work_item, work_lane_entry, work_ready

NEW_COLUMNS = (
    "id", "family", "org", "installation", "subject_kind", "subject_id", "view_digest", "capability_version",
    "source_lane", "source_position", "target_lane", "target_position", "state", "run_after", "attempts", "claims",
    "failures", "deferrals", "expiries", "alone", "lease_until", "ownership_epoch", "cancel_requested", "summary",
    "replay_of", "predecessor", "created_at", "updated_at", "finished_at",
)  # fmt: skip


def insert(
    items: Sequence[NewItem], locked: dict[str, Lane] | None = None, now_us: int | None = None
) -> Txn[None]:
    """Insert work and make ready what may run. Positions are drawn under the lanes' locks (PROTOCOL L1, L2).

    For transactions whose own facts say that these items are new, and that have fenced ownership where they must.
    `locked` are lanes that the transaction already holds, and saves; any others named by the items are locked and saved
    here, so a caller that holds later locks must have locked all of them before. `now_us`: the time that the caller has
    read after its last lock.
    """
    if not items:
        return
    held = dict(locked or {})
    policies = {name: policy for name, policy in lane_policies(items).items() if name not in held}
    if policies:
        held |= yield from lane_store.make_and_lock(policies)
    taken = yield from lane_store.entries_at(_inheritable(items))
    if policies or now_us is None:
        now_us = yield from clock()
    placing = _Placing(held, taken, now_us)
    rows = [_new_row(item, *placing.place(item), now_us) for item in items]
    mine = [lane for lane in held.values() if locked is None or lane.lane not in locked]
    yield from insert_many(work_item, NEW_COLUMNS, rows)
    yield from insert_many(work_lane_entry, ENTRY_COLUMNS, placing.entries)
    yield from insert_many(work_ready, READY_COLUMNS, placing.ready)
    yield from lane_store.save(mine)
    yield from lane_store.inherit_entries(placing.inherited)
    yield from notify(topic(row[0]) for row in placing.ready if row[4] <= now_us)


def enqueue(items: Sequence[NewItem]) -> Txn[None]:
    """Insert work that has no facts of another owner beside it: the whole transaction.

    Items that are there already are left as they are, so it may be run again (PROTOCOL T5).
    """
    held = yield from lane_store.make_and_lock(lane_policies(items))
    there = yield from history.lock_anywhere(item.id for item in items)
    yield from insert([item for item in items if item.id not in there], held)
    yield from lane_store.save(held.values())


def lane_policies(items: Iterable[NewItem]) -> dict[str, LanePolicy]:
    """The lanes of these items, with the policy that each is made with if it is new."""
    policies: dict[str, LanePolicy] = {}
    for item in items:
        if item.target_lane is not None:
            policies[item.target_lane] = LanePolicy.PASS
        if item.source_lane is not None:
            policies[item.source_lane] = item.source_policy
    return policies


def _inheritable(items: Sequence[NewItem]) -> list[tuple[str, int]]:
    return [
        (item.source_lane, item.source_position)
        for item in items
        if item.source_lane is not None and item.source_position is not None
    ]


@dataclass(slots=True)
class _Placing:
    """Gives items their positions, one after another, and gathers the rows that this takes."""

    held: dict[str, Lane]
    taken: dict[tuple[str, int], str]
    now_us: int
    entries: list[tuple[Any, ...]] = field(default_factory=list)
    inherited: list[tuple[Any, ...]] = field(default_factory=list)
    ready: list[ReadyRow] = field(default_factory=list)

    def place(self, item: NewItem) -> tuple[int | None, int | None]:
        """The item's positions; it becomes ready unless a lane keeps it waiting, or it is done already."""
        if item.done is not None:
            return None, None
        run_after = self.now_us + item.delay_us
        source_position, is_head = self._in_source(item, run_after)
        target_position, due = self._in_target(item, run_after, is_head)
        if due is not None:
            self.ready.append(
                (
                    item.family, shelf_of(item.capability_version), item.scope.org, item.scope.installation, due,
                    item.id, item.source_lane, item.target_lane,
                )
            )  # fmt: skip
        return source_position, target_position

    def _in_source(self, item: NewItem, run_after: int) -> tuple[int | None, bool]:
        if item.source_lane is None:
            return None, True
        lane, position = self.held[item.source_lane], item.source_position
        if (
            position is not None
            and item.predecessor is not None
            and self.taken.get((lane.lane, position)) == item.predecessor
        ):
            self.inherited.append((lane.lane, position, item.id, run_after))
            is_head = lane.nominee == item.predecessor
        else:  # a new item, or a successor whose place the lane has already passed: to the end
            position = lane.draw()
            self.entries.append((lane.lane, position, item.id, 1, run_after))
            is_head = lane.nominee is None
        if is_head:
            lane.nominate(item.id, run_after)
        return position, is_head

    def _in_target(self, item: NewItem, run_after: int, is_head: bool) -> tuple[int | None, int | None]:
        """The position, and when the item is due, or None while a lane keeps it waiting."""
        if item.target_lane is None:
            return None, run_after if is_head else None
        lane, position = self.held[item.target_lane], item.target_position
        if position is None:
            position = lane.draw()
        self.entries.append((lane.lane, position, item.id, int(is_head), run_after))
        if not is_head or lane.holder not in (None, item.id):
            return position, None
        due = max(run_after, lane.hold_until)
        if lane.nominee is not None and lane.nominee_due <= due and lane.holder is None:
            return position, None
        lane.nominate(item.id, due)
        return position, due


def _new_row(
    item: NewItem, source_position: int | None, target_position: int | None, now_us: int
) -> tuple[Any, ...]:
    """A row of `NEW_COLUMNS`."""
    scope = item.scope
    return (
        item.id, item.family, scope.org, scope.installation, item.subject_kind, item.subject_id, item.view_digest,
        item.capability_version, item.source_lane, source_position, item.target_lane, target_position,
        (State.PENDING if item.done is None else State.SUCCEEDED).value, now_us + item.delay_us, 0, 0, 0, 0, 0, 0, 0, 0,
        0, item.done, item.replay_of, item.predecessor, now_us, now_us, now_us if item.done is not None else None,
    )  # fmt: skip
