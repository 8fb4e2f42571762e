"""The HTTP API's own description (OpenAPI 3.1), made of the structs that are really read and written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import msgspec

from doonce.app.operate.gap_model import Gaps, GapView
from doonce.app.operate.model import BodyView, CommandView, ReplayView, Status, WorkView
from doonce.app.web.documents import (
    CloseGapBody,
    PublishBody,
    Published,
    ReconcileGapBody,
    ReleaseBody,
    ResolveBody,
    Timelines,
)
from doonce.base.errors import ErrorClass
from doonce.wire import AcceptBatch, AcceptResults, Admission, RejectBody, status_of
from doonce.wire.faults import ErrorDocument

PATH: Final = "/v1/openapi.json"
REFERENCE: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"\{(\w+)(?::\w+)?\}")


@dataclass(frozen=True, slots=True)
class Operation:
    """One path with its method. `operates`: it needs the capability `doonce.operate`."""

    method: str
    path: str
    summary: str
    answers: type[msgspec.Struct]
    asks: type[msgspec.Struct] | None = None
    operates: bool = False


OPERATIONS: Final = (
    Operation(
        "POST", "/v1/handoffs/accept", "Hand effects over; one result each.", AcceptResults, AcceptBatch
    ),
    Operation(
        "POST", "/v1/handoffs/reject", "Make sure that a key becomes no command.", Admission, RejectBody
    ),
    Operation("GET", "/v1/commands/{id}", "Where a command stands.", CommandView),
    Operation("POST", "/v1/commands/{id}/cancel", "Cancel what waits, ask what runs to stop.", CommandView),
    Operation("GET", "/v1/show/{id:path}", "The stories that an id or key names.", Timelines),
    Operation("GET", "/v1/status", "How the installation stands.", Status, operates=True),
    Operation(
        "POST",
        "/v1/attempts/{id}/resolve",
        "Record what became of an attempt that nobody knows the outcome of.",
        CommandView,
        ResolveBody,
        operates=True,
    ),
    Operation("POST", "/v1/publish", "Publish a binding over a pack.", Published, PublishBody, operates=True),
    Operation(
        "GET",
        "/v1/receipts/{id}/body",
        "The raw body of a delivery or page; logged.",
        BodyView,
        operates=True,
    ),
    Operation("POST", "/v1/work/{id}/replay", "Do dead work once more.", ReplayView, operates=True),
    Operation(
        "POST",
        "/v1/work/{id}/release",
        "Let what waits behind ended work in its lane go on.",
        WorkView,
        ReleaseBody,
        operates=True,
    ),
    Operation("GET", "/v1/gaps", "Open gaps of deliveries.", Gaps, operates=True),
    Operation(
        "POST",
        "/v1/gaps/close",
        "Record that the losses of a gap were looked into.",
        GapView,
        CloseGapBody,
        operates=True,
    ),
    Operation(
        "POST",
        "/v1/gaps/reconcile",
        "Have the provider read for a gap once more, or for a time.",
        GapView,
        ReconcileGapBody,
        operates=True,
    ),
)


def document() -> dict[str, Any]:
    """The description as a JSON document; equal for every process of a release."""
    kinds: set[type[msgspec.Struct]] = {ErrorDocument, *(one.answers for one in OPERATIONS)}
    kinds |= {one.asks for one in OPERATIONS if one.asks is not None}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    found, components = msgspec.json.schema_components(ordered, ref_template=REFERENCE)
    references = dict(zip(ordered, found, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in OPERATIONS:
        where = paths.setdefault(_PARAMETER.sub(r"{\1}", one.path), {})
        where[one.method.lower()] = _operation(one, references)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "doonce",
            "version": "1",
            "description": "External calls that happen once, or say that nobody knows.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def _operation(one: Operation, references: dict[type[msgspec.Struct], dict[str, Any]]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": one.summary,
        "operationId": "_".join(
            part for part in (one.method.lower(), *re.findall(r"\w+", _PARAMETER.sub(r"\1", one.path))[1:])
        ),
        "responses": {"200": _content("It is so.", references[one.answers])} | _refusals(references),
    }
    if one.operates:
        described["description"] = "Needs a credential with the capability `doonce.operate`."
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(one.path)
    ]
    if parameters:
        described["parameters"] = parameters
    if one.asks is not None:
        described["requestBody"] = {"required": True, **_json(references[one.asks])}
    return described


def _refusals(references: dict[type[msgspec.Struct], dict[str, Any]]) -> dict[str, Any]:
    """Every error class has one status, wherever it comes from."""
    return {
        str(status_of(kind)): _content(HTTPStatus(status_of(kind)).phrase, references[ErrorDocument])
        for kind in ErrorClass
    }


def _content(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, **_json(schema)}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


DOCUMENT: Final = msgspec.json.encode(document())
