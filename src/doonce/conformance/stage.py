"""What a case works with: the scratch place, the witness, and an organization that no other case has."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from doonce.app.engine import Engine
from doonce.app.operate.service import Operator
from doonce.base.digests import digest_bytes
from doonce.base.ids import new_id, new_token
from doonce.base.keys import handoff_key
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view
from doonce.catalog.files import load_pack
from doonce.conformance.engines import engine_of, open_scratch
from doonce.conformance.jobs import EngineJob, Job, Place
from doonce.conformance.model import Broken
from doonce.conformance.processes import WAIT_SECONDS, Process, Processes
from doonce.conformance.scratch import DEPLOYMENT, Scratch
from doonce.conformance.witness import Witness
from doonce.conformance.worker import read_items
from doonce.db.database import Database
from doonce.ownership.model import Family
from doonce.principals.model import Principal
from doonce.trust import Identity, InstallationConfig, embedded
from doonce.wire import AcceptRequest, Admission, HandoffScope, RejectRequest
from doonce.work import store
from doonce.work.model import Claimed, Item, NewItem, Scope

T = TypeVar("T")
PACK: Final = Path(__file__).with_name("pack")
OPERATION: Final = "record.add"
CAPABILITY: Final = "records"
LONG_US: Final = 600_000_000
"""A lease that does not run out while a case runs."""
SHORT_US: Final = 300_000
POLL_SECONDS: Final = 0.01


async def until(fact: Callable[[], Awaitable[T | None]], what: str) -> T:
    """The first value of `fact` that is there; `Broken` when none comes in a time that is ample."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + WAIT_SECONDS
    while (found := await fact()) is None:
        if loop.time() > deadline:
            raise Broken(f"{what} did not come within {WAIT_SECONDS:.0f} s")
        await asyncio.sleep(POLL_SECONDS)
    return found


@dataclass(slots=True)
class Tenant:
    """One installation: its published view, its connected principal, and what it hands over."""

    engine: Engine
    view: BindingView
    principal: Principal
    place: Place
    secret: str

    @property
    def scope(self) -> Scope:
        """Whose work it is."""
        return Scope(self.place.org, self.place.installation)

    @property
    def identity(self) -> Identity:
        """Who asks for it."""
        return embedded(
            InstallationConfig(self.place.org, self.place.installation, frozenset({self.place.capability}))
        )

    def handoff(self, view: BindingView | None = None) -> HandoffScope:
        """What its outbox pins."""
        return HandoffScope(
            org=self.place.org,
            installation=self.place.installation,
            capability=self.place.capability,
            binding_digest=(view or self.view).digest,
            binding_generation=self.principal.generation,
        )

    def request(self, name: str, *, value: str = "value", view: BindingView | None = None) -> AcceptRequest:
        """The handoff of one command, as a relay sends it; the same name is the same key and outbox row."""
        scope = self.handoff(view)
        payload = msgspec.json.encode({"first": value})
        key = handoff_key(scope.org, scope.installation, scope.capability, scope.binding_digest, name)
        return AcceptRequest(
            key=key,
            scope=scope,
            outbox_id=f"obx_{digest_bytes(key.encode())[7:39]}",
            operation=OPERATION,
            local_ref=name,
            link=None,
            payload=payload,
            payload_digest=digest_bytes(payload),
            source_lane=None,
        )

    async def accept(self, name: str, *, value: str = "value") -> str:
        """Accept one command; its id."""
        admission = await self.engine.acceptor.accept_one(self.identity, self.request(name, value=value))
        if admission.command_id is None:
            raise Broken(f"a new key was not accepted but {admission.state.value}: {admission.reason}")
        return admission.command_id

    async def reject(self, request: AcceptRequest) -> Admission:
        """Ask that the key of a handoff may never be accepted."""
        return await self.engine.acceptor.reject(self.identity, rejection_of(request))


def rejection_of(request: AcceptRequest) -> RejectRequest:
    """The wish that this handoff may never be accepted."""
    return RejectRequest(
        key=request.key,
        scope=request.scope,
        payload_digest=request.payload_digest,
        outbox_id=request.outbox_id,
    )


@dataclass(slots=True)
class Stage:
    """One case's own surroundings over the shared scratch place; `close` ends every process that it started."""

    scratch: Scratch
    database: Database
    witness: Witness
    place: Place
    forks: Processes
    ways: Iterator[Scratch]
    processes: list[Process] = field(default_factory=list)

    # -- commands ------------------------------------------------------------------------------------------------

    async def tenant(
        self, org: str | None = None, installation: str = "main", capability: str = CAPABILITY
    ) -> Tenant:
        """A connected installation with its view published."""
        place = msgspec.structs.replace(
            self.place, org=org or self.place.org, installation=installation, capability=capability
        )
        engine = engine_of(place, self.database)
        secret = new_token()
        principal = await engine.principals.connect(
            org=place.org, installation=installation, pack="witness", name=capability, secret=Secret(secret)
        )
        view = view_of(place)
        await engine.views.publish([view])
        return Tenant(engine, view, principal, place, secret)

    def operator(self, tenant: Tenant) -> Operator:
        """Who looks at it, and cancels."""
        return Operator(tenant.engine)

    # -- work ----------------------------------------------------------------------------------------------------

    async def insert(self, count: int, **fields: object) -> tuple[str, ...]:
        """New items of this case's organization; their ids, in order."""
        scope = Scope(self.place.org, self.place.installation)
        items = [
            NewItem(
                id=new_id("wrk"), family=Family.EFFECT.value, scope=scope, subject_kind="conformance",
                subject_id=new_id("cmd"), view_digest="sha256:conformance", **fields,  # type: ignore[arg-type]
            )
            for _ in range(count)
        ]  # fmt: skip
        for item in items:  # one after another, so that positions in a lane are in this order
            await self.database.transact(store.enqueue, [item])
        return tuple(item.id for item in items)

    async def claim(self, rows_max: int = 100, *, lease_us: int = LONG_US) -> list[Claimed]:
        """Claim for this case's organization, as a process of its own."""
        return await self.database.transact(store.claim, self.claim_request(rows_max, lease_us))

    def claim_request(self, rows_max: int, lease_us: int) -> store.ClaimRequest:
        """The claim of a process that was never seen before."""
        return store.ClaimRequest(
            family=Family.EFFECT.value,
            scopes=(Scope(self.place.org, self.place.installation),),
            deployment=DEPLOYMENT,
            owner=new_id("prc"),
            token=new_token(),
            rows_max=rows_max,
            lease_us=lease_us,
            expiries_max=5,
        )

    async def claim_one(self, *, lease_us: int = LONG_US) -> Claimed:
        """Claim exactly one item, as soon as there is one."""

        async def some() -> Claimed | None:
            found = await self.claim(1, lease_us=lease_us)
            return found[0] if found else None

        return await until(some, "an item that may be claimed")

    async def item(self, item_id: str) -> Item:
        """An item as it is."""
        (found,) = await self.database.read(read_items, [item_id])
        return found

    # -- processes -----------------------------------------------------------------------------------------------

    async def spawn(self, job: Job) -> Process:
        """A process that is ready to begin; the next one works at the next way to the database."""
        way = next(self.ways)
        place = msgspec.structs.replace(job.place, url=way.url, home=way.home)
        process = await self.forks.start(msgspec.structs.replace(job, place=place))
        self.processes.append(process)
        return process

    async def spawn_together(self, jobs: Sequence[Job]) -> list[Process]:
        """Processes that begin at once."""
        processes = await asyncio.gather(*(self.spawn(job) for job in jobs))
        await asyncio.gather(*(process.begin() for process in processes))
        return list(processes)

    async def run_engine(self, tenant: Tenant, *, kill_at: str = "", concurrency: int = 4) -> Process:
        """A process that works the tenant's effects, as the service does."""
        place = msgspec.structs.replace(tenant.place, kill_at=kill_at)
        (process,) = await self.spawn_together([EngineJob(place=place, concurrency=concurrency)])
        return process

    async def close(self) -> None:
        """End every process."""
        for process in self.processes:
            await asyncio.to_thread(process.close)
        self.processes.clear()


def view_of(place: Place, **renamed: str) -> BindingView:
    """The view of the witness's pack for one scope; `renamed` says which of its fields the application's is."""
    binding = read_binding(
        {
            "format": "doonce.binding/1",
            "org": place.org,
            "installation": place.installation,
            "capability": place.capability,
            "pack": "witness@1.0.0",
            "origin": place.origin,
            "principal": place.capability,
            "operations": [OPERATION],
            "fields": {"record": {"outbound": renamed or {"first": "first"}}},
            "policies": {"retry": {"base": "20ms", "cap": "200ms"}},
        }
    )
    return compile_view(load_pack(PACK), binding, origins=OriginPolicy(undeclared=True, plain_http=True))


@asynccontextmanager
async def staging(
    scratch: Scratch, others: Sequence[Scratch], forks: Processes
) -> AsyncIterator[Callable[[], Stage]]:
    """Makes stages over one scratch place, each with an organization that was never used before.

    `others` are further ways to it: worker processes take turns, the case itself is always at the first one.
    """
    witness = Witness()
    await witness.start()
    database = open_scratch(scratch.url)
    base = Place(
        url=scratch.url, home=scratch.home, name=scratch.name, guard=scratch.guard, key=os.urandom(32).hex(),
        origin=witness.origin, org="", installation="main", capability=CAPABILITY,
    )  # fmt: skip

    ways = itertools.cycle((*others, scratch))

    def make() -> Stage:
        witness.bodies.clear()
        witness.secrets.clear()
        return Stage(
            scratch,
            database,
            witness,
            msgspec.structs.replace(base, org=f"org_{new_token()[:12]}"),
            forks,
            ways,
        )

    try:
        yield make
    finally:
        await database.close()
        await witness.stop()


__all__ = ["LONG_US", "SHORT_US", "Stage", "Tenant", "rejection_of", "staging", "until", "view_of"]
