"""Whether a pack or a view is complete enough to act on; the same check at publication and at every opening.

A view that refers to something it does not hold, or that a hand wrote so that it could repeat an effect, is
refused before the first request, not found out by one.
"""

import re
from collections.abc import Mapping
from typing import Final

from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS, check_text
from doonce.catalog.bounds import OPERATIONS_MAX
from doonce.catalog.closure_answers import check_answers
from doonce.catalog.closure_hydration import check_hydrated
from doonce.catalog.closure_probe import check_probe
from doonce.catalog.closure_request import check_request
from doonce.catalog.closure_webhook import check_routes, check_webhooks
from doonce.catalog.model import FieldMap, OperationContract, Pack, ParameterKind, ViewDocument
from doonce.catalog.reading import Place
from doonce.catalog.schemas import properties, required
from doonce.catalog.templates import check_segment_value, encoded_path

_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_ORIGIN: Final = re.compile(
    rf"(https?)://({_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]{{2,45}}\])(?::([1-9][0-9]{{0,4}}))?", re.ASCII
)
_DEFAULT_PORTS: Final = {"https": "443", "http": "80"}


def check_pack(place: Place, pack: Pack) -> None:
    """Raise one `Invalid` for the first thing in a pack that is missing, contradictory or unsafe."""
    webhooks = pack.webhooks or {}
    calls = bool(pack.operations) or not webhooks
    if calls and bool(pack.origins) == pack.origin_from_binding:
        raise place.fault(
            "origins",
            "a pack has either these or origin_from_binding",
            'write origins = ["https://host"]',
        )
    for origin in pack.origins:
        if not origin.startswith("https://"):
            raise place.fault("origins", "a pack's own origins are https", 'write "https://host"')
        check_origin(place, "origins", origin)
    if not calls and (pack.origins or pack.origin_from_binding):
        raise place.fault("origins", "a pack without operations calls nobody", "remove it")
    if len(pack.operations) > OPERATIONS_MAX or not (pack.operations or webhooks):
        raise place.fault("operations", f"a pack has 1 to {OPERATIONS_MAX} operations, or webhooks alone")
    kinds = {name: parameter.kind for name, parameter in pack.parameters.items()}
    check_operations(place, pack.operations, kinds, pack.objects, pack.auth.header)
    check_webhooks(place, webhooks, pack.operations, pack.objects, kinds)


def check_view(place: Place, view: ViewDocument) -> None:
    """Raise one `Invalid` for a view that cannot execute each operation that it offers."""
    webhooks, routes = view.webhooks or {}, view.routes or {}
    if view.operations or view.origin:
        check_origin(place, "origin", view.origin)
    if not (view.offered or routes):
        raise place.fault("operations", "no operation is offered", "name at least one operation of the pack")
    for name in view.offered:
        if name not in view.operations:
            raise place.fault("operations", f"there is no operation {name!r}", _choices(view.operations))
    check_operations(place, view.operations, view.parameter_kinds, view.objects, view.auth.header)
    check_webhooks(place, webhooks, view.operations, view.objects, view.parameter_kinds)
    check_routes(place, routes, webhooks)
    _check_parameters(place, view)
    for name, fields in view.fields.items():
        if name not in view.objects:
            raise place.inner("fields").fault(name, "the pack has no such object", _choices(view.objects))
        check_field_map(place.inner("fields").inner(name), fields, view.objects[name])
    check_hydrated(place, view)
    for name in view.offered:
        _check_mapping(place, name, view.operations[name], view)


def check_operations(
    place: Place,
    operations: Mapping[str, OperationContract],
    parameters: Mapping[str, ParameterKind],
    objects: Mapping[str, tuple[str, ...]],
    auth_header: str,
) -> None:
    """Raise one `Invalid` for the first operation that is incomplete or that contradicts itself."""
    for name, operation in operations.items():
        inner = place.inner("operations").inner(name)
        if operation.object is not None and operation.object not in objects:
            raise inner.fault("object", f"there is no object {operation.object!r}", _choices(objects))
        fields = frozenset(objects[operation.object]) if operation.object else frozenset()
        used = check_request(inner, operation, parameters, fields, auth_header)
        check_answers(inner, operation)
        if operation.probe is not None:
            used |= check_probe(inner, operation, operation.probe, operations, parameters)
        for field in sorted(properties(operation.payload_schema)):
            if field not in used:
                raise inner.fault(
                    "payload_schema",
                    f"the payload field {field!r} goes nowhere",
                    "put it into target, query or body",
                )


def check_origin(place: Place, field: str, origin: str) -> None:
    """Raise `Invalid` unless `origin` is exactly `http(s)://host[:port]`, in its one canonical spelling."""
    found = _ORIGIN.fullmatch(origin)
    if found is not None:
        scheme, host, port = found.groups()
        if len(host) <= 253 and (port is None or (int(port) <= 65_535 and port != _DEFAULT_PORTS[scheme])):
            return
    raise place.fault(
        field, "is not an origin", 'write "https://host" or "https://host:8443", without a path'
    )


def check_field_map(place: Place, fields: FieldMap, known: tuple[str, ...]) -> None:
    """Raise `Invalid` where a field has two owners, two names, or is not one of the object's."""
    owner: dict[str, str] = {}
    own_names: set[str] = set()
    for direction, mapping in (("outbound", fields.outbound), ("inbound", fields.inbound)):
        for own_name, field in mapping.items():
            here = place.inner(direction)
            check_text(f"{here.file}: [{here.table}] {own_name}", own_name, LIMITS.name_bytes_max)
            if field not in known:
                raise here.fault(own_name, f"the object has no field {field!r}", _choices(known))
            if field in owner:
                what = "has two owners" if owner[field] != direction else "is mapped twice"
                raise here.fault(
                    own_name, f"the field {field!r} {what}", "keep it in one place of one direction"
                )
            if own_name in own_names:
                raise here.fault(own_name, "the name has two owners", "keep it in one direction")
            owner[field] = direction
            own_names.add(own_name)


def _check_parameters(place: Place, view: ViewDocument) -> None:
    inner = place.inner("parameters")
    for name in sorted(set(view.parameters) ^ set(view.parameter_kinds)):
        if name in view.parameters:
            raise inner.fault(name, "the pack has no such parameter", _choices(view.parameter_kinds))
        raise inner.fault(name, "missing", f'write {name} = "…"')
    for name, value in view.parameters.items():
        try:
            if view.parameter_kinds[name] is ParameterKind.PATH:
                encoded_path(name, value)
            else:
                check_segment_value(name, value)
        except Invalid as fault:
            raise inner.fault(name, fault.message, fault.hint) from None


def _check_mapping(place: Place, name: str, operation: OperationContract, view: ViewDocument) -> None:
    if operation.object is None:
        return
    known = frozenset(view.objects[operation.object])
    here = place.inner("fields").inner(operation.object)
    if operation.object not in view.fields:
        raise here.fault(
            "", f"the operation {name!r} needs a field mapping", 'write outbound = { yours = "theirs" }'
        )
    outbound = view.fields[operation.object].outbound
    for field in sorted((required(operation.payload_schema) & known) - set(outbound.values())):
        raise here.fault("outbound", f"{name!r} requires the field {field!r}", f'map it: yours = "{field}"')
    plain = set(properties(operation.payload_schema)) - known
    for own_name in sorted(plain & {*outbound, *view.fields[operation.object].inbound}):
        raise here.fault(
            own_name, f"{name!r} has a payload field of that name", "choose another name for yours"
        )


def _choices(names: "Mapping[str, object] | tuple[str, ...]") -> str:
    return f"write one of {', '.join(sorted(names))}" if names else "there is none"
