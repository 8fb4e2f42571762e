"""The mark and the first byte (PROTOCOL D1, D3, G3): what is proven when either does not go as it should."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from typing import Any

import pytest
from tests.process.effects.deployment import Accepted, Deployment, Wanted
from tests.process.effects.in_process import eventually
from tests.process.effects.lossy import LossyDatabase, answer_lost, away
from tests.process.effects.processes import now_us
from tests.process.effects.witness import Witness, check

from doonce.ownership.model import Family

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]
CALLERS = 64


async def accept_changes(deployment: Deployment, count: int) -> list[Accepted]:
    contacts = [f"1{number:04}" for number in range(count)]
    await asyncio.to_thread(deployment.contacts, *contacts)
    async with deployment.engine() as engine:
        return await deployment.accept_in(
            engine, *(Wanted(contact, "contact.patch", contact, {"title": contact}) for contact in contacts)
        )


def outcomes(deployment: Deployment) -> Counter[str | None]:
    return Counter(attempt.outcome for attempt in deployment.journal.attempts() if attempt.kind == "effect")


def arrivals(deployment: Deployment) -> int:
    return sum(entry["method"] == "PATCH" for entry in deployment.simulator.ledger())


async def test_d1_without_a_connection_there_is_no_mark(deployment: Deployment) -> None:
    (one,) = await accept_changes(deployment, 1)
    deployment.simulator.faults({"fault": "refuse"})
    async with deployment.engine() as engine:
        engine.start()
        attempts = await eventually(lambda: deployment.journal.attempts(one.id)[2:], "three tries")
        assert {attempt.dispatched_at for attempt in attempts} == {None}
        (item,) = deployment.journal.items("effect", one.id)
        assert (item.attempts, item.failures >= 1, item.first_failed_at is not None) == (0, True, True)
        deployment.simulator.control("DELETE", "faults")
        await eventually(deployment.ended, "the end")
    assert set(outcomes(deployment)) == {"RETRYABLE_PRE_DISPATCH", "ACCEPTED"}
    check(deployment)


async def test_d3_a_mark_that_took_longer_than_the_send_window_is_followed_by_no_byte(
    deployment: Deployment,
) -> None:
    (one,) = await accept_changes(deployment, 1)
    database = LossyDatabase(deployment.url)

    async def slow(transaction: Awaitable[Any]) -> Any:
        result = await transaction
        await asyncio.sleep(1.2)  # the window is one second: this is the fault, not a wait
        database.lossy.misfortunes.clear()
        return result

    database.lossy.misfortunes["mark"] = slow
    async with deployment.engine(database) as engine:
        engine.start()
        (first, *_) = await eventually(
            lambda: [a for a in deployment.journal.attempts(one.id) if a.outcome], "the first attempt's end"
        )
        assert first.outcome == "RETRYABLE_PRE_DISPATCH"
        assert first.dispatched_at is not None
        assert first.reason.startswith("not sent (window)")
        await eventually(deployment.ended, "the end")
    assert len(Witness(deployment).arrivals[one.id]) == 1
    check(deployment)


async def test_g3_one_lost_answer_to_a_mark_costs_nothing(deployment: Deployment) -> None:
    await accept_changes(deployment, CALLERS)
    database = LossyDatabase(deployment.url)

    async def once(transaction: Awaitable[Any]) -> Any:
        database.lossy.misfortunes.pop("mark", None)
        return await answer_lost(transaction)

    database.lossy.misfortunes["mark"] = once
    async with deployment.engine(database, concurrency=CALLERS) as engine:
        engine.start()
        await eventually(deployment.ended, "the end")
    assert outcomes(deployment) == {"ACCEPTED": CALLERS}
    assert arrivals(deployment) == CALLERS
    check(deployment)


async def test_g3_marks_of_unknown_commit_are_no_unknown_outcomes(deployment: Deployment) -> None:
    await accept_changes(deployment, CALLERS)
    database = LossyDatabase(deployment.url)
    database.lossy.misfortunes["mark"] = answer_lost
    async with deployment.engine(database, concurrency=CALLERS) as engine:
        engine.start()
        await eventually(
            lambda: outcomes(deployment)["RETRYABLE_PRE_DISPATCH"] >= CALLERS, "their settlement"
        )
        assert outcomes(deployment)["OUTCOME_UNKNOWN"] == 0
        assert arrivals(deployment) == 0
        marked = [attempt.dispatched_at for attempt in deployment.journal.attempts() if attempt.outcome]
        assert None not in marked, "every mark had committed"
        database.lossy.misfortunes.clear()
        await eventually(deployment.ended, "the end")
    assert outcomes(deployment)["OUTCOME_UNKNOWN"] == 0
    assert arrivals(deployment) == CALLERS
    check(deployment)


async def test_g3_their_live_owner_settles_them_once_the_database_is_back(deployment: Deployment) -> None:
    await accept_changes(deployment, CALLERS)
    database = LossyDatabase(deployment.url)
    fortunes = database.lossy.misfortunes
    fortunes |= {"mark": answer_lost, "finish": away}
    async with deployment.engine(database, concurrency=CALLERS, lease_us=60_000_000) as engine:
        engine.start()
        await eventually(lambda: database.lossy.runs["finish"] >= 6, "the owners' vain tries")
        fortunes.clear()
        await eventually(deployment.ended, "the end")
    assert outcomes(deployment) == {"RETRYABLE_PRE_DISPATCH": CALLERS, "ACCEPTED": CALLERS}
    assert arrivals(deployment) == CALLERS
    check(deployment)


async def test_g3_after_their_lease_what_they_know_is_evidence(deployment: Deployment) -> None:
    await accept_changes(deployment, CALLERS)
    database = LossyDatabase(deployment.url)
    fortunes = database.lossy.misfortunes
    fortunes |= {"mark": answer_lost, "finish": away, "renew": away}
    async with deployment.engine(database, concurrency=CALLERS, families=()) as engine:
        engine.start([Family.EFFECT])
        await eventually(lambda: database.lossy.runs["finish"] >= 3, "the owners' vain tries")
        await eventually(lambda: lease_over(deployment), "the end of their leases")
        del fortunes["mark"], fortunes["finish"]
        async with deployment.engine(concurrency=CALLERS) as other:
            other.start()
            await eventually(deployment.ended, "the end")
    check(deployment)
    assert arrivals(deployment) == CALLERS


def lease_over(deployment: Deployment) -> bool:
    return all(item.lease_until < now_us() for item in deployment.journal.items("effect"))


async def test_an_outcome_waits_for_the_database_and_is_stored_by_its_owner(deployment: Deployment) -> None:
    await accept_changes(deployment, CALLERS)
    database = LossyDatabase(deployment.url)
    database.lossy.misfortunes["finish"] = away
    async with deployment.engine(database, concurrency=CALLERS, lease_us=60_000_000) as engine:
        engine.start()
        await eventually(lambda: arrivals(deployment) == CALLERS, "the calls")
        await eventually(lambda: database.lossy.runs["finish"] >= 6, "the owners' vain tries")
        database.lossy.misfortunes.clear()
        await eventually(deployment.ended, "the end")
    assert outcomes(deployment) == {"ACCEPTED": CALLERS}
    assert deployment.journal.evidence() == []
    check(deployment)
