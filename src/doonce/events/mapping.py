"""What an event says about an object that the binding maps: whose it is, and the values of the application's fields.

Only fields that the binding declares inbound, and only those that the event itself has: a partial update stays partial
(authority section 7). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from doonce.base.json import JsonValue
from doonce.base.limits import LIMITS
from doonce.base.patterns import best
from doonce.catalog.hydration import fields_in
from doonce.catalog.model import FieldMap
from doonce.catalog.pointers import ABSENT, lookup
from doonce.catalog.webhooks import EventRule, ObjectRule


@dataclass(frozen=True, slots=True)
class Told:
    """One object as an event speaks of it. `fields` goes from the application's names to exact values."""

    kind: str
    remote_id: str
    deleted: bool
    fields: Mapping[str, JsonValue]


def told_of(rule: EventRule, maps: Mapping[str, FieldMap], kind: str, content: JsonValue) -> Told | None:
    """What an event of this type says; None where it is about no declared object, or its id is not there."""
    for name, object_rule in rule.objects.items():
        if best(object_rule.types, kind) is None:
            continue
        remote_id = lookup(content, object_rule.remote_id)
        if isinstance(remote_id, bool) or not isinstance(remote_id, str | int) or remote_id == "":
            return None
        text = str(remote_id)
        if len(text.encode()) > LIMITS.remote_id_bytes_max:
            return None
        deleted = best(object_rule.deletes, kind) is not None
        mapping = maps[name].inbound if name in maps else {}
        return Told(name, text, deleted, {} if deleted else _fields(object_rule, mapping, content))
    return None


def fields_of(rule: ObjectRule, mapped: FieldMap | None, document: bytes) -> dict[str, JsonValue]:
    """The application's inbound fields of a whole object as it was read: null is a value, absent stays absent."""
    found = None if rule.hydrate is None else fields_in(rule.hydrate, document)
    inbound = {} if mapped is None else mapped.inbound
    return {} if found is None else {own: found[theirs] for own, theirs in inbound.items() if theirs in found}


def _fields(rule: ObjectRule, inbound: Mapping[str, str], content: JsonValue) -> dict[str, JsonValue]:
    if rule.field_name is not None and rule.field_value is not None:
        name, value = lookup(content, rule.field_name), lookup(content, rule.field_value)
        return {} if value is ABSENT else {own: value for own, theirs in inbound.items() if theirs == name}
    found = ABSENT if rule.fields is None else lookup(content, rule.fields)
    if not isinstance(found, Mapping):
        return {}
    return {own: found[theirs] for own, theirs in inbound.items() if theirs in found}
