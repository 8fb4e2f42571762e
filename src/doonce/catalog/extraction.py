"""Taking declared values out of an answer from outside: total, bounded, never raising."""

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Final

from msgspec import UNSET

from doonce.base.errors import Invalid
from doonce.base.json import JsonValue, dumps, loads
from doonce.base.limits import LIMITS, check_text
from doonce.catalog.bounds import RECEIPT_VALUE_CHARACTERS_MAX, RESULT_VALUE_CHARACTERS_MAX, SECOND_US
from doonce.catalog.exchange import Response
from doonce.catalog.model import RESULT_REMOTE_ID, TimeFormat, ValueSource
from doonce.catalog.parts import Condition, Scalar
from doonce.catalog.pointers import ABSENT, Found, lookup
from doonce.catalog.templates import last_segment

_SECONDS: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class Answer:
    """An answer that is read at most once as JSON; `is_json` says whether it is a document at all."""

    __slots__ = ("_document", "_response", "is_json", "status")

    def __init__(self, response: Response, *, bytes_max: int) -> None:
        self._response = response
        self.status = response.status
        self._document: JsonValue = None
        try:
            self._document = loads(response.body, bytes_max=bytes_max)
            self.is_json = True
        except Invalid:
            self.is_json = False

    def at(self, pointer: str | None, header: str | None) -> Found:
        """Return the value at a JSON pointer or of a header, or `ABSENT`."""
        if header is not None:
            value = self._response.header(header)
            return ABSENT if value is None else value
        return lookup(self._document, pointer or "") if self.is_json else ABSENT

    def holds(self, condition: Condition) -> bool:
        """Say whether the answer has what a condition demands; null counts as nothing there."""
        found = self.at(condition.json, condition.header)
        if found is ABSENT or found is None:
            return False
        return condition.equals is UNSET or same_scalar(found, condition.equals)


def same_scalar(found: Found, wanted: Scalar) -> bool:
    """Say whether a found value is the one that a pack names; true is not 1."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    return isinstance(found, (str, int, Decimal)) and found == wanted


def extract(sources: Mapping[str, ValueSource], answer: Answer, target: str) -> dict[str, JsonValue]:
    """Return the scalars that are there; what is missing, no scalar or over its bound is left out."""
    values: dict[str, JsonValue] = {}
    for name, source in sources.items():
        found = last_segment(target) if source.target_segment else answer.at(source.json, source.header)
        if name == RESULT_REMOTE_ID:
            found = _remote_id(found)
        if isinstance(found, str) and len(found) > RESULT_VALUE_CHARACTERS_MAX:
            continue
        if found is None or isinstance(found, (str, bool, int, Decimal)):
            values[name] = found
    return values


def encode_result(values: Mapping[str, JsonValue]) -> bytes:
    """Return extracted values as a JSON object; a text that has no exact form is left out."""
    try:
        return dumps(dict(values))
    except Invalid:
        return dumps({name: value for name, value in values.items() if _is_exact(value)})


def _is_exact(value: JsonValue) -> bool:
    try:
        dumps(value)
    except Invalid:
        return False
    return True


def _remote_id(found: Found) -> Found:
    text = str(found) if isinstance(found, int) and not isinstance(found, bool) else found
    try:
        return check_text("remote_id", text, LIMITS.remote_id_bytes_max)
    except Invalid:
        return ABSENT


def receipt(names: tuple[str, ...], response: Response) -> tuple[tuple[str, str], ...]:
    """Return the declared safe headers of an answer, cut to a bound; unprintable ones are left out."""
    kept = []
    for name in names:
        value = response.header(name)
        if value is not None and value.isascii() and value.isprintable():
            kept.append((name, value[:RECEIPT_VALUE_CHARACTERS_MAX]))
    return tuple(kept)


def retry_after_us(response: Response) -> int | None:
    """Return how long the provider asks to wait, None where it does not say so in one of the two legal ways.

    A date is taken relative to the answer's own `Date`, so no clock of ours is compared with theirs.
    """
    value = response.header("retry-after")
    if value is None:
        return None
    if _SECONDS.fullmatch(value.strip()):
        return int(value) * SECOND_US
    until, now = http_date_us(value), http_date_us(response.header("date") or "")
    return None if until is None or now is None else max(0, until - now)


def time_us(found: Found, time_format: TimeFormat) -> int | None:
    """Return a provider's time in microseconds since 1970 UTC, None for anything that is not one."""
    if not isinstance(found, str):
        return None
    if time_format is TimeFormat.HTTP_DATE:
        return http_date_us(found)
    try:
        return _since_epoch_us(datetime.fromisoformat(found))
    except ValueError:
        return None


def http_date_us(text: str) -> int | None:
    """Return an HTTP date in microseconds since 1970 UTC, None for anything that is not one."""
    try:
        return _since_epoch_us(parsedate_to_datetime(text))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _since_epoch_us(moment: datetime) -> int | None:
    if moment.tzinfo is None:
        return None
    elapsed = moment - _EPOCH
    return (elapsed.days * 86_400 + elapsed.seconds) * SECOND_US + elapsed.microseconds
