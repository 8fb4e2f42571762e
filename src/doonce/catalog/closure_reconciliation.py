"""What must hold of a reconciliation: it only reads, it can say which time, and its events are the webhook's (I4)."""

from __future__ import annotations

from collections.abc import Mapping

from doonce.base.errors import Invalid
from doonce.catalog.closure_answers import check_condition
from doonce.catalog.model import OperationContract, ParameterKind, ReplayKind
from doonce.catalog.pointers import parse_pointer
from doonce.catalog.reading import Place
from doonce.catalog.schemas import properties
from doonce.catalog.signed_content import HEADER_NAME
from doonce.catalog.templates import parse_target
from doonce.catalog.webhooks import BodyFormat, Reconciliation, Webhook
from doonce.catalog.windows import CURSOR, SINCE, references_of


def check_reconciliation(
    place: Place,
    webhook: Webhook,
    reconciliation: Reconciliation,
    operations: Mapping[str, OperationContract],
    parameters: Mapping[str, ParameterKind],
) -> None:
    """Raise one `Invalid` for a read that could not find what was lost, or that would make an event twice."""
    here = place.inner("reconciliation")
    read = operations.get(reconciliation.operation)
    if read is None:
        raise here.fault(
            "operation",
            f"there is no operation {reconciliation.operation!r}",
            "name a GET operation of this pack",
        )
    _check_read(here, reconciliation, read, parameters)
    _check_query(here, reconciliation, read)
    _check_pages(here, reconciliation)
    _check_events(here, webhook, reconciliation)


def _check_read(
    here: Place,
    reconciliation: Reconciliation,
    read: OperationContract,
    parameters: Mapping[str, ParameterKind],
) -> None:
    name = reconciliation.operation
    if read.replay.kind is not ReplayKind.READ:
        raise here.fault("operation", f"{name!r} is not a read", "name a GET operation")
    for reference in sorted(parse_target(read.target, read.query, parameters).references()):
        if not reference.startswith("parameter."):
            raise here.fault(
                "operation",
                f"{name!r} needs {{{reference}}}, which belongs to a command",
                "name a GET whose target takes the binding's parameters alone",
            )
    if properties(read.payload_schema):
        raise here.fault("operation", f"{name!r} takes a payload", "name a GET that takes none")


def _check_query(here: Place, reconciliation: Reconciliation, read: OperationContract) -> None:
    inner = here.inner("query")
    used: set[str] = set()
    for name, text in reconciliation.query.items():
        if name in read.query:
            raise inner.fault(name, "the operation sets it too", "keep it in one place")
        try:
            found = references_of(text)
        except Invalid as fault:
            raise inner.fault(name, fault.message, fault.hint) from None
        if len(found) != 1:
            raise inner.fault(
                name,
                "holds no reference" if not found else "holds two references",
                "write one of {since}, {until}, {cursor}; what is fixed belongs to the operation",
            )
        used |= found
    if SINCE not in used:
        raise here.fault(
            "query", "does not say since when", 'write a parameter with {since}, such as from = "{since}"'
        )
    if (CURSOR in used) != (reconciliation.cursor is not None):
        raise here.fault(
            "cursor",
            "goes together with a parameter that has {cursor}",
            "say where an answer names its next page, and how the next request carries it, or neither",
        )


def _check_pages(here: Place, reconciliation: Reconciliation) -> None:
    _check_pointer(here, "items", reconciliation.items)
    cursor, more = reconciliation.cursor, reconciliation.more
    if cursor is not None:
        if sum(one is not None for one in (cursor.json, cursor.header, cursor.last_item)) != 1:
            raise here.fault(
                "cursor",
                "is in exactly one place",
                'write { json = "/next" }, { header = … } or { last_item = "/id" }',
            )
        for text in (cursor.json, cursor.last_item):
            if text is not None:
                _check_pointer(here, "cursor", text)
        if cursor.header is not None and HEADER_NAME.fullmatch(cursor.header) is None:
            raise here.fault("cursor", f"{cursor.header!r} is not a header's name in lower case")
    if more is not None:
        if cursor is None:
            raise here.fault("more", "says that there are pages, and nothing leads to them", "declare cursor")
        check_condition(here, "more", more)


def _check_events(here: Place, webhook: Webhook, reconciliation: Reconciliation) -> None:
    own = webhook.events
    if own.format is BodyFormat.RAW or not own.identity:
        raise here.fault(
            "identity",
            "a delivery names the webhook's events, and a read sees no delivery: each would be made twice",
            'write identity = ["/id"] under events, which a page\'s items have too, or remove the reconciliation',
        )
    for field in ("identity", "object_id"):
        places, theirs = getattr(reconciliation, field), getattr(own, field)
        for text in places:
            _check_pointer(here, field, text)
        if places and len(places) != len(theirs):
            raise here.fault(
                field,
                f"has {len(places)} places where the webhook's events have {len(theirs)}, so none is the same",
                "write as many, in the same order",
            )
    if reconciliation.type is not None:
        _check_pointer(here, "type", reconciliation.type)
        if own.type is None:
            raise here.fault(
                "type", "the webhook's events have the webhook's name as their type", "remove it"
            )
    moved = reconciliation.type or reconciliation.identity or reconciliation.object_id
    if moved and own.objects:
        raise here.fault(
            "identity",
            "the items are not spelled as deliveries are, so what events tell about objects is not in them",
            "remove events.objects, or use a read that lists what deliveries tell",
        )


def _check_pointer(here: Place, field: str, text: str) -> None:
    try:
        parse_pointer(text)
    except Invalid as fault:
        raise here.fault(field, fault.message, fault.hint) from None
