"""Strict, exact JSON: what is read is what was sent, and what is hashed has one spelling (DESIGN rule 7)."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, TypeAlias, cast

import msgspec
import rfc8785

from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS, check_size

JsonValue: TypeAlias = (
    "bool | int | float | Decimal | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
"""A JSON document. `loads` gives None, bool, int, Decimal, str, list and dict; writing takes finite floats
and tuples as well, and no subclass of any of these."""

INTEGER_MAX: Final = 2**53 - 1
"""The largest integer that every reader of JSON holds exactly; canonical documents stay within ± this."""

_INTEGER_BOUND: Final[int] = 10**LIMITS.json_number_digits_max - 1
_PLAIN: Final = frozenset({str, bool, type(None)})
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_BAD_CHARACTER: Final = re.compile("[\x00\ud800-\udfff]")
_BASIC_PLANE_END: Final = "\uffff"

_TEXT: Final = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_NUMBER: Final = r"-?[0-9][0-9.eE+-]*"
_TEXTS: Final = re.compile(_TEXT, re.DOTALL)
_TOKENS: Final = re.compile(rf"{_TEXT}|{_NUMBER}|NaN|-?Infinity|[\[\]{{}},:]", re.DOTALL)
_NOT_BRACKETS: Final = re.compile(r"[^\[\]{}]+")
_ONE_KIND_OF_BRACKET: Final = str.maketrans("{}", "[]")

_IN_ORDER: Final = msgspec.json.Encoder(decimal_format="number")
_SORTED: Final = msgspec.json.Encoder(order="sorted")


def loads(data: bytes | str, *, bytes_max: int) -> JsonValue:
    """Return the one JSON document that `data` is, with exact numbers.

    Integers become `int`, other numbers `Decimal`, as they were spelled (`1.0` is not `1`). Raises `Invalid`,
    which says where and shows none of the content, for: more than `bytes_max` bytes, invalid UTF-8, a byte
    order mark, anything but exactly one document, duplicate keys in one object, NaN and Infinity, unpaired
    surrogates, NUL in a text, and nesting or numbers beyond `LIMITS.json_*`.
    """
    try:
        return _loads(data, bytes_max)
    except Invalid as error:
        error.__context__ = None  # a codec's or a parser's error carries the whole document
        raise


def dumps(value: JsonValue) -> bytes:
    """Return `value` as compact JSON, in the order it has, each number as the number it is.

    `loads` reads the result back as it was, but for tuples (arrays) and floats (`Decimal`). Raises `Invalid`,
    which says where, for anything that `loads` would refuse, any other type (subclasses included) and
    floats that are not finite.
    """
    _check_document(value, canonical=False)
    return _encoded(value, _IN_ORDER.encode)


def canonical(value: JsonValue) -> bytes:
    """Return the RFC 8785 form of a document of ours: equal documents, equal bytes (PROTOCOL F7).

    Only integers within ± (2^53 - 1) are numbers here, so the form is exact. Raises `Invalid`, which says
    where, for any other number, and for whatever `dumps` refuses.
    """
    # Without other numbers, msgspec differs from RFC 8785 only in the order of keys beyond the basic plane:
    # the standard sorts UTF-16 code units, where those come before U+E000.
    sorts_alike = _check_document(value, canonical=True)
    return _encoded(value, _SORTED.encode if sorts_alike else _rfc8785)


# --- reading ------------------------------------------------------------------------------------------------


def _loads(data: bytes | str, bytes_max: int) -> JsonValue:
    text = _decoded(data, bytes_max)
    if text.count("[") + text.count("{") > LIMITS.json_depth_max and _is_too_deep(text):
        raise _too_deep()
    try:
        value = cast("JsonValue", _DECODER.decode(text))
    except json.JSONDecodeError as error:
        raise Invalid(f"JSON is malformed at character {error.pos}: {error.msg}") from None
    except RecursionError:  # only a document whose brackets do not match comes this far
        raise _too_deep() from None
    except _Suspect:
        _refuse_with_place(text)
        raise Invalid("JSON holds a value that cannot be read exactly") from None
    if "\\u" in text and not _has_only_good_text(value):
        _refuse_with_place(text)
    return value


class _Suspect(Exception):
    """Something in the text is refused; the decoder's hooks cannot know where."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Suspect
    return value


def _integer(spelled: str) -> int:
    if len(spelled) > LIMITS.json_number_digits_max and _number_fault(spelled):
        raise _Suspect
    return int(spelled)


def _decimal(spelled: str) -> Decimal:
    try:
        value = Decimal(spelled)
    except InvalidOperation:  # an exponent beyond what the type can hold
        raise _Suspect from None
    if not _is_bounded(value):
        raise _Suspect
    return value


def _constant(_spelled: str) -> object:
    raise _Suspect


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_decimal, parse_constant=_constant
)


def _decoded(data: bytes | str, bytes_max: int) -> str:
    try:
        if isinstance(data, str):
            check_size("JSON", len(data) if data.isascii() else len(data.encode()), bytes_max)
            text = data
        else:
            check_size("JSON", len(data), bytes_max)
            text = data.decode()
    except UnicodeEncodeError as error:
        raise Invalid(f"JSON holds an unpaired surrogate at character {error.start}") from None
    except UnicodeDecodeError as error:
        raise Invalid(f"JSON is not UTF-8 at byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise Invalid("JSON is malformed at character 0: it starts with a byte order mark")
    return text


def _is_too_deep(text: str) -> bool:
    """Say whether brackets nest too deep, in time linear in the text and without recursion."""
    brackets = _NOT_BRACKETS.sub("", _TEXTS.sub("", text)).translate(_ONE_KIND_OF_BRACKET)
    for _ in range(LIMITS.json_depth_max):
        inner_removed = brackets.replace("[]", "")
        if len(inner_removed) == len(brackets):
            return False  # nothing left, or brackets that do not match: that is for the decoder to say
        brackets = inner_removed
    return bool(brackets)


def _too_deep() -> Invalid:
    return Invalid(f"JSON nests deeper than {LIMITS.json_depth_max} arrays and objects")


def _has_only_good_text(value: JsonValue) -> bool:
    try:
        return b"\\u0000" not in _IN_ORDER.encode(value)
    except UnicodeEncodeError:
        return False


def _refuse_with_place(text: str) -> None:
    """Raise `Invalid` for the first thing in a well-formed text that is refused, if there is one."""
    keys_of_open: list[set[str] | None] = []
    is_key = False
    for token in _TOKENS.finditer(text):
        spelled = token.group()
        fault = ""
        match spelled[0]:
            case '"':
                content = json.loads(spelled)
                if bad := _BAD_CHARACTER.search(content):
                    fault = _character_fault(bad.group())
                keys = keys_of_open[-1] if keys_of_open else None
                if is_key and keys is not None:
                    if content in keys:
                        fault = "a key that its object has already"
                    keys.add(content)
            case "{":
                keys_of_open.append(set())
            case "[":
                keys_of_open.append(None)
            case "}" | "]":
                keys_of_open.pop()
            case "," | ":":
                pass
            case _:
                fault = _number_fault(spelled)
        is_key = spelled in ("{", ",")
        if fault:
            raise Invalid(f"JSON holds {fault} at character {token.start()}")


def _number_fault(spelled: str) -> str:
    if spelled.endswith(("NaN", "Infinity")):
        return "NaN or Infinity"
    try:
        is_exact = _is_bounded(Decimal(spelled))
    except InvalidOperation:
        is_exact = False
    return "" if is_exact else _number_over_bound()


def _number_over_bound() -> str:
    digits, exponent = LIMITS.json_number_digits_max, LIMITS.json_exponent_max
    return f"a number of more than {digits} digits or an exponent beyond ±{exponent}"


def _is_bounded(value: Decimal) -> bool:
    if not value.is_finite() or abs(value.adjusted()) > LIMITS.json_exponent_max:
        return False
    return len(value.as_tuple().digits) <= LIMITS.json_number_digits_max


def _character_fault(character: str) -> str:
    return "NUL" if character == "\x00" else "an unpaired surrogate"


# --- writing ------------------------------------------------------------------------------------------------


class _Refused(Exception):
    """A value that JSON of ours cannot hold, with the path to it from the inside out."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.path: list[str | int] = []

    def as_invalid(self) -> Invalid:
        place = "".join(_step(part) for part in reversed(self.path))
        return Invalid(f"JSON cannot hold {self.what} (at ${place})")


def _step(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if _WORD.fullmatch(part) else "[…]"  # other keys may be data


def _check_document(value: JsonValue, *, canonical: bool) -> bool:
    try:
        return _check(value, LIMITS.json_depth_max, canonical)
    except _Refused as refused:
        fault = refused.as_invalid()
    raise fault  # out here, where its context is not the refusal, whose path may be data


def _check(value: object, depth_left: int, canonical: bool) -> bool:
    """Raise `_Refused` for a value that may not be written; return whether its keys sort alike everywhere."""
    kind = type(value)
    if kind in _PLAIN:
        return True
    if type(value) is int:
        _check_integer(value, canonical)
        return True
    if kind is dict or kind is list or kind is tuple:
        if depth_left == 0:
            raise _Refused(f"more than {LIMITS.json_depth_max} nested arrays and objects")
        if isinstance(value, dict):
            return _check_object(value, depth_left - 1, canonical)
        return _check_array(cast("Sequence[object]", value), depth_left - 1, canonical)
    if type(value) is Decimal and not canonical:
        if not _is_bounded(value):
            raise _Refused(_number_over_bound() if value.is_finite() else "NaN or Infinity")
        return True
    if type(value) is float and not canonical:
        if not math.isfinite(value):
            raise _Refused("NaN or Infinity")
        return True
    raise _Refused(f"a value of type {kind.__name__}")


def _check_object(value: dict[object, object], depth_left: int, canonical: bool) -> bool:
    sorts_alike = True
    for key, item in value.items():
        if type(key) is not str:
            raise _Refused(f"a key of type {type(key).__name__}")
        if not key.isascii() and max(key) > _BASIC_PLANE_END:
            sorts_alike = False
        if type(item) not in _PLAIN:
            try:
                sorts_alike &= _check(item, depth_left, canonical)
            except _Refused as refused:
                refused.path.append(key)
                raise
    return sorts_alike


def _check_array(items: Sequence[object], depth_left: int, canonical: bool) -> bool:
    sorts_alike = True
    for index, item in enumerate(items):
        if type(item) not in _PLAIN:
            try:
                sorts_alike &= _check(item, depth_left, canonical)
            except _Refused as refused:
                refused.path.append(index)
                raise
    return sorts_alike


def _check_integer(value: int, canonical: bool) -> None:
    if canonical:
        if not -INTEGER_MAX <= value <= INTEGER_MAX:
            raise _Refused("an integer beyond ±(2^53 - 1)")
    elif not -_INTEGER_BOUND <= value <= _INTEGER_BOUND:
        raise _Refused(_number_over_bound())


def _rfc8785(value: JsonValue) -> bytes:
    return rfc8785.dumps(cast("dict[str, int]", value))  # checked before: no type beyond its own


def _encoded(value: JsonValue, encode: Callable[[JsonValue], bytes]) -> bytes:
    try:
        encoded = encode(value)
    except (UnicodeEncodeError, rfc8785.CanonicalizationError):
        encoded = None
    if encoded is None or b"\\u0000" in encoded:
        _refuse_bad_text(value)
    if encoded is None:
        raise Invalid("JSON cannot hold this value")
    return encoded


def _refuse_bad_text(value: JsonValue) -> None:
    try:
        _check_texts(value)
    except _Refused as refused:
        fault = refused.as_invalid()
    else:
        return
    raise fault


def _check_texts(value: object) -> None:
    """Raise `_Refused` for the first text with a character that may not be written."""
    if isinstance(value, str):
        if bad := _BAD_CHARACTER.search(value):
            raise _Refused(_character_fault(bad.group()))
        return
    if isinstance(value, dict):
        children: Iterable[tuple[str | int, object]] = value.items()
    elif isinstance(value, list | tuple):
        children = enumerate(value)
    else:
        return
    for part, item in children:
        try:
            _check_texts(part)
            _check_texts(item)
        except _Refused as refused:
            refused.path.append(part)
            raise
