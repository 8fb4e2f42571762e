"""The template of what a provider signs: literal text and references in braces.

| reference | the bytes that it stands for |
|---|---|
| `{body}` | the raw body |
| `{timestamp}` | the text of the timestamp, exactly as it came |
| `{method}` | the method |
| `{url}` | the public URL of the route, with the query that came |
| `{sorted_form}` | the body's form fields, name and value joined, sorted, each different pair once |
| `{header.NAME}` | the value of a header that came exactly once |
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from doonce.base.errors import Invalid

HEADER_NAME: Final = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)
"""A header's name as a pack's stored form has it."""

_PIECE: Final = re.compile(r"\{([^{}]*)\}|([^{}]+)|(.)", re.DOTALL)
_HEADER: Final = "header."


class Source(str, Enum):
    """What of a delivery is signed, apart from single headers."""

    BODY = "body"
    TIMESTAMP = "timestamp"
    METHOD = "method"
    URL = "url"
    SORTED_FORM = "sorted_form"


@dataclass(frozen=True, slots=True)
class Text:
    """Literal bytes."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class Header:
    """The value of the header `name`."""

    name: bytes


Piece: TypeAlias = Text | Header | Source
Content: TypeAlias = tuple[Piece, ...]


def parse_content(text: str) -> Content:
    """Return the pieces of a template; raises `Invalid` for unbalanced braces and unknown references."""
    return tuple(_piece(reference, literal, stray) for reference, literal, stray in _PIECE.findall(text))


def _piece(reference: str, literal: str, stray: str) -> Piece:
    if literal:
        return Text(literal.encode())
    if stray:
        raise Invalid(f"a {stray} without its partner", hint="write references such as {body}")
    if reference.startswith(_HEADER) and HEADER_NAME.fullmatch(reference[len(_HEADER) :]):
        return Header(reference[len(_HEADER) :].encode())
    try:
        return Source(reference)
    except ValueError:
        choices = ", ".join(f"{{{source.value}}}" for source in Source)
        raise Invalid(
            f"{{{reference}}} is not a reference", hint=f"use {choices} or {{header.name}}, in lower case"
        ) from None
