"""What the pieces of a stored document are made of; shared by its two halves, operations and webhooks."""

from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

Scalar: TypeAlias = str | int | bool
"""A constant that a pack may name: TOML has no null, and a fraction has no canonical form."""


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece of a view's document: immutable, without unknown fields."""


class Condition(Part, frozen=True, kw_only=True):
    """Something that an answer must hold: a place that exists and, if `equals` is set, has that value."""

    json: str | None = None
    header: str | None = None
    equals: Scalar | UnsetType = UNSET
