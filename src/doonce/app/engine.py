"""The engine: every part wired together over one database, started and stopped as one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from doonce.app.handlers import LocalHandlers
from doonce.app.metrics import Metrics
from doonce.app.retention import Retention, RetentionSettings
from doonce.app.running import Running
from doonce.base.errors import DoonceError, Unavailable
from doonce.base.ids import new_id
from doonce.catalog.compile import BindingView
from doonce.catalog.service import Views
from doonce.commands.service import Acceptor
from doonce.db import steps
from doonce.db.database import Database
from doonce.db.durability import DispatchGate
from doonce.db.faults import DatabaseFault
from doonce.effects.caller import Caller, DispatchSettings
from doonce.effects.catch_up_reader import CatchUpReader
from doonce.effects.catching_up import CatchingUp, claim_catch_ups
from doonce.effects.completions import Completer, Completion, CompletionSettings, claim_completions
from doonce.effects.handing import Hand, Hander, Handing, HandlerSettings, Pusher, claim_handings
from doonce.effects.hydration import Reading, claim_hydrations
from doonce.effects.hydrator import HydrationSettings, Hydrator
from doonce.effects.model import Question, Start
from doonce.effects.outbound import ClientSettings, EgressPolicy, Outbound
from doonce.effects.reconcile import claim_questions
from doonce.effects.reconciler import Reconciler, ReconcileSettings
from doonce.effects.service import Dispatcher
from doonce.effects.store import PrepareRequest, claim_and_prepare
from doonce.effects.telling import Inbox
from doonce.events.service import Deriver, rewrap_events
from doonce.events.store import Unread, claim_unread
from doonce.ingress.catch_up_service import CatchUps
from doonce.ingress.service import Ingress, IngressSettings
from doonce.ownership.model import Family
from doonce.principals.service import Principals
from doonce.principals.vault import Vault
from doonce.wire.events import EventNotice
from doonce.work import store as work
from doonce.work.claimers import claimer_name
from doonce.work.model import Scope
from doonce.work.service import FamilyWork, Identity, ProcessGate, Worker, WorkerSettings

log = structlog.get_logger()

ERASE_STEPS_MAX = 20
"""Of one sweep: with its usual rows, two thousand bodies a second, more than arrive in the long run."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How one process works. Every field is a line in docs/settings.md.

    `sweep_seconds` and `sweep_rows`: how often, and over how many items, missing ready rows are looked for (W7); and
    bodies whose time is over, and open gaps that nobody reads yet.
    `weights`: by organization, how much of each family's slots its installations get beside others (`work.fairness`).
    `stop_seconds`: how long a graceful stop waits for what runs.
    """

    deployment: str = "default"
    effects: WorkerSettings = field(default_factory=WorkerSettings)
    reconciles: WorkerSettings = field(default_factory=lambda: WorkerSettings(concurrency=16))
    completions: WorkerSettings = field(default_factory=lambda: WorkerSettings(concurrency=32))
    events: WorkerSettings = field(default_factory=lambda: WorkerSettings(concurrency=32))
    hydrations: WorkerSettings = field(default_factory=lambda: WorkerSettings(concurrency=16))
    handlers: WorkerSettings = field(default_factory=lambda: WorkerSettings(concurrency=32))
    pushes: WorkerSettings = field(default_factory=lambda: WorkerSettings(concurrency=32))
    catch_ups: WorkerSettings = field(default_factory=lambda: WorkerSettings(concurrency=8))
    weights: Mapping[str, int] = field(default_factory=dict)
    ingress: IngressSettings = field(default_factory=IngressSettings)
    dispatch: DispatchSettings = field(default_factory=DispatchSettings)
    reconcile: ReconcileSettings = field(default_factory=ReconcileSettings)
    completion: CompletionSettings = field(default_factory=CompletionSettings)
    hydration: HydrationSettings = field(default_factory=HydrationSettings)
    handler: HandlerSettings = field(default_factory=HandlerSettings)
    client: ClientSettings = field(default_factory=ClientSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    sweep_seconds: float = 5.0
    sweep_rows: int = 500
    stop_seconds: float = 30.0


class Engine:
    """One process's share of a deployment. Several on one database are equals."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        egress: EgressPolicy,
        inbox_egress: EgressPolicy,
        inboxes: Mapping[str, Inbox],
        settings: EngineSettings,
        metrics: Metrics | None = None,
        local: LocalHandlers | None = None,
    ) -> None:
        self.settings = settings
        self.metrics = metrics or Metrics()
        database.observer = self.metrics
        self.database = database
        self.views = Views(database)
        self.principals = Principals(database, vault)
        self.acceptor = Acceptor(database, self.views, self.principals, inboxes, self.metrics)
        self.ingress = Ingress(database, self.views, vault, self.metrics, settings.ingress)
        self.retention = Retention(database, settings.deployment, settings.retention, self.metrics)
        self.catch_ups = CatchUps(database, self.views)
        self._vault = vault
        self._outbound = Outbound(egress, inbox_egress, settings.client)
        self._inboxes = inboxes
        self._local = local
        self._identity = Identity(settings.deployment, claimer_name(new_id("prc"), steps.head()))
        self._gate = ProcessGate(settings.weights)
        self._found: Sequence[tuple[str, str]] = ()
        self._scopes: tuple[Scope, ...] = ()
        self._running = Running()
        self.gate = DispatchGate(open=True, reason="")

    async def scopes(self) -> Sequence[Scope]:
        """The installations that this process may work for: those with a published view."""
        found = await self.views.installations()
        if found is not self._found:
            self._found, self._scopes = found, tuple(Scope(*one) for one in found)
        return self._scopes

    async def rewrap(self) -> dict[str, int]:
        """Seal everything at rest with the ring's current key; how many of what. Can be stopped and run again."""
        return {
            "principals": await self.principals.rewrap(),
            "deliveries": await self.ingress.rewrap(),
            "events": await rewrap_events(self.database, self._vault),
        }

    def start(self, families: Sequence[Family] = tuple(Family)) -> None:
        """Start working these families in the background, the sweep, and where there are any the retention of work.

        Events for handlers are claimed only while this process has some: nobody else can run them.
        """
        makers: dict[Family, Callable[[], Worker[Any]]] = {
            Family.EFFECT: self._effect_worker,
            Family.RECONCILE: self._reconcile_worker,
            Family.COMPLETION: self._completion_worker,
            Family.EVENT: self._event_worker,
            Family.HYDRATE: self._hydrate_worker,
            Family.HANDLER: self._handler_worker,
            Family.PUSH: self._push_worker,
            Family.CATCH_UP: self._catch_up_worker,
        }
        for family in families:
            self._running.work(makers[family](), family.value)
        if self._local is not None:
            self._local.open(self.settings.handler.threads)
        self._running.begin(self._sweep(), "sweep")
        if families and self.settings.retention.enabled:
            self._running.begin(self.retention.run(), "retention")
        self._running.begin(self._listen(), "listen")
        self._running.begin(self.ingress.run(), "tallies")

    def begin_drain(self) -> None:
        """Begin no more claims, at once; what runs goes on to its end."""
        self._running.begin_drain()

    async def last_claims(self) -> None:
        """Wait, after `begin_drain`, for claims that were under way: from then on nothing more is taken."""
        await self._running.last_claims()

    async def stop(self) -> None:
        """Drain for as long as allowed, then stop hard: what still ran is left to its leases.

        Cancelling it ends the wait of the step that it is at, and takes the others: nothing of this engine runs on.
        """
        self.begin_drain()
        # The last one first, and each of them whatever another raises.
        async with contextlib.AsyncExitStack() as endings:
            endings.push_async_callback(self.database.close)
            endings.push_async_callback(self._outbound.close)
            endings.push_async_callback(self.ingress.drain)
            if self._local is not None:
                endings.callback(self._local.close)
            endings.push_async_callback(self._running.end)
            await self._running.drained(self.settings.stop_seconds)

    def failed(self) -> BaseException | None:
        """Why a background task ended although nobody asked it to."""
        return self._running.failed()

    def _may_claim(self) -> bool:
        return self.gate.open

    def _closed_by(self) -> str:
        return "" if self.gate.open else self.gate.reason

    def _effect_worker(self) -> Worker[Start]:
        settings = self.settings.effects
        dispatcher = Dispatcher(
            self.database,
            self.views,
            self._caller(),
            self.settings.deployment,
            self.metrics,
            settings.lease_us,
        )

        def prepare(request: work.ClaimRequest) -> PrepareRequest:
            return PrepareRequest(request, tuple(new_id("att") for _ in range(request.rows_max)))

        return self._worker(
            FamilyWork(
                Family.EFFECT.value, prepare, claim_and_prepare, lambda start: start.claimed, dispatcher.run
            ),
            settings,
        )

    def _reconcile_worker(self) -> Worker[Question]:
        settings = self.settings.reconciles
        reconciler = Reconciler(
            self.database,
            self.views,
            self._caller(),
            self.settings.deployment,
            self.metrics,
            settings.lease_us,
            self.settings.reconcile,
        )
        return self._worker(
            FamilyWork(
                Family.RECONCILE.value, _as_it_is, claim_questions, lambda unit: unit.claimed, reconciler.run
            ),
            settings,
        )

    def _completion_worker(self) -> Worker[Completion]:
        completer = Completer(
            self.database, self.views, self._outbound.inboxes, self._inboxes, self.settings.completion
        )
        worker = self._worker(
            FamilyWork(
                Family.COMPLETION.value,
                _as_it_is,
                claim_completions,
                lambda completion: completion.claimed,
                completer.run,
            ),
            self.settings.completions,
        )
        completer.worker = worker
        return worker

    def _event_worker(self) -> Worker[Unread]:
        deriver = Deriver(
            self.database, self.views, self._vault, self.principals, self.settings.deployment, self.metrics
        )
        return self._worker(
            FamilyWork(
                Family.EVENT.value, _as_it_is, claim_unread, lambda unread: unread.claimed, deriver.run
            ),
            self.settings.events,
        )

    def _hydrate_worker(self) -> Worker[Reading]:
        hydrator = Hydrator(
            self.database,
            self.views,
            self._vault,
            self._caller(),
            self.settings.deployment,
            self.metrics,
            self.settings.hydration,
        )
        return self._worker(
            FamilyWork(
                Family.HYDRATE.value, _as_it_is, claim_hydrations, lambda unit: unit.claimed, hydrator.run
            ),
            self.settings.hydrations,
        )

    def _handler_worker(self) -> Worker[Handing]:
        local = self._local

        def may_claim() -> bool:
            return self.gate.open and local is not None and bool(local.handlers)

        hand = _nobody if local is None else local.hand
        return self._hander(Family.HANDLER, hand, self.settings.handlers, may_claim)

    def _push_worker(self) -> Worker[Handing]:
        pusher = Pusher(self._outbound.inboxes, self._inboxes, self.settings.handler)
        return self._hander(Family.PUSH, pusher.hand, self.settings.pushes, self._may_claim)

    def _catch_up_worker(self) -> Worker[CatchingUp]:
        reader = CatchUpReader(
            self.database,
            self.views,
            self._vault,
            self.principals,
            self._caller(),
            self.settings.deployment,
            self.metrics,
        )
        return self._worker(
            FamilyWork(
                Family.CATCH_UP.value, _as_it_is, claim_catch_ups, lambda unit: unit.claimed, reader.run
            ),
            self.settings.catch_ups,
        )

    def _hander(
        self, family: Family, hand: Hand, settings: WorkerSettings, may_claim: Callable[[], bool]
    ) -> Worker[Handing]:
        hander = Hander(self.database, self.views, self._vault, self.principals, hand, self.settings.handler)
        worker = self._worker(
            FamilyWork(family.value, _as_it_is, claim_handings, lambda handing: handing.claimed, hander.run),
            settings,
            may_claim,
        )
        hander.worker = worker
        return worker

    def _caller(self) -> Caller:
        return Caller(
            self.database,
            self._outbound.providers,
            self.principals,
            self.settings.deployment,
            self.metrics,
            self.settings.dispatch,
            self._closed_by,
        )

    def _worker(
        self,
        family: FamilyWork[Any],
        settings: WorkerSettings,
        may_claim: Callable[[], bool] | None = None,
    ) -> Worker[Any]:
        return Worker(
            self.database,
            family,
            self._identity,
            self.scopes,
            settings,
            self.metrics,
            self._gate,
            may_claim or self._may_claim,
        )

    async def _sweep(self) -> None:
        after = ""
        while True:
            await asyncio.sleep(self.settings.sweep_seconds)
            try:
                after = await self.database.transact(work.sweep, after, self.settings.sweep_rows)
                await self._erase_bodies()
                await self.catch_ups.attend()
            except (DoonceError, DatabaseFault) as error:
                log.warning("the sweep failed", error=str(error))

    async def _erase_bodies(self) -> None:
        """Erase what is over its time, in steps of their own: none of them is long, and none waits for the next."""
        for _ in range(ERASE_STEPS_MAX):
            if await self.ingress.erase_bodies(self.settings.sweep_rows) < self.settings.sweep_rows:
                return

    async def _listen(self) -> None:
        """Keep hearing other processes' wake-ups; without it, workers find work by polling."""
        while True:
            with contextlib.suppress(DoonceError, DatabaseFault, Unavailable):
                await self.database.listen()
            await asyncio.sleep(self.settings.sweep_seconds)


async def _nobody(_: BindingView, notice: EventNotice) -> str:
    raise Unavailable(f"this process has no handlers, so none takes {notice.pack}.{notice.type}")


def _as_it_is(request: work.ClaimRequest) -> work.ClaimRequest:
    return request
