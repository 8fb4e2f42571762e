"""What must hold for reading a whole object: a bounded read, by the remote id alone, whose answer has the fields."""

from collections.abc import Mapping
from typing import Final

from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS
from doonce.base.patterns import overlap
from doonce.catalog.model import LinkUse, Method, OperationContract, ReplayKind, ViewDocument
from doonce.catalog.pointers import parse_pointer
from doonce.catalog.reading import Place
from doonce.catalog.schemas import required
from doonce.catalog.templates import parse_target
from doonce.catalog.webhooks import Hydration, Route, Webhook

_GIVEN: Final = ("remote_id", "fields")
"""What is known of an object that an event is about; and the parameters of its binding."""


def check_hydration(
    place: Place, kind: str, hydration: Hydration, operations: Mapping[str, OperationContract]
) -> None:
    """Raise one `Invalid` for a declaration by which no object could be read; its operations were checked before."""
    here = place.inner("hydrate")
    read = operations.get(hydration.operation)
    if read is None:
        raise here.fault(
            "operation", f"there is no operation {hydration.operation!r}", "name a GET operation of this pack"
        )
    _check_read(here, kind, hydration.operation, read)
    try:
        parse_pointer(hydration.fields)
    except Invalid as fault:
        raise here.fault("fields", fault.message, fault.hint) from None
    for status in hydration.missing_statuses:
        if any(low <= status <= high for rule in read.outcomes for low, high in rule.statuses):
            raise here.fault(
                "missing_status",
                f"{hydration.operation!r} declares what {status} means",
                "keep it in one of the two",
            )


def _check_read(here: Place, kind: str, name: str, read: OperationContract) -> None:
    if read.method is not Method.GET or read.replay.kind is not ReplayKind.READ:
        raise here.fault("operation", f"{name!r} is not a read", "name a GET operation")
    if read.object != kind:
        what = "nothing" if read.object is None else repr(read.object)
        raise here.fault(
            "operation", f"{name!r} reads {what}, not {kind!r}", f'write object = "{kind}" there'
        )
    if read.link is not LinkUse.EXISTING:
        raise here.fault(
            "operation", f"{name!r} does not read by a remote id", "put {remote_id} into its target"
        )
    for reference in sorted(parse_target(read.target, read.query, {}).references()):
        if reference not in _GIVEN and not reference.startswith("parameter."):
            raise here.fault(
                "operation",
                f"{name!r} needs {{{reference}}}, which no event has",
                "name a read by {remote_id}",
            )
    if required(read.payload_schema):
        raise here.fault(
            "operation", f"{name!r} needs a payload, which no event has", "name a read by {remote_id}"
        )
    if read.response_bytes_max > LIMITS.response_bytes_max:
        raise here.fault(
            "operation", f"the answer of {name!r} has no bound", "write response_bytes_max = 262144 there"
        )


def check_hydrated(place: Place, view: ViewDocument) -> None:
    """Raise one `Invalid` for the first route that would read what its pack, handlers or mapping do not have."""
    webhooks = view.webhooks or {}
    for name, route in (view.routes or {}).items():
        here = place.inner("webhooks").inner(name)
        if len({*route.hydrate}) != len(route.hydrate):
            raise here.fault("hydrate", "names an object twice", "write each once")
        for kind in route.hydrate:
            _check_object(here, kind, route, webhooks[name], view)


def _check_object(here: Place, kind: str, route: Route, webhook: Webhook, view: ViewDocument) -> None:
    told = webhook.events.objects.get(kind)
    known = sorted(name for name, rule in webhook.events.objects.items() if rule.hydrate is not None)
    if told is None or told.hydrate is None:
        what = "the webhook has no such object" if told is None else "the pack knows no read for it"
        choices = f"write one of {', '.join(known)}" if known else "remove it"
        raise here.fault("hydrate", f"{kind!r}: {what}", choices)
    if not any(overlap(mine, theirs) for mine in route.handle for theirs in told.types):
        raise here.fault(
            "hydrate", f"no event about {kind!r} is handed over", f"add {told.types[0]!r} to handle"
        )
    read = view.operations[told.hydrate.operation]
    mapped = view.fields.get(kind)
    asks = "fields" in parse_target(read.target, read.query, {}).references()
    if asks and (mapped is None or not (mapped.inbound or mapped.outbound)):
        raise here.fault(
            "hydrate",
            f"{told.hydrate.operation!r} asks for the mapped fields of {kind!r}, and there are none",
            f'write [fields.{kind}] inbound = {{ yours = "theirs" }}',
        )
