"""Writes whose outcome nobody knows: the provider saw one at most, and nothing sends a second (PROTOCOL D3, D6)."""

from __future__ import annotations

from typing import Final

from doonce.commands.model import CommandState
from doonce.conformance.cases.case import Case
from doonce.conformance.cases.lifecycle import reached
from doonce.conformance.model import expect_equal
from doonce.conformance.stage import Stage, Tenant
from doonce.conformance.witness import Manner


async def no_answer(stage: Stage) -> None:
    tenant = await stage.tenant()
    stage.witness.behave(Manner.HANG_UP)
    command = await tenant.accept("k1")
    process = await stage.run_engine(tenant)
    await reached(stage, tenant, command, CommandState.UNKNOWN)
    await process.stop()
    await _only(stage, tenant, command, calls=1)


async def kill_after_mark(stage: Stage) -> None:
    await _killed(stage, "call.marked", calls=0)


async def kill_after_answer(stage: Stage) -> None:
    await _killed(stage, "call.answered", calls=1)


async def _killed(stage: Stage, point: str, *, calls: int) -> None:
    """A sender dies at a point after its mark; the next process may not know better, and may not send."""
    tenant = await stage.tenant()
    command = await tenant.accept("k1")
    doomed = await stage.run_engine(tenant, kill_at=point)
    await doomed.wait_killed()
    await _only(stage, tenant, command, calls=calls)


async def _only(stage: Stage, tenant: Tenant, command: str, *, calls: int) -> None:
    """Another process works everything that there is, and this command is unknown and was sent no more than so."""
    stage.witness.behave(Manner.ANSWER)
    process = await stage.run_engine(tenant)
    await reached(stage, tenant, command, CommandState.UNKNOWN, calls_max=calls)
    sentinel = await tenant.accept("sentinel")
    await reached(stage, tenant, sentinel, CommandState.ACCEPTED)
    await process.stop()
    expect_equal(stage.witness.count(command), calls, "calls of a command whose outcome is unknown")
    await reached(stage, tenant, command, CommandState.UNKNOWN)


CASES: Final = (
    Case("no-answer", "A write that was not answered is unknown, and is not sent again", no_answer),
    Case(
        "kill-after-mark",
        "A sender that dies before the first byte leaves an unknown, not a second send",
        kill_after_mark,
    ),
    Case(
        "kill-after-answer",
        "A sender that dies with the answer leaves an unknown, not a second send",
        kill_after_answer,
    ),
)
