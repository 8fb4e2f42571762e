"""The OpenAPI document of the HTTP API, made of the very types that are read and answered."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from doonce.app.operate.model import BodyView, CommandView, Gaps, GapView, ReplayView, Status
from doonce.app.web.documents import CloseGapBody, Live, PublishBody, Published, ResolveBody, Timelines
from doonce.app.web.edge import JSON
from doonce.app.web.readiness import ReadyDocument
from doonce.wire import AcceptBatch, AcceptResults, Admission, ErrorDocument, RejectBody

VERSION: Final = "1"
_REFERENCE: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Described:
    """One operation: what it asks for and what it answers. `guarded` needs a credential, `busy` is another success."""

    method: str
    path: str
    summary: str
    answer: type[msgspec.Struct]
    body: type[msgspec.Struct] | None = None
    guarded: bool = True
    busy: int | None = None


OPERATIONS: Final = (
    Described("get", "/livez", "Whether the process lives", Live, guarded=False),
    Described("get", "/readyz", "Whether it is ready, or why not", ReadyDocument, guarded=False, busy=503),
    Described("post", "/v1/handoffs/accept", "Hand effects over", AcceptResults, AcceptBatch),
    Described(
        "post", "/v1/handoffs/reject", "Withdraw a handoff before its acceptance", Admission, RejectBody
    ),
    Described("get", "/v1/commands/{id}", "Where a command stands", CommandView),
    Described("post", "/v1/commands/{id}/cancel", "Cancel what was not sent", CommandView),
    Described("get", "/v1/show/{id}", "The story of an id", Timelines),
    Described("get", "/v1/receipts/{id}/body", "The raw body of a delivery", BodyView),
    Described("post", "/v1/work/{id}/replay", "Make new work of what is dead", ReplayView),
    Described("get", "/v1/gaps", "Where deliveries may be lost", Gaps),
    Described("post", "/v1/gaps/close", "Close a gap", GapView, CloseGapBody),
    Described("get", "/v1/status", "How everything stands", Status),
    Described("post", "/v1/attempts/{id}/resolve", "Decide an unknown outcome", CommandView, ResolveBody),
    Described("post", "/v1/publish", "Publish a binding", Published, PublishBody),
)
"""All but `/metrics`, which is no JSON, and the deliveries below `/in`, which are as their providers have them."""


@functools.cache
def openapi() -> bytes:
    """The document, as it is served."""
    kinds = (
        {one.answer for one in OPERATIONS} | {one.body for one in OPERATIONS if one.body} | {ErrorDocument}
    )
    listed = sorted(kinds, key=lambda kind: kind.__name__)
    references, schemas = msgspec.json.schema_components(listed, ref_template=_REFERENCE)
    named = dict(zip(listed, references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method] = _operation(one, named)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "doonce", "version": VERSION},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }
    return msgspec.json.encode(document)


def _operation(one: Described, named: dict[type[msgspec.Struct], dict[str, Any]]) -> dict[str, Any]:
    success = _content(named[one.answer])
    answers = {"200": {"description": one.summary, "content": success}}
    answers["default"] = {"description": "Refused", "content": _content(named[ErrorDocument])}
    if one.busy is not None:
        answers[str(one.busy)] = {"description": "Not now", "content": success}
    described: dict[str, Any] = {"summary": one.summary, "responses": answers}
    if one.body is not None:
        described["requestBody"] = {"required": True, "content": _content(named[one.body])}
    if one.guarded:
        described["security"] = [{"bearer": []}]
    described["parameters"] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(one.path)
    ]
    return described


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {JSON: {"schema": schema}}
