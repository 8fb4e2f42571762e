"""The dispatcher: from a claimed effect to its one call, and from what came back to what is known.

Order (PROTOCOL D1): claim and prepare → pins, secret → connect → mark → send on that connection only → outcome. The
dispatcher has no retry of its own: whatever happens ends the attempt, and the kernel schedules.
"""

from __future__ import annotations

import random
from functools import lru_cache

import structlog
from msgspec.structs import replace

from doonce.base.errors import DoonceError, Stale
from doonce.base.ids import id_time_us
from doonce.catalog.classify import CrashedState, may_replay, settle_crash
from doonce.catalog.compile import BindingView, Operation
from doonce.catalog.model import CompletionMode, OperationContract, Outcome, Policies
from doonce.catalog.service import Views
from doonce.commands.model import Command
from doonce.commands.service import creates
from doonce.db.committer import Committer
from doonce.db.database import Database
from doonce.db.faults import DatabaseFault
from doonce.effects import finish as finish_store
from doonce.effects import reconcile
from doonce.effects.caller import (
    LOST,
    Call,
    Caller,
    CallLog,
    EffectObserver,
    classify_sent,
    ending_of,
    frozen_request,
)
from doonce.effects.finish import Finish, Finished
from doonce.effects.model import (
    AttemptState,
    Ending,
    EvidenceKind,
    Lineage,
    NextStep,
    RefusedMark,
    Start,
    Terms,
)
from doonce.http import NotSent, Stage
from doonce.work.model import RetryPolicy

log = structlog.get_logger()
NO_VIEW = Terms(RetryPolicy(), wants_rejected_result=True)
"""The policy for commands whose pinned view cannot be had: the defaults, until somebody restores it."""


@lru_cache(maxsize=256)
def policy_of(policies: Policies) -> Terms:
    """The binding's policy as the kernel uses it."""
    return Terms(
        policy=RetryPolicy(
            base_us=policies.retry_base_us,
            cap_us=policies.retry_cap_us,
            tries_max=policies.attempts_max,
            failures_max=policies.predispatch_failures_max,
            failing_us_max=policies.predispatch_age_us_max,
            deferring_us_max=policies.deferral_age_us_max,
        ),
        wants_rejected_result=policies.wants_rejected_result,
        asks=policies.completion.mode is CompletionMode.PULL,
    )


def terms_of(view: BindingView, operation: str) -> Terms:
    """What the pinned view says about ending attempts of this operation."""
    return replace(policy_of(view.policies), creates=creates(view, view.operations[operation]))


class Dispatcher:
    """Runs claimed effects."""

    def __init__(
        self,
        database: Database,
        views: Views,
        caller: Caller,
        deployment: str,
        observer: EffectObserver,
        lease_us: int,
    ) -> None:
        self._database = database
        self._views = views
        self._caller = caller
        self._deployment = deployment
        self._observer = observer
        self._lease_us = lease_us
        self._finishes: Committer[Finish, tuple[Finished, NextStep | None]] = Committer(
            database, finish_store.finish, key=lambda row: row.claimed.item.id, observer=observer
        )

    async def run(self, start: Start) -> None:
        """Take one claimed effect to the end of one attempt. Whatever cannot be stored is left to the next claimant."""
        command = start.command
        if command is None:
            log.error("a work item has no command", item=start.claimed.item.id)
            return
        try:
            view = await self._views.get(command.pins.view_digest)
            operation = view.operations[command.operation]
        except (DoonceError, KeyError) as error:
            await self._without_view(start, command, str(error))
            return
        if start.open_attempt is not None:
            await self._settle_open(start, command, view, operation)
            return
        now_us = start.claimed.lease_until - self._lease_us
        held = self._hold_back(start, operation.contract, now_us)
        if held is not None:
            await self._finish(start, command, terms_of(view, command.operation), held)
            return
        call = Call(
            claimed=start.claimed,
            attempt_id=start.attempt_id,
            pins=command.pins,
            view=view,
            operation=command.operation,
            request=frozen_request(command),
            lineage=start.lineage,
        )
        await self._call(start, command, call)

    async def _without_view(self, start: Start, command: Command, reason: str) -> None:
        """The pinned view cannot be had: nothing is sent, and what was sent cannot be read as anything but unknown."""
        attempt = start.open_attempt
        sent = attempt is not None and attempt.state is AttemptState.DISPATCHED
        outcome = Outcome.OUTCOME_UNKNOWN if sent else Outcome.RETRYABLE_PRE_DISPATCH
        ending = Ending(outcome, f"the pinned view cannot be used: {reason}", effect_free=not sent)
        await self._finish(start, command, NO_VIEW, replace(ending, jitter=random.random()))  # noqa: S311

    def _hold_back(self, start: Start, contract: OperationContract, now_us: int) -> Ending | None:
        """Why a prepared attempt is not sent at all."""
        if start.claimed.poison:
            return Ending(
                Outcome.RETRYABLE_PRE_DISPATCH, "its workers keep dying, even alone", effect_free=True
            )
        if _may_have_been_lost(start):
            reason = "the database may have lost a mark of this command since it was accepted"
            return Ending(Outcome.OUTCOME_UNKNOWN, reason)
        if start.earlier is not None and not may_replay(
            contract, now_us=now_us, first_dispatched_at_us=start.first_dispatched_at
        ):
            reason = "the window in which a repetition is harmless has passed"
            return Ending(Outcome.RETRYABLE_PRE_DISPATCH, reason, effect_free=True, give_up=True)
        return None

    async def _call(self, start: Start, command: Command, call: Call) -> None:
        note = CallLog()
        terms = terms_of(call.view, call.operation)
        try:
            secrets = await self._caller.secret(call.pins, call.view)
        except DoonceError as error:
            refused = Ending(Outcome.RETRYABLE_PRE_DISPATCH, f"no secret: {error.message}", effect_free=True)
            jitter = random.random()  # noqa: S311 (spreads retries; not a secret)
            refused = replace(refused, give_up=isinstance(error, Stale), jitter=jitter)
            await self._finish(start, command, terms, refused)
            return
        sent = await self._caller.make(call, secrets, note)
        if note.refused is RefusedMark.EVIDENCE and call.lineage is not None:
            await self._after_evidence(start, command, call, call.lineage)
            return
        if note.refused in LOST:
            self._observer.stale(call.claimed.item.family, "mark")
            log.info("sent nothing: the claim was lost", attempt=call.attempt_id, fence=str(note.refused))
            return
        earlier = start.earlier is not None
        ending, kind = classify_sent(call.contract, call.request, sent, earlier_maybe_sent=earlier)
        if note.refused is not None and note.refused is not RefusedMark.CANCELLED:
            ending = replace(
                ending, give_up=True, reason=f"the {note.refused.value} that it was accepted under changed"
            )
        if isinstance(sent, NotSent) and sent.stage is Stage.WINDOW:
            log.info("sent nothing: the time to send by had passed", attempt=call.attempt_id)
        if note.marked is None and not note.unsettled:
            await self._finish(start, command, terms, ending)  # it is `prepared`: that proves enough
            return
        finished = await self._caller.persist(lambda: self._finish(start, command, terms, ending))
        if finished is not Finished.DONE and finished is not Finished.REPEATED:
            await self._caller.append(call, kind, ending)

    async def _after_evidence(self, start: Start, command: Command, call: Call, lineage: Lineage) -> None:
        """Something came in about the predecessor since its verdict: believe it, or try again having seen it (H4)."""
        try:
            seen, evidence = await self._database.transact(reconcile.look_at, lineage.attempt_id)
        except (DoonceError, DatabaseFault) as error:
            log.warning("late evidence could not be read", attempt=lineage.attempt_id, error=str(error))
            return  # still `prepared`: the next claimant looks again
        for late in evidence:
            if late.outcome is Outcome.ACCEPTED:
                reason = f"not sent: the predecessor's answer came late: {late.reason}"
                ending = Ending(Outcome.ACCEPTED, reason, result_json=late.result_json)
                terms = terms_of(call.view, call.operation)
                await self._finish(start, command, terms, ending)
                return
        await self._call(start, command, replace(call, lineage=seen))

    async def _settle_open(
        self, start: Start, command: Command, view: BindingView, operation: Operation
    ) -> None:
        """Settle the attempt that a vanished claimant left open, before anything else is tried."""
        attempt = start.open_attempt
        if attempt is None:
            return
        ending = self._from_evidence(start)
        if ending is None:
            dispatched = attempt.state is AttemptState.DISPATCHED or _may_have_been_lost(start)
            crashed = settle_crash(
                operation.contract,
                CrashedState.DISPATCHED if dispatched else CrashedState.PREPARED,
                now_us=start.claimed.lease_until - self._lease_us,
                first_dispatched_at_us=start.first_dispatched_at,
            )
            ending = ending_of(crashed, operation.contract, None)
        await self._finish(start, command, terms_of(view, command.operation), ending)

    def _from_evidence(self, start: Start) -> Ending | None:
        for seen in start.evidence:
            if seen.kind is EvidenceKind.CLOSED_UNSENT:
                return Ending(Outcome.RETRYABLE_PRE_DISPATCH, seen.reason, effect_free=True)
            if seen.kind is EvidenceKind.ANSWERED and seen.outcome is not None:
                return Ending(seen.outcome, seen.reason, result_json=seen.result_json)
        return None

    async def _finish(self, start: Start, command: Command, terms: Terms, ending: Ending) -> Finished | None:
        row = Finish(
            claimed=start.claimed,
            deployment=self._deployment,
            command=command,
            attempt_id=start.attempt_id,
            ending=ending,
            terms=terms,
            earlier=start.earlier,
            for_vanished=start.open_attempt is not None,
        )
        try:
            finished, step = await self._finishes.submit(row)
        except (DoonceError, DatabaseFault) as error:
            log.warning("an outcome could not be stored", attempt=start.attempt_id, error=str(error))
            return None
        if step is not None:
            self._observer.ended(command.operation, step.outcome.value)
            if step.linked is not None:
                self._observer.linked(command.operation, step.linked)
        if finished is Finished.STALE:
            self._observer.stale(start.claimed.item.family, "finish")
        return finished

    async def drain(self) -> None:
        """Wait for flushes under way."""
        await self._finishes.drain()


def _may_have_been_lost(start: Start) -> bool:
    """Whether a mark of this command may be among what the database lost (PROTOCOL S2).

    A successor is not asked again: its verdict was taken since. An outbox row that is older than the declaration may be
    handed over a second time, because the first admission was lost.
    """
    command, lossy_at = start.command, start.lossy_at
    if command is None or lossy_at is None or start.lineage is not None:
        return False
    return command.accepted_at < lossy_at or id_time_us(command.outbox_id) < lossy_at
