"""Reads from a provider what a gap may have lost: the run of the family `catch_up`.

One claim is one page: pins and request, journaled read, and one transaction with all that follows. A read has no
effect, so it is never unknown: it is tried again within the binding's policy, and then its item is dead and its gap
stays open, for an operator to start it again.
"""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
from msgspec.structs import replace

from doonce.base.digests import digest_bytes
from doonce.base.errors import DoonceError, Invalid, MissingOrDenied
from doonce.base.ids import new_id
from doonce.base.secrets import Secret
from doonce.catalog.compile import BindingView
from doonce.catalog.exchange import FrozenRequest, Response
from doonce.catalog.model import Outcome
from doonce.catalog.paging import Unpaged, next_cursor, page_request, page_rule
from doonce.catalog.service import Views
from doonce.catalog.webhooks import Reconciliation, Webhook
from doonce.commands.model import Pins
from doonce.db.committer import Committer
from doonce.db.database import Database
from doonce.db.faults import DatabaseFault
from doonce.effects.caller import LOST, Call, Caller, CallLog, EffectObserver, classify_sent
from doonce.effects.catching_up import BeginPass, CatchingUp, Turn, Turned, TurnPage, begin_pass, turn_page
from doonce.effects.model import AttemptKind, Ending, RefusedMark
from doonce.effects.reads import VANISHED, PrepareRead, prepare_reads
from doonce.effects.service import policy_of
from doonce.events.making import EventMaker
from doonce.events.model import Undecodable, derive
from doonce.events.service import KNOWN, fate_of
from doonce.events.store import NewEvent, Source
from doonce.http import Replied
from doonce.ingress.catch_ups import NewPage, Overlap, page_place
from doonce.ingress.receipts import Sealed
from doonce.principals.service import Principals
from doonce.principals.vault import Vault
from doonce.work.model import Event, RetryPolicy, Settled

log = structlog.get_logger("doonce.catch_up")

NO_VIEW: Final = RetryPolicy()
"""The policy for pages whose pinned view cannot be had: the defaults, until somebody restores it."""


class CatchUpObserver(EffectObserver, Protocol):
    """Where catching up reports what an operator looks for."""

    def event(self, fate: str) -> None: ...
    def page(self, fate: str) -> None: ...


@dataclass(frozen=True, slots=True)
class _Case:
    """A claimed page whose rows, view and pins are all there."""

    row: TurnPage
    view: BindingView
    webhook: Webhook
    reconciliation: Reconciliation
    pins: Pins
    secrets: dict[str, Secret]

    @property
    def overlap(self) -> Overlap:
        """How much wider than the losses is read."""
        return Overlap(self.reconciliation.before_us, self.reconciliation.after_us)


class CatchUpReader:
    """Runs claimed pages."""

    def __init__(
        self,
        database: Database,
        views: Views,
        vault: Vault,
        principals: Principals,
        caller: Caller,
        deployment: str,
        observer: CatchUpObserver,
    ) -> None:
        self._database = database
        self._views = views
        self._vault = vault
        self._principals = principals
        self._maker = EventMaker(vault, principals)
        self._caller = caller
        self._deployment = deployment
        self._observer = observer
        self._reads: Committer[PrepareRead, bool] = Committer(
            database, prepare_reads, key=lambda row: row.claimed.item.id, observer=observer
        )

    async def run(self, unit: CatchingUp) -> None:
        """Read one page, or end its item for another reason. What cannot be stored is left to the next claimant."""
        catch_up = unit.catch_up
        if catch_up is None:
            log.error("a page belongs to no catch-up", item=unit.claimed.item.id)
            return
        row = TurnPage(unit.claimed, self._deployment, catch_up, NO_VIEW)
        needless = _needless(unit)
        if unit.open_attempt is not None or unit.claimed.poison:
            left = unit.open_attempt.id if unit.open_attempt is not None else None
            await self._end(replace(row, attempt_id=left, ending=VANISHED, for_vanished=True))
        elif needless is not None:
            await self._end(replace(row, skip=needless))
        else:
            await self._with_view(row)

    async def _with_view(self, row: TurnPage) -> None:
        try:
            view = await self._views.get(row.catch_up.view_digest)
        except DoonceError as error:
            await self._end(replace(row, ending=_unsent(f"the pinned view cannot be used: {error}")))
            return
        row = replace(row, policy=policy_of(view.policies).policy)
        try:
            case = await self._case(row, view)
        except DoonceError as error:
            await self._end(replace(row, ending=_unsent(str(error))))
            return
        await self._begin(case)

    async def _case(self, row: TurnPage, view: BindingView) -> _Case:
        """What the page is read with: the catch-up's own view, and the principal's generation of now."""
        document = view.document
        webhook = (document.webhooks or {})[row.catch_up.route.webhook]
        if webhook.reconciliation is None:
            raise MissingOrDenied("the binding's view has no reconciliation for this webhook")
        principal = await self._principals.find(document.org, document.installation, document.principal)
        pins = Pins(view.digest, principal.id, principal.generation, None, None)
        secrets = await self._caller.secret(pins, view)
        return _Case(row, view, webhook, webhook.reconciliation, pins, secrets)

    async def _begin(self, case: _Case) -> None:
        """Fix the window, where this is the first page of a pass, and journal the read."""
        row, reconciliation = case.row, case.reconciliation
        claimed, attempt_id = row.claimed, new_id("att")
        try:
            asked = BeginPass(claimed, self._deployment, row.catch_up, case.overlap)
            begun = await self._database.transact(begin_pass, asked)
            if begun is None or begun.window is None:
                self._observer.stale(claimed.item.family, "begin")
                return
            case = dataclasses.replace(case, row=replace(row, catch_up=begun))
            request = page_request(case.view, reconciliation, begun.window, begun.page_cursor)
            read = PrepareRead(
                claimed, self._deployment, attempt_id, AttemptKind.PAGE, case.pins, reconciliation.operation,
                request.body_sha256,
            )  # fmt: skip
            prepared = await self._reads.submit(read)
        except Invalid as fault:
            await self._end(replace(case.row, ending=replace(_unsent(fault.message), give_up=True)))
            return
        except (DoonceError, DatabaseFault) as error:
            log.warning("a page could not be prepared", item=claimed.item.id, error=str(error))
            return
        if not prepared:
            self._observer.stale(claimed.item.family, "prepare")
            return
        await self._call(case, attempt_id, request)

    async def _call(self, case: _Case, attempt_id: str, request: FrozenRequest) -> None:
        note = CallLog()
        operation = case.reconciliation.operation
        call = Call(case.row.claimed, attempt_id, case.pins, case.view, operation, request)
        sent = await self._caller.make(call, case.secrets, note)
        if note.refused in LOST:
            self._observer.stale(case.row.claimed.item.family, "mark")
            return
        if note.refused is RefusedMark.GENERATION:
            self._principals.forget(case.pins.principal_id)
        ending, _ = classify_sent(call.contract, request, sent, earlier_maybe_sent=False)
        self._observer.ended(operation, ending.outcome.value)
        row = replace(case.row, attempt_id=attempt_id, ending=ending)
        if ending.outcome is not Outcome.ACCEPTED or not isinstance(sent, Replied):
            await self._end(row)
            return
        response = Response(sent.status, sent.headers, sent.body, sent.complete, sent.reason)
        try:
            turn = await self._turn(case, attempt_id, response)
        except DoonceError as error:  # ours to mend, as a principal that cannot be looked up: asked for again
            failed = replace(ending, outcome=Outcome.REPLAY_SAFE_RETRY, reason=str(error))
            await self._end(replace(row, ending=failed))
            return
        await self._end(replace(row, turn=turn))

    async def _turn(self, case: _Case, attempt_id: str, response: Response) -> Turn:
        """What an answer comes to, with every id that is needed; nothing of it is stored yet."""
        catch_up = case.row.catch_up
        rule = page_rule(case.webhook, case.reconciliation)
        found = derive(rule, catch_up.route.parts, catch_up.page_id, response.body)
        cursor = next_cursor(case.reconciliation, response)
        made: tuple[NewEvent, ...] = ()
        fault, items = None, 0
        if isinstance(found, Undecodable):
            fault = found.reason
        else:
            items = len(found)
            source = Source(catch_up.page_id, catch_up.route, catch_up.view_digest)
            made = await self._maker.made(case.view, rule, source, found)
            fault = cursor.reason if isinstance(cursor, Unpaged) else None
        sealed, key_id = self._vault.seal_bytes(page_place(catch_up.page_id), response.body)
        page = NewPage(
            catch_up.page_id, attempt_id, items, fault, digest_bytes(response.body), len(response.body),
            Sealed(sealed, key_id),
        )  # fmt: skip
        return Turn(
            page,
            made[::-1] if case.reconciliation.newest_first else made,
            None if isinstance(cursor, Unpaged) else cursor,
            case.overlap,
            case.reconciliation.pages_max,
            new_id("pag"),
            new_id("wrk"),
        )

    async def _end(self, row: TurnPage) -> None:
        try:
            done = await self._database.transact(turn_page, row)
        except (DoonceError, DatabaseFault) as error:
            log.warning("the end of a page could not be stored", item=row.claimed.item.id, error=str(error))
            return
        self._tell(row, done)

    def _tell(self, row: TurnPage, done: Turned) -> None:
        """Say what became of it, to whoever watches."""
        if done.settled is Settled.STALE:
            self._observer.stale(row.claimed.item.family, "turn")
            return
        for made in row.turn.events if row.turn is not None else ():
            self._observer.event(fate_of(made) if made.id in done.new else KNOWN)
        if done.event is Event.DIE:
            self._observer.page("dead")
            log.warning(
                "a catch-up is dead; its gap stays open",
                catch_up=row.catch_up.id,
                item=row.claimed.item.id,
                why=done.failure_class,
                reason=done.summary,
            )
        elif row.turn is not None:
            self._observer.page("read")
        elif done.event in (Event.RETRY, Event.DEFER):
            self._observer.page("again")
        if done.gap_closed:
            log.info("a gap is closed", catch_up=row.catch_up.id, read=done.summary)


def _needless(unit: CatchingUp) -> str | None:
    """Why a page need not be read any more."""
    gap, catch_up = unit.gap, unit.catch_up
    if unit.is_stored:
        return "this page has been read; `doonce gap reconcile` starts its gap again"
    if gap is None or catch_up is None:
        return "there is no such gap"
    if gap.closed_at is not None:
        return f"the gap has been closed by {gap.closed_by}"
    if gap.catch_up_id != catch_up.id:
        return f"{gap.catch_up_id} reads this gap now"
    return None


def _unsent(reason: str) -> Ending:
    """A page that was not asked for, as an ending: tried again within the policy."""
    jitter = random.random()  # noqa: S311 (spreads retries; not a secret)
    return Ending(Outcome.RETRYABLE_PRE_DISPATCH, reason, effect_free=True, jitter=jitter)
