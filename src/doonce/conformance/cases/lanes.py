"""Lanes: source lanes order, target lanes exclude, whoever works them (PROTOCOL L1, L2)."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import msgspec

from doonce.base.ids import new_token
from doonce.conformance.cases.case import Case
from doonce.conformance.cases.claims import CLAIMERS, claim_job, hint
from doonce.conformance.jobs import Took
from doonce.conformance.model import expect, expect_equal
from doonce.conformance.stage import Stage

ITEMS: Final = 12


async def source_order(stage: Stage) -> None:
    items = await stage.insert(ITEMS, source_lane=f"s{new_token()}")
    worked = await _worked(stage, items)
    expect_equal([took.item for took in worked], list(items), "the order in which a source lane was worked")
    _apart(worked)


async def target_exclusion(stage: Stage) -> None:
    items = await stage.insert(ITEMS, target_lane=f"t{new_token()}")
    worked = await _worked(stage, items)
    expect_equal(
        sorted(took.item for took in worked), sorted(items), "the items of a target lane that were worked"
    )
    _apart(worked)


async def _worked(stage: Stage, items: tuple[str, ...]) -> list[Took]:
    """What several processes did that work the items, in the order of their claims. Every item is hinted at as due."""
    await stage.database.transact(hint, [await stage.item(item_id) for item_id in items])
    jobs = [msgspec.structs.replace(claim_job(stage, items), settle=True) for _ in range(CLAIMERS)]
    processes = await stage.spawn_together(jobs)
    results = [await process.result() for process in processes]
    worked = [took for result in results for took in result.took]
    return sorted(worked, key=lambda took: took.claimed_at)


def _apart(worked: list[Took]) -> None:
    for before, after in pairwise(worked):
        expect(
            after.claimed_at >= before.held_until,
            f"{after.item} was claimed at {after.claimed_at}, while {before.item} was held until {before.held_until}",
        )


CASES: Final = (
    Case(
        "source-order",
        "A source lane is worked in order, one at a time, by any number of processes",
        source_order,
    ),
    Case(
        "target-exclusion",
        "A target lane has one holder at a time, among any number of processes",
        target_exclusion,
    ),
)
