"""Names of events, and patterns that stand for many: `invoice.paid`, `invoice.*`, `*`. Pure."""

from collections.abc import Iterable
from typing import Final

EVERY: Final = "*"


def matches(pattern: str, name: str) -> bool:
    """Say whether `pattern` stands for `name`: the same text, or a beginning followed by one `*` at its end."""
    if pattern.endswith(EVERY):
        return name.startswith(pattern[:-1])
    return pattern == name


def best(patterns: Iterable[str], name: str) -> str | None:
    """Return the most particular of the patterns that stand for `name`: itself, else the longest beginning."""
    found = [pattern for pattern in patterns if matches(pattern, name)]
    return max(found, key=lambda pattern: (not pattern.endswith(EVERY), len(pattern)), default=None)


def overlap(one: str, other: str) -> bool:
    """Say whether some name is meant by both patterns."""
    if one.endswith(EVERY) and other.endswith(EVERY):
        return one[:-1].startswith(other[:-1]) or other[:-1].startswith(one[:-1])
    return matches(one, other) or matches(other, one)


def is_pattern(text: str) -> bool:
    """Say whether a text is a pattern: it is not empty, and has a `*` at its end or nowhere."""
    return bool(text) and EVERY not in text[:-1]
