"""Whole calls without a network: the real dispatcher, reconciler and completer over a provider that a test directs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import sqlalchemy as sa
from msgspec.structs import replace
from tests.store.effects.world import DEPLOYMENT, INSTALLATION, ORG, World, make_world
from tests.unit.catalog.samples import BINDING, sample_view

from doonce.app.metrics import Metrics
from doonce.base.secrets import Secret
from doonce.catalog.compile import BindingView
from doonce.catalog.render import render
from doonce.catalog.service import Views
from doonce.commands.model import Acceptance, Request
from doonce.commands.tables import command, command_end
from doonce.db.database import Database
from doonce.db.points import Points
from doonce.db.schema import MICROSECONDS
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch
from doonce.effects import reconcile
from doonce.effects.caller import Caller, DispatchSettings
from doonce.effects.completions import Completer, Completion, CompletionSettings, claim_completions
from doonce.effects.model import Question, Start
from doonce.effects.reconciler import Reconciler, ReconcileSettings
from doonce.effects.service import Dispatcher
from doonce.effects.tables import disposition, effect_attempt
from doonce.effects.telling import Inbox
from doonce.http import Client, Go, NotSent, Replied, Sent, Stage, Stop
from doonce.http import Request as Outgoing
from doonce.ownership import store as ownership
from doonce.ownership.model import Family
from doonce.work import settle
from doonce.work.model import Settled, Settlement
from doonce.work.service import Worker
from doonce.work.tables import work_item, work_ready

LEASE_US = 30_000_000
MARGIN_US = 5_000_000
GOOD = Replied(200, (), b'{"id": "501"}', complete=True)
PUSHED = sample_view(binding=f'{BINDING}\n[policies.completion]\nmode = "push"\nurl_name = "app"\n')


class Provider(Client):
    """The outbound client's port: it holds a connection, asks the gate, and answers what the test says."""

    def __init__(self) -> None:
        self.answer: Sent | Callable[[Outgoing], Awaitable[Sent]] = GOOD
        self.gates: list[Go | Stop] = []
        self.sent: list[Outgoing] = []

    async def send(self, request: Outgoing, *, gate: object, **given: object) -> Sent:  # type: ignore[override]
        """As the client does: not one byte before the gate, and none after a Stop."""
        del given
        allowed = await gate()  # type: ignore[operator]  # a Gate
        self.gates.append(allowed)
        if isinstance(allowed, Stop):
            return NotSent(Stage.GATE, allowed.reason)
        if not isinstance(self.answer, NotSent):
            self.sent.append(request)
        return await self.answer(request) if callable(self.answer) else self.answer


@dataclass(slots=True)
class Calls:
    """A world with a published view, and each kind of worker's way to run one claimed unit."""

    world: World
    view: BindingView
    views: Views
    provider: Provider
    points: list[str] = field(default_factory=list)

    @property
    def database(self) -> Database:
        return self.world.database

    def acceptance(
        self, key: str, operation: str = "item.change", payload: bytes = b'{"name": "x"}'
    ) -> Acceptance:
        """An acceptance as the acceptor renders it."""
        plain = self.world.acceptance(key)
        remote_id = "501" if operation == "item.change" else None
        frozen = render(
            self.view, operation, payload, remote_id=remote_id, command_id=plain.command_id
        ).request
        request = Request(
            frozen.method, frozen.origin, frozen.target, frozen.headers, frozen.body, frozen.body_sha256,
            frozen.idempotency_key,
        )  # fmt: skip
        pins = replace(plain.pins, view_digest=self.view.digest)
        return replace(
            plain, operation=operation, payload=payload, remote_id=remote_id, pins=pins, request=request
        )

    async def start(self) -> Start:
        """Claim the one effect that is due."""
        (start,) = await self.world.claim(lease_us=LEASE_US)
        return start

    async def accepted(
        self, key: str = "k1", operation: str = "item.change", payload: bytes = b'{"name": "x"}'
    ) -> Start:
        """Accept one command and claim it."""
        await self.world.accept(self.acceptance(key, operation, payload))
        return await self.start()

    async def run(self, start: Start) -> None:
        """Take one claimed effect to the end of its attempt."""
        dispatcher = Dispatcher(self.database, self.views, self._caller(), DEPLOYMENT, Metrics(), LEASE_US)
        await dispatcher.run(start)

    async def question(self) -> Question:
        """Claim the one reconciliation that is due."""
        request = self.world.claim_request(Family.RECONCILE, lease_us=LEASE_US)
        (found,) = await self.database.transact(reconcile.claim_questions, request)
        return found

    async def look(self, question: Question) -> None:
        """Look once into an unknown outcome."""
        reconciler = Reconciler(
            self.database, self.views, self._caller(), DEPLOYMENT, Metrics(), LEASE_US, ReconcileSettings()
        )
        await reconciler.run(question)

    async def completions(self) -> list[Completion]:
        """Claim the completions that are due."""
        return await self.database.transact(claim_completions, self.world.claim_request(Family.COMPLETION))

    async def tell(self, completion: Completion, settings: CompletionSettings | None = None) -> None:
        """Push one completion, and settle it."""
        inbox = Inbox("https://app.example", "/inbox", Secret("credential"))
        completer = Completer(
            self.database, self.views, self.provider, {"app": inbox}, settings or CompletionSettings()
        )
        completer.worker = _Worker(self.database)
        await completer.run(completion)

    async def rows(self, table: sa.Table) -> list[dict[str, object]]:
        """A whole table."""
        rows = await self.database.read(lambda: fetch(ALL[table.name]))
        return [{column.name: row[at] for at, column in enumerate(table.c)} for row in rows]

    async def attempt(self, attempt_id: str) -> dict[str, object]:
        """One attempt's row."""
        (found,) = [row for row in await self.rows(effect_attempt) if row["id"] == attempt_id]
        return found

    async def item(self, item_id: str) -> dict[str, object]:
        """One work item's row."""
        (found,) = [row for row in await self.rows(work_item) if row["id"] == item_id]
        return found

    async def age(self, by_us: int) -> None:
        """Let every attempt have happened so much earlier, and everything be due: time passes, without the wait."""
        await self.database.transact(_aged, by_us)

    def _caller(self) -> Caller:
        settings = DispatchSettings(margin_us=MARGIN_US, evidence_tries_max=1, evidence_pause_seconds=0)
        return Caller(self.database, self.provider, self.world.principals, DEPLOYMENT, Metrics(), settings)


class _Worker(Worker[Completion]):
    """As much of a worker as a completer needs."""

    def __init__(self, database: Database) -> None:
        self.settlements = _Settlements(database)  # type: ignore[assignment]  # the one method that is called


class _Settlements:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def submit(self, settlement: Settlement) -> Settled:
        (settled,) = await self._database.transact(settle.settle, [settlement], DEPLOYMENT)
        return settled


def _all(table: sa.Table) -> Statement:
    return Statement(f"test.all_{table.name}", lambda dialect: sa.select(table))


ALL = {table.name: _all(table) for table in (command, command_end, disposition, effect_attempt, work_item)}


def _amount(column: sa.Column[int]) -> sa.ColumnElement[int]:
    return column - sa.bindparam("by_us", type_=MICROSECONDS)


AGE = Statement(
    "test.age",
    lambda dialect: sa.update(effect_attempt).values(
        dispatched_at=_amount(effect_attempt.c.dispatched_at), horizon_at=_amount(effect_attempt.c.horizon_at)
    ),
)
RUN_NOW = Statement("test.run_now", lambda dialect: sa.update(work_item).values(run_after=1))
READY_NOW = Statement("test.ready_now", lambda dialect: sa.update(work_ready).values(due=1))


def _aged(by_us: int) -> Txn[None]:
    yield from fetch(AGE, by_us=by_us)
    yield from fetch(RUN_NOW)
    yield from fetch(READY_NOW)


async def make_calls(database: Database) -> Calls:
    """A published view, a principal, a link, and a provider that accepts."""
    await database.transact(ownership.install, DEPLOYMENT, "test", "first")
    world = await make_world(database)
    assert (PUSHED.document.org, PUSHED.document.installation) == (ORG, INSTALLATION)
    views = Views(database)
    await views.publish([PUSHED])
    calls = Calls(world, PUSHED, views, Provider())
    database.points = Points(watch=calls.points.append)
    return calls
