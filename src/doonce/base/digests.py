"""Digests that say what they are over: raw bytes, or a tagged document (PROTOCOL F7)."""

import hashlib
import re
from typing import Final

from doonce.base.errors import Invalid
from doonce.base.json import JsonValue, canonical

PREFIX: Final = "sha256:"
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_TAG: Final = re.compile(r"[a-z][a-z0-9._/-]{0,63}", re.ASCII)


def digest_document(tag: str, value: JsonValue) -> str:
    """Return `sha256:<64 hex>` over tag, NUL and the canonical form of `value`.

    The tag keeps documents of different kinds apart: the same content under two tags has two digests. Raises
    `Invalid` where `canonical` does, and for a tag that is not a short lower-case word.
    """
    if _TAG.fullmatch(tag) is None:
        raise Invalid("a digest's tag is a lower-case word of at most 64 characters")
    return PREFIX + hashlib.sha256(tag.encode() + b"\x00" + canonical(value)).hexdigest()


def digest_bytes(raw: bytes) -> str:
    """Return `sha256:<64 hex>` of the raw bytes, without a tag: anybody can recompute it."""
    return PREFIX + hashlib.sha256(raw).hexdigest()


def check_digest(name: str, value: object) -> str:
    """Return `value` when it is spelled like a digest of this module; raise `Invalid` otherwise."""
    if not isinstance(value, str) or _DIGEST.fullmatch(value) is None:
        raise Invalid(f"{name} must be spelled sha256:<64 lower-case hexadecimal digits>")
    return value
