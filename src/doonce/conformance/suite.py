"""Running cases against one database: each alone, one after another, in the scratch place that is made for the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from doonce.base.errors import DoonceError, Invalid
from doonce.conformance.cases import CASES
from doonce.conformance.cases.case import Case
from doonce.conformance.lines import LINES
from doonce.conformance.model import Broken, CaseResult, NotRun, Report, Status, report_of
from doonce.conformance.processes import processes
from doonce.conformance.scratch import other_ways, scratch
from doonce.conformance.skew import Skew
from doonce.conformance.stage import Stage, staging
from doonce.db import verify
from doonce.db.database import open_database
from doonce.db.durability import Durability
from doonce.db.faults import DatabaseFault
from doonce.db.statement import DialectName

SEEN_CHARACTERS_MAX: Final = 600
OWN_TIME: Final = (
    "on SQLite the time is the host's: processes that disagree about it also disagree about when a lease ends; nothing "
    "is sent twice, but work may stand still"
)
"""Why a case that needs a common time is not run on SQLite with skewed clocks."""


def chosen(ids: Sequence[str]) -> tuple[Case, ...]:
    """The cases of these ids, all of them without any; raises `Invalid` for an id that is none."""
    known = {case.id: case for case in CASES}
    unknown = [asked for asked in ids if asked not in known]
    if unknown:
        raise Invalid(f"there is no case {unknown[0]!r}", hint=f"one of {', '.join(known)}")
    return tuple(case for case in CASES if not ids or case.id in ids)


async def run(
    url: str,
    ids: Sequence[str] = (),
    began: Callable[[Case], None] = lambda _: None,
    *,
    also: Sequence[str] = (),
    skews: Sequence[Skew] = (),
) -> Report:
    """Prove the cases of these ids, or all, against the database at `url`.

    `also` are other ways to the same database, as a cluster's nodes are, and `skews` what worker processes believe
    about the time: they take turns over all of them. Works in a scratch place of its own there, and drops it. Raises
    what `scratch` raises, `Invalid` for another way that leads elsewhere, and `Unavailable` for a database that does
    not keep what it commits (PROTOCOL S1), and where processes cannot have other clocks: there is nothing to prove.
    """
    cases = chosen(ids)
    apart = bool(skews) and open_database(url).dialect is DialectName.SQLITE
    not_run = [NotRun(id=case.id, reason=OWN_TIME) for case in cases if apart and case.paced]
    results = []
    with processes(skews) as forks:
        async with scratch(url) as place, staging(place, await other_ways(place, also), forks) as make:
            await verify.require(place.url)
            await Durability(make().database).check()
            for case in cases:
                if apart and case.paced:
                    continue
                began(case)
                results.append(await _run_one(case, make()))
    return report_of(place.dialect.value, results, LINES, not_run)


async def _run_one(case: Case, stage: Stage) -> CaseResult:
    """One case to its end, whatever happens in it; its processes are gone afterwards."""
    began = time.monotonic()
    seen = ""
    try:
        await case.run(stage)
    except Broken as broken:
        seen = str(broken)
    except (DoonceError, DatabaseFault) as fault:
        seen = f"{type(fault).__name__}: {fault}"
    except Exception as fault:  # noqa: BLE001  # one case's fault is that case's result, and the others still run
        seen = f"the case itself failed: {type(fault).__name__}: {fault}"
    finally:
        await stage.close()
    return CaseResult(
        id=case.id,
        title=case.title,
        status=Status.FAILED if seen else Status.PASSED,
        seconds=round(time.monotonic() - began, 3),
        seen=seen[:SEEN_CHARACTERS_MAX],
    )
