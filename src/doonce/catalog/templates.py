"""Relative targets with values put in: percent-encoded, no value ever more than its place.

A template is plain text with references in braces: `{remote_id}`, `{command_id}`, `{payload.NAME}`,
`{parameter.NAME}` and, in a query, `{fields}`. A value in a path is one segment, except for a parameter of
kind "path".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import quote, unquote

from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS, check_text
from doonce.catalog.model import ParameterKind

TARGET_BYTES_MAX: Final = 4_096
"""A request target; common servers stop at 8 KiB for the whole request line."""

_PIECE: Final = re.compile(r"\{([^{}]*)\}|([^{}]+)|(.)", re.DOTALL)
_REFERENCE: Final = re.compile(
    r"remote_id|command_id|fields|(payload|parameter)\.[A-Za-z][A-Za-z0-9_]*", re.ASCII
)
_PATH_TEXT: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/-]*", re.ASCII)
_HOSTILE_SEGMENT: Final = re.compile(r"[/\\]")
_DOTS: Final = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class Literal:
    """Text of the template itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A value to put in, by its name: `remote_id`, `payload.uid`, …"""

    name: str


Template: TypeAlias = tuple[Literal | Reference, ...]
Values: TypeAlias = Mapping[str, str]
"""Reference name → its text."""


def parse_template(text: str) -> Template:
    """Return the pieces of a template; raises `Invalid` for unbalanced braces and unknown references."""
    pieces: list[Literal | Reference] = []
    for reference, literal, stray in _PIECE.findall(text):
        if stray or (not literal and not _REFERENCE.fullmatch(reference)):
            raise Invalid(
                f"{{{reference}}} is not a reference" if not stray else f"a {stray} without its partner",
                hint="use {remote_id}, {command_id}, {payload.NAME} or {parameter.NAME}",
            )
        pieces.append(Literal(literal) if literal else Reference(reference))
    return tuple(pieces)


def references(template: Template) -> frozenset[str]:
    """Return the names that a template refers to."""
    return frozenset(piece.name for piece in template if isinstance(piece, Reference))


@dataclass(frozen=True, slots=True)
class TargetTemplate:
    """A parsed target: its path segments, and its query in the order of names."""

    segments: tuple[Template, ...]
    query: tuple[tuple[str, Template], ...]
    paths: frozenset[str]

    def references(self) -> frozenset[str]:
        """Return the names that path and query refer to."""
        parts = [*self.segments, *(template for _, template in self.query)]
        return frozenset().union(*(references(part) for part in parts))


def parse_target(
    path: str, query: Mapping[str, str], parameters: Mapping[str, ParameterKind]
) -> TargetTemplate:
    """Return a parsed relative target.

    Raises `Invalid` for a path that is not absolute within its origin, holds `.` or `..` segments, empty
    segments or characters that would need encoding, and for a reference to more than a segment inside one.
    """
    if not path.startswith("/") or path.startswith("//"):
        raise Invalid(
            "a target starts with exactly one /", hint="write the path only: the origin is declared apart"
        )
    paths = frozenset(f"parameter.{name}" for name, kind in parameters.items() if kind is ParameterKind.PATH)
    segments: list[Template] = []
    for segment in path[1:].split("/"):
        template = parse_template(segment)
        _check_segment(segment, template, paths)
        segments.append(template)
    parsed = tuple((name, parse_template(text)) for name, text in sorted(query.items()))
    if any(sum(isinstance(piece, Reference) for piece in template) > 1 for _, template in parsed):
        raise _two_references()
    if any(references(template) & paths for _, template in parsed):
        raise Invalid('a parameter of kind "path" cannot stand in a query', hint='declare it as "segment"')
    return TargetTemplate(tuple(segments), parsed, paths)


def _check_segment(segment: str, template: Template, paths: frozenset[str]) -> None:
    literal = "".join(piece.text for piece in template if isinstance(piece, Literal))
    if segment in _DOTS or (segment == "" and not template):
        raise Invalid("a target has no empty, . or .. segments", hint="write the path that is really meant")
    if _PATH_TEXT.fullmatch(literal) is None:
        raise Invalid(
            "a target holds a character that must be percent-encoded", hint="put a query under [query]"
        )
    named = references(template)
    if sum(isinstance(piece, Reference) for piece in template) > 1:
        raise _two_references()
    if "fields" in named:
        raise Invalid("{fields} can only stand in a query", hint="move it to the query table")
    if named & paths and len(template) != 1:
        raise Invalid(
            'a parameter of kind "path" must stand alone between slashes', hint='or declare it "segment"'
        )


def _two_references() -> Invalid:
    return Invalid(
        "two references in one segment or query value could not be told apart",
        hint="separate them by a slash",
    )


def fill_target(target: TargetTemplate, values: Values) -> str:
    """Return path and query with every value percent-encoded.

    Two different values give two different targets, and no value can add, remove or climb a path segment or
    add a query parameter. Raises `Invalid` for a value that is empty, `.` or `..`, holds a slash, backslash
    or control character, and for a result over `TARGET_BYTES_MAX`.
    """
    path = "".join("/" + _fill_segment(segment, values, target.paths) for segment in target.segments)
    query = "&".join(
        quote(name, safe="") + "=" + "".join(_encoded_piece(piece, values) for piece in template)
        for name, template in target.query
    )
    filled = f"{path}?{query}" if query else path
    if len(filled) > TARGET_BYTES_MAX:
        raise Invalid(f"the request's target has {len(filled)} bytes; at most {TARGET_BYTES_MAX} are allowed")
    return filled


def fill_text(template: Template, values: Values) -> str:
    """Return a template's plain text, for a name that is never sent: a lane's."""
    return "".join(piece.text if isinstance(piece, Literal) else values[piece.name] for piece in template)


def _fill_segment(template: Template, values: Values, paths: frozenset[str]) -> str:
    if len(template) == 1 and isinstance(template[0], Reference) and template[0].name in paths:
        return encoded_path(template[0].name, values[template[0].name])
    for name in references(template):
        check_segment_value(name, values[name])
    filled = "".join(_encoded_piece(piece, values) for piece in template)
    if filled in _DOTS:
        raise Invalid("a value would make the target climb out of its path")
    return filled


def _encoded_piece(piece: Literal | Reference, values: Values) -> str:
    if isinstance(piece, Literal):
        return quote(piece.text, safe="!$'()*,;:@")
    return quote(values[piece.name], safe="")


def check_segment_value(name: str, value: str) -> None:
    check_text(name, value, LIMITS.key_bytes_max)
    if value in _DOTS or _HOSTILE_SEGMENT.search(value):
        raise Invalid(
            f"{name} cannot stand in a path: it is . or .., or holds a slash",
            hint="give the last part of the path",
        )


def encoded_path(name: str, value: str) -> str:
    """Return several path segments, each percent-encoded; raises `Invalid` for an empty, `.` or `..` one."""
    segments = check_text(name, value, LIMITS.key_bytes_max).split("/")
    for segment in segments:
        if not segment or segment in _DOTS or "\\" in segment:
            raise Invalid(
                f"{name} must be path segments joined by single slashes", hint='for example "team/shared"'
            )
    return "/".join(quote(segment, safe="") for segment in segments)


def last_segment(target: str) -> str:
    """Return the decoded last path segment of a filled target."""
    return unquote(target.split("?", 1)[0].rsplit("/", 1)[-1])
