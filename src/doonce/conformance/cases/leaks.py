"""Secrets and payloads stay where they belong: not in logs, metrics, refusals or what an operator is shown."""

from __future__ import annotations

from typing import Final

import msgspec

from doonce.base.digests import digest_bytes
from doonce.base.errors import DoonceError
from doonce.base.ids import new_token
from doonce.commands.model import CommandState
from doonce.conformance.cases.case import Case
from doonce.conformance.cases.lifecycle import reached
from doonce.conformance.model import Broken, expect, expect_equal
from doonce.conformance.stage import Stage, Tenant
from doonce.conformance.witness import Manner


async def no_leaks(stage: Stage) -> None:
    tenant = await stage.tenant()
    payload = f"payload{new_token()}"
    stage.witness.behave(Manner.HANG_UP)
    unknown = await tenant.accept("unknown", value=payload)
    first = await stage.run_engine(tenant)
    await reached(stage, tenant, unknown, CommandState.UNKNOWN)
    said = [(await first.stop()).metrics, first.log()]
    stage.witness.behave(Manner.ANSWER)
    done = await tenant.accept("done", value=payload)
    second = await stage.run_engine(tenant)
    await reached(stage, tenant, done, CommandState.ACCEPTED)
    dead = await _after_disconnect(stage, tenant, payload)
    said += [(await second.stop()).metrics, second.log()]
    expect(
        f"Bearer {tenant.secret}" in stage.witness.secrets,
        "the provider never saw the secret: nothing was tried",
    )
    said += await _shown(stage, tenant, [unknown, done, dead])
    said.append(await _quarantined(tenant, payload))
    for text in said:
        _absent(text, tenant.secret, "the secret")
        _absent(text, payload, "the payload")


async def _after_disconnect(stage: Stage, tenant: Tenant, payload: str) -> str:
    """A command that dies because its principal is gone."""
    stage.witness.behave(Manner.ANSWER)
    await tenant.engine.principals.disconnect(tenant.principal, reason="conformance")
    admission = await tenant.engine.acceptor.accept_one(
        tenant.identity, tenant.request("gone", value=payload)
    )
    expect_equal(admission.command_id, None, "a command of a principal that is gone")
    return admission.receipt_id


async def _shown(stage: Stage, tenant: Tenant, ids: list[str]) -> list[str]:
    operator = stage.operator(tenant)
    timelines = [timeline for asked in ids for timeline in await operator.find(asked)]
    expect(len(timelines) >= 2, "the operator is shown nothing of the commands")
    steps = [moment.id for timeline in timelines for moment in timeline.moments]
    timelines += [timeline for asked in sorted(set(steps)) for timeline in await operator.find(asked)]
    views = [await operator.command(command) for command in ids if command.startswith("cmd_")]
    principal = await operator.find(tenant.principal.id)
    return [
        msgspec.json.encode(shown).decode()
        for shown in (timelines, views, principal, await operator.status())
    ]


async def _quarantined(tenant: Tenant, payload: str) -> str:
    """What is said to a caller who uses a key with another payload."""
    other = msgspec.json.encode({"first": f"{payload} and more"})
    request = msgspec.structs.replace(
        tenant.request("done", value=payload), payload=other, payload_digest=digest_bytes(other)
    )
    try:
        await tenant.engine.acceptor.accept_one(tenant.identity, request)
    except DoonceError as refused:
        return f"{refused} {refused.message} {refused.hint}"
    raise Broken("a key with another payload was not refused")


def _absent(text: str, kept: str, what: str) -> None:
    """Raise `Broken`, which says where it is and not what, if it is in the text."""
    at = text.find(kept)
    if at >= 0:
        raise Broken(f"{what} follows after: {text[max(0, at - 80) : at]}")


CASES: Final = (
    Case("no-leaks", "No secret and no payload in logs, metrics, refusals and operators' views", no_leaks),
)
