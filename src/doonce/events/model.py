"""From one receipt's body to its events. Pure and total: a body that cannot be read is a finding, not a fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from doonce.base.digests import digest_document
from doonce.base.errors import Invalid
from doonce.base.json import JsonValue, dumps, loads
from doonce.base.limits import LIMITS, check_text
from doonce.catalog.pointers import ABSENT, lookup
from doonce.catalog.webhooks import BodyFormat, EventRule

IDENTITY_TAG: Final = "doonce.event-identity.v1"
EVENTS_MAX: Final = 10_000
"""Events of one delivery; the largest known batches have a thousand."""

TYPE_BYTES_MAX: Final = LIMITS.name_bytes_max

RouteParts: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Derived:
    """One event: its place in the delivery, what names it for ever, and its content as exact bytes."""

    position: int
    identity: str
    type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Why a body tells of no events that could be named. Its receipt stays."""

    reason: str


def derive(
    rule: EventRule, route: RouteParts, receipt_identity: str, body: bytes
) -> tuple[Derived, ...] | Undecodable:
    """The events of a body, in its order; equal inputs give equal events.

    Numbers keep their exact value, and fields that nobody declared stay (DESIGN rule 7). All or none: a batch with one
    element that cannot be named is undecodable as a whole.
    """
    if rule.format is BodyFormat.RAW:
        return (Derived(0, _identity(route, ["receipt", receipt_identity]), route[3], body),)
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
        event = _event(rule, route, receipt_identity, position, element)
        if isinstance(event, Undecodable):
            return event
        derived.append(event)
    return tuple(derived)


def _event(
    rule: EventRule, route: RouteParts, receipt_identity: str, position: int, element: JsonValue
) -> Derived | Undecodable:
    kind: JsonValue = route[3]
    if rule.type is not None:
        found = lookup(element, rule.type)
        try:
            kind = check_text("type", found, TYPE_BYTES_MAX)
        except Invalid:
            return Undecodable(f"event {position} has no type at {rule.type}")
    named: list[JsonValue] = ["receipt", receipt_identity]
    if rule.identity:
        named = ["places"]
        for pointer in rule.identity:
            value = lookup(element, pointer)
            if value is ABSENT or isinstance(value, bool) or not isinstance(value, (str, int)):
                return Undecodable(f"event {position} has no text or whole number at {pointer}")
            named += [type(value).__name__, str(value)]
    try:
        return Derived(position, _identity(route, named), str(kind), dumps(element))
    except Invalid as fault:
        return Undecodable(f"event {position} has no exact form: {fault.message}")


def _identity(route: RouteParts, named: list[JsonValue]) -> str:
    return digest_document(IDENTITY_TAG, [*route, *named])
