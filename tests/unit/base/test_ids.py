"""Ids: version 7, ordered by time, readable; tokens: plain randomness."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doonce.base.errors import Invalid
from doonce.base.ids import ID_KINDS, id_kind, new_id, new_token, uuid7


def test_an_id_is_its_kind_and_a_version_7_uuid() -> None:
    made = new_id("cmd")
    prefix, digits = made.split("_")
    parsed = uuid.UUID(hex=digits)
    assert (prefix, parsed.version, parsed.variant) == ("cmd", 7, uuid.RFC_4122)
    assert digits == parsed.hex


def test_every_kind_is_three_letters_and_comes_back() -> None:
    for kind in ID_KINDS:
        assert id_kind(new_id(kind)) == kind  # type: ignore[arg-type]  # a set forgets the literals


@given(st.integers(0, 2**47 * 10**6), st.integers(0, 10**9), st.binary(min_size=8, max_size=8))
def test_a_later_id_never_sorts_before_an_earlier_one(now_ns: int, later_ns: int, entropy: bytes) -> None:
    now, later = uuid7(now_ns, b"\xff" * 8), uuid7(now_ns + later_ns, entropy)
    assert now >> 64 <= later >> 64
    assert uuid.UUID(int=now).version == 7
    assert now >> 80 == now_ns // 1_000_000


@given(st.integers(0, 2**64 - 1))
def test_62_random_bits_are_kept(entropy: int) -> None:
    made = uuid7(0, entropy.to_bytes(8, "big"))
    for bit in range(64):
        flipped = uuid7(0, (entropy ^ 1 << bit).to_bytes(8, "big"))
        assert (flipped == made) == (bit < 2)


def test_ids_and_tokens_do_not_repeat() -> None:
    assert len({new_id("wrk") for _ in range(10_000)}) == 10_000
    tokens = {new_token() for _ in range(10_000)}
    assert len(tokens) == 10_000
    assert all(len(token) == 32 and set(token) <= set("0123456789abcdef") for token in tokens)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cmd",
        "cmd_",
        "xyz_" + "0" * 32,
        "cmd_" + "0" * 31,
        "cmd_" + "G" * 32,
        "CMD_" + "0" * 32,
        "cmd_" + "0" * 33,
    ],
)
def test_other_texts_are_no_ids(text: str) -> None:
    with pytest.raises(Invalid):
        id_kind(text)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(Invalid):
        new_id("zzz")  # type: ignore[arg-type]  # wrong on purpose
