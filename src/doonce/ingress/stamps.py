"""The time of signing as a provider spells it, and whether it is near enough to now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final, assert_never

from doonce.catalog.webhooks import StampFormat, Timestamp
from doonce.ingress.model import Reason

_WHOLE: Final = re.compile(rb"[0-9]{1,16}")
_RFC3339: Final = re.compile(
    rb"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def signed_at_us(stamp: Timestamp, text: bytes, now_us: int) -> int | Reason:
    """When this was signed, in microseconds since 1970 UTC, if that is within the tolerance of now in both directions.

    Whole numbers only: a fraction, a sign or a space is none, and milliseconds taken for seconds are far ahead.
    """
    at_us = _read(stamp.format, text)
    if at_us is None:
        return Reason.TIMESTAMP_MALFORMED
    if at_us < now_us - stamp.past_us:
        return Reason.TIMESTAMP_OLD
    if at_us > now_us + stamp.future_us:
        return Reason.TIMESTAMP_AHEAD
    return at_us


def _read(spelling: StampFormat, text: bytes) -> int | None:
    match spelling:
        case StampFormat.SECONDS:
            return int(text) * 1_000_000 if _WHOLE.fullmatch(text) else None
        case StampFormat.MILLISECONDS:
            return int(text) * 1_000 if _WHOLE.fullmatch(text) else None
        case StampFormat.RFC3339:
            return _read_rfc3339(text)
        case _:
            assert_never(spelling)


def _read_rfc3339(text: bytes) -> int | None:
    found = _RFC3339.fullmatch(text)
    if found is None:
        return None
    day, clock, fraction, zone = (part.decode() for part in found.groups(b""))
    zone = "+00:00" if zone in ("Z", "z") else zone
    try:
        return (datetime.fromisoformat(f"{day}T{clock}{fraction[:7]}{zone}") - _EPOCH) // _MICROSECOND
    except ValueError:
        return None
