"""Pins: what was accepted under one generation and one view is never done under another (PROTOCOL D2, F1)."""

from __future__ import annotations

from typing import Final

import msgspec

from doonce.base.ids import new_token
from doonce.base.secrets import Secret
from doonce.catalog.model import Outcome
from doonce.commands.model import CommandState
from doonce.conformance.cases.case import Case
from doonce.conformance.cases.lifecycle import reached, state_of
from doonce.conformance.cases.steps import claim_effect, command_of, finish, mark
from doonce.conformance.model import expect_equal
from doonce.conformance.stage import Stage, Tenant, view_of
from doonce.effects.model import RefusedMark
from doonce.wire import AdmissionState


async def no_retarget(stage: Stage) -> None:
    tenant = await stage.tenant()
    queued = [await tenant.accept("held"), await tenant.accept("waiting")]
    held = await claim_effect(stage)
    renewed = await _reconnected(tenant)
    expect_equal(await mark(stage, held), RefusedMark.GENERATION, "a dispatch after the reconnect")
    await finish(stage, held, Outcome.RETRYABLE_PRE_DISPATCH)
    fresh = await renewed.accept("fresh")
    process = await stage.run_engine(tenant)
    await reached(stage, renewed, fresh, CommandState.ACCEPTED)
    for command in queued:
        await reached(stage, tenant, command, CommandState.DEAD)
    await process.stop()
    expect_equal(
        [stage.witness.count(command) for command in queued], [0, 0], "calls of the work queued before"
    )
    expect_equal(
        list(stage.witness.secrets), [f"Bearer {renewed.secret}"], "the secrets that the provider saw"
    )
    late = await tenant.engine.acceptor.accept_one(tenant.identity, tenant.request("late"))
    expect_equal(late.state, AdmissionState.HANDOFF_REJECTED, "a handoff that pins the generation before")


async def _reconnected(tenant: Tenant) -> Tenant:
    """The same installation after a disconnect and a reconnect, with another secret and generation."""
    principals = tenant.engine.principals
    secret = new_token()
    ended = await principals.disconnect(tenant.principal, reason="conformance")
    principal = await principals.reconnect(ended, Secret(secret), reason="conformance")
    return Tenant(tenant.engine, tenant.view, principal, tenant.place, secret)


async def no_mixed_view(stage: Stage) -> None:
    tenant = await stage.tenant()
    before = await tenant.accept("before", value="old")
    newer = view_of(tenant.place, first="second")
    await tenant.engine.views.publish([newer])
    start = await claim_effect(stage)
    expect_equal(
        command_of(start).pins.view_digest, tenant.view.digest, "the view of a command accepted before"
    )
    late = await tenant.engine.acceptor.accept_one(tenant.identity, tenant.request("late", value="old"))
    after = await Tenant(tenant.engine, newer, tenant.principal, tenant.place, tenant.secret).accept(
        "after", value="new"
    )
    await finish(stage, start, Outcome.RETRYABLE_PRE_DISPATCH)
    process = await stage.run_engine(tenant)
    commands = {
        before: b'{"first":"old"}',
        str(late.command_id): b'{"first":"old"}',
        after: b'{"second":"new"}',
    }
    for command in commands:
        await reached(stage, tenant, command, CommandState.ACCEPTED)
    await process.stop()
    for command, body in commands.items():
        sent = [msgspec.json.decode(raw) for raw in stage.witness.bodies[command]]
        expect_equal(sent, [msgspec.json.decode(body)], "the body that was sent for a command's own view")
        expect_equal(await state_of(stage, tenant, command), CommandState.ACCEPTED, "the command")


CASES: Final = (
    Case("no-retarget", "Work queued before a reconnect is never sent as somebody else", no_retarget),
    Case("no-mixed-view", "A command is sent exactly as the view says that it pinned", no_mixed_view),
)
