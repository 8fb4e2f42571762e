"""Named points between two steps, where a test may kill or stop the process. Unarmed they cost a comparison.

Every transaction has two, `<operation>.before_commit` and `<operation>.after_commit`; every call out has
`call.connected` (the connection is open, nothing marked), `call.marked` (durable, no byte left yet) and
`call.answered` (the client has said what it saw, nothing stored).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class PointAction(str, Enum):
    """What happens to this process at an armed point."""

    KILL = "kill"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class ArmedPoint:
    """One point to act at, once, at its `hit`-th visit; `flag` is written just before, so that a test can see it."""

    name: str
    action: PointAction
    hit: int = 1
    flag: Path | None = None


class Points:
    """Reaches named points; does nothing unless one is armed or watched.

    `rest` is called before a stop, and returns when this process holds no lock that everybody else would wait for.
    """

    def __init__(
        self,
        armed: ArmedPoint | None = None,
        watch: Callable[[str], None] | None = None,
        rest: Callable[[], None] = lambda: None,
    ) -> None:
        self._armed = armed
        self._watch = watch
        self._rest = rest
        self._visits = 0

    def reach(self, name: str) -> None:
        """Say that execution is here. At the armed point the process is killed, or stopped until continued."""
        if self._watch is not None:
            self._watch(name)
        armed = self._armed
        if armed is None or armed.name != name:
            return
        self._visits += 1
        if self._visits == armed.hit:
            if armed.action is PointAction.STOP:
                self._rest()
            if armed.flag is not None:
                armed.flag.write_text(name)
            os.kill(os.getpid(), signal.SIGKILL if armed.action is PointAction.KILL else signal.SIGSTOP)
