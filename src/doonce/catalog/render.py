"""From a payload to one frozen request: the same bytes on every attempt (PROTOCOL F5, D7)."""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from doonce.base.digests import PREFIX, digest_bytes, digest_document
from doonce.base.errors import Invalid
from doonce.base.json import JsonValue, dumps, loads
from doonce.base.keys import frame
from doonce.base.limits import LIMITS, check_text
from doonce.base.records import Record
from doonce.catalog.compile import BindingView, Operation
from doonce.catalog.exchange import FrozenRequest
from doonce.catalog.model import BodyKind, LinkUse, ReplayKind
from doonce.catalog.pointers import parse_pointer
from doonce.catalog.templates import fill_target, fill_text

IDEMPOTENCY_TAG: Final = "doonce.idempotency-key.v1"

_STRONG_ETAG: Final = re.compile(r'"[!#-~]{0,254}"', re.ASCII)


class Rendered(Record, frozen=True):
    """What one command comes to: its request, and the key of the one remote thing that it excludes others from.

    The key is None where there is no such thing. It is unique within one installation and fits a lane's bound; an
    over-long name is replaced by its digest.
    """

    request: FrozenRequest
    target_lane: str | None


def render(
    view: BindingView, operation_name: str, payload: bytes, *, remote_id: str | None, command_id: str
) -> Rendered:
    """Return what one command comes to: equal arguments give equal bytes, on every machine and attempt.

    The payload is JSON in the application's words; each field is sent as exactly the value it has, and an
    absent one stays absent. Raises `Invalid` for an operation that is not offered, a payload that is not
    strict JSON, carries an undeclared field or a field that the provider owns, or that the schema refuses;
    for a remote id that is missing or that the operation does not take; for a value that cannot stand in a
    path or header; and for anything over its bound.
    """
    operation = view.operation(operation_name)
    fields = read_payload(operation, payload)
    values = reference_values(view, operation, fields, remote_id=remote_id, command_id=command_id)
    return Rendered(build_request(view, operation, fields, values), _target_lane(view, operation, values))


def _target_lane(view: BindingView, operation: Operation, values: Mapping[str, str]) -> str | None:
    if operation.target_lane is None:
        return None
    parts = (view.document.pack.split("@", 1)[0], operation.contract.object or "", view.document.origin)
    named = fill_text(operation.target_lane, values)
    lane = frame("target", *parts, named)
    if len(lane.encode()) <= LIMITS.lane_bytes_max:
        return lane
    return frame("target_digest", digest_document("doonce.target-lane.v1", [*parts, named]))


def read_payload(operation: Operation, payload: bytes) -> dict[str, JsonValue]:
    """Return a payload in the provider's words, validated; raises `Invalid` as `render` says."""
    value = loads(payload, bytes_max=LIMITS.payload_bytes_max)
    if not isinstance(value, Mapping):
        raise Invalid("a payload is a JSON object")
    fields: dict[str, JsonValue] = {}
    for name, item in value.items():
        if name in operation.plain:
            fields[name] = item
        elif name in operation.renames:
            fields[operation.renames[name]] = item
        else:
            why = operation.refused.get(name, f"the payload has an undeclared field {name[:64]!r}")
            known = sorted({*operation.plain, *operation.renames})
            raise Invalid(why, hint=f"{operation.name} takes {', '.join(known) or 'no field'}")
    operation.payload_schema.validate(cast("JsonValue", fields))
    return fields


def reference_values(
    view: BindingView,
    operation: Operation,
    fields: Mapping[str, JsonValue],
    *,
    remote_id: str | None,
    command_id: str,
) -> dict[str, str]:
    """Return the text of everything that a template of this operation may refer to."""
    needs_link = operation.contract.link in (LinkUse.EXISTING, LinkUse.ENDS)
    if needs_link and remote_id is None:
        raise Invalid(f"{operation.name} needs a linked record", hint="link the record first, or create it")
    if not needs_link and remote_id is not None:
        raise Invalid(f"{operation.name} takes no linked record", hint="leave the link out")
    check_text("command_id", command_id, LIMITS.key_bytes_max)
    values = {"command_id": command_id, "fields": ",".join(_field_names(view, operation, fields))}
    if remote_id is not None:
        values["remote_id"] = check_text("remote_id", remote_id, LIMITS.remote_id_bytes_max)
    for name, value in view.document.parameters.items():
        values[f"parameter.{name}"] = value
    for name, item in fields.items():
        if isinstance(item, str):
            values[f"payload.{name}"] = item
        elif isinstance(item, int) and not isinstance(item, bool):
            values[f"payload.{name}"] = str(item)
    return values


def _field_names(view: BindingView, operation: Operation, fields: Mapping[str, JsonValue]) -> list[str]:
    """Return the object fields that a payload carries, or all that the binding maps where it carries none."""
    if operation.contract.object is None:
        return []
    carried = sorted(set(fields) - operation.plain)
    if carried:
        return carried
    mapped = view.document.fields[operation.contract.object]
    return sorted({*mapped.outbound.values(), *mapped.inbound.values()})


def build_request(
    view: BindingView, operation: Operation, fields: Mapping[str, JsonValue], values: Mapping[str, str]
) -> FrozenRequest:
    """Return the request for a payload that was read and the values that its templates refer to."""
    contract = operation.contract
    body = _body(operation, fields)
    headers = sorted(contract.headers.items())
    if contract.body.content_type is not None:
        headers.append(("Content-Type", contract.body.content_type))
    key = None
    if contract.replay.kind is ReplayKind.IDEMPOTENCY_KEY and contract.replay.header is not None:
        key = idempotency_key(values["command_id"], operation.name)
        headers.append((contract.replay.header, key))
    if contract.replay.if_none_match:
        headers.append(("If-None-Match", "*"))
    if contract.replay.if_match is not None:
        headers.append(("If-Match", _etag(contract.replay.if_match, fields)))
    return FrozenRequest(
        method=contract.method.value,
        origin=view.document.origin,
        target=fill_target(operation.target, values),
        headers=tuple(headers),
        body=body,
        body_sha256=digest_bytes(body),
        idempotency_key=key,
    )


def idempotency_key(command_id: str, operation_name: str) -> str:
    """Return the key that every attempt of one command sends, 64 characters; never the attempt's own (D7)."""
    identity: JsonValue = {"command": command_id, "operation": operation_name}
    return digest_document(IDEMPOTENCY_TAG, identity).removeprefix(PREFIX)


def _etag(name: str, fields: Mapping[str, JsonValue]) -> str:
    etag = fields[name]
    if not isinstance(etag, str) or _STRONG_ETAG.fullmatch(etag) is None:
        raise Invalid(
            f"{name} is not a strong entity tag", hint='give the ETag as it came: "…" in double quotes'
        )
    return etag


def _body(operation: Operation, fields: Mapping[str, JsonValue]) -> bytes:
    rule = operation.contract.body
    if rule.kind is BodyKind.NONE:
        return b""
    if rule.kind is BodyKind.TEXT:
        text = fields[rule.text_from or ""]
        if not isinstance(text, str):
            raise Invalid(f"{rule.text_from} must be a text")
        return text.encode()
    document: dict[str, Any] = {}
    if rule.fields_at is not None:
        carried = {name: fields[name] for name in sorted(set(fields) - operation.plain)}
        document = _put(document, parse_pointer(rule.fields_at), carried)
    for pointer, name in rule.members.items():
        if name in fields:
            document = _put(document, parse_pointer(pointer), fields[name])
    for pointer, constant in rule.constants.items():
        document = _put(document, parse_pointer(pointer), constant)
    return dumps(document)


def _put(document: dict[str, Any], steps: tuple[str, ...], value: object) -> dict[str, Any]:
    """Return `document` with `value` at `steps`; objects on the way are made."""
    if not steps:
        return {**document, **cast("dict[str, Any]", value)}
    inner = document.get(steps[0], {})
    return {**document, steps[0]: value if len(steps) == 1 else _put(inner, steps[1:], value)}
