"""Floors: where a claim begins to look when what lies before has gone but cannot be cleared away.

A claim finds the oldest due hints at the front of an index. A reader that holds its snapshot keeps the hints that were
taken since from being cleared away, and every look from the beginning passes all of them. So once such a look has taken
long, the next ones begin where it found something, and another whole one follows when it cannot cost more than a small
share of the time. A hint that is put in below the floor waits for that, and no longer.

Never more than a hint, and the process's own: losing a floor costs one whole look.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from doonce.db.clock import boottime_ns
from doonce.db.statement import INTEGER_MAX
from doonce.work.model import Scope

CHEAP_NS: Final = 5_000_000
"""A whole look that takes no longer is followed by whole looks only: so it is always but under a long reader."""
PATIENCE: Final = 4
"""A whole look is followed by as much time, so many times over, in which looks begin at the floor."""
MARGIN_US: Final = 100_000
"""How far the floor stays behind the database's time: transactions that read the clock before may commit after."""


@dataclass(slots=True)
class _Floor:
    since_us: int
    whole_at_ns: int


class Floors:
    """Where one worker looks, by scope."""

    def __init__(self, clock_ns: Callable[[], int] = boottime_ns, cheap_ns: int = CHEAP_NS) -> None:
        self._clock_ns = clock_ns
        self._cheap_ns = cheap_ns
        self._floors: dict[Scope, _Floor] = {}
        self._last_us: dict[Scope, int] = {}
        self._began_ns = 0
        self._latest_us = INTEGER_MAX

    def know(self, now_us: int) -> None:
        """This is the database's time now: the floor stays behind it."""
        self._latest_us = now_us - MARGIN_US

    def since(self, scope: Scope) -> int | None:
        """The due time from which on to look; 0 is from the front. None: a whole look is due, and takes long."""
        floor = self._floors.get(scope)
        if floor is None:
            return 0
        return floor.since_us if self._clock_ns() < floor.whole_at_ns else None

    def whole_in_seconds(self) -> float:
        """How long until the next whole look is due; infinite where every look is one."""
        if not self._floors:
            return math.inf
        first_ns = min(floor.whole_at_ns for floor in self._floors.values())
        return max(0, first_ns - self._clock_ns()) / 1e9

    def begin(self, scope: Scope) -> int:
        """A look begins: at which due time; 0 is a whole look."""
        self._began_ns = self._clock_ns()
        return self.since(scope) or 0

    def end(self, scope: Scope, since_us: int, dues: Sequence[int]) -> None:
        """The look that began there has ended, and found hints of these times, the earliest first."""
        if dues:
            self._last_us[scope] = max(self._last_us.get(scope, 0), dues[-1])
        first_us = dues[0] if dues else self._last_us.get(scope)  # with nothing left, what was seen has gone
        floor = self._floors.get(scope)
        if since_us and floor is not None and first_us is not None:
            floor.since_us = max(floor.since_us, min(first_us, self._latest_us))
        if since_us:
            return
        now_ns = self._clock_ns()
        took_ns = now_ns - self._began_ns
        if took_ns <= self._cheap_ns or first_us is None:
            self._floors.pop(scope, None)
        else:
            self._floors[scope] = _Floor(min(first_us, self._latest_us), now_ns + PATIENCE * took_ns)
