"""The HTTP API: handoffs, commands, and the operators' side. Every answer stays within its credential's scope.

A credential may hand over and ask within its installation; one with the capability `doonce.operate` may also decide
and publish there. What belongs to another scope looks as if it were not there.
"""

from __future__ import annotations

from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from doonce.app import installing
from doonce.app.engine import Engine
from doonce.app.operate.gap_model import Gaps
from doonce.app.operate.gaps import Reconcile
from doonce.app.operate.gauges import Gauges
from doonce.app.operate.model import Status
from doonce.app.operate.service import Operator
from doonce.app.web.documents import (
    CloseGapBody,
    Live,
    PublishBody,
    Published,
    ReconcileGapBody,
    ReleaseBody,
    ResolveBody,
    Timelines,
)
from doonce.app.web.edge import JSON, answer, body, guarded, identified, refusal
from doonce.app.web.openapi import DOCUMENT, PATH
from doonce.app.web.readiness import Readiness
from doonce.base.errors import Forbidden, Invalid, MissingOrDenied
from doonce.base.limits import LIMITS
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view
from doonce.catalog.pack import read_pack
from doonce.ingress.endpoint import IngressEndpoint
from doonce.ingress.gaps import CloseGap
from doonce.ingress.receipts import RouteKey
from doonce.trust import Identity, Verifier
from doonce.wire import (
    ACCEPT_BODY_BYTES_MAX,
    REJECT_BODY_BYTES_MAX,
    AcceptBatch,
    AcceptResults,
    RejectBody,
)
from doonce.work.model import Scope

OPERATE: Final = "doonce.operate"
"""The capability of those who may decide and publish within their installation."""

RESOLVE_BODY_BYTES_MAX: Final = 8_192
PUBLISH_BODY_BYTES_MAX: Final = 2 * LIMITS.document_bytes_max
PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


class Api:
    """The routes over one engine."""

    def __init__(
        self,
        engine: Engine,
        verifier: Verifier,
        readiness: Readiness,
        operator: Operator,
        gauges: Gauges,
        *,
        origins: OriginPolicy,
        body_seconds: float,
    ) -> None:
        self._engine = engine
        self._verifier = verifier
        self._readiness = readiness
        self._operator = operator
        self._gauges = gauges
        self._origins = origins
        self._body_seconds = body_seconds

    def application(self, *, handoffs: bool = True, deliveries: bool = True) -> Starlette:
        """The ASGI application; without both only what every role answers: live, ready, metrics."""
        routes: list[BaseRoute] = [
            Route("/livez", guarded(self._live)),
            Route("/readyz", guarded(self._ready)),
            Route("/metrics", guarded(self._metrics)),
        ]
        if deliveries:
            routes.append(Mount("/in", IngressEndpoint(self._engine.ingress, self._readiness.admits)))
        if handoffs:
            routes += [
                Route("/v1/handoffs/accept", guarded(self._accept), methods=["POST"]),
                Route("/v1/handoffs/reject", guarded(self._reject), methods=["POST"]),
                Route("/v1/commands/{id}", guarded(self._command)),
                Route("/v1/commands/{id}/cancel", guarded(self._cancel), methods=["POST"]),
                Route("/v1/show/{id:path}", guarded(self._show)),
                Route("/v1/receipts/{id}/body", guarded(self._body)),
                Route("/v1/work/{id}/replay", guarded(self._replay), methods=["POST"]),
                Route("/v1/work/{id}/release", guarded(self._release), methods=["POST"]),
                Route("/v1/gaps", guarded(self._gaps)),
                Route("/v1/gaps/close", guarded(self._close_gap), methods=["POST"]),
                Route("/v1/gaps/reconcile", guarded(self._reconcile_gap), methods=["POST"]),
                Route("/v1/status", guarded(self._status)),
                Route("/v1/attempts/{id}/resolve", guarded(self._resolve), methods=["POST"]),
                Route("/v1/publish", guarded(self._publish), methods=["POST"]),
                Route(PATH, guarded(self._description)),
            ]
        served = Starlette(routes=routes, exception_handlers={HTTPException: _of_routing})
        served.router.redirect_slashes = False  # another path is another path: nobody here is sent elsewhere
        return served

    # --- handing over ---------------------------------------------------------------------------------------------

    async def _accept(self, request: Request) -> Response:
        identity = await self._admitted(request)
        batch = await body(request, AcceptBatch, bytes_max=ACCEPT_BODY_BYTES_MAX, seconds=self._body_seconds)
        results = await self._engine.acceptor.accept(identity, batch.requests)
        return answer(AcceptResults(results=tuple(results)))

    async def _reject(self, request: Request) -> Response:
        identity = await self._admitted(request)
        asked = await body(request, RejectBody, bytes_max=REJECT_BODY_BYTES_MAX, seconds=self._body_seconds)
        return answer(await self._engine.acceptor.reject(identity, asked.request))

    async def _admitted(self, request: Request) -> Identity:
        """Who hands over; a process that drains takes nothing more."""
        identity = await identified(request, self._verifier)
        self._readiness.check_admits()
        return identity

    # --- asking ---------------------------------------------------------------------------------------------------

    async def _command(self, request: Request) -> Response:
        identity = await identified(request, self._verifier)
        return answer(await self._operator.command(request.path_params["id"], scope_of(identity)))

    async def _cancel(self, request: Request) -> Response:
        identity = await identified(request, self._verifier)
        return answer(await self._operator.cancel(request.path_params["id"], scope_of(identity)))

    async def _show(self, request: Request) -> Response:
        identity = await identified(request, self._verifier)
        found = await self._operator.show(request.path_params["id"], scope_of(identity))
        return answer(Timelines(timelines=tuple(found)))

    # --- operating ------------------------------------------------------------------------------------------------

    async def _status(self, request: Request) -> Response:
        identity = await self._operating(request)
        status: Status = await self._operator.status(scope_of(identity))
        return answer(status)

    async def _resolve(self, request: Request) -> Response:
        identity = await self._operating(request)
        asked = await body(request, ResolveBody, bytes_max=RESOLVE_BODY_BYTES_MAX, seconds=self._body_seconds)
        view = await self._operator.resolve(
            request.path_params["id"],
            asked.decision,
            who=identity.subject,
            reason=asked.reason,
            scope=scope_of(identity),
        )
        return answer(view)

    async def _body(self, request: Request) -> Response:
        identity = await self._operating(request)
        receipt_id = request.path_params["id"]
        return answer(await self._operator.body(receipt_id, who=identity.subject, scope=scope_of(identity)))

    async def _replay(self, request: Request) -> Response:
        identity = await self._operating(request)
        return answer(await self._operator.replay(request.path_params["id"], scope_of(identity)))

    async def _release(self, request: Request) -> Response:
        identity = await self._operating(request)
        asked = await body(request, ReleaseBody, bytes_max=RESOLVE_BODY_BYTES_MAX, seconds=self._body_seconds)
        view = await self._operator.release(
            request.path_params["id"],
            who=identity.subject,
            reason=asked.reason,
            scope=scope_of(identity),
        )
        return answer(view)

    async def _gaps(self, request: Request) -> Response:
        identity = await self._operating(request)
        return answer(Gaps(gaps=await self._operator.gaps(scope_of(identity))))

    async def _close_gap(self, request: Request) -> Response:
        identity = await self._operating(request)
        asked = await body(
            request, CloseGapBody, bytes_max=RESOLVE_BODY_BYTES_MAX, seconds=self._body_seconds
        )
        route = RouteKey(identity.org, identity.installation, asked.capability, asked.webhook)
        gap = CloseGap(route, asked.sequence, asked.losses, identity.subject, asked.reason)
        return answer(await self._operator.close_gap(gap, scope_of(identity)))

    async def _reconcile_gap(self, request: Request) -> Response:
        identity = await self._operating(request)
        asked = await body(
            request, ReconcileGapBody, bytes_max=RESOLVE_BODY_BYTES_MAX, seconds=self._body_seconds
        )
        route = RouteKey(identity.org, identity.installation, asked.capability, asked.webhook)
        wanted = Reconcile(
            route, identity.subject, asked.reason, asked.sequence, asked.since_us, asked.until_us
        )
        return answer(await self._operator.reconcile_gap(wanted, scope_of(identity)))

    async def _publish(self, request: Request) -> Response:
        identity = await self._operating(request)
        asked = await body(request, PublishBody, bytes_max=PUBLISH_BODY_BYTES_MAX, seconds=self._body_seconds)
        view = compiled(asked, self._origins)
        document = view.document
        if not identity.covers(document.org, document.installation):
            raise MissingOrDenied("the binding is not for the installation of this credential")
        secret = Secret(asked.secret) if asked.secret is not None else None
        installed = await installing.install(
            self._engine, view, secret, reason=f"published by {identity.subject}"
        )
        return answer(published(installed))

    async def _operating(self, request: Request) -> Identity:
        identity = await identified(request, self._verifier)
        if OPERATE not in identity.capabilities:
            raise Forbidden(
                f"this needs the capability {OPERATE}", hint=f"issue a credential with --capability {OPERATE}"
            )
        return identity

    # --- watching -------------------------------------------------------------------------------------------------

    async def _live(self, _: Request) -> Response:
        return answer(Live())

    async def _ready(self, _: Request) -> Response:
        document = self._readiness.document()
        return answer(document, 200 if document.ready else 503)

    async def _description(self, _: Request) -> Response:
        return Response(DOCUMENT, media_type=JSON)

    async def _metrics(self, _: Request) -> Response:
        await self._gauges.refresh(ready=self._readiness.ready)
        return Response(self._engine.metrics.text(), media_type=PROMETHEUS)


def scope_of(identity: Identity) -> Scope:
    """The one installation that a credential may see."""
    return Scope(identity.org, identity.installation)


def compiled(asked: PublishBody, origins: OriginPolicy) -> BindingView:
    """The view of the texts that were sent; raises `Invalid`, which names file, table and field."""
    schemas = {name: text.encode() for name, text in asked.schemas.items()}
    pack = read_pack(asked.pack.encode(), schemas, file="pack.toml")
    binding = read_binding(asked.binding.encode(), file="binding.toml")
    return compile_view(pack, binding, origins=origins, file="binding.toml")


def published(installed: installing.Installed) -> Published:
    """What is told of a publication."""
    document = installed.view.document
    return Published(
        org=document.org,
        installation=document.installation,
        capability=document.capability,
        binding_digest=installed.view.digest,
        binding_generation=installed.generation,
        principal_id=installed.principal.id,
    )


async def _of_routing(_: Request, failed: Exception) -> Response:
    status = failed.status_code if isinstance(failed, HTTPException) else 404
    if status == 405:
        return refusal(Invalid("this path has another method"))
    return refusal(MissingOrDenied("there is no such path"))
