"""A proof's parts: cases, what became of them, and the lines of the authority that they prove. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec


class Status(str, Enum):
    """What became of a case. There is no third: what was asked for is run, and what fails has failed."""

    PASSED = "passed"
    FAILED = "failed"


class Broken(Exception):
    """A case saw something that must not be; its text says what was seen, and holds no secret."""


class CaseResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One case after it ran. `seen` is what a failed one saw."""

    id: str
    title: str
    status: Status
    seconds: float
    seen: str = ""


class MissingProof(msgspec.Struct, frozen=True, kw_only=True):
    """A line, or a part of one, whose mechanism this release does not have."""

    line: str
    mechanism: str


class NotRun(msgspec.Struct, frozen=True, kw_only=True):
    """A case that this engine cannot be asked in this run, and why."""

    id: str
    reason: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run: what was proven, what was refuted, what this engine could not be asked here, and what this release
    cannot be asked yet.
    """

    engine: str
    cases: tuple[CaseResult, ...]
    passed: int
    failed: int
    not_built: tuple[MissingProof, ...]
    not_run: tuple[NotRun, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the kernel's list (authority §13): the cases that prove it, and the mechanism that it still lacks.

    A line has cases, or a missing mechanism, or both where a part of it cannot be shown yet (PROTOCOL Q1).
    """

    text: str
    cases: tuple[str, ...] = ()
    missing: str = ""


def report_of(
    engine: str, cases: Sequence[CaseResult], lines: Sequence[Line], not_run: Sequence[NotRun] = ()
) -> Report:
    """The report of these results."""
    passed = sum(case.status is Status.PASSED for case in cases)
    missing = tuple(MissingProof(line=line.text, mechanism=line.missing) for line in lines if line.missing)
    return Report(
        engine=engine,
        cases=tuple(cases),
        passed=passed,
        failed=len(cases) - passed,
        not_built=missing,
        not_run=tuple(not_run),
    )


def expect(holds: bool, seen: str) -> None:
    """Go on if it holds; raise `Broken`, which says what was seen instead."""
    if not holds:
        raise Broken(seen)


def expect_equal(found: Any, wanted: Any, what: str) -> None:
    """Go on if both are equal; raise `Broken` with both."""
    if found != wanted:
        raise Broken(f"{what}: {_short(found)} where {_short(wanted)} must be")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
