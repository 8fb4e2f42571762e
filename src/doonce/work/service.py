"""Workers: one claimer per family and process, fanned out in memory; renewals; drain and stop.

A claim takes what can be started now and hands back what was not started. No transaction is open while work runs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import structlog

from doonce.base.errors import DoonceError
from doonce.base.ids import new_token
from doonce.db.clock import boottime_ns
from doonce.db.committer import Committer
from doonce.db.database import Database
from doonce.db.faults import DatabaseFault
from doonce.db.transaction import Txn
from doonce.work import pauses, settle, store
from doonce.work.fairness import Turns, room_wanted
from doonce.work.model import ENGINE, Claimed, Scope, Settled, Settlement, shelves_of
from doonce.work.store import ClaimRequest, Floors, Look, RenewRequest

Unit = TypeVar("Unit")
log = structlog.get_logger()
RECALL_EVERY_NS = 100_000_000
"""Far below any lease; with as many as are recalled at once, some hundred claims a second can be given up."""
HEED_SECONDS = 0.02
"""How long a worker whose busiest scope may take no more lets hints pass: most are that scope's own."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How one family is worked. Each is a line in docs/settings.md.

    `concurrency`: items of the family under way in this process; other families have slots of their own. `lease_us`:
    how long a claim lasts without renewal; a crash delays its items by as much. `poll_seconds`: how often a claimer
    looks without a hint. `gather_seconds`: how long a nearly full worker waits for more room before it claims again,
    so that claims stay batches. `expiries_max`: consecutive lost leases before an item must run alone;
    `scopes_per_claim`: scopes that one claim asks about, in one statement; `suspects_seconds`: how often to look for
    items that must run alone.
    """

    concurrency: int = 64
    lease_us: int = 30_000_000
    poll_seconds: float = 0.5
    gather_seconds: float = 0.002
    expiries_max: int = 5
    scopes_per_claim: int = 512
    suspects_seconds: float = 5.0


class WorkObserver(Protocol):
    """Where workers report what an operator looks for."""

    def claimed(self, family: str, items: int) -> None: ...
    def stale(self, family: str, step: str) -> None: ...
    def flushed(self, operation: str, rows: int) -> None: ...


@dataclass(slots=True)
class ProcessGate:
    """What the workers of one process share: nothing else runs while a suspected poison runs alone (PROTOCOL W2).

    `weights`: by organization, how much its installations get beside others (`fairness`).
    """

    weights: Mapping[str, int] = field(default_factory=dict)
    running: int = 0
    alone: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def enter(self) -> None:
        """One more unit runs."""
        self.running += 1

    def leave(self) -> None:
        """One unit has ended."""
        self.running -= 1
        self.changed.set()

    async def empty(self) -> None:
        """Wait until nothing runs and nobody is claiming."""
        while self.running:
            self.changed.clear()
            await self.changed.wait()


@dataclass(frozen=True, slots=True)
class FamilyWork(Generic[Unit]):
    """One family as its worker sees it: how to claim it, which claim a unit holds, and how to run one.

    `prepare` makes the claim's whole argument, with every id it may need, before the transaction (PROTOCOL T1).
    """

    family: str
    prepare: Callable[[ClaimRequest], Any]
    claim: Callable[[Any], Txn[list[Unit]]]
    claim_of: Callable[[Unit], Claimed]
    run: Callable[[Unit], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this worker is: the deployment that owns its families, and this process."""

    deployment: str
    owner: str


class Leases:
    """Renews the leases of what runs, in batches on a queue of their own (PROTOCOL G2)."""

    def __init__(self, database: Database, identity: Identity, lease_us: int, observer: WorkObserver) -> None:
        self._identity = identity
        self._lease_us = lease_us
        self._observer = observer
        self._held: dict[str, tuple[Claimed, int]] = {}
        self._committer: Committer[RenewRequest, int | None] = Committer(
            database, store.renew, key=lambda request: request.claimed.item.id, observer=observer
        )

    def hold(self, claimed: Claimed) -> None:
        """Keep this claim alive until it is released."""
        self._held[claimed.item.id] = (claimed, boottime_ns())

    def release(self, claimed: Claimed) -> None:
        """Stop renewing it."""
        self._held.pop(claimed.item.id, None)

    async def run(self) -> None:
        """Renew every claim that has used up a third of its lease, until cancelled."""
        third_seconds = self._lease_us / 3_000_000
        while True:
            await asyncio.sleep(third_seconds / 2)
            old_ns = boottime_ns() - int(third_seconds * 1e9)
            due = [claimed for claimed, since_ns in self._held.values() if since_ns < old_ns]
            if due:
                await asyncio.gather(*(self._renew(claimed) for claimed in due))

    async def _renew(self, claimed: Claimed) -> None:
        request = RenewRequest(claimed, self._identity.deployment, self._lease_us)
        try:
            until_us = await self._committer.submit(request)
        except (DoonceError, DatabaseFault) as error:
            log.warning("a lease could not be renewed", item=claimed.item.id, error=str(error))
            return
        if until_us is None:
            self._observer.stale(claimed.item.family, "renew")
            self.release(claimed)
        elif claimed.item.id in self._held:
            self._held[claimed.item.id] = (claimed, boottime_ns())


class Worker(Generic[Unit]):
    """Works one family until it is told to stop."""

    def __init__(
        self,
        database: Database,
        work: FamilyWork[Unit],
        identity: Identity,
        scopes: Callable[[], Awaitable[Sequence[Scope]]],
        settings: WorkerSettings,
        observer: WorkObserver,
        gate: ProcessGate,
        may_claim: Callable[[], bool] = lambda: True,
    ) -> None:
        self._database = database
        self._work = work
        self._identity = identity
        self._scopes = scopes
        self._settings = settings
        self._observer = observer
        self._gate = gate
        self._may_claim = may_claim
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._stopping = asyncio.Event()
        self._claiming = asyncio.Lock()
        self._turns, self._floors = Turns(gate.weights), Floors()
        self._look_for_suspects_ns = self._recalled_ns = 0
        self._room_wanted, self._hinted = 0, False
        self.leases = Leases(database, identity, settings.lease_us, observer)
        self.settlements: Committer[Settlement, Settled] = Committer(
            database, self.settle, key=lambda settlement: settlement.claimed.item.id, observer=observer
        )

    def settle(self, settlements: Sequence[Settlement]) -> Txn[list[Settled]]:
        """The transaction behind `settlements`, under the name that metrics and named points show."""
        return settle.settle(settlements, self._identity.deployment)

    @property
    def running(self) -> int:
        """How many units run now."""
        return len(self._tasks)

    def begin_drain(self) -> None:
        """Begin no more claims, at once; what one takes that is under way counts as held. What is held is finished."""
        self._stopping.set()
        self._room.set()
        self._database.wakeups.wake(store.topic(self._work.family))

    async def last_claim(self) -> None:
        """Wait, after `begin_drain`, until no claim is under way: from then on nothing more is taken."""
        async with self._claiming:
            pass

    async def run(self) -> None:
        """Claim and run until drained. Cancelling it stops hard: leases run out, and others take over.

        Nothing is claimed that nobody would renew: what ends the renewals ends the worker.
        """
        renewals = asyncio.create_task(self.leases.run())
        try:
            while not self._stopping.is_set():
                if renewals.done():
                    renewals.result()
                await self._turn_once()
            while self._tasks:
                await asyncio.wait(self._tasks)
            await self.settlements.drain()
        finally:
            tasks = [renewals, *self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            if not renewals.cancelled():
                renewals.result()

    async def _turn_once(self) -> None:
        if self._gate.alone or not self._ready():
            await self._pause(self._settings.poll_seconds)
            return
        if self._free < self._quarter and not await self._wait_for_room() and self._free < 1:
            return
        if await self._suspects_wait() and await self._claim_alone():
            return
        wanted = min(self._free, max(1, self._settings.concurrency // 2))  # the next claim overlaps this one
        self._gate.enter()
        try:
            took = await self._claim(wanted, alone=False)
        finally:
            self._gate.leave()
        if took < wanted and not self._turns.unseen:
            whole_in_seconds = self._floors.whole_in_seconds()
            await self._pause(pauses.until_next_look(self._settings.poll_seconds, whole_in_seconds))

    @property
    def _free(self) -> int:
        return self._settings.concurrency - len(self._tasks)

    @property
    def _quarter(self) -> int:
        return max(1, self._settings.concurrency // 4)

    def _ready(self) -> bool:
        return self._may_claim() and self._database.steady()

    async def _wait_for_room(self) -> bool:
        """Wait until a quarter is free, or False: from some room on, that is waited for `gather_seconds` only.

        A full worker of one scope waits for the whole quarter. Of several, those that fill it may be slow.
        """
        self._room.clear()
        if self._turns.several and not await self._room_for(1):
            return True
        try:
            async with asyncio.timeout(self._settings.gather_seconds if self._free > 0 else None):
                await self._room_for(self._quarter)
        except TimeoutError:
            return False
        return True

    async def _room_for(self, free: int) -> bool:
        """Wait until so many slots are free; False when told to stop."""
        while self._free < free:
            await self._room.wait()
            self._room.clear()
            if self._stopping.is_set():
                return False
        return True

    async def _pause(self, seconds: float) -> None:
        """Until there is a hint, or more room where the limit held somebody back; at most so long."""
        if self._room_wanted:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEED_SECONDS):
                    await self._room_for(self._room_wanted)
                    return
        if not self._stopping.is_set():
            self._hinted = await self._database.wakeups.wait(store.topic(self._work.family), seconds)

    async def _claim(self, free: int, *, alone: bool) -> int:
        async with self._claiming:
            return 0 if self._stopping.is_set() else await self._claim_now(free, alone=alone)

    async def _claim_now(self, free: int, *, alone: bool) -> int:
        try:
            request = ClaimRequest(
                family=self._work.family,
                scopes=await self._next_scopes(alone=alone),
                deployment=self._identity.deployment,
                owner=self._identity.owner,
                token=new_token(),
                rows_max=free,
                lease_us=self._settings.lease_us,
                expiries_max=self._settings.expiries_max,
                alone=alone,
                recalls=self._recalls(),
                room=self._turns.room(self._free),
                floors=self._floors,
            )
            units = await self._database.transact(self._work.claim, self._work.prepare(request))
        except (DoonceError, DatabaseFault) as error:
            log.warning("claiming failed", family=self._work.family, error=str(error))
            await asyncio.sleep(pauses.after_failure(self._settings.poll_seconds))
            return free
        scopes = [self._work.claim_of(unit).item.scope for unit in units]
        self._room_wanted = room_wanted(request.room, scopes, self._quarter)
        if units:
            self._observer.claimed(self._work.family, len(units))
            self._turns.served(set(scopes))
        for unit in units:
            self._begin(unit)
        return len(units)

    def _recalls(self) -> bool:
        """Whether a claim looks for leases that are over: several times a second; one that a hint brought, at polls."""
        now_ns = boottime_ns()
        every_ns = int(self._settings.poll_seconds * 1e9) if self._hinted else RECALL_EVERY_NS
        self._hinted = False
        if now_ns < self._recalled_ns + every_ns:
            return False
        self._recalled_ns = now_ns
        return True

    async def _next_scopes(self, *, alone: bool) -> tuple[Scope, ...]:
        """The scopes to claim in, whose turn it is first: all of them, or of very many the next that wait."""
        turns, at_once = self._turns, self._settings.scopes_per_claim
        turns.know(await self._scopes())
        if len(turns.scopes) <= at_once:
            turns.passed(len(turns.scopes))
            return turns.in_turn(turns.scopes)
        shelves = shelves_of(ENGINE, alone=alone)
        asked = Look(self._work.family, shelves, turns.scopes, turns.position, at_once)
        seen = await self._database.read(store.look, asked)
        turns.passed(seen.passed)
        return turns.in_turn(seen.due)

    async def _suspects_wait(self) -> bool:
        """Whether an item waits to run alone; asked now and then, since it stops everything else."""
        now_ns = boottime_ns()
        if now_ns < self._look_for_suspects_ns:
            return False
        self._look_for_suspects_ns = now_ns + int(self._settings.suspects_seconds * 1e9)
        try:
            return await self._database.read(store.suspects_wait, self._work.family)
        except (DoonceError, DatabaseFault):
            return False

    async def _claim_alone(self) -> bool:
        """Run one suspect with nothing else in this process; dying now convicts it, and nobody else (W2)."""
        self._gate.alone = True
        try:
            await self._gate.empty()
            took = await self._claim(1, alone=True)
            while self._tasks:
                await asyncio.wait(self._tasks)
            return took > 0
        finally:
            self._gate.alone = False

    def _begin(self, unit: Unit) -> None:
        claimed = self._work.claim_of(unit)
        self._gate.enter()
        self._turns.started(claimed.item.scope)
        self.leases.hold(claimed)
        task = asyncio.create_task(self._work.run(unit))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended(done, claimed))

    def _ended(self, task: asyncio.Task[None], claimed: Claimed) -> None:
        self._tasks.discard(task)
        self._gate.leave()
        self._turns.ended(claimed.item.scope)
        self.leases.release(claimed)
        self._room.set()
        if 0 < self._room_wanted <= self._free:
            self._database.wakeups.wake(store.topic(self._work.family))
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work failed unexpectedly", item=claimed.item.id, error=repr(error), exc_info=error)
