"""Length-framed keys: injective, bounded, one spelling each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doonce.base.digests import digest_bytes
from doonce.base.errors import Invalid
from doonce.base.keys import HandoffKey, frame, handoff_key, parse_handoff_key, unframe
from doonce.base.limits import LIMITS

DIGEST = digest_bytes(b"a view")

kinds = st.sampled_from(["a", "lane", "lane_2", "handoff"])
# Full stops, digits and colons are what the framing itself is written with.
part = st.text(st.sampled_from("0123456789.:a") | st.characters(exclude_categories=["Cc", "Cs"]), max_size=12)
tuples = st.lists(part, max_size=5)


@given(kinds, tuples)
def test_a_key_gives_back_its_parts(kind: str, parts: list[str]) -> None:
    assert unframe(frame(kind, *parts), kind, len(parts)) == tuple(parts)


@given(kinds, tuples, kinds, tuples)
def test_different_tuples_have_different_keys(
    kind: str, parts: list[str], other: str, others: list[str]
) -> None:
    assert (frame(kind, *parts) == frame(other, *others)) == ((kind, parts) == (other, others))


@given(tuples, st.integers(0, 40), st.text("0123456789.:a", max_size=3))
def test_a_key_has_only_one_spelling(parts: list[str], at: int, noise: str) -> None:
    key = frame("lane", *parts)
    changed = key[:at] + noise + key[at + 1 :]
    for count in range(7):
        try:
            found = unframe(changed, "lane", count)
        except Invalid:
            continue
        assert frame("lane", *found) == changed


def test_the_framing_is_by_bytes_and_readable() -> None:
    assert frame("lane", "a:b", "é", "") == "lane:3.a:b2.é0."
    assert frame("lane") == "lane:"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "lane",
        "lane:1.a",  # too few
        "lane:1.a1.b1.c",  # too many
        "other:1.a1.b",
        "lane:01.a1.b",
        "lane:+1.a1.b",
        "lane:1.a2.b",
        "lane:1.a1.bc",
        "lane:1.a1,b",
        "lane:1a1.b",
        "lane:1.a99999.b",
        "lane:-1.a1.b",
        "lane:1.é1.b",  # cuts a character
        "lane:\u0661.a1.b",  # a digit that is not ASCII
        " lane:1.a1.b",
        "lane:1.a1.b ",
        "lane:1.\x001.b",
    ],
)
def test_other_texts_are_no_keys(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        unframe(text, "lane", 2)
    assert ":" not in text or text not in str(refused.value)


@pytest.mark.parametrize("kind", ["", "Lane", "a:b", "a b", "1a", "é", "a" * 33])
def test_a_kind_is_a_short_lower_case_word(kind: str) -> None:
    with pytest.raises(Invalid):
        frame(kind, "a")


def test_a_key_exactly_at_the_bound_and_one_over() -> None:
    room = LIMITS.key_bytes_max - len("lane:1000.")
    key = frame("lane", "é" * (room // 2))
    assert len(key.encode()) == LIMITS.key_bytes_max - room % 2
    assert unframe(key, "lane", 1) == ("é" * (room // 2),)
    with pytest.raises(Invalid, match="at most 1024"):
        frame("lane", "a" * (room + 1))
    with pytest.raises(Invalid, match="at most 1024"):
        unframe("lane:" + "0." * 600, "lane", 600)


FIELDS = {
    "org": LIMITS.org_bytes_max,
    "installation": LIMITS.installation_bytes_max,
    "capability": LIMITS.capability_bytes_max,
    "local_key": LIMITS.local_key_bytes_max,
}
PLAIN = {"org": "o", "installation": "i", "capability": "c", "binding_digest": DIGEST, "local_key": "k"}


def test_a_handoff_key_gives_back_its_five_fields() -> None:
    key = handoff_key("acme", "main", "crm.write", DIGEST, "row:17")
    assert parse_handoff_key(key) == HandoffKey("acme", "main", "crm.write", DIGEST, "row:17")


@pytest.mark.parametrize("field", FIELDS)
def test_each_field_exactly_at_its_bound_and_one_over(field: str) -> None:
    exact = "é" * (FIELDS[field] // 2) + "a" * (FIELDS[field] % 2)
    assert getattr(parse_handoff_key(handoff_key(**{**PLAIN, field: exact})), field) == exact
    with pytest.raises(Invalid, match=f"^{field} has {FIELDS[field] + 1} bytes"):
        handoff_key(**{**PLAIN, field: exact + "a"})


def test_all_fields_at_their_bounds_fit_in_one_key() -> None:
    fields = PLAIN | {field: "x" * bound for field, bound in FIELDS.items()}
    assert parse_handoff_key(handoff_key(**fields)) == HandoffKey(**fields)


@pytest.mark.parametrize("field", PLAIN)
@pytest.mark.parametrize("bad", ["", "a\x00", "a\n", "a\x7f", "a\x85", "\ud800"])
def test_a_field_is_plain_text(field: str, bad: str) -> None:
    with pytest.raises(Invalid, match=f"^{field} "):
        handoff_key(**{**PLAIN, field: bad})


def test_parsing_holds_the_fields_to_the_same_bounds() -> None:
    for parts in (
        ("", "i", "c", DIGEST, "k"),
        ("o" * 65, "i", "c", DIGEST, "k"),
        ("o", "i", "c", "sha256:x", "k"),
        ("o", "i", "c", DIGEST, "k" * 256),
    ):
        with pytest.raises(Invalid):
            parse_handoff_key(frame("handoff", *parts))
