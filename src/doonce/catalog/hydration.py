"""Reading the whole object that an event is about: the request, and what its answer says. Pure and total."""

from collections.abc import Mapping
from enum import Enum

from doonce.base.errors import Invalid
from doonce.base.json import JsonValue, dumps, loads
from doonce.catalog.compile import BindingView
from doonce.catalog.exchange import FrozenRequest, Response
from doonce.catalog.pointers import lookup
from doonce.catalog.render import build_request, reference_values
from doonce.catalog.webhooks import Hydration


class Found(str, Enum):
    """What an answer says of the object."""

    WHOLE = "whole"
    MISSING = "missing"
    NOTHING = "nothing"


def hydration_request(
    view: BindingView, hydration: Hydration, *, remote_id: str, event_id: str
) -> FrozenRequest:
    """Return the read of one object, the same for every attempt: all of its mapped fields, where the read names fields.

    Raises `Invalid` for a remote id that cannot stand in the target, and for a target over its bound.
    """
    operation = view.operations[hydration.operation]
    values = reference_values(view, operation, {}, remote_id=remote_id, command_id=event_id)
    return build_request(view, operation, {}, values)


def found_in(hydration: Hydration, response: Response) -> Found:
    """Return whether an answer is the object, says that there is none, or says nothing that could be believed."""
    if not response.complete:
        return Found.NOTHING
    if response.status in hydration.missing_statuses:
        return Found.MISSING
    if not 200 <= response.status <= 299:
        return Found.NOTHING
    return Found.NOTHING if fields_in(hydration, response.body) is None else Found.WHOLE


def fields_in(hydration: Hydration, document: bytes) -> Mapping[str, JsonValue] | None:
    """Return the provider's fields of an object's document, exact; None where they are not where the pack says."""
    try:
        value = loads(document, bytes_max=len(document))
        dumps(value)  # what has no exact form could be handed to nobody
    except Invalid:
        return None
    found = lookup(value, hydration.fields)
    return found if isinstance(found, Mapping) else None
