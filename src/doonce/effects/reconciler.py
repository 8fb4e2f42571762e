"""The reconciler: looks into unknown outcomes by probe and by late evidence, and says when only an operator can.

It never sends the effect. A resend is a successor work item, made in the transaction of the verdict, and only where the
provider rejects duplicates or the sender recorded that it had closed unsent (PROTOCOL H3).
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from msgspec.structs import replace

from doonce.base.errors import DoonceError, Stale
from doonce.base.ids import new_id
from doonce.catalog.classify import resends_by_itself
from doonce.catalog.compile import BindingView, Operation
from doonce.catalog.exchange import Judgement, Response
from doonce.catalog.model import Outcome, Verdict
from doonce.catalog.probe import judge, probe_operation, probe_request
from doonce.catalog.service import Views
from doonce.commands import store as commands
from doonce.commands.model import Command
from doonce.commands.service import creates
from doonce.db.database import Database
from doonce.db.faults import DatabaseFault
from doonce.effects import reconcile
from doonce.effects.caller import (
    LOST,
    Call,
    Caller,
    CallLog,
    EffectObserver,
    classify_sent,
    frozen_request,
)
from doonce.effects.linking import UNLINKED
from doonce.effects.model import (
    Attempt,
    AttemptKind,
    Ending,
    EvidenceKind,
    Question,
    RefusedMark,
    Verdicted,
)
from doonce.effects.reads import VANISHED, PrepareRead, prepare_reads
from doonce.effects.reconcile import Resolve, Resolved
from doonce.http import Replied, Sent

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ReconcileSettings:
    """How unknown outcomes are looked into.

    `again_us` and `again_cap_us`: the wait between looks, doubling. `looking_us_max`: after so long without a verdict
    the attempt is an operator's to decide; whatever is asked later still finds all the evidence.
    """

    again_us: int = 2_000_000
    again_cap_us: int = 300_000_000
    looking_us_max: int = 86_400_000_000


@dataclass(frozen=True, slots=True)
class _Case:
    """A question whose rows are all there."""

    question: Question
    attempt: Attempt
    command: Command
    view: BindingView
    operation: Operation
    now_us: int


class Reconciler:
    """Runs claimed reconciliations."""

    def __init__(
        self,
        database: Database,
        views: Views,
        caller: Caller,
        deployment: str,
        observer: EffectObserver,
        lease_us: int,
        settings: ReconcileSettings,
    ) -> None:
        self._database = database
        self._views = views
        self._caller = caller
        self._deployment = deployment
        self._observer = observer
        self._lease_us = lease_us
        self._settings = settings

    async def run(self, question: Question) -> None:
        """Take one look. Whatever cannot be stored is looked into again by the next claimant."""
        attempt, command = question.attempt, question.command
        if attempt is None or command is None:
            log.error("a reconciliation has no attempt", item=question.claimed.item.id)
            return
        if question.claimed.poison:  # to look once more would be to die of it once more (PROTOCOL W2)
            await self._resolve(self._convicted(question, attempt, command))
            return
        view = await self._views.get(command.pins.view_digest)
        case = _Case(
            question,
            attempt,
            command,
            view,
            view.operations[command.operation],
            question.claimed.lease_until - self._lease_us,
        )
        if question.open_probe is not None:
            await self._end_probe_of_crash(case, question.open_probe)
        elif question.decided:
            await self._resolve(self._base(case, reason="already decided"))
        elif (verdict := self._from_evidence(case)) is not None:
            await self._resolve(replace(self._base(case, reason=verdict.reason), verdict=verdict))
        elif probe_operation(case.operation.contract) is None:
            await self._resolve(self._look_again(case, "the pack declares no probe"))
        else:
            await self._probe(case)

    def _convicted(self, question: Question, attempt: Attempt, command: Command) -> Resolve:
        """Leave it to an operator, and the probe that it died of with it."""
        probe = question.open_probe
        return Resolve(
            claimed=question.claimed,
            deployment=self._deployment,
            attempt_id=attempt.id,
            command=command,
            decided_by="reconciler",
            successor_id=new_id("wrk"),
            probe_id=probe.id if probe is not None else None,
            probe_ending=VANISHED if probe is not None else None,
            to_operator=True,
            reason="its workers keep dying, even alone",
        )

    def _base(self, case: _Case, reason: str) -> Resolve:
        return Resolve(
            claimed=case.question.claimed,
            deployment=self._deployment,
            attempt_id=case.attempt.id,
            command=case.command,
            decided_by="reconciler",
            successor_id=new_id("wrk"),
            reason=reason,
            evidence_version=case.attempt.evidence_version,
            creates=creates(case.view, case.operation),
        )

    def _look_again(self, case: _Case, reason: str, not_before_us: int | None = None) -> Resolve:
        """Wait for another look, or give the attempt to an operator once looking has taken too long."""
        item = case.question.claimed.item
        contract = case.operation.contract
        horizon_us = case.attempt.horizon_at or 0
        since_us = case.now_us - (case.attempt.dispatched_at or case.now_us)
        blind = probe_operation(contract) is None
        wait_us = min(self._settings.again_us * 2 ** min(item.deferrals, 20), self._settings.again_cap_us)
        if not_before_us is not None:
            wait_us = max(
                wait_us if wait_us < not_before_us - case.now_us else 0, not_before_us - case.now_us, 0
            )
        if blind:
            wait_us = max(horizon_us - case.now_us, 0)
        over = since_us > self._settings.looking_us_max or (blind and case.now_us >= horizon_us)
        return replace(self._base(case, reason), delay_us=wait_us, to_operator=over)

    def _from_evidence(self, case: _Case) -> Verdicted | None:
        """A verdict from what the sender itself saw after losing its claim: it names this very attempt."""
        version = case.attempt.evidence_version
        for seen in case.question.evidence:
            if seen.kind is EvidenceKind.CLOSED_UNSENT:
                return Verdicted(
                    Verdict.NO_EFFECT_PROVEN,
                    f"the sender closed unsent: {seen.reason}",
                    version,
                    True,
                    resend=True,
                )
            if seen.outcome is Outcome.ACCEPTED:
                return Verdicted(
                    Verdict.EFFECT_PROVEN,
                    f"the answer came late: {seen.reason}",
                    version,
                    True,
                    seen.result_json,
                )
            if seen.outcome is Outcome.REJECTED:
                return Verdicted(
                    Verdict.NO_EFFECT_PROVEN,
                    f"the refusal came late: {seen.reason}",
                    version,
                    True,
                    seen.result_json,
                    ends_rejected=True,
                )
        return None

    async def _end_probe_of_crash(self, case: _Case, probe: Attempt) -> None:
        base = self._base(case, VANISHED.reason)
        again = replace(base, probe_id=probe.id, probe_ending=VANISHED, for_vanished=True)
        await self._resolve(again)

    async def _probe(self, case: _Case) -> None:
        contract = case.operation.contract
        name = probe_operation(contract) or ""
        probe_id = new_id("att")
        claimed = case.question.claimed
        try:
            request = probe_request(
                case.view,
                case.command.operation,
                case.command.payload,
                remote_id=case.command.remote_id,
                command_id=case.command.id,
            )
            pins = case.command.pins
            secrets = await self._caller.secret(pins, case.view)
            row = PrepareRead(
                claimed, self._deployment, probe_id, AttemptKind.PROBE, pins, name, request.body_sha256
            )
            (prepared,) = await self._database.transact(prepare_reads, [row])
        except Stale:
            await self._resolve(
                replace(self._base(case, "the generation that could look has ended"), to_operator=True)
            )
            return
        except (DoonceError, DatabaseFault) as error:
            log.warning("a probe could not be prepared", attempt=case.attempt.id, error=str(error))
            return
        if not prepared:
            self._observer.stale(claimed.item.family, "prepare")
            return
        probe = case.view.operations[name].contract
        note = CallLog()
        call = Call(claimed, probe_id, pins, case.view, name, request)
        sent = await self._caller.make(call, secrets, note)
        if note.refused in LOST:
            self._observer.stale(claimed.item.family, "mark")
            return
        ending, _ = classify_sent(probe, request, sent, earlier_maybe_sent=False)
        await self._conclude(case, probe_id, ending, sent, note)

    async def _conclude(self, case: _Case, probe_id: str, ending: Ending, sent: Sent, note: CallLog) -> None:
        probed_at = note.marked.dispatched_at if note.marked is not None else case.now_us
        judged = self._judge(case, sent, probed_at)
        if note.refused in (RefusedMark.GENERATION, RefusedMark.LINK):
            again = replace(self._base(case, "what the probe needs has changed"), to_operator=True)
        elif judged.verdict is Verdict.CANNOT_TELL:
            again = self._look_again(case, judged.evidence, judged.not_before_us)
        else:
            again = replace(self._base(case, judged.evidence), verdict=self._verdict(case, judged, probed_at))
        await self._resolve(replace(again, probe_id=probe_id, probe_ending=ending))

    def _judge(self, case: _Case, sent: Sent, probed_at: int) -> Judgement:
        if not isinstance(sent, Replied):
            return Judgement(Verdict.CANNOT_TELL, f"the probe had no answer: {sent.reason}")
        response = Response(sent.status, sent.headers, sent.body, sent.complete, sent.reason)
        return judge(
            case.operation.contract,
            frozen_request(case.command),
            response,
            dispatched_at_us=case.attempt.dispatched_at or case.attempt.prepared_at,
            probed_at_us=probed_at,
            refused_with=case.question.attempt_status,
        )

    def _verdict(self, case: _Case, judged: Judgement, probed_at: int) -> Verdicted:
        contract = case.operation.contract
        refused = case.question.attempt_status is not None and 400 <= case.question.attempt_status <= 499
        no_effect = judged.verdict is Verdict.NO_EFFECT_PROVEN
        return Verdicted(
            verdict=judged.verdict,
            reason=judged.evidence,
            evidence_version=case.attempt.evidence_version,
            names_attempt=judged.names_attempt,
            result_json=(judged.result or b"{}").decode(),
            resend=no_effect
            and not refused
            and resends_by_itself(
                contract, now_us=probed_at, first_dispatched_at_us=case.question.first_dispatched_at
            ),
            ends_rejected=no_effect and refused,
        )

    async def _resolve(self, row: Resolve) -> None:
        try:
            resolved = await self._database.transact(reconcile.resolve, row)
        except (DoonceError, DatabaseFault) as error:
            log.warning("a verdict could not be stored", attempt=row.attempt_id, error=str(error))
            return
        if resolved is Resolved.STALE:
            self._observer.stale("reconcile", "resolve")
        elif resolved is Resolved.RECORDED and row.verdict is not None:
            self._observer.ended(row.command.operation, row.verdict.verdict.value)
            await self._observe_link(row)

    async def _observe_link(self, row: Resolve) -> None:
        """Count what became of a proven create's link, by the end that says it."""
        if row.creates is None or row.verdict is None or row.verdict.verdict is not Verdict.EFFECT_PROVEN:
            return
        try:
            ends = await self._database.read(commands.load_ends, [row.command.id])
        except (DoonceError, DatabaseFault):
            return  # a count, no more
        if row.command.id in ends:
            refused = UNLINKED in ends[row.command.id].reason
            self._observer.linked(row.command.operation, "refused" if refused else "made")
