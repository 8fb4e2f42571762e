"""Writes that nobody waits for: gathered, and sent as one statement where they cannot get in each other's way.

A statement that answers no rows tells its transaction nothing that the commit does not. So the PostgreSQL driver holds
it back until rows are asked for or the transaction ends, and sends what has gathered as one `WITH … ` statement: one
trip to the server for up to `WRITES_MAX`. All parts of such a statement see the same snapshot and none sees another's
writes. So only writes of different tables that do not even read each other's are gathered; any other goes after them.

A plain read of other tables overtakes what has gathered: it justifies no write (PROTOCOL T2), so it may be as early as
it likes. What locks, or tells the time, never does. Hints for waiters go with the last statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from doonce.db.statement import Compiled

WRITES_MAX = 8
PARAMETER = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True)
class Write:
    """One statement without rows: its text, its arguments, the table it writes and all that it looks at."""

    text: str
    arguments: Sequence[Any]
    table: str
    touches: frozenset[str]


@dataclass(slots=True)
class Posted:
    """What one transaction has posted and not yet sent: writes, and the topics whose waiters it will wake."""

    writes: list[Write] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)

    def admits(self, write: Write) -> bool:
        """Whether it may share a statement with what has gathered."""
        return len(self.writes) < WRITES_MAX and not any(
            write.table in other.touches or other.table in write.touches for other in self.writes
        )

    def lets_pass(self, read: Compiled) -> bool:
        """Whether a statement is a plain read that nothing which has gathered could change."""
        return read.plain and not any(write.table in read.touches for write in self.writes)

    def take(self) -> tuple[str, list[Any]]:
        """The one statement of all that has gathered; afterwards nothing has."""
        text = combined(tuple(write.text for write in self.writes))
        arguments = [argument for write in self.writes for argument in write.arguments]
        self.writes.clear()
        return text, arguments


@lru_cache(maxsize=1024)
def combined(texts: tuple[str, ...]) -> str:
    """One statement that carries out all of these, its parameters numbered through in their order."""
    parts: list[str] = []
    offset = 0
    for text in texts:
        numbers = [int(number) for number in PARAMETER.findall(text)]
        parts.append(PARAMETER.sub(lambda found: f"${int(found[1]) + offset}", text))  # noqa: B023 (used at once)
        offset += max(numbers, default=0)
    *first, last = parts
    named = ", ".join(f"write_{number} AS ({part})" for number, part in enumerate(first, 1))
    return f"WITH {named} {last}" if first else last
