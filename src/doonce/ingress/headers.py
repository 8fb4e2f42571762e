"""Reading headers of strangers: bounded, total, never guessing which of two is meant."""

from __future__ import annotations

from typing import Final

from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS, check_text
from doonce.catalog.webhooks import HeaderPart
from doonce.ingress.model import Delivery, Reason

VALUE_BYTES_MAX: Final = 8_192
"""One header that a verifier reads; the longest signature known has some 200 bytes, a list of them a few more."""

ITEMS_MAX: Final = 32
"""Items of one list; a provider sends a signature for each active secret and version."""

_SPACE: Final = b" \t"


def only(delivery: Delivery, name: bytes) -> bytes | Reason:
    """The value of a header that came exactly once, without the space around it."""
    found = [value for given, value in delivery.headers if given == name]
    if not found:
        return Reason.HEADER_MISSING
    if len(found) > 1:
        return Reason.HEADER_REPEATED
    if len(found[0]) > VALUE_BYTES_MAX:
        return Reason.HEADER_LONG
    return found[0].strip(_SPACE)


def type_of(delivery: Delivery, name: str) -> str | None:
    """The type of event that a header names; None where it came not once, or names nothing that could be one."""
    value = only(delivery, name.encode())
    if isinstance(value, Reason):
        return None
    try:
        return check_text("type", value.decode("ascii"), LIMITS.name_bytes_max)
    except (Invalid, UnicodeDecodeError):
        return None


def items(delivery: Delivery, part: HeaderPart) -> list[bytes] | Reason:
    """What stands at this part of the headers: at least one item, without its prefix."""
    value = only(delivery, part.header.encode())
    if isinstance(value, Reason):
        return value
    separator, prefix = part.separator.encode(), part.prefix.encode()
    listed = value.split(separator, ITEMS_MAX) if separator else [value]
    if len(listed) > ITEMS_MAX:
        return Reason.ITEMS_TOO_MANY
    stripped = [item.strip(_SPACE) for item in listed]
    found = [item[len(prefix) :] for item in stripped if item.startswith(prefix)]
    return found or Reason.HEADER_MISSING
