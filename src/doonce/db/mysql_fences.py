"""Slot rows: what excludes on the MySQL wire, where neither a named lock nor a lock that is only read may be relied on.

A name that is shared or held alone has a set of slots: who shares writes one of them, who excludes writes all. What is
certified (a cluster's nodes see nothing but writes) is one slot that the name hashes to: two names in one slot cost a
transaction that is run again, never safety, and the table does not grow with the rows that the names stand for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Final

from doonce.db.transaction import lock_number

FENCE_SLOTS: Final = 16
"""Sharers of a name rarely meet in one slot; whoever wants it alone writes so many rows."""
CERTIFIED: Final = "certified"
CERTIFIED_SLOTS: Final = 4_096
INSERT: Final = "INSERT INTO doonce_fence (name, slot, moves) VALUES "
ROW: Final = "(?, ?, 1)"
MOVE: Final = " ON DUPLICATE KEY UPDATE moves = moves + 1"
"""An update to the same value would not be certified: a slot's value always changes."""


def fencing(names: Sequence[str], slots: Iterable[int]) -> tuple[str, list[Any]]:
    """One statement that writes these slots of these names, in their order, and its arguments."""
    return _moving(list(itertools.product(names, slots)))


def certifying(names: Iterable[str]) -> tuple[str, list[Any]]:
    """One statement that writes the slots that these names hash to, in their order, and its arguments."""
    return _moving(
        [(CERTIFIED, slot) for slot in sorted({lock_number(name) % CERTIFIED_SLOTS for name in names})]
    )


def _moving(slots: Sequence[tuple[str, int]]) -> tuple[str, list[Any]]:
    rows = ", ".join([ROW] * len(slots))
    return f"{INSERT}{rows}{MOVE}", [value for slot in slots for value in slot]
