"""The steps from one schema to the next, in halves, so that the processes of two releases overlap. Reads, runs nothing.

A half *before* only adds: tables, columns that nobody has to fill, a default, indexes that refuse nothing. Processes of
the release before go on beside it, and may start on it. A half *after* removes or tightens what they need, and is
applied when none of them is left. A file's name says which half it is: `v0005_after_….py`, all others are before.

Between the two the database differs from what a release's tables say. A half after therefore names, in a literal
`UNTIL`, the differences that the verifier passes over until it is applied, in the verifier's own words. It is read as
text: a step imports Alembic, which no worker should have in its memory.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile
from pathlib import Path
from typing import Final

MIGRATIONS: Final = Path(__file__).with_name("migrations")
STEP: Final = re.compile(r"v(\d{4})_(after_)?\w+\.py")
UNTIL: Final = "UNTIL"


class Half(str, Enum):
    """When a step may be applied: beside processes of the release before, or after the last one of them."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Step:
    """One file of the chain. Revisions are ordered as texts."""

    revision: str
    half: Half
    path: Path


def known() -> list[Step]:
    """The steps that this release knows, the first one first."""
    found = ((STEP.fullmatch(path.name), path) for path in (MIGRATIONS / "versions").iterdir())
    steps = [
        Step(name[1], Half.AFTER if name[2] else Half.BEFORE, path)
        for name, path in found
        if name is not None
    ]
    return sorted(steps, key=lambda step: step.revision)


def head() -> str:
    """The newest revision that this release knows: what it is written for."""
    return known()[-1].revision


def needed() -> str:
    """The oldest revision that this release works on: its halves after may be open."""
    return [step.revision for step in known() if step.half is Half.BEFORE][-1]


def ahead(revision: str | None) -> list[Step]:
    """The steps that a database of this revision lacks; None for an empty one."""
    return [step for step in known() if revision is None or step.revision > revision]


def beside_older(steps: Iterable[Step]) -> list[Step]:
    """Those of the missing steps that may be applied beside an older release: up to the first half after."""
    return list(takewhile(lambda step: step.half is Half.BEFORE, steps))


def compatible_from(revision: str) -> str:
    """The oldest release, by the newest revision that it knows, that may work on this revision: the last half after."""
    tightened = [step.revision for step in known() if step.half is Half.AFTER and step.revision <= revision]
    return tightened[-1] if tightened else known()[0].revision


def passed_over(revision: str | None) -> frozenset[str]:
    """What may differ from this release's tables until the open halves after are applied."""
    return frozenset(
        what for step in ahead(revision) if step.half is Half.AFTER for what in _until(step.path)
    )


def _until(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [UNTIL]:
            yield from ast.literal_eval(node.value)
