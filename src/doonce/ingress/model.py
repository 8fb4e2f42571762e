"""A delivery as it came, and what is found out about it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Reason(str, Enum):
    """Why a delivery is not believed. For counters and operators; a sender never hears it."""

    PROOF_MISSING = "proof_missing"
    PROOF_REPEATED = "proof_repeated"
    PROOF_MALFORMED = "proof_malformed"
    PROOF_WRONG = "proof_wrong"
    TIMESTAMP_MISSING = "timestamp_missing"
    TIMESTAMP_REPEATED = "timestamp_repeated"
    TIMESTAMP_MALFORMED = "timestamp_malformed"
    TIMESTAMP_OLD = "timestamp_old"
    TIMESTAMP_AHEAD = "timestamp_ahead"
    HEADER_MISSING = "header_missing"
    HEADER_REPEATED = "header_repeated"
    HEADER_LONG = "header_long"
    ITEMS_TOO_MANY = "items_too_many"
    FORM_MALFORMED = "form_malformed"
    BODY_LONG = "body_long"
    BODY_DIGEST_WRONG = "body_digest_wrong"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request, byte for byte. Header names are in lower case, as ASGI has them; `query` is without its mark."""

    method: bytes
    query: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Verified:
    """The sender knows the secret at `secret_index`; `signed_at_us` is None where no time is signed (PROTOCOL I3)."""

    secret_index: int
    signed_at_us: int | None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Nothing proves who sent this."""

    reason: Reason


Decision: TypeAlias = Verified | Rejected


@dataclass(frozen=True, slots=True)
class ChallengeAnswer:
    """What a provider that only asks whether anybody is there gets."""

    body: bytes
    content_type: str
