"""Acceptance: a trusted request becomes a frozen one, and then exactly one admission.

Everything that can be refused is refused before the transaction, typed, and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import assert_never

from doonce.base.digests import check_digest
from doonce.base.errors import Conflict, DoonceError, MissingOrDenied, Quarantined
from doonce.base.ids import new_id, new_token
from doonce.base.keys import frame, parse_handoff_key
from doonce.base.limits import LIMITS, check_text
from doonce.catalog.compile import BindingView, Operation
from doonce.catalog.model import LinkUse
from doonce.catalog.render import render
from doonce.catalog.service import Views
from doonce.commands import store
from doonce.commands.closure import Closure
from doonce.commands.model import (
    Acceptance,
    Admission,
    Admitted,
    ConflictFound,
    HandoffClaim,
    Pins,
    Rejection,
    Request,
)
from doonce.db.committer import Committer, FlushObserver
from doonce.db.database import Database
from doonce.links import store as links
from doonce.links.model import RemoteLink
from doonce.principals.service import Principals
from doonce.trust import Identity, WorkScope
from doonce.wire.handoffs import (
    AcceptRequest,
    AdmissionState,
    HandoffScope,
    Refused,
    RejectRequest,
    refused_from,
)
from doonce.wire.handoffs import Admission as WireAdmission
from doonce.work.model import LanePolicy, Scope

WITHDRAWN = "withdrawn"


class Acceptor:
    """The authority for whether a handoff key may still become a command (authority §6.1)."""

    def __init__(
        self,
        database: Database,
        views: Views,
        principals: Principals,
        inboxes: Collection[str],
        observer: FlushObserver | None = None,
    ) -> None:
        self._database = database
        self._views = views
        self._principals = principals
        self._closure = Closure(database, inboxes)
        self._accepts: Committer[Acceptance, Admission] = Committer(
            database,
            store.accept,
            key=lambda acceptance: acceptance.handoff.key,
            size=lambda acceptance: 1024 + len(acceptance.request.body) + len(acceptance.payload),
            observer=observer,
        )
        self._rejects: Committer[Rejection, Admission] = Committer(
            database, store.reject, key=lambda rejection: rejection.handoff.key, observer=observer
        )

    async def accept(
        self, identity: Identity, requests: Sequence[AcceptRequest]
    ) -> list[WireAdmission | Refused]:
        """Admit each request for itself; the answers are in its order. After a lost response, ask again."""
        return list(
            await asyncio.gather(*(self._accept_or_refuse(identity, request) for request in requests))
        )

    async def _accept_or_refuse(self, identity: Identity, request: AcceptRequest) -> WireAdmission | Refused:
        try:
            return await self.accept_one(identity, request)
        except DoonceError as error:
            return refused_from(request.key, error)

    async def accept_one(self, identity: Identity, request: AcceptRequest) -> WireAdmission:
        """Admit one request, or raise what is wrong with it: nothing was written then."""
        scope = trusted_scope(identity, request.scope, request.key)
        try:
            acceptance = await self._prepare(scope, request)
        except DoonceError:
            # a retry after a lost response still gets its receipt, whatever has changed since (PROTOCOL F2)
            (known,) = await self._database.read(store.find, [_claim(scope, request)])
            if known is None:
                raise
            return _answer(known)
        return _answer(await self._accepts.submit(acceptance))

    async def reject(self, identity: Identity, request: RejectRequest) -> WireAdmission:
        """Make sure that the key is decided; returns the acceptance that came first, or the durable rejection."""
        scope = trusted_scope(identity, request.scope, request.key)
        rejection = Rejection(_claim(scope, request), new_token(), new_id("hnd"), WITHDRAWN)
        return _answer(await self._rejects.submit(rejection))

    async def _prepare(self, scope: WorkScope, request: AcceptRequest) -> Acceptance:
        view = await self._views.published(
            scope.org, scope.installation, scope.capability, scope.binding_digest
        )
        await self._closure.check(view)
        operation = view.operation(request.operation)
        principal_id = await self._principals.id_of(scope.org, scope.installation, view.document.principal)
        link = await self._link(scope, principal_id, link_kind(view, operation), operation, request)
        command_id = new_id("cmd")
        remote_id = link.remote_id if link is not None else None
        rendered = render(
            view, request.operation, request.payload, remote_id=remote_id, command_id=command_id
        )
        frozen, target = rendered.request, rendered.target_lane
        return Acceptance(
            handoff=_claim(scope, request),
            nonce=new_token(),
            receipt_id=new_id("hnd"),
            command_id=command_id,
            work_id=new_id("wrk"),
            operation=request.operation,
            local_ref=request.local_ref,
            payload=request.payload,
            remote_id=remote_id,
            pins=Pins(
                view_digest=view.digest,
                principal_id=principal_id,
                generation=request.scope.binding_generation,
                link_id=link.id if link is not None else None,
                link_version=link.version if link is not None else None,
            ),
            request=Request(
                method=frozen.method,
                origin=frozen.origin,
                target=frozen.target,
                headers=frozen.headers,
                body=frozen.body,
                body_digest=frozen.body_sha256,
                idempotency_key=frozen.idempotency_key,
            ),
            source_lane=_source_lane(scope, request),
            source_policy=LanePolicy(operation.contract.source_lane.value),
            target_lane=frame("t", scope.org, scope.installation, target) if target is not None else None,
        )

    async def _link(
        self, scope: WorkScope, principal_id: str, kind: str, operation: Operation, request: AcceptRequest
    ) -> RemoteLink | None:
        if operation.contract.link in (LinkUse.NONE, LinkUse.CREATES):
            return None
        if request.link is not None:
            found = (await self._database.read(links.get, [request.link])).get(request.link)
        else:
            key = (scope.org, scope.installation, kind, request.local_ref)
            found = (await self._database.read(links.find, [key])).get(key)
        if found is None or (found.org, found.installation) != (scope.org, scope.installation):
            raise MissingOrDenied(
                f"no remote record is linked to {request.local_ref!r}",
                hint=f"adopt a link of kind {kind!r} for it, then accept again",
            )
        if (found.kind, found.local_ref, found.principal_id) != (kind, request.local_ref, principal_id):
            raise Conflict(
                "the link is about another record or principal", hint="leave it out, or name the right one"
            )
        if not found.current:
            raise Conflict(
                "the link to the remote record is not active", hint="resume it, or adopt a new one"
            )
        return found


def link_kind(view: BindingView, operation: Operation) -> str:
    """What the links of an operation's records are called: its object, or the pack where it declares none."""
    return operation.contract.object or view.document.pack.rpartition("@")[0]


def creates(view: BindingView, operation: Operation) -> str | None:
    """The kind of object that an accepted command of this operation has made; None where it makes none."""
    return link_kind(view, operation) if operation.contract.link is LinkUse.CREATES else None


def trusted_scope(identity: Identity, asked: HandoffScope, key: str) -> WorkScope:
    """The scope that the identity may act for, if the key encodes exactly it.

    A key that encodes another scope is refused before any lookup, with one answer whether it exists or not
    (PROTOCOL F2).
    """
    check_digest("binding_digest", asked.binding_digest)
    scope = identity.scope(asked.org, asked.installation, asked.capability, asked.binding_digest)
    parsed = parse_handoff_key(key)
    if (parsed.org, parsed.installation, parsed.capability, parsed.binding_digest) != (
        scope.org,
        scope.installation,
        scope.capability,
        scope.binding_digest,
    ):
        raise MissingOrDenied("the handoff key is not one of this scope")
    return scope


def _claim(scope: WorkScope, request: AcceptRequest | RejectRequest) -> HandoffClaim:
    return HandoffClaim(
        key=request.key,
        scope=Scope(scope.org, scope.installation),
        capability=scope.capability,
        binding_digest=scope.binding_digest,
        outbox_id=request.outbox_id,
        payload_digest=request.payload_digest,
    )


def _source_lane(scope: WorkScope, request: AcceptRequest) -> str | None:
    if request.source_lane is None:
        return None
    check_text("source_lane", request.source_lane, LIMITS.lane_bytes_max)
    return frame("s", scope.org, scope.installation, request.source_lane)


def _answer(admission: Admission) -> WireAdmission:
    match admission:
        case Admitted():
            return WireAdmission(
                key=admission.key,
                state=AdmissionState(admission.state.value),
                command_id=admission.command_id,
                receipt_id=admission.receipt_id,
                recorded_at_us=admission.recorded_at,
                reason=admission.reason,
            )
        case ConflictFound():
            raise Quarantined(
                "this handoff key was used with something else; the request is quarantined",
                hint="use a new key for a new intent",
            )
        case _:
            assert_never(admission)
