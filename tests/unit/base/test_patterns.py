"""Patterns of event names: one `*`, at an end, stands for any ending."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doonce.base.patterns import best, is_pattern, matches, overlap

NAMES = st.text("ab.", max_size=5)
PATTERNS = st.builds(lambda text, star: text + star, NAMES, st.sampled_from(["", "*"])).filter(bool)


@pytest.mark.parametrize(
    "pattern, name, fits",
    [
        ("a", "a", True),
        ("a", "ab", False),
        ("a.*", "a.b", True),
        ("a.*", "a.", True),
        ("a.*", "a", False),
        ("a.*", "ab.c", False),
        ("*", "", True),
        ("*", "anything", True),
    ],
)
def test_what_a_pattern_stands_for(pattern: str, name: str, fits: bool) -> None:
    assert matches(pattern, name) is fits


def test_the_most_particular_one_is_the_best() -> None:
    patterns = ["*", "a.*", "a.b*", "a.b"]
    assert best(patterns, "a.b") == "a.b"
    assert best(patterns, "a.bc") == "a.b*"
    assert best(patterns, "a.c") == "a.*"
    assert best(patterns, "c") == "*"
    assert best(["a"], "b") is None


@pytest.mark.parametrize(
    "text, is_one", [("a", True), ("a.*", True), ("*", True), ("", False), ("a*b", False)]
)
def test_what_is_a_pattern(text: str, is_one: bool) -> None:
    assert is_pattern(text) is is_one


@given(PATTERNS, PATTERNS, NAMES)
def test_two_that_stand_for_one_name_overlap(one: str, other: str, name: str) -> None:
    assert overlap(one, other) is overlap(other, one)
    if matches(one, name) and matches(other, name):
        assert overlap(one, other)
    if overlap(one, other):  # the longer beginning is a name that both mean
        longer = max(
            one, other, key=lambda pattern: (len(pattern.removesuffix("*")), not pattern.endswith("*"))
        )
        assert matches(one, longer.removesuffix("*"))
        assert matches(other, longer.removesuffix("*"))
