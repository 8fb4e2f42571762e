"""Written and canonical JSON: one spelling, the standard's own, and nothing inexact."""

import enum
import math
from decimal import Decimal

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from doonce.base.errors import Invalid
from doonce.base.json import INTEGER_MAX, JsonValue, canonical, dumps, loads
from doonce.base.limits import LIMITS

DEPTH = LIMITS.json_depth_max
DIGITS = LIMITS.json_number_digits_max

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
# Keys on both sides of the surrogates are where UTF-16 order and code point order part.
keys = st.text(
    st.sampled_from("aZ~\x7fé\u2028\ud7ff\ue000\uffff\U00010000\U0001f600") | st.characters(codec="utf-8"),
    max_size=3,
).filter(lambda key: "\x00" not in key)
documents: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-INTEGER_MAX, INTEGER_MAX) | text,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=30,
)


@given(documents)
def test_canonical_is_the_standards_form(document: JsonValue) -> None:
    assert canonical(document) == rfc8785.dumps(document)  # type: ignore[arg-type]  # its own type is narrower


@given(documents)
def test_canonical_reads_back_and_is_a_fixed_point(document: JsonValue) -> None:
    form = canonical(document)
    again = loads(form, bytes_max=10_000_000)
    assert again == document
    assert canonical(again) == form


@given(documents, documents)
def test_equal_documents_have_one_form_and_different_ones_two(one: JsonValue, other: JsonValue) -> None:
    assert (canonical(one) == canonical(other)) == (told(one) == told(other))


def told(value: object) -> object:
    """`True == 1` in Python and not in JSON."""
    if isinstance(value, dict):
        return {key: told(item) for key, item in value.items()}
    if isinstance(value, list):
        return [told(item) for item in value]
    return type(value), value


def test_the_order_of_keys_is_that_of_utf_16() -> None:
    document = {"\ufb33": 1, "\U0001f600": 2, "b": 3, "a": 4}
    assert canonical(document) == '{"a":4,"b":3,"\U0001f600":2,"\ufb33":1}'.encode()
    assert dumps(document) == '{"\ufb33":1,"\U0001f600":2,"b":3,"a":4}'.encode()


def test_nested_keys_are_ordered_too_where_an_outer_one_is_plain() -> None:
    assert (
        canonical([{"a": {"\ufb33": 1, "\U0001f600": 2}}]) == '[{"a":{"\U0001f600":2,"\ufb33":1}}]'.encode()
    )


def test_canonical_integers_exactly_at_the_bound_and_one_over() -> None:
    assert canonical([INTEGER_MAX, -INTEGER_MAX]) == b"[9007199254740991,-9007199254740991]"
    for over in (INTEGER_MAX + 1, -INTEGER_MAX - 1):
        with pytest.raises(Invalid, match=r"beyond ±.* \(at \$\.a\[1\]\)"):
            canonical({"a": [0, over]})


@pytest.mark.parametrize("number", [1.0, 0.5, -0.0, math.nan, Decimal(1), Decimal("0.1")])
def test_canonical_knows_integers_only(number: JsonValue) -> None:
    with pytest.raises(Invalid, match=r"\(at \$\.n\)"):
        canonical({"n": number})


class Word(str, enum.Enum):
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


class Table(dict[str, int]):
    pass


@pytest.mark.parametrize(
    "value", [b"x", bytearray(b"x"), {1}, object(), Word.A, Number.ONE, Table(a=1), 1j, range(3), Invalid]
)
def test_other_types_are_refused_wherever_they_stand(value: object) -> None:
    for write in (canonical, dumps):
        for document, place in ((value, "$"), ({"a": [0, value]}, "$.a[1]"), ({"a b": value}, "$[…]")):
            with pytest.raises(Invalid) as refused:
                write(document)  # type: ignore[arg-type]  # wrong on purpose
            assert str(refused.value).endswith(f"(at {place})")


@pytest.mark.parametrize("key", [1, None, True, b"a", Word.A, ("a",)])
def test_keys_are_texts(key: object) -> None:
    for write in (canonical, dumps):
        with pytest.raises(Invalid, match=r"a key of type .* \(at \$\.o\)"):
            write({"o": {key: 1}})  # type: ignore[dict-item]  # wrong on purpose


@pytest.mark.parametrize(
    "bad,fault", [("\x00", "NUL"), ("\ud800", "surrogate"), ("x\udfff", "an unpaired surrogate")]
)
def test_texts_that_nobody_could_store_are_refused_as_value_and_as_key(bad: str, fault: str) -> None:
    for write in (canonical, dumps):
        with pytest.raises(Invalid, match=rf"{fault} \(at \$\.a\[1\]\)"):
            write({"a": ["x", f"y{bad}"], "\ue000": 1})
        with pytest.raises(Invalid, match=fault):
            write([{f"k{bad}": 1}])


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    for write in (canonical, dumps):
        assert write(["\\u0000"]) == b'["\\\\u0000"]'


@pytest.mark.parametrize(
    "number", [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity")]
)
def test_no_number_is_not_written(number: JsonValue) -> None:
    with pytest.raises(Invalid, match=r"NaN or Infinity \(at \$\[0\]\)"):
        dumps([number])


def test_numbers_exactly_at_their_bounds_and_one_over() -> None:
    most = 10**DIGITS - 1
    scale = LIMITS.json_exponent_max
    exact: list[JsonValue] = [most, -most, Decimal(most), Decimal(f"1e{scale}"), Decimal(f"-1e-{scale}")]
    for number in exact:
        assert loads(dumps(number), bytes_max=10_000) == number
    for over in (
        most + 1,
        -most - 1,
        Decimal(most + 1),
        Decimal(f"1e{scale + 1}"),
        Decimal(f"1e-{scale + 1}"),
    ):
        with pytest.raises(Invalid, match=r"a number of more than .* \(at \$\)"):
            dumps(over)


def test_numbers_are_written_as_they_are() -> None:
    assert dumps([1, 1.5, 1e300, Decimal("1.10"), Decimal("1E+2"), Decimal("-0"), 2**53 + 1]) == (
        b"[1,1.5,1e300,1.10,1E+2,-0,9007199254740993]"
    )


def test_depth_exactly_at_the_bound_and_one_over() -> None:
    document: JsonValue = 1
    for level in range(DEPTH):
        document = [document] if level % 2 else {"a": document}
    for write in (canonical, dumps):
        assert loads(write(document), bytes_max=10_000) == document
        with pytest.raises(Invalid, match=f"more than {DEPTH} nested"):
            write([document])


def test_a_document_that_holds_itself_is_refused() -> None:
    document: list[JsonValue] = []
    document.append(document)
    for write in (canonical, dumps):
        with pytest.raises(Invalid, match="nested"):
            write(document)


def test_tuples_are_arrays() -> None:
    assert dumps(((), ("a", (1,)))) == canonical([[], ["a", [1]]]) == b'[[],["a",[1]]]'
