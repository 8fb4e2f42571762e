"""Checks that several wire structs share; each raises `Invalid` and names the field, never its value."""

from typing import Final

from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS, check_text

EXACT_INTEGER_MAX: Final = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly (PROTOCOL F7)."""


def check_count(name: str, value: object) -> None:
    """Generations and times in microseconds are exact integers from 0."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= EXACT_INTEGER_MAX:
        raise Invalid(f"{name} must be an integer from 0 to {EXACT_INTEGER_MAX}")


def check_id(name: str, value: object) -> None:
    """An id of ours or of the application's: opaque here, bounded, storable."""
    check_text(name, value, LIMITS.name_bytes_max)
