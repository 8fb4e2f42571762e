"""The steps of one effect by their transactions, for cases that stop between them."""

from __future__ import annotations

from doonce.base.ids import new_id, new_token
from doonce.catalog.model import Outcome
from doonce.commands.model import Command
from doonce.conformance.model import Broken, expect
from doonce.conformance.scratch import DEPLOYMENT
from doonce.conformance.stage import LONG_US, Stage, until
from doonce.effects import finish as finish_store
from doonce.effects import store as effects
from doonce.effects.finish import Finish, Finished
from doonce.effects.model import Ending, MarkResult, Start, Terms
from doonce.effects.store import MarkRequest, PrepareRequest
from doonce.work.model import RetryPolicy

TERMS = Terms(RetryPolicy(base_us=1, cap_us=1), wants_rejected_result=True)


async def claim_effect(stage: Stage, lease_us: int = LONG_US) -> Start:
    """Claim one effect and journal its attempt, as soon as there is one."""

    async def some() -> Start | None:
        request = PrepareRequest(stage.claim_request(1, lease_us), (new_id("att"),))
        starts = await stage.database.transact(effects.claim_and_prepare, request)
        return starts[0] if starts else None

    return await until(some, "an effect that may be claimed")


async def take_over(stage: Stage, before: Start) -> Start:
    """Claim the effect whose lease ran out; its open attempt is handed on."""
    start = await claim_effect(stage)
    expect(
        start.claimed.item.id == before.claimed.item.id,
        "another item was claimed than the one whose lease ran out",
    )
    expect(start.attempt_id == before.attempt_id, "the open attempt was not handed on to the next claimant")
    return start


def command_of(start: Start) -> Command:
    """The command of a claimed effect."""
    if start.command is None:
        raise Broken("a claimed effect has no command")
    return start.command


async def mark(stage: Stage, start: Start, *, lease_us: int = LONG_US) -> MarkResult:
    """Mark the attempt as dispatched; which fence refuses, if one does."""
    command = command_of(start)
    request = MarkRequest(
        claimed=start.claimed,
        deployment=DEPLOYMENT,
        attempt_id=start.attempt_id,
        nonce=new_token(),
        principal_id=command.pins.principal_id,
        generation=command.pins.generation,
        link_id=command.pins.link_id,
        link_version=command.pins.link_version,
        request_digest=command.request.body_digest,
        lineage=start.lineage,
        budget_us=lease_us,
        margin_us=0,
        settle_us=lease_us,
    )
    return (await stage.database.transact(effects.mark, [request]))[0]


async def finish(stage: Stage, start: Start, outcome: Outcome) -> Finished:
    """End the attempt."""
    row = Finish(
        claimed=start.claimed,
        deployment=DEPLOYMENT,
        command=command_of(start),
        attempt_id=start.attempt_id,
        ending=Ending(outcome, "conformance"),
        terms=TERMS,
        earlier=start.earlier,
    )
    finished, _ = (await stage.database.transact(finish_store.finish, [row]))[0]
    return finished
