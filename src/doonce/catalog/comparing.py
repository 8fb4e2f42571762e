"""Whether a provider holds what a request wrote; there are things that cannot be compared."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Final, TypeAlias

from doonce.base.errors import Invalid
from doonce.base.json import loads
from doonce.base.limits import LIMITS
from doonce.catalog.exchange import FrozenRequest, Response
from doonce.catalog.extraction import Answer
from doonce.catalog.model import Compare, CompareKind
from doonce.catalog.pointers import ABSENT, Found, lookup


class Match(Enum):
    """The finding of one comparison."""

    SAME = "same"
    DIFFERENT = "different"
    INCOMPARABLE = "incomparable"


Line: TypeAlias = tuple[str, tuple[tuple[str, tuple[str, ...]], ...], str]
"""A line's name, its parameters with their values, and its value; a line of plain text is all value."""

_FOLD: Final = re.compile(r"\n[ \t]")
_NAME_END: Final = re.compile(r'((?:[^":]|"[^"]*")*):(.*)', re.DOTALL)
_BY_SEMICOLON: Final = re.compile(r'(?:[^";]|"[^"]*"?)+')
_BY_COMMA: Final = re.compile(r'(?:[^",]|"[^"]*"?)+')


def compare_all(
    compares: Sequence[Compare], request: FrozenRequest, response: Response, answer: Answer
) -> Match:
    """Return whether all that is compared is the same; one difference outweighs the incomparable."""
    findings = {_compare(compare, request, response, answer) for compare in compares}
    if Match.DIFFERENT in findings:
        return Match.DIFFERENT
    return Match.SAME if findings == {Match.SAME} else Match.INCOMPARABLE


def _compare(compare: Compare, request: FrozenRequest, response: Response, answer: Answer) -> Match:
    if compare.kind is CompareKind.LINES:
        return _compare_lines(compare, request.body, response.body)
    found = answer.at(compare.response, None)
    if compare.kind is CompareKind.IDEMPOTENCY_KEY:
        if request.idempotency_key is None or found is ABSENT:
            return Match.INCOMPARABLE
        return Match.SAME if found == request.idempotency_key else Match.DIFFERENT
    try:
        wanted = lookup(loads(request.body, bytes_max=LIMITS.payload_bytes_max * 2), compare.request)
    except Invalid:
        return Match.INCOMPARABLE
    return (
        Match.INCOMPARABLE
        if wanted is ABSENT
        else match_json(wanted, found, empty_is_null=compare.empty_is_null)
    )


def match_json(wanted: Found, found: Found, *, empty_is_null: bool) -> Match:
    """Return whether `found` holds what `wanted` says: members that were not written are not looked at.

    Numbers are compared by value; null, false, 0, "" and absent are different, unless `empty_is_null` makes
    null, "" and absent one.
    """
    if empty_is_null and wanted in (None, "") and found in (None, "", ABSENT):
        return Match.SAME
    if found is ABSENT:
        return Match.INCOMPARABLE
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        findings = {
            match_json(item, found.get(name, ABSENT), empty_is_null=empty_is_null)
            for name, item in wanted.items()
        }
        if Match.DIFFERENT in findings:
            return Match.DIFFERENT
        return Match.INCOMPARABLE if Match.INCOMPARABLE in findings else Match.SAME
    return Match.SAME if _is_equal(wanted, found) else Match.DIFFERENT


def _is_equal(one: Found, other: Found) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_is_equal(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, Decimal)) and isinstance(other, (int, Decimal)):
        return one == other
    return type(one) is type(other) and one == other


def _compare_lines(compare: Compare, sent: bytes, held: bytes) -> Match:
    try:
        wanted, found = sent.decode(), held.decode()
    except UnicodeDecodeError:
        return Match.INCOMPARABLE
    wanted_lines, found_lines = normal_lines(wanted, compare), normal_lines(found, compare)
    if compare.ordered:
        return Match.SAME if wanted_lines == found_lines else Match.DIFFERENT
    return Match.SAME if Counter(wanted_lines) == Counter(found_lines) else Match.DIFFERENT


def normal_lines(text: str, compare: Compare) -> list[Line]:
    """Return the lines that count, without what a careful server may change.

    Line ends and empty lines at the end never count. `content_lines` are RFC 5545 and RFC 6350 property
    lines: folding, the case of names, the order and quoting of parameters and trailing empty components do
    not count, and the properties in `ignore` are left out.
    """
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not compare.content_lines:
        return [("", (), line) for line in plain.rstrip("\n").split("\n")]
    lines = [_content_line(line) for line in _FOLD.sub("", plain).split("\n") if line.strip()]
    return [line for line in lines if line[0].rsplit(".", 1)[-1] not in compare.ignore]


def _content_line(text: str) -> Line:
    found = _NAME_END.fullmatch(text)
    if found is None:
        return "", (), text
    head, value = found.groups()
    name, *parameters = _BY_SEMICOLON.findall(head) or [""]
    by_key: dict[str, set[str]] = {}
    for parameter in parameters:
        key, _, listed = parameter.partition("=")
        items = by_key.setdefault(key.strip().upper(), set())
        items.update(item.replace('"', "") for item in _BY_COMMA.findall(listed))
    while value.endswith(";") and not value.endswith("\\;"):
        value = value[:-1]
    return (
        name.strip().upper(),
        tuple((key, tuple(sorted(items))) for key, items in sorted(by_key.items())),
        value,
    )
