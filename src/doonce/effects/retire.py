"""Retention: work that has ended, and that nothing needs any more, leaves the working table for history.

One transaction a step; each is short, bounded, and harmless to run twice or late. What decides is seen while the item
is locked, and cannot turn back: an ended item stays ended, a lane that has passed it never returns to it, a command
that has ended stays so. Only new work about the same subject may appear beside a step (a replay, late evidence); it
finds the moved item in history.

| the work is about | it goes when it ended long enough ago, and                                              |
|-------------------|-----------------------------------------------------------------------------------------|
| a command         | the command has ended, none of its attempts is without an outcome, and no other work    |
| or its attempt    | about it or its attempts is under way: its completion is told, its questions answered   |
| anything else     | no other work about the same thing is under way                                         |
| any of them       | no lane waits behind it                                                                 |

| killed            | leaves                                                                                  |
|-------------------|-----------------------------------------------------------------------------------------|
| before the commit | everything where it was                                                                 |
| after the commit  | the items in history, and a cursor behind them; whoever comes next goes on from there   |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from msgspec.structs import replace

from doonce.base.records import Record
from doonce.commands import store as commands
from doonce.db.transaction import Txn, clock, fetch, steady_clock
from doonce.effects.attempts import attempts_of
from doonce.effects.model import Attempt
from doonce.effects.reconcile import ATTEMPTS_BY_ID
from doonce.ownership import store as ownership
from doonce.ownership.model import Family, Ownership
from doonce.work import history
from doonce.work import lanes as lane_store
from doonce.work.history import Old, Walk
from doonce.work.model import TERMINAL, State

ITEMS: Final = "work_item"
"""The name of this walk; whoever walks another table has a row of its own beside it."""

OF_COMMANDS: Final = frozenset({"command", "attempt"})
"""Kinds of subjects that belong to a command."""


class Stays(str, Enum):
    """Why a row that a walk came by is where it was."""

    WORKING = "has not ended"
    YOUNG = "has not ended long enough ago"
    ELSEWHERE = "belongs to another deployment"
    BUSY = "is being looked at"
    LANE = "holds up its lane"
    COMMAND = "belongs to a command that has not ended"
    ATTEMPT = "has an attempt without an outcome"
    SUBJECT = "is about something that still has work"


OVERDUE: Final = frozenset({Stays.BUSY, Stays.LANE, Stays.COMMAND, Stays.ATTEMPT, Stays.SUBJECT})
"""Its time is over, and it is needed."""


class Retire(Record, frozen=True):
    """One step: look at `rows_max` items, move what may go. A dead item is kept for its own, longer time.

    `after`: go on behind this id; None: where the last step of anybody was.
    """

    deployment: str
    ended_kept_us: int
    dead_kept_us: int
    rows_max: int
    after: str | None = None

    def over(self, state: State, finished_at: int, now_us: int) -> bool:
        """Whether the time of an item that ended then is over."""
        kept_us = self.dead_kept_us if state is State.DEAD else self.ended_kept_us
        return finished_at + kept_us <= now_us


class Retired(Record, frozen=True):
    """What a step saw: how many rows, how many it moved by family, why the others stay. `passed` is "" at the end."""

    looked: int
    moved: Mapping[str, int]
    stays: Mapping[str, int]
    passed: str
    paused: bool = False


PAUSED: Final = Retired(0, {}, {}, "", paused=True)
"""After a jump of the database's clock nothing goes (PROTOCOL C1)."""


def retire(asked: Retire) -> Txn[Retired]:
    """Move what may go into history; what was moved, and where the next step goes on.

    Under the ownership of each family, and under the walk's own lock: a late process does what the next step would have
    done anyway. Run again after an unknown commit it finds the moved items gone (PROTOCOL T5).
    """
    owners = yield from ownership.fence(family.value for family in Family)
    walk = yield from history.lock_walk(ITEMS)
    seen_us = yield from steady_clock()
    if seen_us is None:
        return PAUSED
    after = walk.passed if asked.after is None else asked.after
    page = yield from history.old_page(after, _before(asked, seen_us), asked.rows_max)
    stays = _at_sight(page, asked, owners, seen_us)
    wanted = [row.id for row in page if row.id not in stays]
    locked, now_us = yield from history.lock_old(wanted)
    if now_us is None:
        return PAUSED  # it was steady a moment ago; nothing has been written yet
    stays |= dict.fromkeys(set(wanted) - {row.id for row in locked}, Stays.BUSY)
    stays |= _at_sight(locked, asked, owners, now_us)
    stays |= yield from _needed([row for row in locked if row.id not in stays])
    moved = [row for row in locked if row.id not in stays]
    yield from history.move([row.id for row in moved], now_us)
    yield from history.save_walk(_walked(walk, asked, page, stays, now_us), len(moved))
    return _seen(page, moved, stays, asked)


def preview(asked: Retire) -> Txn[Retired]:
    """What a step would do now, without a lock and without a trace."""
    owners = {owner.family: owner for owner in (yield from ownership.read_all())}
    now_us = yield from clock()
    page = yield from history.old_page(asked.after or "", _before(asked, now_us), asked.rows_max)
    stays = _at_sight(page, asked, owners, now_us)
    ended = [row for row in page if row.id not in stays]
    stays |= yield from _needed(ended)
    return _seen(page, [row for row in ended if row.id not in stays], stays, asked)


def _before(asked: Retire, now_us: int) -> str:
    """Behind this id nothing is old enough: an id is made before what it names ends.

    The time in it is its maker's; where that ran ahead, an item goes so much later.
    """
    newest_us = now_us - min(asked.ended_kept_us, asked.dead_kept_us)
    return f"wrk_{max(0, newest_us) // 1_000 + 1:012x}"


def _at_sight(
    page: Sequence[Old], asked: Retire, owners: Mapping[str, Ownership], now_us: int
) -> dict[str, Stays]:
    """What stays by what the row itself says."""
    stays: dict[str, Stays] = {}
    for row in page:
        owner = owners.get(row.family)
        if row.state not in TERMINAL or row.finished_at is None:
            stays[row.id] = Stays.WORKING
        elif owner is None or not owner.admits(asked.deployment):
            stays[row.id] = Stays.ELSEWHERE
        elif not asked.over(row.state, row.finished_at, now_us):
            stays[row.id] = Stays.YOUNG
    return stays


def _needed(ended: Sequence[Old]) -> Txn[dict[str, Stays]]:
    """Which of these ended items are needed, and for what."""
    if not ended:
        return {}
    taken = yield from lane_store.entries_at(place for row in ended for place in row.places())
    command_of = yield from _commands_of(ended)
    attempts = yield from attempts_of(command_of.values())
    ends = (yield from commands.load_ends(command_of.values())) if command_of else {}
    about = {row.id: {row.subject_id} | _of_command(command_of.get(row.id), attempts) for row in ended}
    under_way = yield from history.subjects_under_way(one for subjects in about.values() for one in subjects)
    needed: dict[str, Stays] = {}
    for row in ended:
        command_id = command_of.get(row.id, "")
        if any(taken.get(place) == row.id for place in row.places()):
            needed[row.id] = Stays.LANE
        elif row.subject_kind in OF_COMMANDS and command_id not in ends:
            needed[row.id] = Stays.COMMAND
        elif any(attempt.outcome is None for attempt in attempts.get(command_id, ())):
            needed[row.id] = Stays.ATTEMPT
        elif about[row.id] & under_way:
            needed[row.id] = Stays.SUBJECT
    return needed


def _commands_of(ended: Iterable[Old]) -> Txn[dict[str, str]]:
    """The command that each item belongs to, by the item's id."""
    rows = list(ended)
    asked = sorted({row.subject_id for row in rows if row.subject_kind == "attempt"})
    found = (yield from fetch(ATTEMPTS_BY_ID, ids=[(one,) for one in asked])) if asked else []
    of_attempt = {row["id"]: row["subject_id"] for row in found}
    of_item = {row.id: row.subject_id for row in rows if row.subject_kind == "command"}
    return of_item | {
        row.id: of_attempt[row.subject_id]
        for row in rows
        if row.subject_kind == "attempt" and row.subject_id in of_attempt
    }


def _of_command(command_id: str | None, attempts: Mapping[str, Sequence[Attempt]]) -> set[str]:
    if command_id is None:
        return set()
    return {command_id, *(attempt.id for attempt in attempts.get(command_id, ()))}


def _walked(walk: Walk, asked: Retire, page: Sequence[Old], stays: Mapping[str, Stays], now_us: int) -> Walk:
    """Where the walk stands after this page; a walk of somebody's own leaves it where it is."""
    if asked.after is not None:
        return walk
    left = [row.finished_at for row in page if stays.get(row.id) in OVERDUE]
    since = min((one for one in (walk.seen_since, *left) if one is not None), default=None)
    if len(page) < asked.rows_max:
        return replace(walk, passed="", seen_since=None, overdue_since=since, walked_at=now_us)
    return replace(walk, passed=page[-1].id, seen_since=since)


def _seen(page: Sequence[Old], moved: Sequence[Old], stays: Mapping[str, Stays], asked: Retire) -> Retired:
    return Retired(
        looked=len(page),
        moved=Counter(row.family for row in moved),
        stays=Counter(why.value for why in stays.values()),
        passed=page[-1].id if len(page) == asked.rows_max else "",
    )
