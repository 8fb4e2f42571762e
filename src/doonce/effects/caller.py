"""One journaled call: connect, mark, send on that connection only, and an honest answer. Shared by effects and reads.

The mark is durable before the first byte can leave, and its deadlines count from before its transaction began
(PROTOCOL D1–D3, C4).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, assert_never

import msgspec
import structlog

from doonce.base.errors import DoonceError
from doonce.base.ids import new_id, new_token
from doonce.base.records import Record
from doonce.base.secrets import Secret
from doonce.catalog.auth import secret_headers
from doonce.catalog.classify import (
    classify_response,
    classify_unanswered,
    classify_unsent,
)
from doonce.catalog.compile import BindingView
from doonce.catalog.exchange import Classified, FrozenRequest, Response
from doonce.catalog.model import OperationContract, Outcome, ReplayKind
from doonce.commands.model import Command, Pins
from doonce.db.clock import boottime_ns
from doonce.db.committer import Committer
from doonce.db.database import Database
from doonce.db.faults import DatabaseFault
from doonce.effects import store
from doonce.effects.model import (
    Ending,
    EvidenceKind,
    Lineage,
    Marked,
    MarkResult,
    RefusedMark,
)
from doonce.effects.store import LateEvidence, MarkRequest
from doonce.http import Bounds, Client, Go, NotSent, Replied, Request, Sent, Stop, Unanswered
from doonce.principals.service import Principals
from doonce.work.model import Claimed

T = TypeVar("T")
log = structlog.get_logger()
LOST = frozenset({RefusedMark.OWNERSHIP, RefusedMark.LEASE, RefusedMark.ATTEMPT})
"""Refusals which mean that the work is somebody else's by now."""


class EffectObserver(Protocol):
    """Where the dispatcher reports what an operator looks for."""

    def ended(self, operation: str, outcome: str) -> None: ...
    def linked(self, operation: str, fate: str) -> None: ...
    def mark_refused(self, why: str) -> None: ...
    def stale(self, family: str, step: str) -> None: ...
    def flushed(self, operation: str, rows: int) -> None: ...
    def call_took(self, operation: str, seconds: float) -> None: ...


class DispatchSettings(Record, frozen=True):
    """How calls are made. `margin_us`: what a lease outlasts its call by, so that its outcome can be stored.

    `evidence_tries_max`, `evidence_pause_seconds`: how often what came of a call is offered to a database that is away.
    """

    connect_timeout_ns: int = 5_000_000_000
    margin_us: int = 10_000_000
    evidence_tries_max: int = 40
    evidence_pause_seconds: float = 0.5


class Call(Record, frozen=True):
    """One call to make for a claimed item, whose `prepared` attempt is there: an effect, or a read.

    `pins`: under whose authority; the mark rechecks each (PROTOCOL D2). `operation`: what is called, by its name in the
    view.
    """

    claimed: Claimed
    attempt_id: str
    pins: Pins
    view: BindingView
    operation: str
    request: FrozenRequest
    lineage: Lineage | None = None

    @property
    def contract(self) -> OperationContract:
        """What the pack says of the operation."""
        return self.view.operations[self.operation].contract


@dataclass(slots=True)
class CallLog:
    """What happened on the way: which fence refused the mark, and when it was made."""

    refused: RefusedMark | None = None
    marked: Marked | None = None
    unsettled: bool = False


class Caller:
    """Makes one journaled call: connect, mark, send, and an honest answer. Shared by effects and reads."""

    def __init__(
        self,
        database: Database,
        client: Client,
        principals: Principals,
        deployment: str,
        observer: EffectObserver,
        settings: DispatchSettings,
        closed_by: Callable[[], str] = lambda: "",
    ) -> None:
        self._closed_by = closed_by
        self._client = client
        self._principals = principals
        self._deployment = deployment
        self._observer = observer
        self._points = database.points
        self._settings = settings
        self._marks: Committer[MarkRequest, MarkResult] = Committer(
            database, store.mark, key=lambda request: request.claimed.item.id, observer=observer
        )
        self._evidence: Committer[LateEvidence, None] = Committer(
            database, store.append_evidence, key=lambda row: row.attempt_id, observer=observer
        )

    async def secret(self, pins: Pins, view: BindingView) -> dict[str, Secret]:
        """The headers that carry the pinned generation's secret; raises `Stale` when that generation has ended."""
        secret = await self._principals.secret(pins.principal_id, pins.generation)
        return secret_headers(view.auth, secret)

    async def make(self, call: Call, secrets: dict[str, Secret], note: CallLog) -> Sent:
        """Send once, if every fence still holds; never raises for what the net or a fence does."""
        contract = call.contract
        bounds = Bounds(
            body_bytes_max=contract.response_bytes_max, decompressed_bytes_max=contract.response_bytes_max
        )
        request = Request(
            call.request.method,
            call.request.origin,
            call.request.target,
            call.request.headers,
            call.request.body,
        )

        async def gate() -> Go | Stop:
            return await self._mark(call, note)

        started_ns = boottime_ns()
        sent = await self._client.send(
            request,
            secret_headers=secrets,
            gate=gate,
            connect_timeout_ns=self._settings.connect_timeout_ns,
            bounds=bounds,
            declared_origins=(call.request.origin,),
        )
        self._points.reach("call.answered")
        self._observer.call_took(call.operation, (boottime_ns() - started_ns) / 1e9)
        return sent

    async def _mark(self, call: Call, note: CallLog) -> Go | Stop:
        self._points.reach("call.connected")
        started_ns = boottime_ns()
        contract = call.contract
        try:
            result = await self._marks.submit(
                MarkRequest(
                    claimed=call.claimed,
                    deployment=self._deployment,
                    attempt_id=call.attempt_id,
                    nonce=new_token(),
                    principal_id=call.pins.principal_id,
                    generation=call.pins.generation,
                    link_id=call.pins.link_id,
                    link_version=call.pins.link_version,
                    request_digest=call.request.body_sha256,
                    lineage=call.lineage,
                    budget_us=contract.call_budget_us,
                    margin_us=self._settings.margin_us,
                    settle_us=settle_us(contract),
                )
            )
        except (DoonceError, DatabaseFault) as error:
            note.unsettled = True  # perhaps dispatched in the journal; certainly not sent (PROTOCOL G3)
            return Stop(f"the mark could not be made durable: {error}")
        if isinstance(result, RefusedMark):
            note.refused = result
            self._observer.mark_refused(result.value)
            return Stop(f"refused by the {result.value} fence")
        note.marked = result
        self._points.reach("call.marked")
        doubt = self._closed_by()
        if doubt:  # the mark may be in another database than the one that was relied on (PROTOCOL S2)
            return Stop(doubt)
        return Go(
            send_by_ns=started_ns + contract.send_window_us * 1000,
            abort_at_ns=started_ns + contract.call_budget_us * 1000,
        )

    async def append(self, call: Call, kind: EvidenceKind, ending: Ending) -> None:
        """Keep what was seen after the claim was lost, however long the database takes (PROTOCOL H4)."""
        row = LateEvidence(
            id=new_id("evd"),
            attempt_id=call.attempt_id,
            token=call.claimed.token,
            kind=kind,
            outcome=ending.outcome if kind is EvidenceKind.ANSWERED else None,
            result_json=ending.result_json,
            reason=ending.reason,
        )

        async def submit() -> bool | None:
            try:
                await self._evidence.submit(row)
            except (DoonceError, DatabaseFault) as error:
                log.warning(
                    "late evidence could not be stored yet", attempt=call.attempt_id, error=str(error)
                )
                return None
            return True

        if await self.persist(submit):
            log.info("late evidence stored", attempt=call.attempt_id, kind=kind.value, reason=ending.reason)

    async def persist(self, step: Callable[[], Awaitable[T | None]]) -> T | None:
        """Take a step until it says something, for as long as a database may be away; None when it never did."""
        for tries_left in reversed(range(self._settings.evidence_tries_max)):
            result = await step()
            if result is not None:
                return result
            if tries_left:
                await asyncio.sleep(self._settings.evidence_pause_seconds)
        return None


def ending_of(classified: Classified, contract: OperationContract, status: int | None) -> Ending:
    """The journal's form of a classification. A read never has an effect to be unsure of."""
    reads = contract.replay.kind is ReplayKind.READ
    outcome = classified.outcome
    return Ending(
        outcome=outcome,
        reason=classified.reason,
        result_json=(classified.result or b"{}").decode(),
        receipt_json=msgspec.json.encode(dict(classified.receipt)).decode(),
        status=status,
        retry_after_us=classified.retry_after_us or 0,
        effect_free=reads or classified.effect_free or outcome is Outcome.RETRYABLE_PRE_DISPATCH,
        jitter=random.random(),  # noqa: S311 (spreads retries; not a secret)
    )


def classify_sent(
    contract: OperationContract, request: FrozenRequest, sent: Sent, *, earlier_maybe_sent: bool
) -> tuple[Ending, EvidenceKind]:
    """What the client saw, as the pack reads it (PROTOCOL D6), and as the kind of evidence it would be."""
    match sent:
        case Replied():
            response = Response(sent.status, sent.headers, sent.body, sent.complete, sent.reason)
            classified = classify_response(contract, request, response, earlier_maybe_sent=earlier_maybe_sent)
            return ending_of(classified, contract, sent.status), EvidenceKind.ANSWERED
        case NotSent():
            unsent = classify_unsent(contract, sent.stage.value, sent.reason)
            return ending_of(unsent, contract, None), EvidenceKind.CLOSED_UNSENT
        case Unanswered():
            return ending_of(
                classify_unanswered(contract, sent.reason), contract, None
            ), EvidenceKind.NO_ANSWER
        case _:
            assert_never(sent)


def settle_us(contract: OperationContract) -> int:
    """How long after its mark bytes of a call may still arrive (PROTOCOL H3)."""
    return contract.send_window_us + (contract.settle_after_us or contract.call_budget_us)


def frozen_request(command: Command) -> FrozenRequest:
    request = command.request
    return FrozenRequest(
        method=request.method,
        origin=request.origin,
        target=request.target,
        headers=request.headers,
        body=request.body,
        body_sha256=request.body_digest,
        idempotency_key=request.idempotency_key,
    )
