"""Ids and tokens: unique without coordination, readable in a log by their prefix."""

import os
import re
import time
from typing import Final, Literal, TypeAlias, cast, get_args

from doonce.base.errors import Invalid

IdKind: TypeAlias = Literal[
    "cmd",  # command
    "wrk",  # work item
    "att",  # effect attempt
    "hnd",  # receipt of a handoff: its acceptance or its rejection
    "obx",  # outbox row
    "evd",  # evidence
    "lnk",  # remote link
    "prn",  # principal
    "gen",  # binding generation
    "dsp",  # disposition of an unknown outcome
    "qrn",  # conflict record of a quarantined request
    "rcp",  # receipt of a completion
    "prc",  # one run of a process, as lease owner
    "crd",  # bearer credential
    "evt",  # event
    "ing",  # receipt of a provider's delivery
    "whs",  # secret of a webhook's route
    "ctu",  # catch-up: reading a gap from its provider
    "pag",  # page of a provider's answers that a catch-up has read
]

ID_KINDS: Final[frozenset[str]] = frozenset(get_args(IdKind))

_ID: Final = re.compile(r"([a-z]{3})_[0-9a-f]{32}", re.ASCII)
_NS_PER_MS: Final = 1_000_000


def new_id(kind: IdKind) -> str:
    """Return a new `<kind>_<32 hex>`: a UUID version 7, so that ids made later mostly sort later.

    That order keeps index pages warm and is nothing to rely on: the host's clock, which it comes from, never
    decides anything durable.
    """
    if kind not in ID_KINDS:
        raise Invalid(f"{kind!r} is no kind of id")
    return f"{kind}_{uuid7(time.time_ns(), os.urandom(8)):032x}"


def uuid7(now_ns: int, entropy: bytes) -> int:
    """Return the UUID version 7 of a time, down to a 4096th of a millisecond, and eight random bytes."""
    now_ms, rest_ns = divmod(now_ns, _NS_PER_MS)
    fraction = (rest_ns << 12) // _NS_PER_MS
    random_62 = int.from_bytes(entropy, "big") >> 2
    return (now_ms & (1 << 48) - 1) << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | random_62


def id_time_us(text: str) -> int:
    """Return when an id was made, microseconds UTC by its maker's clock: a hint, never a proof."""
    id_kind(text)
    return int(text[4:16], 16) * 1000


def new_token() -> str:
    """Return 32 hexadecimal digits (128 random bits) that nobody can guess: lease tokens, nonces."""
    return os.urandom(16).hex()


def id_kind(text: str) -> IdKind:
    """Return the kind that an id carries; raise `Invalid` for a text that is not one of our ids."""
    match = _ID.fullmatch(text)
    if match is None or match.group(1) not in ID_KINDS:
        raise Invalid("this is not an id: expected <kind>_<32 lower-case hexadecimal digits>")
    return cast("IdKind", match.group(1))
