"""The hydrator: reads the whole object that an event is about, and lets the event go on to be handed over.

A read is an attempt like any other call (PROTOCOL D5): journaled, under pins that its mark rechecks, sent on the
connection that was open at the mark. It has no effect, so nothing of it is ever unknown: it is read again.

| the answer                                           | the work item                                             |
|------------------------------------------------------|-----------------------------------------------------------|
| the object, its fields where the pack says           | succeeded; the event is handed over with the object       |
| a status by which the pack says that there is none   | succeeded; the event is handed over, its object missing   |
| refused (another 4xx), or what the pack calls so     | dead (`rejected`): its lane waits for an operator         |
| no answer, 5xx, 429, a redirect, an answer that is   | retry, by the policy of hydration; at its bound dead      |
| cut, too long, no JSON, or lacks the object          | (`tries_exhausted`)                                       |
| nothing was sent: no connection, no secret, no view  | the same (`never_dispatched`)                             |
| the binding's generation began after this work       | dead (`never_dispatched`): another account may be behind  |
|                                                      | it now, so only an operator's replay reads under it       |
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Protocol

import structlog
from msgspec.structs import replace

from doonce.base.errors import DoonceError, Invalid
from doonce.base.ids import new_id
from doonce.base.json import loads
from doonce.catalog.classify import CrashedState, settle_crash
from doonce.catalog.compile import BindingView
from doonce.catalog.exchange import FrozenRequest, Response
from doonce.catalog.hydration import Found, found_in, hydration_request
from doonce.catalog.model import Outcome
from doonce.catalog.service import Views
from doonce.catalog.webhooks import Hydration
from doonce.commands.model import Pins
from doonce.db.committer import Committer
from doonce.db.database import Database
from doonce.db.faults import DatabaseFault
from doonce.effects.caller import LOST, Call, Caller, CallLog, EffectObserver, classify_sent, ending_of
from doonce.effects.finish import Finished
from doonce.effects.hydration import Hydrated, Reading, authority, finish_hydrations
from doonce.effects.model import AttemptKind, AttemptState, Ending, NextStep, Terms
from doonce.effects.reads import VANISHED, PrepareRead, prepare_reads
from doonce.events.making import content_place
from doonce.events.mapping import Told, told_of
from doonce.events.model import handed_to
from doonce.events.objects import ObjectRead, object_place
from doonce.events.store import StoredEvent
from doonce.http import Replied, Sent
from doonce.ingress.receipts import Sealed
from doonce.principals.vault import Vault
from doonce.work.model import Claimed, Event, NewItem, RetryPolicy

log = structlog.get_logger()


class HydrationObserver(EffectObserver, Protocol):
    """Where hydration reports what an operator looks for."""

    def hydrated(self, fate: str) -> None: ...


@dataclass(frozen=True, slots=True)
class HydrationSettings:
    """How whole objects are read. Each is a line in docs/settings.md.

    `policy`: a read that gets no answer is tried for some three days, as a handler that fails is.
    """

    policy: RetryPolicy = field(
        default_factory=lambda: RetryPolicy(
            cap_us=600_000_000, tries_max=1_000, failures_max=1_000, failing_us_max=259_200_000_000
        )
    )


@dataclass(frozen=True, slots=True)
class _Case:
    """An event whose object can be asked for."""

    claimed: Claimed
    event: StoredEvent
    view: BindingView
    told: Told
    hydration: Hydration
    request: FrozenRequest


class _Unreadable(Invalid):
    """No try will ever be able to ask for this object."""


class Hydrator:
    """Runs claimed readings."""

    def __init__(
        self,
        database: Database,
        views: Views,
        vault: Vault,
        caller: Caller,
        deployment: str,
        observer: HydrationObserver,
        settings: HydrationSettings,
    ) -> None:
        self._database = database
        self._views = views
        self._vault = vault
        self._caller = caller
        self._deployment = deployment
        self._observer = observer
        self._terms = Terms(settings.policy, wants_rejected_result=False)
        self._prepares: Committer[PrepareRead, bool] = Committer(
            database, prepare_reads, key=lambda row: row.claimed.item.id, observer=observer
        )
        self._finishes: Committer[Hydrated, tuple[Finished, NextStep | None]] = Committer(
            database,
            finish_hydrations,
            key=lambda row: row.claimed.item.id,
            size=lambda row: 1_024 + _bytes(row.object),
            observer=observer,
        )

    async def run(self, reading: Reading) -> None:
        """Read once, and store what came of it. What cannot be stored is read again by the next claimant."""
        ended = await self._read(reading)
        if ended is None:
            return
        try:
            finished, step = await self._finishes.submit(ended)
        except (DoonceError, DatabaseFault) as error:
            log.warning("an object could not be stored", item=reading.claimed.item.id, error=str(error))
            return
        if finished is Finished.STALE:
            self._observer.stale(reading.claimed.item.family, "finish")
        if step is not None:
            self._tell(ended, step)

    def _tell(self, ended: Hydrated, step: NextStep) -> None:
        item = ended.claimed.item
        if step.event is Event.DIE:
            self._observer.hydrated("dead")
            log.error(
                "reading an event's object is given up; `doonce replay` tries again",
                event_id=item.subject_id,
                item=item.id,
                reason=ended.ending.reason,
            )
        elif ended.object is not None:
            self._observer.hydrated("missing" if ended.object.sealed is None else "whole")

    async def _read(self, reading: Reading) -> Hydrated | None:
        """What to store; None where somebody else has the work by now, or the database could not be asked."""
        event, attempt = reading.event, reading.open_attempt
        if reading.claimed.poison:
            return self._ended(
                reading, VANISHED if attempt is not None else _unsent("its workers keep dying")
            )
        if event is None:
            return self._ended(reading, _unsent("there is no such event", give_up=True))
        try:
            view = await self._views.get(event.view_digest)
            case = self._case(reading.claimed, event, view)
        except DoonceError as error:
            hopeless = isinstance(error, _Unreadable)
            return self._ended(
                reading, VANISHED if attempt is not None else _unsent(error.message, give_up=hopeless)
            )
        if attempt is not None:
            contract = view.operations[case.hydration.operation].contract
            dispatched = attempt.state is AttemptState.DISPATCHED
            crashed = CrashedState.DISPATCHED if dispatched else CrashedState.PREPARED
            return self._ended(
                reading,
                ending_of(
                    settle_crash(contract, crashed, now_us=0, first_dispatched_at_us=None), contract, None
                ),
            )
        return await self._with_pins(reading, case)

    def _case(self, claimed: Claimed, event: StoredEvent, view: BindingView) -> _Case:
        """Raises `_Unreadable` for what never will be, `Unavailable` for a seal that does not open now."""
        rule = (view.document.webhooks or {})[event.route.webhook].events
        content = self._vault.open_bytes(content_place(event.id), event.sealed.raw, event.sealed.key_id)
        told = told_of(rule, view.document.fields, event.type, loads(content, bytes_max=len(content)))
        hydration = None if told is None else rule.objects[told.kind].hydrate
        if told is None or hydration is None:
            raise _Unreadable("the event is about no object that could be read")
        try:
            request = hydration_request(view, hydration, remote_id=told.remote_id, event_id=event.id)
        except Invalid as unfit:
            raise _Unreadable(unfit.message) from unfit
        return _Case(claimed, event, view, told, hydration, request)

    async def _with_pins(self, reading: Reading, case: _Case) -> Hydrated | None:
        document = case.view.document
        name = (document.org, document.installation, document.principal)
        try:
            found = await self._database.read(authority, name, case.told.kind, case.told.remote_id)
        except (DoonceError, DatabaseFault) as error:
            log.warning("a read could not be prepared", item=case.claimed.item.id, error=str(error))
            return None
        if found is None or found.generation is None:
            return self._ended(reading, _unsent(f"the principal {document.principal!r} is not connected"))
        if found.generation > 1 and found.began_at > reading.made_at:
            reason = f"generation {found.generation} of the principal began after this event came"
            return self._ended(reading, _unsent(reason, give_up=True))
        return await self._call(reading, case, found.pins(case.view.digest, found.generation))

    async def _call(self, reading: Reading, case: _Case, pins: Pins) -> Hydrated | None:
        claimed, operation, attempt_id = case.claimed, case.hydration.operation, new_id("att")
        row = PrepareRead(
            claimed,
            self._deployment,
            attempt_id,
            AttemptKind.HYDRATION,
            pins,
            operation,
            case.request.body_sha256,
        )
        try:
            secrets = await self._caller.secret(pins, case.view)
        except DoonceError as error:  # of an ended generation too: the next try pins that of its time
            return self._ended(reading, _unsent(f"no secret: {error.message}"))
        try:
            prepared = await self._prepares.submit(row)
        except (DoonceError, DatabaseFault) as error:
            log.warning("a read could not be prepared", item=claimed.item.id, error=str(error))
            return None
        if not prepared:
            self._observer.stale(claimed.item.family, "prepare")
            return None
        note = CallLog()
        call = Call(claimed, attempt_id, pins, case.view, operation, case.request)
        sent = await self._caller.make(call, secrets, note)
        if note.refused in LOST:
            self._observer.stale(claimed.item.family, "mark")
            return None
        return self._answered(reading, case, call, sent, note)

    def _answered(self, reading: Reading, case: _Case, call: Call, sent: Sent, note: CallLog) -> Hydrated:
        ending, _ = classify_sent(call.contract, call.request, sent, earlier_maybe_sent=False)
        self._observer.ended(call.operation, ending.outcome.value)
        ended = replace(self._ended(reading, ending), attempt_id=call.attempt_id)
        if not isinstance(sent, Replied) or note.marked is None:
            return ended
        answer = Response(sent.status, sent.headers, sent.body, sent.complete, sent.reason)
        match found_in(case.hydration, answer):
            case Found.WHOLE if ending.outcome is Outcome.ACCEPTED:
                return self._handed(ended, case, call.attempt_id, note.marked.dispatched_at, sent.body)
            case Found.MISSING:
                said = replace(ending, reason=f"status {sent.status}: the provider has no such object")
                ended = replace(ended, ending=said)
                return self._handed(ended, case, call.attempt_id, note.marked.dispatched_at, None)
            case _ if ending.outcome is Outcome.ACCEPTED:
                reason = f"status {sent.status}, without the object's fields where the pack says"
                again = replace(ending, outcome=Outcome.REPLAY_SAFE_RETRY, reason=reason)
                return replace(ended, ending=again)
            case _:
                return ended

    def _handed(
        self, ended: Hydrated, case: _Case, attempt_id: str, read_at: int, document: bytes | None
    ) -> Hydrated:
        event = case.event
        route = (case.view.document.routes or {})[event.route.webhook]
        family = handed_to(route, event.type)
        if family is None:
            raise AssertionError("an event that is handed to nobody has no object to be read")
        sealed = None
        if document is not None:
            sealed = Sealed(*self._vault.seal_bytes(object_place(event.id), document))
        item = ended.claimed.item
        return replace(
            ended,
            object=ObjectRead(event.id, attempt_id, sealed, read_at),
            handing=NewItem(
                id=new_id("wrk"),
                family=family.value,
                scope=item.scope,
                subject_kind=item.subject_kind,
                subject_id=item.subject_id,
                view_digest=item.view_digest,
                predecessor=item.id,
            ),
        )

    def _ended(self, reading: Reading, ending: Ending) -> Hydrated:
        attempt = reading.open_attempt
        return Hydrated(
            claimed=reading.claimed,
            deployment=self._deployment,
            ending=ending,
            terms=self._terms,
            attempt_id=None if attempt is None else attempt.id,
            for_vanished=attempt is not None,
        )


def _unsent(reason: str, *, give_up: bool = False) -> Ending:
    return Ending(
        Outcome.RETRYABLE_PRE_DISPATCH,
        reason,
        effect_free=True,
        give_up=give_up,
        jitter=random.random(),  # noqa: S311 (spreads retries; not a secret)
    )


def _bytes(read: ObjectRead | None) -> int:
    return 0 if read is None or read.sealed is None else len(read.sealed.raw)
