"""doonce inside an application: the same engine as the service's, in this process.

async with Doonce("sqlite:///doonce.db") as app:
    crm = await app.installation("acme", "main", pack="packs/x", binding="binding.toml", secret="token")
    await crm.link("record", local="42", remote="501")
    command = await crm.accept("record.patch", "42", {"title": "CTO"})
    print(await app.outcome(command))
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NewType, TypeVar

from doonce.app import installing
from doonce.app.config import settings_from
from doonce.app.engine import Engine
from doonce.app.handlers import EventHandler, LocalHandlers, pack_of, routed_here, unrouted
from doonce.app.installing import BindingSource, Installed
from doonce.app.opening import open_engine
from doonce.app.operate.gap_model import GapView
from doonce.app.operate.gaps import Reconcile
from doonce.app.operate.model import CommandView, Decision, Pruned, Timeline
from doonce.app.operate.service import Operator
from doonce.app.payloads import payload_bytes
from doonce.app.proof import migrate_if_allowed, prove
from doonce.app.web.readiness import Readiness
from doonce.base import json
from doonce.base.digests import digest_bytes
from doonce.base.errors import Conflict, Internal, Invalid
from doonce.base.ids import new_id
from doonce.base.json import JsonValue
from doonce.base.keys import handoff_key
from doonce.base.limits import LIMITS
from doonce.base.secrets import Secret
from doonce.catalog.compile import BindingView
from doonce.commands.model import CommandState
from doonce.ingress.gaps import CloseGap
from doonce.links.model import RemoteLink
from doonce.runtime.events import Event
from doonce.runtime.handoffs import EmbeddedHandoffs
from doonce.trust import Identity, InstallationConfig, embedded
from doonce.wire.handoffs import AcceptRequest, AdmissionState, HandoffScope, RejectRequest
from doonce.wire.handoffs import Admission as WireAdmission

CommandId = NewType("CommandId", str)
HandlerT = TypeVar("HandlerT", bound=EventHandler)

POLL_FIRST_SECONDS: Final = 0.005
POLL_CAP_SECONDS: Final = 0.25
"""How `outcome` waits: soon at first, then as often as costs nothing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of a command. `final`: nothing else can follow. `unknown` is no end: it is being looked into.

    `result` is what the provider's answer or a probe proved, with exact numbers; `attempt` is the call that decided.
    """

    command: str
    state: CommandState
    final: bool
    result: Mapping[str, JsonValue]
    attempt: str | None
    reason: str

    def __str__(self) -> str:
        return f"{self.state.value}: {self.reason}" if self.reason else self.state.value


class Doonce:
    """A deployment inside this process, started by `async with` and stopped gracefully at its end.

    `settings` are those of docs/settings.md by name, as in the file: `Doonce(url, egress={"plain_http": True})`.
    Neither a file nor the environment is read. SQLite is migrated at the start; PostgreSQL only with `migrate=True`,
    since a running deployment may share it. Leases let another process go on with what a crash leaves. Cancelling the
    start or the stop is a crash to the work, and leaves no task and no connection here.
    """

    def __init__(self, database: str, *, migrate: bool | None = None, **settings: Any) -> None:
        self._settings = settings_from({"database": database, **settings})
        self._migrate = migrate
        self._engine: Engine | None = None
        self._readiness = Readiness()
        self._watching: asyncio.Task[None] | None = None
        self._local = LocalHandlers()
        self._views: dict[str, BindingView] = {}

    def on(self, name: str) -> Callable[[HandlerT], HandlerT]:
        """Have the decorated function, plain or a coroutine's, take the events `pack.type`, or `pack.*`.

        It gets an `Event` and may get it again: it opens the application's own transaction and asks
        `inbox.once(connection, event.id)` there. Returning ends the event's work; raising has it tried again, and at
        the bound leaves it dead for `doonce replay`. Of several names that fit, the most particular one's handler runs.
        A plain function runs on a thread, and at most `handler.threads` of them at once.

        Raises `Invalid` for a text that names no event and for a name that is taken. Whether a binding hands such an
        event over is checked as soon as one of its pack is published: see `installation`.
        """
        taken = self._local.handlers.on(name)

        def register(handler: HandlerT) -> HandlerT:
            taken(handler)
            return handler

        return register

    async def __aenter__(self) -> Doonce:
        await migrate_if_allowed(self._settings, self._migrate)
        engine = open_engine(self._settings, self._local)
        try:
            watch = await prove(engine, self._settings)
            engine.start()
        except BaseException:
            await engine.stop()
            raise
        self._engine, self._readiness = engine, Readiness()
        self._readiness.clear("start")
        self._watching = asyncio.create_task(watch.run(self._readiness), name="doonce watch")
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        engine, self._engine = self._engine, None
        watching, self._watching = self._watching, None
        try:
            if watching is not None:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
        finally:
            if engine is not None:
                await engine.stop()

    @property
    def engine(self) -> Engine:
        """The running engine; raises `Conflict` outside of `async with`."""
        if self._engine is None:
            raise Conflict("doonce is not running", hint="use it inside `async with Doonce(…) as app:`")
        return self._engine

    @property
    def causes(self) -> dict[str, str]:
        """Why this process may not be working, as `/readyz` of the service says it; empty while all is well.

        For the application's own health check. Looked at every `durability.check_every_seconds`: `database` (not to be
        had, or it may lose commits), `dispatch` (closed until `doonce declare`), `ownership`, `schema` (of a newer
        release), `engine` (a part of doonce in this process ended: restart it; what was accepted is kept).
        """
        failed = self.engine.failed()
        if failed is None and self._watching is not None and self._watching.done():
            failed = self._watching.exception()
        ended = {} if failed is None else {"engine": f"a part of this process ended: {type(failed).__name__}"}
        return self._readiness.causes() | ended

    async def installation(
        self,
        org: str,
        installation: str,
        *,
        pack: str | Path,
        binding: BindingSource,
        secret: str | Secret | None = None,
    ) -> Installation:
        """Publish the binding, connect its principal with `secret`, and act for that installation. Repeatable.

        `pack` is a pack's folder or the name of one that comes with doonce; `binding` a TOML file or the same as a
        mapping. Another secret than the stored one replaces it. Raises `Invalid`, which names file, table and field,
        or a handler (`on`) of this pack whose events no published binding hands over: the binding is published then.
        """
        engine = self.engine
        origins = self._settings.egress.origins()
        view = await asyncio.to_thread(installing.compiled, pack, binding, origins)
        document = view.document
        if (document.org, document.installation) != (org, installation):
            raise Invalid(
                f"the binding is for {document.org} / {document.installation}, not {org} / {installation}",
                hint="name the binding's own org and installation",
            )
        given = Secret(secret) if isinstance(secret, str) else secret
        installed = await installing.install(engine, view, given, reason="connected by the application")
        await self._check_handlers(installed.view)
        config = InstallationConfig(org, installation, frozenset({document.capability}))
        return Installation(engine, installed, embedded(config))

    async def _check_handlers(self, view: BindingView) -> None:
        self._views[view.digest] = view
        pack = pack_of(view)
        if not unrouted(self._local.handlers, pack, self._views.values()):
            return
        published = [*self._views.values(), *await self.engine.views.all_latest()]
        lost = unrouted(self._local.handlers, pack, published)
        if lost:
            routed = ", ".join(sorted(routed_here(published))) or "nothing"
            raise Invalid(
                f"no published binding hands {lost[0]!r} to a handler here; handed over is {routed}",
                hint="correct the name, or put its type into `handle` of the binding's webhook, without `push`",
            )

    async def outcome(self, command: str, timeout_seconds: float = 30.0) -> Outcome:
        """What became of a command: waits for its end, at most so long, and then says what is known by now.

        Raises `MissingOrDenied` for a command that is not there.
        """
        operator = self._operator()
        pause = POLL_FIRST_SECONDS
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        while True:
            view = await operator.command(command)
            left = deadline - loop.time()
            if view.final or left <= 0:
                return _outcome(view)
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 2, POLL_CAP_SECONDS)

    async def show(self, asked: str) -> list[Timeline]:
        """The story of anything by its id; raises `MissingOrDenied`."""
        return await self._operator().show(asked)

    async def cancel(self, command: str) -> Outcome:
        """Cancel a command that waits, or ask the one that runs; raises `Conflict` once its outcome decides."""
        return _outcome(await self._operator().cancel(command))

    async def resolve(self, attempt: str, decision: Decision | str, *, who: str, reason: str) -> Outcome:
        """Record what a person found out about an attempt that nobody knows the outcome of.

        `happened`, `not-happened`, `superseded` end its command; `resend` sends it again. Raises `Conflict` for an
        attempt that is not in question.
        """
        try:
            decided = Decision(decision)
        except ValueError:
            choices = ", ".join(one.value for one in Decision)
            raise Invalid(f"{decision!r} is no decision", hint=f"one of {choices}") from None
        return _outcome(await self._operator().resolve(attempt, decided, who=who, reason=reason))

    async def prune(self, *, dry_run: bool = False) -> Pruned:
        """Move all ended work whose time is over into history now, or say what would go. Nothing is lost by it."""
        return await self._operator().prune(dry_run=dry_run)

    async def gaps(self) -> tuple[GapView, ...]:
        """Open gaps of deliveries, the oldest first, with how far each has been read; bounded."""
        return await self._operator().gaps()

    async def reconcile_gap(self, asked: Reconcile) -> GapView:
        """Have the provider read for an open gap once more, or for a time; see `Operator.reconcile_gap`."""
        return await self._operator().reconcile_gap(asked)

    async def close_gap(self, asked: CloseGap) -> GapView:
        """Record that the losses of a gap were looked into; raises `Stale` when there are more by now."""
        return await self._operator().close_gap(asked)

    def _operator(self) -> Operator:
        return Operator(self.engine)


class Installation:
    """One installation under one published binding; made by `Doonce.installation`."""

    def __init__(self, engine: Engine, installed: Installed, identity: Identity) -> None:
        self._engine = engine
        self._installed = installed
        self._identity = identity

    @property
    def scope(self) -> HandoffScope:
        """What the application's outbox pins (`runtime.outbox.emit`)."""
        document = self._installed.view.document
        return HandoffScope(
            org=document.org,
            installation=document.installation,
            capability=document.capability,
            binding_digest=self._installed.view.digest,
            binding_generation=self._installed.generation,
        )

    @property
    def handoffs(self) -> EmbeddedHandoffs:
        """The port for a `runtime.relay.Relay` in this process."""
        return EmbeddedHandoffs(
            lambda requests: self._engine.acceptor.accept(self._identity, requests),
            lambda request: self._engine.acceptor.reject(self._identity, request),
        )

    async def link(self, kind: str, *, local: str, remote: str) -> RemoteLink:
        """Say that the application's record `local` is the provider's object `remote`. Repeatable.

        Raises `Conflict` when either is linked to something else.
        """
        return await installing.adopt(self._engine, self._installed, kind, local, remote)

    async def accept(
        self,
        operation: str,
        local_ref: str,
        payload: bytes | Mapping[str, JsonValue],
        *,
        key: str | None = None,
        link: str | None = None,
        lane: str | None = None,
    ) -> CommandId:
        """Take one effect over, durably and once, and return its command.

        `key` is the application's own name of this effect: accepting it again with the same content gives the same
        command. Without it every call is another effect. Commands of one `lane` keep their order. For an effect that
        must happen together with a change of the application's own, use `runtime.outbox` instead.

        Raises `Invalid` (unknown operation, a payload that its schema or strict JSON refuses, a float that has no
        exact decimal), `MissingOrDenied` (nothing linked), `Quarantined` (the key was used with other content),
        `Conflict` (the key was rejected for ever); nothing was written then.
        """
        raw = payload_bytes(payload)
        outbox_id = (
            f"obx_{hashlib.sha256(key.encode()).hexdigest()[:32]}" if key is not None else new_id("obx")
        )
        request = AcceptRequest(
            key=self._key(key if key is not None else outbox_id),
            scope=self.scope,
            outbox_id=outbox_id,
            operation=operation,
            local_ref=local_ref,
            link=link,
            payload=raw,
            payload_digest=digest_bytes(raw),
            source_lane=lane,
        )
        return _accepted(await self._engine.acceptor.accept_one(self._identity, request))

    async def withdraw(self, key: str, payload: bytes | Mapping[str, JsonValue]) -> bool:
        """Make sure that `key` never becomes a command; False when it became one first."""
        raw = payload_bytes(payload)
        request = RejectRequest(
            key=self._key(key),
            scope=self.scope,
            payload_digest=digest_bytes(raw),
            outbox_id=f"obx_{hashlib.sha256(key.encode()).hexdigest()[:32]}",
        )
        admission = await self._engine.acceptor.reject(self._identity, request)
        return admission.state is AdmissionState.HANDOFF_REJECTED

    def _key(self, local_key: str) -> str:
        scope = self.scope
        return handoff_key(scope.org, scope.installation, scope.capability, scope.binding_digest, local_key)


def _accepted(admission: WireAdmission) -> CommandId:
    if admission.state is AdmissionState.HANDOFF_REJECTED:
        raise Conflict(
            f"this key is rejected for ever: {admission.reason}",
            hint="a new intent needs a new key; after a reconnect, call `installation` again",
        )
    if admission.command_id is None:
        raise Internal("an accepted handoff names no command")
    return CommandId(admission.command_id)


def _outcome(view: CommandView) -> Outcome:
    result = json.loads(bytes(view.result), bytes_max=LIMITS.response_bytes_max)
    return Outcome(
        command=view.command_id,
        state=view.state,
        final=view.final,
        result=result if isinstance(result, dict) else {},
        attempt=view.attempt_id,
        reason=view.reason,
    )


__all__ = ["CloseGap", "CommandId", "Doonce", "Event", "Installation", "Outcome", "Reconcile"]
