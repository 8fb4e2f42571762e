"""Connections that die, at the level of the journal: never an occasion to resend, never another's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from simulators.launch import Simulator
from tests.process.effects.deployment import Deployment, Wanted, deployed
from tests.process.effects.in_process import eventually
from tests.process.effects.table_pack import METHODS, SAYS, operation_name, table_pack
from tests.process.effects.test_fault_table import command_for
from tests.process.effects.witness import Witness

from doonce.app.engine import Engine
from doonce.ownership.model import Family

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


@pytest.fixture
def deployment(database_url: str, simulator: Simulator, tmp_path: Path) -> Iterator[Deployment]:
    names = [operation_name(method, says) for method in METHODS for says in SAYS]
    retry = {"base": "1h", "cap": "1h"}
    with deployed(
        database_url, simulator, tmp_path, pack=table_pack(), operations=names, retry=retry
    ) as made:
        yield made


class Runner:
    """Runs one command after the other, each to the end of its first attempt."""

    def __init__(self, deployment: Deployment, engine: Engine) -> None:
        self._deployment = deployment
        self._engine = engine
        self._number = 0

    async def run(self, method: str, says: str = "silent") -> tuple[str, Any]:
        """The command's id, and its first attempt."""
        self._number += 1
        wanted = command_for(self._number, method, says)
        if wanted.contact is not None:
            await asyncio.to_thread(self._deployment.contacts, wanted.contact)
        return await self._ended(wanted)

    async def _ended(self, wanted: Wanted) -> tuple[str, Any]:
        (one,) = await self._deployment.accept_in(self._engine, wanted)

        def ended() -> Any:
            attempts = self._deployment.journal.attempts(one.id)
            return next((attempt for attempt in attempts[:1] if attempt.outcome is not None), None)

        return one.id, await eventually(ended, f"the end of {wanted.name}")


@pytest.mark.parametrize("fault", ["close_on_next", "reset_on_next"])
async def test_a_kept_connection_that_dies_under_a_request_costs_one_attempt_and_no_second_request(
    deployment: Deployment, fault: str
) -> None:
    async with deployment.engine() as engine:
        engine.start([Family.EFFECT])
        runner = Runner(deployment, engine)
        for method in METHODS:
            deployment.simulator.faults({"fault": fault, "method": "GET"})
            _, first = await runner.run("GET")
            assert first.outcome == "ACCEPTED"
            before = len(deployment.simulator.ledger())
            _, attempt = await runner.run(method)
            assert attempt.outcome == ("REPLAY_SAFE_RETRY" if method == "GET" else "OUTCOME_UNKNOWN"), method
            (died,) = deployment.simulator.ledger()[before:]
            assert (died["fault"], died["committed"]) == (fault, False)
            await runner.run("GET")  # the dead connection is gone: the next command has one of its own


@pytest.mark.parametrize("method", METHODS)
async def test_what_follows_a_reply_is_never_taken_for_the_next_answer(
    deployment: Deployment, method: str
) -> None:
    async with deployment.engine() as engine:
        engine.start([Family.EFFECT])
        runner = Runner(deployment, engine)
        for fault in ("glued_reply", "length_short", "close_idle"):
            deployment.simulator.faults({"fault": fault, "method": "GET"})
            await runner.run("GET")
            command, attempt = await runner.run(method)
            assert "666" not in (attempt.result or "")
            arrivals = Witness(deployment).arrivals[command]
            committed = sum(entry["committed"] for entry in arrivals)
            if attempt.outcome == "ACCEPTED":
                assert (len(arrivals), committed) == (1, 0 if method == "GET" else 1)
            else:  # the close crossed the request on its way
                assert fault == "close_idle"
                assert attempt.outcome in ("OUTCOME_UNKNOWN", "REPLAY_SAFE_RETRY", "RETRYABLE_PRE_DISPATCH")


@pytest.mark.parametrize("says", SAYS)
async def test_a_connection_that_is_reset_as_soon_as_it_is_there(deployment: Deployment, says: str) -> None:
    """Whether a byte had left is a race; whoever cannot prove that none did does not know."""
    async with deployment.engine() as engine:
        engine.start([Family.EFFECT])
        runner = Runner(deployment, engine)
        for method in METHODS:
            deployment.simulator.faults({"fault": "reset_on_accept"})
            command, attempt = await runner.run(method, says)
            unproven = "REPLAY_SAFE_RETRY" if method == "GET" or says == "replay" else "OUTCOME_UNKNOWN"
            assert attempt.outcome in ("RETRYABLE_PRE_DISPATCH", unproven), (method, attempt.reason)
            assert not any(entry["committed"] for entry in Witness(deployment).arrivals[command])
            deployment.simulator.control("DELETE", "faults")


async def test_d1_a_refused_connection_is_before_the_mark_whatever_the_method(deployment: Deployment) -> None:
    async with deployment.engine() as engine:
        engine.start([Family.EFFECT])
        runner = Runner(deployment, engine)
        for method in METHODS:
            for says in SAYS:
                deployment.simulator.faults({"fault": "refuse"})
                _, attempt = await runner.run(method, says)
                assert (attempt.outcome, attempt.dispatched_at) == ("RETRYABLE_PRE_DISPATCH", None)
                deployment.simulator.control("DELETE", "faults")
    assert deployment.simulator.ledger() == []
