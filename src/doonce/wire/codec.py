"""JSON in and out of the wire's structs, strictly."""

from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from doonce.base import json
from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS
from doonce.wire.events import EVENT_CONTENT_BYTES_MAX

StructT = TypeVar("StructT", bound=msgspec.Struct)

ENVELOPE_BYTES_MAX: Final = 8_192
"""All around one payload or result: key, scope, ids and digests at their bounds, and JSON's own marks."""

ACCEPT_BODY_BYTES_MAX: Final = LIMITS.batch_bytes_max * 4 // 3 + LIMITS.batch_rows_max * ENVELOPE_BYTES_MAX
"""A full batch of acceptances, its payloads in base64; also more than any answer to one."""

REJECT_BODY_BYTES_MAX: Final = ENVELOPE_BYTES_MAX
"""One rejection carries no payload."""

NOTICE_BODY_BYTES_MAX: Final = LIMITS.response_bytes_max + ENVELOPE_BYTES_MAX
"""One completion with its result."""

EVENT_BODY_BYTES_MAX: Final = (
    EVENT_CONTENT_BYTES_MAX * 7 // 3 + LIMITS.response_bytes_max * 7 // 3 + ENVELOPE_BYTES_MAX
)
"""One event and its object in base64, and at most all of either once more as the fields that are mapped."""

RECEIPT_BODY_BYTES_MAX: Final = ENVELOPE_BYTES_MAX
"""The answer to a completion, or an error document."""


def decode(raw: bytes, kind: type[StructT], *, bytes_max: int) -> StructT:
    """Return the one `kind` that `raw` holds, with every bound and consistency check of that struct applied.

    The document is read twice on purpose: first by the strict reader, which refuses duplicate keys, NaN,
    unpaired surrogates and trailing bytes (two readers of one document must never see two meanings), then by
    the typed one, which refuses unknown and missing fields. Raises `Invalid`, which names the place.
    """
    json.loads(raw, bytes_max=bytes_max)
    try:
        value: StructT = _decoder(kind).decode(raw)
    except msgspec.MsgspecError as refused:
        raise Invalid(f"not a valid {kind.__name__}: {refused}") from None
    return value


def encode(value: msgspec.Struct) -> bytes:
    """Return `value` as compact JSON; bytes as base64, raw JSON exactly as it was given."""
    return msgspec.json.encode(value)


@cache
def _decoder(kind: type[msgspec.Struct]) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(kind, strict=True)
