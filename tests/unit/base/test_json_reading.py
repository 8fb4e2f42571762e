"""Strict JSON: hostile documents are refused with a place, exact ones come back exactly."""

import json as stdlib_json
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doonce.base.errors import Invalid
from doonce.base.json import dumps, loads
from doonce.base.limits import LIMITS

DEPTH = LIMITS.json_depth_max
DIGITS = LIMITS.json_number_digits_max
EXPONENT = LIMITS.json_exponent_max

MALFORMED = {
    "nothing": b"",
    "blank": b" \n",
    "two documents": b"[1] [2]",
    "two documents in lines": b"{}\n{}",
    "trailing word": b"1 x",
    "trailing comma in an array": b"[1,]",
    "trailing comma in an object": b'{"a":1,}',
    "comment": b"/* */ 1",
    "single quotes": b"{'a':1}",
    "bare key": b"{a:1}",
    "leading zero": b"01",
    "leading plus": b"+1",
    "no digits after the point": b"1.",
    "no digits before the point": b".5",
    "no exponent": b"1e",
    "hexadecimal": b"0x1",
    "unclosed array": b"[1",
    "unclosed text": b'"abc',
    "brackets that do not match": b"[[}]",
    "too many closing brackets": b"[1]]",
    "raw control character": b'"a\x01b"',
    "raw newline": b'"a\nb"',
    "raw NUL": b'"a\x00b"',
    "NUL after the document": b"1\x00",
    "unknown escape": b'"\\x41"',
    "short escape": b'"\\u12"',
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "UTF-32": b"1\x00\x00\x00",
    "byte order mark": b"\xef\xbb\xbf{}",
    "byte order mark in a text": "\ufeff{}",
    "truncated UTF-8": b'"\xc3',
    "overlong UTF-8": b'"\xc0\x80"',
    "UTF-8 of a surrogate": b'"\xed\xa0\x80"',
    "latin-1": b'"\xe9"',
    "nan": b"nan",
}


@pytest.mark.parametrize("document", MALFORMED.values(), ids=MALFORMED.keys())
def test_refuses_what_is_not_one_json_document(document: bytes | str) -> None:
    with pytest.raises(Invalid, match=r"at (character|byte) \d+"):
        loads(document, bytes_max=1_000)


@pytest.mark.parametrize(
    "document,fault,at",
    [
        ('{"a":1,"a":1}', "a key", 7),
        ('{"a":{"b":[{"c":1,"d":{},"c":2}]}}', "a key", 25),
        ('[{"a":1},{"a":1,"\\u0061":2}]', "a key", 16),
        ('{"":0,"":0}', "a key", 6),
        ("NaN", "NaN or Infinity", 0),
        ('{"a":[1,NaN]}', "NaN or Infinity", 8),
        ("[Infinity]", "NaN or Infinity", 1),
        ('["NaN",-Infinity]', "NaN or Infinity", 7),
        ('"\\ud800"', "an unpaired surrogate", 0),
        ('["\\udc00\\ud800"]', "an unpaired surrogate", 1),
        ('["\\ud83d x \\ude00"]', "an unpaired surrogate", 1),
        ('{"k\\uDFFF":1}', "an unpaired surrogate", 1),
        ('["\ud800"]', "an unpaired surrogate", 2),
        ('["a\\u0000"]', "NUL", 1),
        ('{"\\u0000":1}', "NUL", 1),
        ('["\\\\u0000","\\u0000"]', "NUL", 11),
        ("[0,1e1001]", "a number", 3),
        ("1e-1001", "a number", 0),
        ("15e1000", "a number", 0),
        ("0e99999", "a number", 0),
        ("1e999999999999999999999999", "a number", 0),
        ("-1e-999999999999999999999999", "a number", 0),
    ],
)
def test_refuses_and_says_where(document: str, fault: str, at: int) -> None:
    with pytest.raises(Invalid, match=rf"JSON holds {fault}.* at character {at}$"):
        loads(document, bytes_max=1_000)


def test_a_byte_order_mark_is_named() -> None:
    for document in (b"\xef\xbb\xbf{}", "\ufeff{}"):
        with pytest.raises(Invalid, match="byte order mark"):
            loads(document, bytes_max=100)


def test_an_error_shows_nothing_of_the_document() -> None:
    for document in (
        b'{"s3cret":1,"s3cret":2}',
        b'["s3cret\\ud800"]',
        b'["s3cret" 1]',
        b"s3cret",
        b'"\xffs3cret"',
    ):
        with pytest.raises(Invalid) as refused:
            loads(document, bytes_max=1_000)
        error = refused.value
        assert "s3cret" not in f"{error} {error.hint} {error!r}"
        assert (error.__cause__, error.__context__) == (None, None)


def test_the_same_key_in_two_objects_is_no_duplicate() -> None:
    assert loads('{"a":{"a":{"a":["a","a"]}},"b":{"a":1}}', bytes_max=100) == {
        "a": {"a": {"a": ["a", "a"]}},
        "b": {"a": 1},
    }


def test_nesting_exactly_at_the_bound_and_one_over() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        inner = "1" if opening != "[" else ""
        loads(opening * DEPTH + inner + closing * DEPTH, bytes_max=10_000)
        with pytest.raises(Invalid, match=f"nests deeper than {DEPTH}"):
            loads(opening * (DEPTH + 1) + inner + closing * (DEPTH + 1), bytes_max=10_000)


@pytest.mark.parametrize("unit", ["[", '{"a":', '[{"a":[', "[[],"])
def test_bottomless_nesting_is_refused_as_such(unit: str) -> None:
    closing = {"[": "]", "{": "}"}
    ends = "".join(closing[c] for c in reversed(unit.replace("[],", "")) if c in closing)
    document = unit * 50_000 + "1" + ends * 50_000
    for text in (document, unit * 50_000):
        with pytest.raises(Invalid):
            loads(text, bytes_max=10_000_000)


def test_wide_documents_are_not_deep_ones() -> None:
    wide = "[" + ",".join(['{"a":[]}'] * 1_000) + "]"
    assert loads(wide, bytes_max=10_000) == [{"a": []}] * 1_000


def test_brackets_within_texts_do_not_nest() -> None:
    for text in ('[[{"\\' * 500, "[" * 500 + "]" * 500, '\\"{[' * 500 + "]}" * 500):
        assert loads(stdlib_json.dumps([text]), bytes_max=10_000) == [text]


def test_numbers_exactly_at_their_bounds_and_one_over() -> None:
    most = "9" * DIGITS
    for exact in (most, f"-{most}", f"0.{most}", f"-1.{most[1:]}", f"1e{EXPONENT}", f"1e-{EXPONENT}"):
        assert loads(exact, bytes_max=1_000) == Decimal(exact)
    for over in (most + "0", f"-1{most}", f"0.{most}1", f"1e{EXPONENT + 1}", f"1e-{EXPONENT + 1}"):
        with pytest.raises(Invalid, match="a number of more than"):
            loads(over, bytes_max=1_000)


def test_numbers_keep_type_and_spelling() -> None:
    document = loads(b"[0,-0,1,9007199254740993,1.0,1.10,-0.0,1e2,0.1]", bytes_max=100)
    assert isinstance(document, list)
    assert [str(number) for number in document] == [
        *("0", "0", "1", "9007199254740993", "1.0", "1.10", "-0.0", "1E+2", "0.1")
    ]
    assert [type(number) for number in document] == [int] * 4 + [Decimal] * 5


def test_null_absent_false_zero_and_empty_differ() -> None:
    document = loads('{"n":null,"f":false,"z":0,"e":"","l":[],"o":{}}', bytes_max=100)
    assert isinstance(document, dict)
    assert [repr(value) for value in document.values()] == ["None", "False", "0", "''", "[]", "{}"]


def test_size_exactly_at_the_bound_and_one_over_is_counted_in_bytes() -> None:
    for document in ('"é"', '"é"'.encode()):
        assert loads(document, bytes_max=4) == "é"
        with pytest.raises(Invalid, match="4 bytes; at most 3"):
            loads(document, bytes_max=3)


def test_the_bound_of_size_comes_before_everything_else() -> None:
    with pytest.raises(Invalid, match="at most 2"):
        loads(b"\xff\xff\xff", bytes_max=2)


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**DIGITS) + 1, 10**DIGITS - 1)
    | st.decimals(allow_nan=False, allow_infinity=False).filter(
        lambda d: abs(d.adjusted()) <= EXPONENT and len(d.as_tuple().digits) <= DIGITS
    )
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
)
keys = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=6)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)


def as_told(value: object) -> object:
    """A value with every difference visible that equality hides: 1, 1.0, True; order of keys; -0."""
    if isinstance(value, dict):
        return [(key, as_told(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [as_told(item) for item in value]
    return type(value).__name__, str(value)


@given(documents)
def test_what_was_written_is_read_back_exactly(document: object) -> None:
    written = dumps(document)  # type: ignore[arg-type]  # the strategy makes JSON values only
    if isinstance(document, Decimal) and document.as_tuple().exponent == 0:
        return  # an integral Decimal is written, and read, as the integer it is
    again = loads(written, bytes_max=10_000_000)
    assert dumps(again) == written
    assert loads(written.decode(), bytes_max=10_000_000) == again
    assert again == document


@given(documents, st.booleans())
def test_any_spelling_of_a_document_reads_alike(document: object, ascii_only: bool) -> None:
    written = dumps(document)  # type: ignore[arg-type]  # the strategy makes JSON values only
    plain = loads(written, bytes_max=10_000_000)
    loose = stdlib_json.dumps(without_decimals(plain), indent=1, ensure_ascii=ascii_only)
    assert as_told(loads(loose, bytes_max=10_000_000)) == as_told(without_decimals(plain))


def without_decimals(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_decimals(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_decimals(item) for item in value]
    return str(value) if isinstance(value, Decimal) else value


@given(st.binary(max_size=60) | st.text(max_size=40) | st.text('{}[]",:\\u0dD8e1-.NaInfity ', max_size=30))
def test_anything_else_is_invalid_and_nothing_worse(noise: bytes | str) -> None:
    try:
        value = loads(noise, bytes_max=1_000)
    except Invalid:
        return
    assert loads(dumps(value), bytes_max=10_000) == value


@pytest.mark.parametrize("hostile", ['"' + '\\"' * 120_000, "[" * 240_000, "1" * 240_000, '{"":[' * 50_000])
def test_hostile_documents_are_refused_in_linear_time(hostile: str) -> None:
    started = time.process_time()
    with pytest.raises(Invalid):
        loads(hostile, bytes_max=262_144)
    assert time.process_time() - started < 2, "a refusal must not become an attack"
