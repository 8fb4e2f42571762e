"""Bounds: exact and one over, in bytes; texts that every engine stores byte for byte."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS, Limits, check_size, check_text

BOUNDS = {field.name: getattr(LIMITS, field.name) for field in dataclasses.fields(Limits)}
BYTE_BOUNDS = {name: bound for name, bound in BOUNDS.items() if name.endswith("_bytes_max")}


@pytest.mark.parametrize("name", BYTE_BOUNDS)
def test_every_bound_of_bytes_exactly_and_one_over(name: str) -> None:
    bound = BYTE_BOUNDS[name]
    check_size(name, bound, bound)
    for exact in ("a" * bound, "é" * (bound // 2) + "a" * (bound % 2)):
        assert check_text(name, exact, bound) == exact
        with pytest.raises(Invalid, match=f"^{name} has {bound + 1} bytes; at most {bound} are allowed$"):
            check_text(name, exact + "a", bound)


def test_a_size_exactly_at_its_bound_and_one_over() -> None:
    check_size("the payload", LIMITS.payload_bytes_max, LIMITS.payload_bytes_max)
    with pytest.raises(Invalid, match=r"^the payload has 262145 bytes; at most 262144 are allowed$"):
        check_size("the payload", LIMITS.payload_bytes_max + 1, LIMITS.payload_bytes_max)


def test_bounds_are_positive_and_do_not_change() -> None:
    assert all(bound > 0 for bound in BOUNDS.values())
    with pytest.raises(dataclasses.FrozenInstanceError):
        LIMITS.org_bytes_max = 1  # type: ignore[misc]  # wrong on purpose


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0), 0xD800, 0xDBFF, 0xDC00, 0xDFFF])
def test_control_characters_and_surrogates_are_refused_by_code_and_place(code: int) -> None:
    with pytest.raises(Invalid, match=f"^org holds the character U\\+{code:04X} at position 1$"):
        check_text("org", f"x{chr(code)}secret", 64)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=16))
def test_every_other_text_is_kept_as_it_is(text: str) -> None:
    assert check_text("org", text, 64) == text


@pytest.mark.parametrize("value", [None, b"a", 1, ["a"]])
def test_only_texts_are_texts(value: object) -> None:
    with pytest.raises(Invalid, match=r"^org must be a text"):
        check_text("org", value, 64)


def test_an_empty_text_is_refused_unless_it_may_be_empty() -> None:
    with pytest.raises(Invalid, match=r"^org must not be empty$"):
        check_text("org", "", 64)
    assert check_text("org", "", 64, empty_allowed=True) == ""
