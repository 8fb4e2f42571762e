"""Fairness: how one claim's rows are shared between scopes, and whose turn it is. Pure.

Four rules, applied to one row after the other:

| rule     | a row goes to                                                                                    |
|----------|--------------------------------------------------------------------------------------------------|
| share    | the scope with the least under way for its weight, of those that wait                            |
| turn     | among equals, the one that was served the longest ago                                            |
| limit    | nobody who has seven times as many under way as there are free slots, by weight; with none, anybody |
| leftover | what a scope's share has no items for is shared between the others                               |

The first two bound how long anybody waits: a scope with nothing under way is served before every scope that is served
again. The third keeps slots free for whoever comes later, when calls of one scope last long: it is the dynamic
threshold by which switches keep one queue from filling a shared buffer (Choudhury and Hahne, 1998).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from doonce.work.model import Scope

WEIGHT_MIN: Final = 1
"""What every organization has of which nothing is said."""
WEIGHT_MAX: Final = 100
"""An installation of weight 1 beside one of this weight gets a hundredth of the slots, and one at the least."""
LIMIT: Final = 7
"""A scope whose calls never end takes seven slots of eight; two such scopes seven of fifteen each; and so on."""


@dataclass(frozen=True, slots=True)
class Room:
    """What sharing goes by. `free`: slots of the process, None where one scope may have them all.

    `held`: items under way by scope. `weights`: by organization, 1 where nothing is said.
    """

    free: int | None = None
    held: Mapping[Scope, int] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)

    def weight(self, scope: Scope) -> int:
        """The weight of each installation of the scope's organization."""
        return self.weights.get(scope.org, WEIGHT_MIN)


def may_take(under_way: int, weight: int, free: int | None, weight_max: int) -> bool:
    """Whether a scope with so much under way may have one of the free slots."""
    if free is None:
        return True
    if under_way == 0:
        return free > 0
    return (under_way + 1) * weight_max <= LIMIT * (free - 1) * weight


def shares(scopes: Sequence[Scope], rows_max: int, room: Room) -> dict[Scope, int]:
    """How many rows each scope gets if all have plenty; those that get none are absent. Earlier ones come first.

    The sum never exceeds `rows_max`. A scope with nothing under way gets a row before anybody gets a second one.
    """
    given: dict[Scope, int] = {}
    if not scopes:
        return given
    weights = [room.weight(scope) for scope in scopes]
    weight_max = max(weights)
    held = [room.held.get(scope, 0) for scope in scopes]
    queue = [(held[at] / weights[at], at) for at in range(len(scopes))]
    heapq.heapify(queue)
    free = room.free
    for _ in range(rows_max):
        while queue and not may_take(held[queue[0][1]], weights[queue[0][1]], free, weight_max):
            heapq.heappop(queue)  # and nor later in this claim: it has no less, and there is no more room
        if not queue:
            break
        _, at = queue[0]
        given[scopes[at]] = given.get(scopes[at], 0) + 1
        held[at] += 1
        free = None if free is None else free - 1
        heapq.heapreplace(queue, (held[at] / weights[at], at))
    return given


def room_wanted(room: Room, taken: Iterable[Scope], batch: int) -> int:
    """How many slots have to be free before another claim is of use, after one in this room that has taken these.

    0 when no scope stands at its limit: then it took what there was. Else one more than are free now, and at the least
    `batch`, since what was held back is claimed in batches too.
    """
    if room.free is None:
        return 0
    under_way, free = dict(room.held), room.free
    for scope in taken:
        under_way[scope] = under_way.get(scope, 0) + 1
        free -= 1
    weight_max = max(map(room.weight, under_way), default=WEIGHT_MIN)
    held_back = any(
        not may_take(count, room.weight(scope), free, weight_max) for scope, count in under_way.items()
    )
    return max(batch, free + 1) if held_back else 0


class Sharing:
    """One claim's rows, shared between scopes of which nobody knows how much they have.

    `asks` says how many rows to look for in which scope; `found` says how many there were. A scope that has fewer than
    its share leaves the rest to the others, who are asked again for all that they get then. Every question but a
    scope's last brings a row more.
    """

    def __init__(self, scopes: Sequence[Scope], rows_max: int, room: Room) -> None:
        self._plenty = list(scopes)
        self._room = room
        self._left = rows_max
        self._found: dict[Scope, int] = {}

    def asks(self) -> dict[Scope, int]:
        """What to look for now, with what was found before; empty when all is shared."""
        wanted = shares(self._plenty, self._left, self._room)
        return {scope: rows for scope, rows in wanted.items() if rows > self._found.get(scope, 0)}

    def found(self, scope: Scope, asked: int, rows: int) -> None:
        """So many of the rows that were asked for are there."""
        self._found[scope] = rows
        if rows < asked:
            self._plenty.remove(scope)
            self._left -= rows
            free = self._room.free
            self._room = Room(None if free is None else free - rows, self._room.held, self._room.weights)


class Turns:
    """Whose turn it is in one worker: what each scope has under way, when it was served, where the next look begins.

    `scopes`: the worker's, in order of their names. `position`: of the first of them to look at next. `unseen`: how
    many the round that is under way has not come to.
    """

    def __init__(self, weights: Mapping[str, int]) -> None:
        self.scopes: tuple[Scope, ...] = ()
        self.position = 0
        self.unseen = 0
        self._weights = weights
        self._given: Sequence[Scope] = ()
        self._held: dict[Scope, int] = {}
        self._served: dict[Scope, int] = {}
        self._claims = 0

    @property
    def several(self) -> bool:
        """Whether there is more than one scope to be fair to."""
        return len(self.scopes) > 1

    def know(self, scopes: Sequence[Scope]) -> None:
        """These are the worker's scopes now; of others it is forgotten when they were served."""
        if scopes is self._given:
            return
        self._given = scopes
        self.scopes = tuple(sorted(scopes, key=lambda scope: (scope.org, scope.installation)))
        self.position = min(self.position, max(0, len(scopes) - 1))
        self._served = {scope: self._served[scope] for scope in scopes if scope in self._served}

    def passed(self, scopes: int) -> None:
        """So many were looked at, or are known to have nothing."""
        if self.scopes:
            self.position = (self.position + scopes) % len(self.scopes)
        self.unseen = max(0, (self.unseen or len(self.scopes)) - scopes)

    def in_turn(self, scopes: Iterable[Scope]) -> tuple[Scope, ...]:
        """Those that were served the longest ago first, and before them those that never were."""
        return tuple(sorted(scopes, key=lambda scope: self._served.get(scope, 0)))

    def served(self, scopes: Iterable[Scope]) -> None:
        """One claim has taken something of these."""
        self._claims += 1
        for scope in scopes:
            self._served[scope] = self._claims

    def started(self, scope: Scope) -> None:
        """One more of its items is under way."""
        self._held[scope] = self._held.get(scope, 0) + 1

    def ended(self, scope: Scope) -> None:
        """One of its items is no longer under way."""
        left = self._held[scope] - 1
        if left:
            self._held[scope] = left
        else:
            del self._held[scope]

    def room(self, free: int) -> Room:
        """What the next claim shares by."""
        return Room(free if self.several else None, dict(self._held), self._weights)
