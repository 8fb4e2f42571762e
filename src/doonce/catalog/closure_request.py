"""What must hold between the parts of an operation that make its request (PROTOCOL D7, F5)."""

import re
from collections.abc import Mapping
from typing import Final

from doonce.base.errors import Invalid
from doonce.catalog.bounds import (
    CALL_BUDGET_US_MAX,
    HEADER_VALUE_BYTES_MAX,
    REPLAY_MARGIN_US,
    SEND_WINDOW_US_MAX,
)
from doonce.catalog.model import (
    BodyKind,
    BodyRule,
    LinkUse,
    Method,
    OperationContract,
    ParameterKind,
    ReplayKind,
)
from doonce.catalog.pointers import parse_pointer
from doonce.catalog.reading import Place
from doonce.catalog.schemas import properties, required
from doonce.catalog.templates import parse_target, parse_template, references

BODY_METHODS: Final = frozenset({Method.POST, Method.PUT, Method.PATCH})
PRECONDITION_METHODS: Final = frozenset({Method.PUT, Method.PATCH, Method.DELETE})

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)
_VISIBLE: Final = re.compile(r"[!-~]([ -~]*[!-~])?", re.ASCII)
_SECRET_NAME: Final = re.compile(
    r"auth|cookie|token|secret|passw|session|api-?key|access-?key|credential|signature",
    re.ASCII | re.IGNORECASE,
)
_RESERVED: Final = frozenset(
    {
        *(
            "host",
            "content-length",
            "transfer-encoding",
            "connection",
            "keep-alive",
            "te",
            "trailer",
            "upgrade",
        ),
        *(
            "expect",
            "accept-encoding",
            "content-encoding",
            "content-type",
            "if-match",
            "if-none-match",
            "if-range",
        ),
        *("if-modified-since", "if-unmodified-since", "range", "via", "forwarded"),
    }
)


def check_request(
    place: Place,
    operation: OperationContract,
    parameters: Mapping[str, ParameterKind],
    fields: frozenset[str],
    auth_header: str,
) -> set[str]:
    """Return the payload fields that the request uses; raise one `Invalid` for the first contradiction."""
    used = _check_target(place, operation, parameters, fields)
    _check_headers(place, operation, auth_header)
    used |= _check_body(place, operation, fields)
    used |= _check_replay(place, operation, auth_header)
    _check_times(place, operation)
    return used


def is_secret_name(name: str) -> bool:
    """Say whether a header of this name may carry a secret, so that it is neither declared nor kept."""
    return _SECRET_NAME.search(name) is not None


def check_references(
    place: Place,
    field: str,
    names: frozenset[str],
    operation: OperationContract,
    parameters: Mapping[str, ParameterKind],
) -> set[str]:
    """Return the payload fields among `names`; raise `Invalid` for what `operation` cannot supply."""
    used: set[str] = set()
    for name in sorted(names):
        kind, _, rest = name.partition(".")
        if kind == "payload":
            _check_payload_reference(place, field, rest, operation)
            used.add(rest)
        elif kind == "parameter" and rest not in parameters:
            raise place.fault(
                field, f"there is no parameter {rest!r}", f"declare it under [parameters.{rest}]"
            )
        elif kind == "remote_id" and operation.link not in (LinkUse.EXISTING, LinkUse.ENDS):
            raise place.fault(field, "{remote_id} needs a link", 'write link = "existing" or link = "ends"')
        elif kind == "fields" and operation.object is None:
            raise place.fault(field, "{fields} needs an object", 'write object = "…"')
    return used


def _check_payload_reference(place: Place, field: str, name: str, operation: OperationContract) -> None:
    schema = properties(operation.payload_schema).get(name)
    if not isinstance(schema, dict):
        raise place.fault(field, f"the payload schema has no field {name!r}", "declare it under properties")
    if schema.get("type") not in ("string", "integer"):
        raise place.fault(
            field, f"the payload field {name!r} is neither text nor integer", 'give it one "type"'
        )
    if name not in required(operation.payload_schema):
        raise place.fault(
            field, f"the payload field {name!r} may be absent", "name it under required in the schema"
        )


def _check_target(
    place: Place,
    operation: OperationContract,
    parameters: Mapping[str, ParameterKind],
    fields: frozenset[str],
) -> set[str]:
    try:
        names = parse_target(operation.target, operation.query, parameters).references()
    except Invalid as fault:
        raise place.fault("target", fault.message, fault.hint) from None
    if operation.link in (LinkUse.EXISTING, LinkUse.ENDS) and "remote_id" not in names:
        raise place.fault(
            "link", "the target does not name the linked record", "put {remote_id} into the target"
        )
    used = check_references(place, "target", names, operation, parameters)
    if operation.target_lane is not None:
        used |= _check_lane(place, operation, operation.target_lane, parameters)
    if "fields" in names:
        used |= fields
    return used


def _check_lane(
    place: Place, operation: OperationContract, lane: str, parameters: Mapping[str, ParameterKind]
) -> set[str]:
    try:
        names = references(parse_template(lane))
    except Invalid as fault:
        raise place.fault("target_lane", fault.message, fault.hint) from None
    if len(names) != 1 or names & {"fields", "command_id"}:
        raise place.fault("target_lane", "must name the one thing that it excludes", 'write "{remote_id}"')
    return check_references(place, "target_lane", names, operation, parameters)


def _check_headers(place: Place, operation: OperationContract, auth_header: str) -> None:
    here = place.inner("headers")
    seen: set[str] = set()
    for name, value in operation.headers.items():
        lower = name.lower()
        if _TOKEN.fullmatch(name) is None:
            raise here.fault(name, "is not a header's name")
        if is_secret_name(name) or lower == auth_header.lower() or lower.startswith("proxy-"):
            raise here.fault(
                name, "may carry a secret, and packs hold none", "declare the scheme under [auth]"
            )
        if lower in _RESERVED:
            raise here.fault(name, "is written by the request itself", "use body, replay or [auth] for it")
        if lower in seen:
            raise here.fault(name, "is written twice", "keep one spelling")
        seen.add(lower)
        if _VISIBLE.fullmatch(value) is None or len(value) > HEADER_VALUE_BYTES_MAX:
            raise here.fault(name, "is not a header's value", "use visible ASCII")


def _check_body(place: Place, operation: OperationContract, fields: frozenset[str]) -> set[str]:
    body = operation.body
    here = place.inner("body")
    if body.kind is not BodyKind.NONE and operation.method not in BODY_METHODS:
        raise here.fault(
            "kind", f"a {operation.method.value} has no body", 'write kind = "none", or leave it out'
        )
    if body.kind is not BodyKind.TEXT and body.text_from is not None:
        raise here.fault("from", 'belongs to a body of kind "text"', "remove it")
    if body.kind is not BodyKind.JSON and (body.fields_at is not None or body.members or body.constants):
        raise here.fault(
            "kind", "fields_at, members and constants belong to a JSON body", 'write kind = "json"'
        )
    if (body.kind is BodyKind.NONE) != (body.content_type is None):
        raise here.fault("content_type", "belongs to every body and to nothing else", 'write "text/plain"')
    if body.content_type is not None and (_VISIBLE.fullmatch(body.content_type) is None):
        raise here.fault("content_type", "is not a header's value", 'write "text/plain; charset=utf-8"')
    if body.kind is BodyKind.TEXT:
        return _check_text_body(here, operation)
    return _check_json_body(here, operation, fields) if body.kind is BodyKind.JSON else set()


def _check_text_body(here: Place, operation: OperationContract) -> set[str]:
    name = operation.body.text_from
    schema = properties(operation.payload_schema).get(name or "")
    if name is None or not isinstance(schema, dict) or schema.get("type") != "string":
        raise here.fault("from", "must name a payload field that is a text", 'write from = "…"')
    if name not in required(operation.payload_schema):
        raise here.fault(
            "from", f"the payload field {name!r} may be absent", "name it under required in the schema"
        )
    return {name}


def _check_json_body(here: Place, operation: OperationContract, fields: frozenset[str]) -> set[str]:
    body = operation.body
    names = set(properties(operation.payload_schema))
    if body.fields_at is not None and not names & fields:
        raise here.fault(
            "fields_at", "the payload schema has no field of the object", "write object, or remove it"
        )
    for pointer, name in body.members.items():
        if name not in names or name in fields:
            what = "is a field of the object" if name in fields else "is not in the payload schema"
            raise here.inner("members").fault(pointer, f"{name!r} {what}", "name a plain payload field")
    places = _json_places(here, body)
    if body.fields_at == "":
        for pointer, steps in places.items():
            if steps[:1] and steps[0] in fields:
                raise here.fault(pointer, "is where a field of the object goes", "choose another place")
    return set(body.members.values()) | ((names & fields) if body.fields_at is not None else set())


def _json_places(here: Place, body: BodyRule) -> dict[str, tuple[str, ...]]:
    """Return every place that is written, parsed; none may be another, or inside another."""
    written = [*body.members, *body.constants, *([] if body.fields_at is None else [body.fields_at])]
    if not written:
        raise here.fault(
            "kind", "an empty JSON body", "say what goes into it: fields_at, members or constants"
        )
    places: dict[str, tuple[str, ...]] = {}
    for pointer in written:
        try:
            steps = parse_pointer(pointer)
        except Invalid as fault:
            raise here.fault(pointer, fault.message, fault.hint) from None
        if steps == () and body.fields_at != "":
            raise here.fault("members", "only fields_at may be the whole document", 'write "/name"')
        for other in places.values():
            shared = min(len(steps), len(other))
            if shared and steps[:shared] == other[:shared]:
                raise here.fault(pointer, "is inside, or the same as, another place", "give each its own")
        places[pointer] = steps
    return places


def _check_replay(place: Place, operation: OperationContract, auth_header: str) -> set[str]:
    replay = operation.replay
    here = place.inner("replay")
    has_key, has_precondition = replay.header is not None, replay.if_none_match or replay.if_match is not None
    if replay.kind is ReplayKind.READ and operation.method is not Method.GET:
        raise here.fault(
            "kind",
            f"a bare {operation.method.value} is not replay-safe: an old one may arrive after a newer change",
            'write kind = "precondition" or "idempotency_key", or leave replay out',
        )
    if operation.method is Method.GET and replay.kind not in (ReplayKind.READ, ReplayKind.NONE):
        raise here.fault("kind", "a GET is a read", 'write kind = "read", or "none" if this one has effects')
    if has_key != (replay.kind is ReplayKind.IDEMPOTENCY_KEY):
        raise here.fault(
            "header", 'belongs to kind = "idempotency_key", which needs it', 'write "Idempotency-Key"'
        )
    if has_precondition != (replay.kind is ReplayKind.PRECONDITION) or (
        replay.if_none_match and replay.if_match
    ):
        raise here.fault(
            "if_match", 'kind = "precondition" needs exactly one condition', 'write if_none_match = "*"'
        )
    if replay.kind is ReplayKind.PRECONDITION and operation.method not in PRECONDITION_METHODS:
        raise here.fault("kind", f"a {operation.method.value} has no precondition", "use an idempotency key")
    if replay.header is not None and (
        is_secret_name(replay.header) or replay.header.lower() in {*_RESERVED, auth_header.lower()}
    ):
        raise here.fault("header", "is taken", 'write the provider\'s own name, such as "Idempotency-Key"')
    if replay.header is not None and replay.header.lower() in {name.lower() for name in operation.headers}:
        raise here.fault("header", "is also a declared header", "remove it from headers")
    if replay.if_match is None:
        return set()
    _check_payload_reference(here, "if_match", replay.if_match, operation)
    return {replay.if_match}


def _check_times(place: Place, operation: OperationContract) -> None:
    replay = operation.replay
    for field, value, most in (
        ("call_budget", operation.call_budget_us, CALL_BUDGET_US_MAX),
        ("send_window", operation.send_window_us, SEND_WINDOW_US_MAX),
    ):
        if not 0 < value <= most:
            raise place.fault(field, "is out of bounds", f"more than 0 and at most {most // 1_000_000} s")
    if operation.send_window_us > operation.call_budget_us:
        raise place.fault("send_window", "is longer than the whole call", "at most call_budget")
    here = place.inner("replay")
    bounded = replay.kind in (ReplayKind.IDEMPOTENCY_KEY, ReplayKind.PRECONDITION)
    if bounded != (replay.window_us is not None):
        what = (
            "missing: how long is a repetition harmless?" if bounded else "belongs to a key or a precondition"
        )
        raise here.fault("window", what, 'write window = "24h"' if bounded else "remove it")
    least_us = operation.call_budget_us + REPLAY_MARGIN_US
    if replay.window_us is not None and replay.window_us <= least_us:
        raise here.fault(
            "window", "is shorter than one call and its margin", f"more than {least_us // 1_000} ms"
        )
