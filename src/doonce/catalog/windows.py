"""The time that a read is about, and how a provider's query spells it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, assert_never
from urllib.parse import quote

from doonce.base.errors import Invalid
from doonce.catalog.webhooks import StampFormat

SINCE: Final = "since"
UNTIL: Final = "until"
CURSOR: Final = "cursor"
MILLISECOND_US: Final = 1_000
SECOND_US: Final = 1_000_000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_PIECE: Final = re.compile(r"\{([^{}]*)\}|([^{}]+)|(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Window:
    """The time that is read, microseconds UTC, both ends in it."""

    since_us: int
    until_us: int


def references_of(text: str) -> frozenset[str]:
    """The references of one query value; raises `Invalid` for any other than since, until and cursor."""
    found: set[str] = set()
    for reference, literal, stray in _PIECE.findall(text):
        if literal:
            continue
        if stray or reference not in (SINCE, UNTIL, CURSOR):
            raise Invalid(
                f"a {stray} without its partner" if stray else f"{{{reference}}} is not a reference",
                hint="use {since}, {until} or {cursor}",
            )
        found.add(reference)
    return frozenset(found)


def values_of(window: Window, time_format: StampFormat, cursor: str | None) -> dict[str, str]:
    """What the references of a page's query stand for; without a cursor it is the first page."""
    values = {
        SINCE: spelled(window.since_us, time_format, up=False),
        UNTIL: spelled(window.until_us, time_format, up=True),
    }
    return values if cursor is None else values | {CURSOR: cursor}


def filled(text: str, values: Mapping[str, str]) -> str:
    """One query value with its references put in, percent-encoded."""
    return "".join(
        quote(values[reference] if reference else literal, safe="")
        for reference, literal, _ in _PIECE.findall(text)
    )


def spelled(at_us: int, time_format: StampFormat, *, up: bool) -> str:
    """A time as the provider wants it, to the second or millisecond, away from the middle of its window."""
    match time_format:
        case StampFormat.SECONDS:
            return str(_rounded(at_us, SECOND_US, up=up))
        case StampFormat.MILLISECONDS:
            return str(_rounded(at_us, MILLISECOND_US, up=up))
        case StampFormat.RFC3339:
            moment = EPOCH + timedelta(seconds=_rounded(at_us, SECOND_US, up=up))
            return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        case _:
            assert_never(time_format)


def _rounded(at_us: int, unit_us: int, *, up: bool) -> int:
    return -(-at_us // unit_us) if up else at_us // unit_us
