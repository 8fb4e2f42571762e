"""What must hold of what events say about objects: each event is about one, at places that can be there."""

from collections.abc import Mapping

from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS, check_text
from doonce.base.patterns import is_pattern, overlap
from doonce.catalog.closure_hydration import check_hydration
from doonce.catalog.model import OperationContract
from doonce.catalog.pointers import parse_pointer
from doonce.catalog.reading import Place
from doonce.catalog.webhooks import BodyFormat, EventRule, ObjectRule


def check_event_objects(
    place: Place,
    rule: EventRule,
    objects: Mapping[str, tuple[str, ...]],
    operations: Mapping[str, OperationContract],
) -> None:
    """Raise one `Invalid` for the first object that the pack lacks or cannot read, or that two tables speak of."""
    for name, told in rule.objects.items():
        inner = place.inner("objects").inner(name)
        if name not in objects:
            choices = ", ".join(sorted(objects)) or "none"
            raise inner.fault("", "the pack has no such object", f"declare it; there is {choices}")
        if rule.format is BodyFormat.RAW:
            raise inner.fault("", "a raw body has no places", 'write format = "json", or remove it')
        _check_types(inner, told)
        _check_places(inner, told)
        if told.hydrate is not None:
            check_hydration(inner, name, told.hydrate, operations)
        for other, another in rule.objects.items():
            if other < name and any(overlap(a, b) for a in told.types for b in another.types):
                raise inner.fault("types", f"an event could be about {other!r} as well", "keep them apart")


def _check_types(place: Place, told: ObjectRule) -> None:
    for field, texts in (("types", told.types), ("deletes", told.deletes)):
        for text in texts:
            check_text(f"{place.file}: [{place.table}] {field}", text, LIMITS.name_bytes_max)
        if len({*texts}) != len(texts):
            raise place.fault(field, "names one thing twice", "remove the repetition")
        if not all(is_pattern(text) for text in texts):
            raise place.fault(field, "has a * that is not an end", 'write "item.*"')
    if not told.types:
        raise place.fault("types", "no event is about it", 'write types = ["item.*"]')
    for text in told.deletes:
        if not any(overlap(text, pattern) for pattern in told.types):
            raise place.fault("deletes", f"{text!r} is none of its types", "add it to types")


def _check_places(place: Place, told: ObjectRule) -> None:
    if (told.field_name is None) != (told.field_value is None):
        raise place.fault("field_name", "goes together with field_value", "write both or neither")
    if told.fields is not None and told.field_name is not None:
        raise place.fault(
            "fields", "the fields are in one place", "write fields, or field_name and field_value"
        )
    for field in ("remote_id", "fields", "field_name", "field_value"):
        pointer: str | None = getattr(told, field)
        try:
            parse_pointer(pointer or "")
        except Invalid as fault:
            raise place.fault(field, fault.message, fault.hint) from None
