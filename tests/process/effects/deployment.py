"""One deployment for one test: a database, the simulator, an inbox, and as many worker processes as it takes."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from simulators.launch import Simulator
from tests.process.effects import inbox as inboxes
from tests.process.effects.acceptor import IDENTITY
from tests.process.effects.inbox import Inbox
from tests.process.effects.journal import Journal
from tests.process.effects.processes import Process
from tests.process.effects.settings import INBOX, Armed, WorkerSettings
from tests.process.effects.waiting import until
from tests.process.effects.worker import engine_of, open_for_test

from doonce.app.engine import Engine
from doonce.base.digests import digest_bytes
from doonce.base.ids import new_id
from doonce.base.keys import handoff_key
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view
from doonce.catalog.files import load_pack
from doonce.catalog.model import Pack, Verdict
from doonce.commands import store as commands
from doonce.db.database import Database
from doonce.db.migrate import migrate
from doonce.db.transaction import Txn, fetch
from doonce.effects import reconcile
from doonce.effects.model import Verdicted
from doonce.effects.reconcile import ATTEMPTS_BY_ID, Resolve, Resolved
from doonce.links import store as links
from doonce.links.model import NewLink
from doonce.ownership import store as ownership
from doonce.principals.service import Principals
from doonce.principals.vault import KeyRing, Vault
from doonce.wire.handoffs import AcceptRequest, HandoffScope, RejectRequest
from doonce.wire.handoffs import Admission as WireAdmission

PACK = Path(__file__).parent / "pack"
ORG, INSTALLATION, CAPABILITY = "acme", "main", "contacts"
OPERATIONS = (
    "contact.create", "contact.delete", "contact.nudge", "contact.patch", "contact.put", "contact.read",
    "contact.replace",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    """A command to accept: `contact` is the remote id of a linked record, None where the operation has none."""

    name: str
    operation: str
    contact: str | None
    payload: dict[str, str]
    lane: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A command that was accepted."""

    wanted: Wanted
    request: AcceptRequest
    admission: WireAdmission

    @property
    def id(self) -> str:
        """The command's id."""
        assert self.admission.command_id is not None
        return self.admission.command_id


def binding_of(origin: str, pack: Pack, operations: Sequence[str], **policies: Any) -> dict[str, Any]:
    """A binding of a test's pack: quick retries, completions pushed."""
    return {
        "format": "doonce.binding/1",
        "org": ORG,
        "installation": INSTALLATION,
        "capability": CAPABILITY,
        "pack": f"{pack.name}@{pack.version}",
        "origin": origin,
        "principal": "main",
        "operations": list(operations),
        "fields": {"contact": {"outbound": {"title": "jobtitle", "email": "email"}}},
        "policies": {
            "retry": {"base": "20ms", "cap": "200ms"},
            "completion": {"mode": "push", "url_name": INBOX},
            **policies,
        },
    }


@dataclass(slots=True)
class Deployment:
    """A prepared database and everything around it; `close` ends every process that it started."""

    url: str
    simulator: Simulator
    inbox: Inbox
    folder: Path
    view: BindingView
    key: str
    journal: Journal
    processes: list[Process] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)

    # -- processes -----------------------------------------------------------------------------------------------

    def settings(self, **changes: Any) -> WorkerSettings:
        """A worker's settings on this deployment."""
        standard = WorkerSettings(
            url=self.url,
            key=self.key,
            origin=self.simulator.url,
            inbox_origin=self.inbox.origin,
            inbox_credential=inboxes.CREDENTIAL,
            watch=str(self.folder / "points"),
        )
        return msgspec.structs.replace(standard, **changes)

    def spawn(self, kind: str = "worker") -> Process:
        """A process that waits for its settings."""
        process = Process(kind, self.folder / f"process-{len(self.processes)}.log")
        self.processes.append(process)
        return process

    def worker(self, spawned: Process | None = None, **changes: Any) -> Process:
        """A worker process that works."""
        process = spawned or self.spawn()
        process.begin(self.settings(**changes))
        return process

    def armed(self, name: str, action: str = "kill", hit: int = 1) -> Armed:
        """A point to arm, with a flag file of its own."""
        flag = self.folder / f"flag-{len(list(self.folder.glob('flag-*')))}"
        flag.touch()
        return Armed(name, action, hit, str(flag))

    def points(self) -> set[str]:
        """Every named point that any process has reached."""
        file = self.folder / "points"
        return set(file.read_text().split()) if file.exists() else set()

    def close(self) -> None:
        """End every process and let go of the database."""
        for process in self.processes:
            process.close()
        self.journal.close()

    # -- commands ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def engine(self, database: Database | None = None, **changes: Any) -> AsyncIterator[Engine]:
        """An engine in this process, started by the test; stopped afterwards."""
        engine = engine_of(self.settings(**changes), database or open_for_test(self.url))
        try:
            yield engine
        finally:
            await engine.stop()

    def request(self, wanted: Wanted) -> AcceptRequest:
        """The handoff of a command, as a relay would send it."""
        payload = json.dumps(wanted.payload).encode()
        scope = HandoffScope(
            org=ORG,
            installation=INSTALLATION,
            capability=CAPABILITY,
            binding_digest=self.view.digest,
            binding_generation=1,
        )
        return AcceptRequest(
            key=handoff_key(ORG, INSTALLATION, CAPABILITY, self.view.digest, wanted.name),
            scope=scope,
            outbox_id=new_id("obx"),
            operation=wanted.operation,
            local_ref=wanted.contact or wanted.name,
            link=None,
            payload=payload,
            payload_digest=digest_bytes(payload),
            source_lane=wanted.lane,
        )

    async def accept_in(self, engine: Engine, *wanted: Wanted) -> list[Accepted]:
        """Accept commands, all at once; positions in a lane are drawn in the order of calls, not within one."""
        requests = [self.request(one) for one in wanted]
        admissions = await engine.acceptor.accept(IDENTITY, requests)
        made = []
        for one, request, admission in zip(wanted, requests, admissions, strict=True):
            assert isinstance(admission, WireAdmission), admission
            made.append(Accepted(one, request, admission))
        self.accepted += made
        return made

    def accept(self, *wanted: Wanted) -> list[Accepted]:
        """The same from a test that has no event loop."""

        async def run() -> list[Accepted]:
            async with self.engine() as engine:
                return await self.accept_in(engine, *wanted)

        return asyncio.run(run())

    def accept_again(self, known: Sequence[Accepted]) -> list[Accepted]:
        """Hand the same rows over once more, as a relay does that has no receipt; what they are now."""

        async def run() -> list[Accepted]:
            async with self.engine() as engine:
                found = await engine.acceptor.accept(IDENTITY, [one.request for one in known])
            made = []
            for one, admission in zip(known, found, strict=True):
                assert isinstance(admission, WireAdmission), admission
                made.append(Accepted(one.wanted, one.request, admission))
            return made

        return asyncio.run(run())

    def rejection(self, request: AcceptRequest) -> RejectRequest:
        """The wish that a handoff may never be accepted."""
        return RejectRequest(
            key=request.key,
            scope=request.scope,
            payload_digest=request.payload_digest,
            outbox_id=request.outbox_id,
        )

    def contacts(self, *ids: str, linked: bool = True) -> list[str]:
        """Contacts at the provider, each linked to a local record of the same name."""
        self.simulator.seed(*({"id": contact, "properties": {"jobtitle": "before"}} for contact in ids))
        if linked:
            asyncio.run(adopt(self.url, ids))
        return list(ids)

    # -- the operator --------------------------------------------------------------------------------------------

    def undecided(self) -> list[Any]:
        """Dispositions of *no effect* after which an operator has to say what next (PROTOCOL H3)."""
        ended = self.journal.ends()
        subjects = {attempt.id: attempt.subject_id for attempt in self.journal.attempts()}
        return [
            row
            for row in self.journal.dispositions().values()
            if row.verdict == "no_effect_proven"
            and row.successor_item_id is None
            and subjects[row.attempt_id] not in ended
        ]

    def decide(self, attempt_id: str, *, resend: bool) -> Resolved:
        """As the operator, send a command again, or let it end, after its attempt is proven to have had no effect."""
        return asyncio.run(_decide(self.url, attempt_id, resend=resend))

    # -- facts ---------------------------------------------------------------------------------------------------

    def ended(self) -> bool:
        """Whether every accepted command has ended, and nothing is left to do for any."""
        if any(one.id not in self.journal.ends() for one in self.accepted if one.admission.command_id):
            return False
        return all(item.finished_at is not None for item in self.journal.items())

    def wait_ended(self, *, seconds: float = 60.0, decide: Iterable[bool] | None = None) -> list[str]:
        """Wait until all is over. `decide` says for each undecided attempt whether the operator resends.

        Returns the ids of the attempts that were sent again by the operator.
        """
        choices = iter(decide) if decide is not None else None
        resent: list[str] = []

        def over() -> bool:
            for row in self.undecided() if choices is not None else []:
                resend = next(choices)
                if self.decide(row.attempt_id, resend=resend) is Resolved.RECORDED and resend:
                    resent.append(row.attempt_id)
            return self.ended()

        try:
            until(over, "the end of every command", seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from None
        return resent

    def story(self, about: str = "") -> str:
        """What the journal says of everything that has not ended, and of every id in `about`."""
        open_ids = {item.id for item in self.journal.items() if item.finished_at is None}
        ended = self.journal.ends()
        open_ids |= {one.id for one in self.accepted if one.admission.command_id and one.id not in ended}
        open_ids |= set(re.findall(r"[a-z]{3}_[0-9a-f]{32}", about))
        parts: list[str] = []
        for name, rows in (
            ("items", self.journal.items()),
            ("attempts", self.journal.attempts()),
            ("evidence", self.journal.evidence()),
            ("dispositions", list(self.journal.dispositions().values())),
        ):
            told = [
                {key: value for key, value in row._mapping.items() if value not in (None, 0, "")}
                for row in rows
            ]
            parts += [name, *(str(row) for row in told if open_ids & {str(value) for value in row.values()})]
        parts += [f"{process.log.name}: {process.tail()}" for process in self.processes]
        return "\n".join(parts)


async def adopt(url: str, ids: Iterable[str]) -> None:
    """Link local records to contacts of the same name."""
    database = open_for_test(url)
    try:
        principals = Principals(database, Vault(KeyRing.generate()))
        principal = await principals.find(ORG, INSTALLATION, "main")
        await database.transact(
            links.adopt,
            [
                NewLink(
                    new_id("lnk"),
                    ORG,
                    INSTALLATION,
                    principal.id,
                    principal.generation,
                    "contact",
                    contact,
                    contact,
                )
                for contact in ids
            ],
        )
    finally:
        await database.close()


async def _decide(url: str, attempt_id: str, *, resend: bool) -> Resolved:
    def look() -> Txn[Any]:
        rows = yield from fetch(ATTEMPTS_BY_ID, ids=[(attempt_id,)])
        known = yield from commands.load([rows[0]["subject_id"]])
        return known[rows[0]["subject_id"]], rows[0]["evidence_version"]

    database = open_for_test(url)
    try:
        command, version = await database.read(look)
        verdict = Verdicted(Verdict.NO_EFFECT_PROVEN, "the operator looked", version, resend=resend)
        row = Resolve(None, "default", attempt_id, command, "operator", new_id("wrk"), verdict=verdict)
        return await database.transact(reconcile.resolve, row)
    finally:
        await database.close()


@contextmanager
def deployed(
    url: str,
    simulator: Simulator,
    folder: Path,
    *,
    pack: Pack | None = None,
    operations: Sequence[str] = OPERATIONS,
    **policies: Any,
) -> Iterator[Deployment]:
    """A deployment on an empty database, with its binding published and its principal connected."""
    asyncio.run(migrate(url, install=lambda: ownership.install("default", "test", "first")))
    loaded = pack or load_pack(PACK)
    binding = read_binding(binding_of(simulator.url, loaded, operations, **policies))
    view = compile_view(loaded, binding, origins=OriginPolicy(undeclared=True, plain_http=True))
    with inboxes.serving() as inbox:
        deployment = Deployment(url, simulator, inbox, folder, view, os.urandom(32).hex(), Journal(url))
        try:
            asyncio.run(_set_up(deployment))
            yield deployment
        finally:
            deployment.close()


async def _set_up(deployment: Deployment) -> None:
    async with deployment.engine() as engine:
        await engine.views.publish([deployment.view])
        await engine.principals.connect(
            org=ORG, installation=INSTALLATION, pack="ledgered", name="main", secret=Secret("token")
        )
