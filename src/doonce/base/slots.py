"""Bounded room of a key: rows that are kept beside it, of which there may be only so many."""

from __future__ import annotations

from collections.abc import Iterable


class Slots:
    """The slots of some keys. `taken` is read under a lock on each key, or somebody else takes the same slot."""

    def __init__(self, bound: int, taken: Iterable[tuple[str, int]]) -> None:
        self._bound = bound
        self._taken = set(taken)

    def take(self, key: str) -> int | None:
        """Take the key's lowest free slot; None where all of them are taken."""
        slot = next((slot for slot in range(self._bound) if (key, slot) not in self._taken), None)
        if slot is not None:
            self._taken.add((key, slot))
        return slot
