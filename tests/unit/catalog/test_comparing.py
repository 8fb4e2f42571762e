"""Whether two spellings are one content: what a careful server may change, and what nobody may."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doonce.catalog.comparing import Match, match_json, normal_lines
from doonce.catalog.model import Compare, CompareKind
from doonce.catalog.pointers import ABSENT

CARD = Compare(kind=CompareKind.LINES, content_lines=True, ordered=False, ignore=("PRODID", "REV"))
TEXT = Compare(kind=CompareKind.LINES)

SAME_CARD = {
    "line ends": ("FN:A\r\nN:B\r\n", "FN:A\nN:B"),
    "a byte order mark": ("\ufeffFN:A\n", "FN:A\n"),
    "folding": ("NOTE:one two\r\n", "NOTE:one\r\n  two\r\n"),
    "folding within a word": ("NOTE:one\n", "NOTE:o\n ne\n"),
    "names": ("fn:A\n", "FN:A\n"),
    "parameters": ("TEL;type=work;TYPE=voice;pref=1:+1\n", "TEL;PREF=1;TYPE=voice,work:+1\n"),
    "quotes": ('ADR;LABEL="x":;;1 St\n', "ADR;LABEL=x:;;1 St\n"),
    "empty components at the end": ("N:L;A\n", "N:L;A;;;\n"),
    "ignored properties": ("FN:A\nREV:1\n", "PRODID:x\nFN:A\nREV:2\n"),
    "empty lines": ("FN:A\n\n\n", "FN:A\n"),
}
OTHER_CARD = {
    "a value": ("FN:A\n", "FN:a\n"),
    "a value's spaces": ("NOTE:a\n", "NOTE:a \n"),
    "a missing line": ("FN:A\nTEL:1\n", "FN:A\n"),
    "a line too many": ("FN:A\n", "FN:A\nTEL:1\n"),
    "a line twice": ("FN:A\n", "FN:A\nFN:A\n"),
    "a parameter's value": ("TEL;TYPE=work:1\n", "TEL;TYPE=home:1\n"),
    "a parameter too many": ("TEL:1\n", "TEL;TYPE=home:1\n"),
    "an escaped end": ("NOTE:a\\;\n", "NOTE:a\n"),
    "a colon in quotes": ('X;P="a:b":c\n', 'X;P="a":b:c\n'),
    "a group": ("item1.TEL:1\n", "TEL:1\n"),
}


def same_card(one: str, other: str) -> bool:
    """Whether two cards have the same properties."""
    return sorted(normal_lines(one, CARD)) == sorted(normal_lines(other, CARD))


@pytest.mark.parametrize("case", SAME_CARD)
def test_a_rewritten_card_is_the_same(case: str) -> None:
    assert same_card(*SAME_CARD[case])


@pytest.mark.parametrize("case", OTHER_CARD)
def test_another_card_is_another(case: str) -> None:
    assert not same_card(*OTHER_CARD[case])


@given(text=st.text(max_size=60))
def test_every_text_has_lines(text: str) -> None:
    assert normal_lines(text, CARD) == normal_lines(text, CARD)
    assert normal_lines(text.replace("\r\n", "\n"), TEXT) == normal_lines(text, TEXT)


def test_hostile_lines_take_no_time() -> None:
    for text in ('"' * 50_000, ";" * 50_000, 'A;B="' * 20_000, "a" * 100_000 + ":", ',"' * 30_000 + ":x"):
        normal_lines(text, CARD)


SCALARS = [
    (1, Decimal("1.0"), Match.SAME),
    (1, True, Match.DIFFERENT),
    (0, False, Match.DIFFERENT),
    (0, None, Match.DIFFERENT),
    ("", None, Match.DIFFERENT),
    ("1", 1, Match.DIFFERENT),
    (10**30, 10**30 + 1, Match.DIFFERENT),
    (Decimal("0.1"), Decimal("0.10"), Match.SAME),
    (None, None, Match.SAME),
]


@pytest.mark.parametrize("wanted, found, match", SCALARS)
def test_scalars_are_compared_exactly(wanted: object, found: object, match: Match) -> None:
    assert match_json(wanted, found, empty_is_null=False) is match  # type: ignore[arg-type]
    assert match_json([wanted], [found], empty_is_null=False) is match  # type: ignore[list-item]


def test_only_what_was_written_is_looked_at() -> None:
    wanted = {"a": {"b": 1}}
    assert match_json(wanted, {"a": {"b": 1, "c": 2}, "d": 3}, empty_is_null=False) is Match.SAME
    assert match_json(wanted, {"a": {}}, empty_is_null=False) is Match.INCOMPARABLE
    assert match_json({**wanted, "x": 1}, {"a": {"b": 2}}, empty_is_null=False) is Match.DIFFERENT
    assert match_json({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, empty_is_null=False) is Match.SAME
    assert match_json({"a": [1]}, {"a": [1, 2]}, empty_is_null=False) is Match.DIFFERENT


@pytest.mark.parametrize("wanted", ["", None])
@pytest.mark.parametrize("found", ["", None, ABSENT])
def test_a_cleared_field_may_be_declared_to_be_null(wanted: str | None, found: object) -> None:
    assert match_json(wanted, found, empty_is_null=True) is Match.SAME  # type: ignore[arg-type]


@pytest.mark.parametrize("found", [0, False, "x", []])
def test_a_cleared_field_is_nothing_else(found: object) -> None:
    assert match_json("", found, empty_is_null=True) is Match.DIFFERENT  # type: ignore[arg-type]
