"""From a pack and a binding to one immutable, content-addressed view, and back from its bytes.

The bytes are the canonical JSON of a `ViewDocument`; the address is their domain-tagged digest. A row that
pins a digest gets exactly that view for ever: there is no "latest" here (authority section 4).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from doonce.base.digests import digest_document
from doonce.base.errors import Invalid
from doonce.base.json import canonical, loads
from doonce.base.limits import LIMITS
from doonce.catalog.closure import check_origin, check_view
from doonce.catalog.model import Auth, Binding, OperationContract, Pack, Policies, ViewDocument
from doonce.catalog.reading import Place
from doonce.catalog.schemas import PayloadSchema, check_schema, properties
from doonce.catalog.templates import TargetTemplate, Template, parse_target, parse_template
from doonce.catalog.webhooks import Webhook

VIEW_FORMAT: Final = "doonce.binding-view/1"
VIEW_FORMAT_WITH_ROUTES: Final = "doonce.binding-view/2"
"""A view that receives webhooks. Every other keeps the first format, its bytes and its digest."""
VIEW_TAG: Final = "doonce.binding-view.v1"
PACK_TAG: Final = "doonce.pack.v1"


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """What a deployment lets bindings say about origins; the defaults are for production.

    `undeclared`: another origin than the pack declares (a simulator, a recording proxy). `plain_http`: an
    origin without TLS.
    """

    undeclared: bool = False
    plain_http: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an opened view: its contract, and the parts of it that are parsed once."""

    name: str
    contract: OperationContract
    payload_schema: PayloadSchema
    target: TargetTemplate
    target_lane: Template | None
    renames: Mapping[str, str]
    """The application's name → the provider's, for outbound fields that this operation knows."""
    plain: frozenset[str]
    """Payload fields that keep their name: they are no fields of the object."""
    refused: Mapping[str, str]
    """The application's name → why a payload may not carry it."""


@dataclass(frozen=True, slots=True)
class BindingView:
    """An opened view: complete, checked, immutable; `digest` is the address of `raw`."""

    digest: str
    raw: bytes
    document: ViewDocument
    operations: Mapping[str, Operation]

    @property
    def auth(self) -> Auth:
        """Where the principal's secret goes."""
        return self.document.auth

    @property
    def policies(self) -> Policies:
        """The binding's choices about retries and answers."""
        return self.document.policies

    def operation(self, name: str) -> Operation:
        """Return an operation that this binding offers; raises `Invalid` for any other name."""
        if name not in self.document.offered:
            raise Invalid(
                f"the binding offers no operation {name!r}", hint=f"one of {', '.join(self.document.offered)}"
            )
        return self.operations[name]


def pack_digest(pack: Pack) -> str:
    """Return the content address of a pack, the same for every order in which its file may be written."""
    return digest_document(PACK_TAG, msgspec.to_builtins(pack))


def compile_view(
    pack: Pack, binding: Binding, *, origins: OriginPolicy, file: str = "binding.toml"
) -> BindingView:
    """Return the view of `binding` over `pack`; equal inputs give equal bytes and one digest.

    Only the operations that the binding offers are in it, the reads that they probe with, and those that its webhooks
    may need. Raises one `Invalid` that names the binding's file, table and field for whatever does not fit the pack.
    """
    place = Place(file)
    if binding.pack != f"{pack.name}@{pack.version}":
        raise place.fault(
            "pack", f"this pack is {pack.name}@{pack.version}", "name the pack that is published"
        )
    for name in binding.operations:
        if name not in pack.operations:
            choices = ", ".join(sorted(pack.operations))
            raise place.fault("operations", f"the pack has no operation {name!r}", f"write one of {choices}")
    webhooks = _received(place, pack, binding)
    probes = {
        contract.probe.operation for name in binding.operations if (contract := pack.operations[name]).probe
    }
    reads = {name for webhook in webhooks.values() for name in webhook.reads}
    document = ViewDocument(
        format=VIEW_FORMAT_WITH_ROUTES if webhooks else VIEW_FORMAT,
        org=binding.org,
        installation=binding.installation,
        capability=binding.capability,
        pack=binding.pack,
        pack_digest=pack_digest(pack),
        origin=_effective_origin(place, pack, binding, origins),
        auth=pack.auth,
        principal=binding.principal,
        parameters=binding.parameters,
        parameter_kinds={name: parameter.kind for name, parameter in pack.parameters.items()},
        objects=pack.objects,
        offered=binding.operations,
        operations={name: pack.operations[name] for name in {*binding.operations, *probes, *reads}},
        fields=binding.fields,
        policies=binding.policies,
        webhooks=webhooks or UNSET,
        routes=binding.webhooks,
    )
    check_view(place, document)
    raw = canonical(msgspec.to_builtins(document))
    return open_view(raw, digest_document(VIEW_TAG, msgspec.to_builtins(document)))


def open_view(raw: bytes, digest: str) -> BindingView:
    """Return the view that `raw` is, if it is exactly what `digest` names and complete enough to execute.

    Raises `Invalid` for another digest, another format, bytes that are not canonical, unknown or missing
    fields, and a view that `compile_view` would refuse: a damaged or hand-made one never half-works. (What JSON
    Schema's own dialect would refuse, no pack can bring here; it is found at the first payload.)
    """
    place = Place(f"binding view {digest}")
    value = loads(raw, bytes_max=LIMITS.document_bytes_max)
    if digest_document(VIEW_TAG, value) != digest:
        raise place.fault(
            "", "the content is not what the digest names", "fetch the view again from its store"
        )
    if canonical(value) != raw:
        raise place.fault("", "the bytes are not canonical")
    known = VIEW_FORMAT_WITH_ROUTES if isinstance(value, Mapping) and "routes" in value else VIEW_FORMAT
    if not isinstance(value, Mapping) or value.get("format") != known:
        raise place.fault("format", "is not known to this release", f"this release reads {known}")
    try:
        document = msgspec.convert(value, ViewDocument, strict=True)
    except msgspec.ValidationError as fault:
        raise place.fault("", str(fault)) from None
    if canonical(msgspec.to_builtins(document)) != raw:
        raise place.fault("", "a default is left out", "views spell every field")
    for name, contract in document.operations.items():
        _check_stored_schema(place.inner("operations").inner(name), contract)
    check_view(place, document)
    operations = {name: _opened(name, document) for name in document.operations}
    return BindingView(digest, raw, document, MappingProxyType(operations))


def _check_stored_schema(place: Place, contract: OperationContract) -> None:
    try:
        check_schema(contract.payload_schema)
    except Invalid as fault:
        raise place.fault("payload_schema", fault.message, fault.hint) from None


def _received(place: Place, pack: Pack, binding: Binding) -> dict[str, Webhook]:
    known = pack.webhooks or {}
    for name in binding.webhooks or {}:
        if name not in known:
            hint = f"write one of {', '.join(sorted(known))}" if known else "remove it"
            raise place.fault("webhooks", f"the pack has no webhook {name!r}", hint)
    return {
        name: known[name] if route.reconcile else replace(known[name], reconciliation=None)
        for name, route in (binding.webhooks or {}).items()
    }


def _effective_origin(place: Place, pack: Pack, binding: Binding, origins: OriginPolicy) -> str:
    origin = binding.origin
    if not pack.operations:
        if origin is not None:
            raise place.fault("origin", "the pack has no operations, so nothing is called", "remove it")
        return ""
    if origin is None:
        if len(pack.origins) == 1:
            return pack.origins[0]
        hint = f"write one of {', '.join(pack.origins)}" if pack.origins else 'write origin = "https://host"'
        raise place.fault("origin", "missing: the pack does not decide it", hint)
    check_origin(place, "origin", origin)
    if not pack.origin_from_binding and origin not in pack.origins and not origins.undeclared:
        raise place.fault(
            "origin",
            f"the pack declares {', '.join(pack.origins)}",
            "remove origin, or let the deployment allow undeclared origins (for simulators)",
        )
    if origin.startswith("http://") and not origins.plain_http:
        raise place.fault(
            "origin", "is not encrypted", "write https://, or let the deployment allow plain HTTP"
        )
    return origin


def _opened(name: str, document: ViewDocument) -> Operation:
    contract = document.operations[name]
    known = frozenset(document.objects[contract.object]) if contract.object else frozenset()
    names = frozenset(properties(contract.payload_schema))
    fields = document.fields.get(contract.object) if contract.object else None
    outbound = fields.outbound if fields else {}
    inbound = fields.inbound if fields else {}
    refused = {own: f"{own} is the provider's to write (inbound)" for own in inbound}
    refused |= {own: f"{name} does not carry {own}" for own, field in outbound.items() if field not in names}
    return Operation(
        name=name,
        contract=contract,
        payload_schema=PayloadSchema(contract.payload_schema),
        target=parse_target(contract.target, contract.query, document.parameter_kinds),
        target_lane=None if contract.target_lane is None else parse_template(contract.target_lane),
        renames=MappingProxyType({own: field for own, field in outbound.items() if field in names}),
        plain=names - known,
        refused=MappingProxyType(refused),
    )
