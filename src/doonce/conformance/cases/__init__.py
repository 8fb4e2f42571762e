"""The cases, by what they are about. Each works alone: an organization of its own, and nothing of any other case."""

from __future__ import annotations

from typing import Final

from doonce.conformance.cases import (
    claims,
    fences,
    handoffs,
    lanes,
    leaks,
    lifecycle,
    replays,
    sends,
    stale,
    withdrawals,
)
from doonce.conformance.cases.case import Case

CASES: Final[tuple[Case, ...]] = (
    *claims.CASES,
    *stale.CASES,
    *lanes.CASES,
    *lifecycle.CASES,
    *replays.CASES,
    *handoffs.CASES,
    *withdrawals.CASES,
    *fences.CASES,
    *sends.CASES,
    *leaks.CASES,
)
"""In the order in which they run."""
