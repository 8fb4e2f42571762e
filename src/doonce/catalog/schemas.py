"""JSON Schemas of payloads: closed, self-contained, and without a keyword that would be ignored.

A schema is data from outside: it may not fetch anything, every object in it says whether it is open, and a
misspelled keyword is refused rather than skipped.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from doonce.base.errors import Invalid
from doonce.base.json import JsonValue, canonical

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

MESSAGE_CHARACTERS_MAX: Final = 300

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_MASK: Final = "the value"
_ANNOTATIONS: Final = frozenset({"$schema", "$comment", "title", "description", "examples", "deprecated"})
_LEAVES: Final = frozenset(
    {
        *("type", "required", "enum", "const", "pattern", "minLength", "maxLength", "minimum", "maximum"),
        *("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems"),
        *("minProperties", "maxProperties", "$ref"),
    }
)
_ONE_SCHEMA: Final = frozenset(
    {"items", "not", "if", "then", "else", "additionalProperties", "propertyNames", "contains"}
)
_SCHEMA_LISTS: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMA_MAPS: Final = frozenset({"properties", "$defs", "dependentSchemas"})


def check_schema(schema: object) -> Mapping[str, Any]:
    """Return `schema` when it is fit to guard a payload: an object type that is closed and self-contained.

    Raises `Invalid`, which names the keyword's place, for an unknown keyword, a reference out of the schema,
    an object that does not say `additionalProperties`, and a number without an exact form. What the JSON Schema
    dialect (2020-12) itself refuses is found by `PayloadSchema.compile`.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise Invalid(
            'a payload schema describes an object: "type": "object"', hint="payloads are JSON objects"
        )
    if schema.get("additionalProperties") is not False:
        raise Invalid(
            'a payload schema is closed: "additionalProperties": false',
            hint="list every field under properties",
        )
    if schema.get("$schema", DIALECT) != DIALECT:
        raise Invalid(
            "a payload schema has one dialect", hint=f'write "$schema": "{DIALECT}", or leave it out'
        )
    _check_keywords(schema, "#")
    try:
        canonical(schema)
    except Invalid as fault:
        raise Invalid(
            f"the schema has no canonical form: {fault.message}", hint="use whole numbers only"
        ) from None
    return schema


class PayloadSchema:
    """A checked schema, compiled when it is first needed: a process that only sends needs none of them."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    def compile(self) -> None:
        """Compile it now; raises `Invalid` where the dialect refuses the schema."""
        _ = self._compiled

    def validate(self, value: JsonValue) -> None:
        """Raise one `Invalid` for a value that the schema refuses; it names the first place, never the value."""
        for error in self._compiled.iter_errors(value):
            place = "/".join(str(step) for step in error.instance_path)
            raise Invalid(
                f"the payload is not accepted{f' at {place}' if place else ''}: {_first_line(error.message)}"
            )

    @cached_property
    def _compiled(self) -> "Draft202012Validator":
        """The validator; it never fetches, and takes linear time whatever the pattern and the payload."""
        import jsonschema_rs  # noqa: PLC0415 (some 3 MiB, for processes that accept)

        try:
            return jsonschema_rs.Draft202012Validator(
                dict(self._schema),
                mask=_MASK,
                offline=True,
                validate_formats=False,
                pattern_options=jsonschema_rs.RegexOptions(),
            )
        except ValueError as fault:
            raise Invalid(f"the schema is not valid: {_first_line(str(fault))}") from None


def properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schemas of the payload's own fields."""
    found = schema.get("properties", {})
    return found if isinstance(found, dict) else {}


def required(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the fields that every payload has."""
    return frozenset(schema.get("required", ()))


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0][:MESSAGE_CHARACTERS_MAX]


def _check_keywords(schema: object, place: str) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise Invalid(f"{place} must be a schema: an object, true or false")
    if "properties" in schema and "additionalProperties" not in schema:
        raise Invalid(f"{place} must say additionalProperties", hint='write "additionalProperties": false')
    for keyword, value in schema.items():
        here = f"{place}/{keyword}"
        if keyword in _ONE_SCHEMA:
            _check_keywords(value, here)
        elif keyword in _SCHEMA_LISTS and isinstance(value, list):
            for index, inner in enumerate(value):
                _check_keywords(inner, f"{here}/{index}")
        elif keyword in _SCHEMA_MAPS and isinstance(value, dict):
            for name, inner in value.items():
                _check_keywords(inner, f"{here}/{name}")
        elif keyword == "$ref" and not (isinstance(value, str) and value.startswith("#")):
            raise Invalid(f"{here} must stay within the schema", hint='refer to "#/$defs/…"')
        elif keyword not in _LEAVES and keyword not in _ANNOTATIONS:
            raise Invalid(
                f"{here} is not a keyword that is known here", hint="check its spelling in docs/packs.md"
            )
