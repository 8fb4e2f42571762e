"""The oracle: what the service promises about handoff keys, in forty lines and without a database (§6.1)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from doonce.base.errors import DoonceError, Forbidden, Quarantined, Unavailable
from doonce.base.ids import new_id
from doonce.base.keys import parse_handoff_key
from doonce.wire import (
    AcceptRequest,
    Admission,
    AdmissionState,
    CompletionNotice,
    CompletionOutcome,
    HandoffScope,
    Refused,
    RejectRequest,
    refused_from,
    seal_notice,
)


@dataclass
class Authority:
    """Keeps one terminal admission for each key, and says what became of commands.

    `faults` are taken from its front, one a call: "down" raises before anything happened, "lost" raises after
    it did. `refusals` maps a local reference to the error its acceptance meets.
    """

    admissions: dict[str, Admission] = field(default_factory=dict)
    requests: dict[str, AcceptRequest | RejectRequest] = field(default_factory=dict)
    notices: dict[str, CompletionNotice] = field(default_factory=dict)
    accepted_order: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    refusals: dict[str, DoonceError] = field(default_factory=dict)
    clock_us: int = 0
    accepted: asyncio.Event = field(default_factory=asyncio.Event)

    async def first_accepted(self) -> str:
        """Wait for an acceptance and return the first one's key."""
        await self.accepted.wait()
        return self.accepted_order[0]

    async def accept(self, requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        fault = self._fault()
        self.asked.extend(one.key for one in requests)
        answers = [self._accept(one) for one in requests]
        if fault == "lost":
            raise Unavailable("the answer was lost")
        return answers

    async def reject(self, request: RejectRequest) -> Admission | Refused:
        fault = self._fault()
        self.asked.append(request.key)
        answer = self._admit(request, AdmissionState.HANDOFF_REJECTED)
        if fault == "lost":
            raise Unavailable("the answer was lost")
        return answer

    def complete(self, key: str, outcome: CompletionOutcome, result: bytes = b"{}") -> CompletionNotice:
        """Say what became of the command of `key`; the same notice again for the same end."""
        if outcome.terminal and key in self.notices:
            return self.notices[key]
        admission, request = self.admissions[key], self.requests[key]
        assert admission.command_id is not None
        notice = seal_notice(
            command_id=admission.command_id,
            key=key,
            outbox_id=request.outbox_id,
            payload_digest=request.payload_digest,
            outcome=outcome,
            result=result,
            attempt_id=new_id("att"),
            recorded_at_us=self._now_us(),
        )
        if outcome.terminal:
            self.notices[key] = notice
        return notice

    def _accept(self, request: AcceptRequest) -> Admission | Refused:
        refusal = self.refusals.get(request.local_ref)
        if refusal is not None:
            return refused_from(request.key, refusal)
        return self._admit(request, AdmissionState.COMMAND_ACCEPTED)

    def _admit(self, request: AcceptRequest | RejectRequest, state: AdmissionState) -> Admission | Refused:
        named = parse_handoff_key(request.key)
        scope: HandoffScope = request.scope
        if (named.org, named.installation, named.capability, named.binding_digest) != (
            scope.org,
            scope.installation,
            scope.capability,
            scope.binding_digest,
        ):
            return refused_from(request.key, Forbidden("the key is for another scope"))
        first = self.requests.get(request.key)
        if first is not None:
            same = (first.payload_digest, first.outbox_id, first.scope) == (
                request.payload_digest,
                request.outbox_id,
                request.scope,
            )
            return self.admissions[request.key] if same else refused_from(request.key, Quarantined("another"))
        accepted = state is AdmissionState.COMMAND_ACCEPTED
        self.requests[request.key] = request
        self.admissions[request.key] = Admission(
            key=request.key,
            state=state,
            command_id=new_id("cmd") if accepted else None,
            receipt_id=new_id("hnd"),
            recorded_at_us=self._now_us(),
            reason="",
        )
        if accepted:
            self.accepted_order.append(request.key)
            self.accepted.set()
        return self.admissions[request.key]

    def _fault(self) -> str:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "down":
            raise Unavailable("the service is down")
        return fault

    def _now_us(self) -> int:
        self.clock_us += 1
        return self.clock_us
