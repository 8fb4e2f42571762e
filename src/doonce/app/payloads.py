"""A payload as an application gives it, as the one strict JSON document that is handed over."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

from doonce.base import json
from doonce.base.errors import Invalid
from doonce.base.json import JsonValue
from doonce.base.limits import LIMITS


def payload_bytes(payload: bytes | Mapping[str, JsonValue]) -> bytes:
    """The payload's one strict JSON document. Raises `Invalid` for whatever would not arrive as it is here."""
    if isinstance(payload, Mapping):
        _check_exact(payload, "the payload")
        payload = json.dumps(dict(payload))
    elif not isinstance(payload, bytes):
        raise Invalid("the payload must be bytes or a mapping", hint="encode a text to UTF-8 yourself")
    json.loads(payload, bytes_max=LIMITS.payload_bytes_max)
    return payload


def _check_exact(value: object, place: str, depth: int = 0) -> None:
    """Refuse floats that are not the decimal they print as: the provider would get another number (DESIGN rule 7)."""
    if depth > LIMITS.json_depth_max:
        raise Invalid(f"{place} is nested deeper than {LIMITS.json_depth_max}")
    if isinstance(value, float) and (not math.isfinite(value) or Decimal(repr(value)) != Decimal(value)):
        raise Invalid(
            f"{place}: a float would change on its way",
            hint='give the number as Decimal("…") or as an integer',
        )
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _check_exact(
                inner,
                f"{place}.{name}" if isinstance(name, str) and name.isidentifier() else place,
                depth + 1,
            )
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for position, inner in enumerate(value):
            _check_exact(inner, f"{place}[{position}]", depth + 1)
