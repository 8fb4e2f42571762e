"""From one receipt's body to its events. Pure and total: a body that cannot be read is a finding, not a fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from doonce.base.digests import digest_document
from doonce.base.errors import Invalid
from doonce.base.json import JsonValue, dumps, loads
from doonce.base.keys import frame
from doonce.base.limits import LIMITS, check_text
from doonce.base.patterns import best
from doonce.catalog.pointers import ABSENT, lookup
from doonce.catalog.webhooks import BodyFormat, EventRule, Route
from doonce.events.mapping import Told
from doonce.ownership.model import Family

IDENTITY_TAG: Final = "doonce.event-identity.v1"
LANE_TAG: Final = "doonce.event-lane.v1"
EVENTS_MAX: Final = 10_000
"""Events of one delivery; the largest known batches have a thousand."""

TYPE_BYTES_MAX: Final = LIMITS.name_bytes_max

RouteParts: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Derived:
    """One event: its place in the delivery, what names it for ever, and its content as exact bytes.

    `object_id` names the provider's object that it is about, None where the pack or the event does not say.
    """

    position: int
    identity: str
    type: str
    content: bytes
    object_id: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Why a body tells of no events that could be named. Its receipt stays."""

    reason: str


def derive(
    rule: EventRule, route: RouteParts, receipt_identity: str, body: bytes, named: str | None = None
) -> tuple[Derived, ...] | Undecodable:
    """The events of a body, in its order; equal inputs give equal events. `named` is the type that the header gave.

    Numbers keep their exact value, and fields that nobody declared stay (DESIGN rule 7). All or none: a batch with one
    element that cannot be named is undecodable as a whole.
    """
    kind = route[3] if rule.type_header is None else named
    if kind is None:
        return Undecodable(f"the delivery had no type in {rule.type_header}")
    if rule.format is BodyFormat.RAW:
        return (Derived(0, _identity(route, ["receipt", receipt_identity]), kind, body, None),)
    try:
        document = loads(body, bytes_max=len(body))
    except Invalid as fault:
        return Undecodable(f"the body is not JSON: {fault.message}")
    found = [document] if rule.each is None else lookup(document, rule.each)
    if not isinstance(found, Sequence) or isinstance(found, str):
        return Undecodable(f"there is no list at {rule.each!r}")
    elements: Sequence[JsonValue] = found
    if len(elements) > EVENTS_MAX:
        return Undecodable(f"there are {len(elements)} events; at most {EVENTS_MAX} are read")
    derived: list[Derived] = []
    for position, element in enumerate(elements):
        event = _event(rule, route, receipt_identity, position, element, kind)
        if isinstance(event, Undecodable):
            return event
        derived.append(event)
    return tuple(derived)


def is_hydrated(route: Route, told: Told | None) -> bool:
    """Whether the whole object is read first. One that is deleted has nothing left to read."""
    return told is not None and told.kind in route.hydrate and not told.deleted


def handed_to(route: Route, kind: str) -> Family | None:
    """Whose work an event of this type is: the embedding process's, a push to the application's, or nobody's."""
    if best(route.handle, kind) is None:
        return None
    return Family.HANDLER if route.push is None else Family.PUSH


def lane_of(route: RouteParts, object_id: tuple[str, ...] | None) -> str | None:
    """The source lane of one object's events within a capability, whichever webhook told of them (PROTOCOL L2).

    The name is a digest: a provider's id may be anything, and of any length.
    """
    if object_id is None:
        return None
    org, installation, capability, _ = route
    return frame("e", org, installation, digest_document(LANE_TAG, [capability, *object_id]))


def _event(
    rule: EventRule, route: RouteParts, receipt_identity: str, position: int, element: JsonValue, kind: str
) -> Derived | Undecodable:
    if rule.type is not None:
        try:
            kind = check_text("type", lookup(element, rule.type), TYPE_BYTES_MAX)
        except Invalid:
            return Undecodable(f"event {position} has no type at {rule.type}")
    named: list[JsonValue] = ["receipt", receipt_identity]
    if rule.identity:
        named = ["places"]
        for pointer in rule.identity:
            found = _name_at(element, pointer)
            if found is None:
                return Undecodable(f"event {position} has no text or whole number at {pointer}")
            named += found
    try:
        return Derived(position, _identity(route, named), kind, dumps(element), _object_id(rule, element))
    except Invalid as fault:
        return Undecodable(f"event {position} has no exact form: {fault.message}")


def _name_at(element: JsonValue, pointer: str) -> tuple[str, str] | None:
    """A text or whole number with its kind, so that 1 and "1" are two names."""
    value = lookup(element, pointer)
    if value is ABSENT or isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return type(value).__name__, str(value)


def _object_id(rule: EventRule, element: JsonValue) -> tuple[str, ...] | None:
    """The object's name: 1 and "1" are one object, as providers write ids in either way. None for one without."""
    found = [_name_at(element, pointer) for pointer in rule.object_id]
    if not found or None in found:
        return None
    return tuple(name[1] for name in found if name is not None)


def _identity(route: RouteParts, named: list[JsonValue]) -> str:
    return digest_document(IDENTITY_TAG, [*route, *named])
