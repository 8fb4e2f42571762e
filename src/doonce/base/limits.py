"""Every size that is bounded, in one place; the owner that stores a value enforces its bound."""

import re
from dataclasses import dataclass
from typing import Final

from doonce.base.errors import Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds in bytes of UTF-8 or in counts; a value may be exactly at its bound and not one over.

    They are fixed by stored columns and by the grammar of keys, so they are not settings: two processes that
    disagreed about one could not read each other's rows.
    """

    org_bytes_max: int = 64
    """An organization: an identifier of the application's, indexed everywhere."""

    installation_bytes_max: int = 64
    """An installation of the application within an organization."""

    capability_bytes_max: int = 128
    """A capability: dotted words of a binding."""

    local_key_bytes_max: int = 255
    """The application's own part of a handoff key."""

    local_ref_bytes_max: int = 255
    """The application's own id of a record."""

    remote_id_bytes_max: int = 512
    """A provider's id of an object; some are URLs or paths."""

    lane_bytes_max: int = 255
    """The name of a source or target lane."""

    key_bytes_max: int = 1_024
    """A framed key as stored: five fields of a handoff key at their bounds, with framing, stay below it, and
    so does every engine's bound of an indexed text."""

    name_bytes_max: int = 128
    """The name of a pack, operation, field, family, role or worker."""

    reason_bytes_max: int = 512
    """A reason shown to people; longer ones are cut by the owner that stores them."""

    payload_bytes_max: int = 262_144
    """A command's payload: changes to a record, not files; a batch of 100 fits in one flush's bound."""

    response_bytes_max: int = 1_048_576
    """A provider's response body, after decompression."""

    response_head_bytes_max: int = 32_768
    """A provider's status line and headers; common servers stop at 8 to 16 KiB."""

    document_bytes_max: int = 1_048_576
    """A document that we author: a pack, a binding, a compiled view."""

    secret_bytes_max: int = 16_384
    """A credential; signed tokens with many claims reach a few KiB."""

    batch_rows_max: int = 500
    """Rows in one call of the handoff API and in one set-based statement."""

    batch_bytes_max: int = 8_388_608
    """Payload bytes in one call of the handoff API and in one flush."""

    json_depth_max: int = 64
    """Nested arrays and objects; far below any recursion limit of a reader."""

    json_number_digits_max: int = 512
    """Digits of one JSON number; below the least bound that Python itself can be set to (640)."""

    json_exponent_max: int = 1_000
    """Decimal exponent of a JSON number in either direction; a double ends at 308."""


LIMITS: Final = Limits()

_REFUSED: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def check_text(name: str, value: object, bytes_max: int, *, empty_allowed: bool = False) -> str:
    """Return `value` when it is a bounded text that every engine stores byte for byte.

    Raises `Invalid`, which names `name` and never shows the value, for anything but a text, an empty one, one
    over `bytes_max` bytes of UTF-8, control characters (NUL among them) and unpaired surrogates.
    """
    if not isinstance(value, str):
        raise Invalid(f"{name} must be a text, not {type(value).__name__}")
    if not value:
        if empty_allowed:
            return value
        raise Invalid(f"{name} must not be empty")
    if not (value.isascii() and value.isprintable()):
        found = _REFUSED.search(value)
        if found is not None:
            code = f"U+{ord(found.group()):04X}"
            raise Invalid(f"{name} holds the character {code} at position {found.start()}")
    size = len(value) if value.isascii() else len(value.encode())
    check_size(name, size, bytes_max)
    return value


def check_size(name: str, size_bytes: int, bytes_max: int) -> None:
    """Raise `Invalid` when `size_bytes` is over `bytes_max`."""
    if size_bytes > bytes_max:
        raise Invalid(f"{name} has {size_bytes} bytes; at most {bytes_max} are allowed")
