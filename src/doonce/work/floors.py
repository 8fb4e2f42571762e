"""Floors: where a claim begins to look when what lies before has gone but cannot be cleared away.

A claim finds the oldest due hints at the front of an index. A reader that holds its snapshot keeps the hints that were
taken since from being cleared away, and every look from the beginning passes all of them. So once such a look has taken
long, the next ones begin where it found something, and another whole one follows when it cannot cost more than a small
share of the time, and at once where such a look does not find enough. So a hint that is put in below the floor waits
while there is other work, for some whole looks' time at the most.

Never more than a hint, and the process's own: losing a floor costs one whole look.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from doonce.db.clock import boottime_ns
from doonce.work.model import Scope

CHEAP_NS: Final = 5_000_000
"""A whole look that takes no longer is followed by whole looks only: so it is always but under a long reader."""
PATIENCE: Final = 4
"""A whole look is followed by as much time, so many times over, in which looks begin at the floor."""
MARGIN_US: Final = 100_000
"""How far the floor stays behind what was found: transactions that read the clock before may commit after."""


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
        self._began_ns = 0

    def begin(self, scope: Scope, *, whole: bool = False) -> int:
        """A look begins: at which due time; 0 is a whole look."""
        self._began_ns = self._clock_ns()
        floor = None if whole else self._floors.get(scope)
        return 0 if floor is None or self._began_ns >= floor.whole_at_ns else floor.since_us

    def end(self, scope: Scope, since_us: int, first_due_us: int | None) -> None:
        """The look that began there has ended, and this is the first hint that it found, if any."""
        if since_us:
            floor = self._floors.get(scope)
            if floor is not None and first_due_us is not None:
                floor.since_us = max(floor.since_us, first_due_us - MARGIN_US)
            return
        now_ns = self._clock_ns()
        took_ns = now_ns - self._began_ns
        if took_ns <= self._cheap_ns or first_due_us is None:
            self._floors.pop(scope, None)
        else:
            self._floors[scope] = _Floor(first_due_us - MARGIN_US, now_ns + PATIENCE * took_ns)
