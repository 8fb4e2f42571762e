"""What a case is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from doonce.conformance.stage import Stage


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that must hold. `run` returns when it did, and raises `Broken` when it did not.

    The id is stable, and the title a sentence that is true when the case passes. A `paced` one needs a time that all
    its processes agree on: a lease that ends for all of them at once, work that becomes due.
    """

    id: str
    title: str
    run: Callable[[Stage], Awaitable[None]]
    paced: bool = True
