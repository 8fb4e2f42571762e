"""A cluster whose nodes come to harm under workers that sit on all of them: no call twice, nothing lost, no lie.

The witness is the provider: it counts what reaches it. What the workers of the struck node were doing may end as
unknown, which is honest; what is said to be accepted has arrived, once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.galera.cluster import do

from doonce.base.errors import Unavailable
from doonce.conformance.processes import Process, processes
from doonce.conformance.scratch import other_ways, scratch
from doonce.conformance.stage import Stage, Tenant, staging, until
from doonce.db.faults import DatabaseFault

COMMANDS = 40
UNDECIDED = ("waiting", "running")

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]


@asynccontextmanager
async def worked_on_every_node(nodes: list[str]) -> AsyncIterator[tuple[Stage, Tenant, list[Process]]]:
    """One installation, and an engine on each node that works for it."""
    with processes() as forks:
        async with (
            scratch(nodes[0]) as place,
            staging(place, await other_ways(place, nodes[1:]), forks) as make,
        ):
            stage = make()
            tenant = await stage.tenant()
            try:
                yield stage, tenant, [await stage.run_engine(tenant) for _ in nodes]
            finally:
                await stage.close()


async def accepted(tenant: Tenant, name: str) -> str:
    """Accept a command as a relay does: the same request again until there is an answer."""

    async def answer() -> str | None:
        try:
            return await tenant.accept(name)
        except (Unavailable, DatabaseFault):
            return None

    return await until(answer, f"the admission of {name}")


async def all_accepted(tenant: Tenant, name: str) -> list[str]:
    """Accept so many commands, one after another."""
    return [await accepted(tenant, f"{name}{number}") for number in range(COMMANDS)]


@pytest.mark.parametrize(
    "strike, heal, seconds",
    [("kill", "start", 4.0), ("stop", "start", 1.0), ("cut", "mend", 5.0), ("freeze", "thaw", 6.0)],
)
async def test_no_call_is_made_twice_and_none_is_lost_while_a_node_is_struck(
    galera_nodes: list[str], strike: str, heal: str, seconds: float
) -> None:
    async with worked_on_every_node(galera_nodes) as (stage, tenant, workers):
        commands = await all_accepted(tenant, "before")

        async def under_way() -> bool | None:
            return sum(stage.witness.count(command) for command in commands) >= 3 or None

        await until(under_way, "the first calls")
        async with asyncio.TaskGroup() as both:  # at once: nobody has noticed the harm at first
            both.create_task(do(strike, 2))
            meanwhile = both.create_task(all_accepted(tenant, "meanwhile"))
        commands += meanwhile.result()
        await asyncio.sleep(seconds)  # how long the harm lasts: nothing is waited for
        await do(heal, 2)
        commands += await all_accepted(tenant, "after")
        operator = stage.operator(tenant)

        async def decided() -> dict[str, str] | None:
            try:
                states = {command: (await operator.command(command)).state.value for command in commands}
            except (Unavailable, DatabaseFault):
                return None
            return None if set(states.values()) & set(UNDECIDED) else states

        states = await until(decided, "the end, or an honest unknown, of every command")
        for worker in workers:
            await worker.stop()
        calls = {command: stage.witness.count(command) for command in commands}
    assert max(calls.values()) == 1, "a call was made twice"
    assert [command for command in commands if states[command] == "accepted" and calls[command] != 1] == []
    found = Counter(states.values())
    assert found["accepted"] >= 2 * COMMANDS, found
    assert set(found) <= {"accepted", "unknown"}, found
