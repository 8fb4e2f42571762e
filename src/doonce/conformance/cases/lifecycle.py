"""Cancellation and drain: what has not begun never begins, and what has begun ends (PROTOCOL W5)."""

from __future__ import annotations

from typing import Final

from doonce.base.errors import Conflict
from doonce.catalog.model import Outcome
from doonce.commands.model import CommandState
from doonce.conformance.cases.case import Case
from doonce.conformance.cases.steps import claim_effect, finish, mark
from doonce.conformance.model import Broken, expect, expect_equal
from doonce.conformance.stage import Stage, Tenant, until
from doonce.conformance.witness import Manner
from doonce.effects.finish import Finished
from doonce.effects.model import Marked, RefusedMark


async def state_of(stage: Stage, tenant: Tenant, command: str) -> CommandState:
    """Where a command stands."""
    return (await stage.operator(tenant).command(command)).state


async def reached(
    stage: Stage, tenant: Tenant, command: str, state: CommandState, *, calls_max: int = 1
) -> None:
    """Wait until a command stands there; it may neither end otherwise nor be sent more often on the way."""

    async def there() -> bool | None:
        view = await stage.operator(tenant).command(command)
        expect(
            view.state is state or not view.final,
            f"a command that should become {state.value} ended as {view.state.value}: {view.reason}",
        )
        calls = stage.witness.count(command)
        expect(calls <= calls_max, f"{calls} calls of a command that may be sent {calls_max} times")
        return True if view.state is state else None

    await until(there, f"a command that is {state.value}")


async def cancel_waiting(stage: Stage) -> None:
    tenant = await stage.tenant()
    cancelled = await tenant.accept("cancelled")
    view = await stage.operator(tenant).cancel(cancelled)
    expect_equal(view.state, CommandState.CANCELLED, "a waiting command after its cancellation")
    sentinel = await tenant.accept("sentinel")
    process = await stage.run_engine(tenant)
    await reached(stage, tenant, sentinel, CommandState.ACCEPTED)
    await process.stop()
    expect_equal(stage.witness.count(cancelled), 0, "calls of a cancelled command")
    expect_equal(await state_of(stage, tenant, cancelled), CommandState.CANCELLED, "the cancelled command")


async def cancel_running(stage: Stage) -> None:
    tenant = await stage.tenant()
    early = await tenant.accept("early")
    start = await claim_effect(stage)
    view = await stage.operator(tenant).cancel(early)
    expect_equal(view.state, CommandState.RUNNING, "a held command after its cancellation was asked for")
    expect_equal(await mark(stage, start), RefusedMark.CANCELLED, "a dispatch after the cancellation")
    await finish(stage, start, Outcome.RETRYABLE_PRE_DISPATCH)
    expect_equal(await state_of(stage, tenant, early), CommandState.CANCELLED, "the command, acknowledged")
    late = await tenant.accept("late")
    start = await claim_effect(stage)
    expect(
        isinstance(await mark(stage, start), Marked), "a command that nobody cancelled cannot be dispatched"
    )
    await stage.operator(tenant).cancel(late)
    expect_equal(
        await finish(stage, start, Outcome.ACCEPTED), Finished.DONE, "the end after a cancel that came late"
    )
    expect_equal(
        await state_of(stage, tenant, late), CommandState.ACCEPTED, "a command whose call came first"
    )
    try:
        await stage.operator(tenant).cancel(late)
    except Conflict:
        return
    raise Broken("a command that had ended was cancelled")


async def drain(stage: Stage) -> None:
    tenant = await stage.tenant()
    stage.witness.behave(Manner.HOLD)
    held = await tenant.accept("held")
    process = await stage.run_engine(tenant, concurrency=4)

    async def arrived() -> bool | None:
        return True if stage.witness.count(held) else None

    await until(arrived, "the call of the first command")
    await process.begin_drain()
    late = await tenant.accept("late")
    stage.witness.released.set()
    await process.result()
    expect_equal(await state_of(stage, tenant, held), CommandState.ACCEPTED, "what a draining process held")
    expect_equal(
        await state_of(stage, tenant, late), CommandState.WAITING, "what was accepted during the drain"
    )
    expect_equal(stage.witness.count(late), 0, "calls of a process that was draining")


CASES: Final = (
    Case("cancel-waiting", "A cancelled command that waits is never sent", cancel_waiting),
    Case(
        "cancel-running", "A cancellation wins before the dispatch, and the outcome after it", cancel_running
    ),
    Case("drain", "A draining process claims nothing more and finishes what it holds", drain),
)
