"""No value is ever more than its place in a target (property tests; path injection)."""

from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doonce.base.errors import Invalid
from doonce.catalog.model import ParameterKind
from doonce.catalog.templates import fill_target, last_segment, parse_target

TARGET = parse_target(
    "/a/{payload.x}/b-{remote_id}.vcf", {"q": "{payload.y}", "z": "1&2"}, {"collection": ParameterKind.PATH}
)
ANY = st.text(st.characters(codec="utf-8"), max_size=40)


def filled(one: str, two: str, query: str) -> str | None:
    """The target for three values, None where one of them is refused."""
    try:
        return fill_target(TARGET, {"payload.x": one, "remote_id": two, "payload.y": query})
    except Invalid:
        return None


FINE = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="/\\"), min_size=1, max_size=40
)


@given(one=FINE, two=FINE, query=ANY)
def test_a_target_keeps_its_shape_and_gives_each_value_back(one: str, two: str, query: str) -> None:
    target = filled(one, two, query)
    if target is None:
        assert {one, two} & {".", ".."}
        return
    assert target.isascii()
    assert target.isprintable()
    path, _, text = target.partition("?")
    assert [unquote(segment) for segment in path.split("/")] == ["", "a", one, f"b-{two}.vcf"]
    assert not {".", ".."} & set(path.split("/"))
    assert "#" not in target
    pairs = [part.split("=", 1) for part in text.split("&")]
    assert [(name, unquote(value)) for name, value in pairs] == [("q", query), ("z", "1&2")]
    if "+" not in query:
        assert parse_qsl(text, keep_blank_values=True)[0] == ("q", query)


HOSTILE = st.text("./\\%?#&=+;a2fF ä\n", min_size=1, max_size=4)
THREE = st.tuples(HOSTILE, HOSTILE, HOSTILE)


@given(left=THREE, right=THREE)
def test_different_values_give_different_targets(
    left: tuple[str, str, str], right: tuple[str, str, str]
) -> None:
    one, other = filled(*left), filled(*right)
    if one is not None and other is not None:
        assert (one == other) == (left == right)


@pytest.mark.parametrize(
    "value", ["", ".", "..", "a/b", "../x", "a\\b", "/", "x\x00", "x\r\ny", "\x7f", "a" * 1_025]
)
def test_a_hostile_segment_is_refused(value: str) -> None:
    with pytest.raises(Invalid):
        fill_target(TARGET, {"payload.x": value, "remote_id": "1", "payload.y": ""})


@pytest.mark.parametrize("value", ["%2e%2e", "%2F", "a?b", "a#b", "a b", "ä", "a;b", "a+b@c"])
def test_an_odd_segment_is_encoded_and_stays_one(value: str) -> None:
    target = fill_target(TARGET, {"payload.x": value, "remote_id": "1", "payload.y": ""})
    assert unquote(target.split("/")[2]) == value
    assert target.count("/") == 3


def test_an_over_long_target_is_refused() -> None:
    with pytest.raises(Invalid, match="at most 4096"):
        fill_target(TARGET, {"payload.x": "ä" * 500, "remote_id": "ä" * 500, "payload.y": ""})


PATH = parse_target("/dav/{parameter.collection}/{remote_id}", {}, {"collection": ParameterKind.PATH})


def test_a_path_parameter_is_several_segments() -> None:
    target = fill_target(PATH, {"parameter.collection": "ann lee/contacts", "remote_id": "1.vcf"})
    assert target == "/dav/ann%20lee/contacts/1.vcf"
    assert last_segment(target) == "1.vcf"


@pytest.mark.parametrize("value", ["", "/a", "a/", "a//b", "a/../b", "./a", "a\\b"])
def test_a_path_parameter_does_not_climb(value: str) -> None:
    with pytest.raises(Invalid):
        fill_target(PATH, {"parameter.collection": value, "remote_id": "1"})


@pytest.mark.parametrize(
    "template",
    [
        "a",
        "//a",
        "/a//b",
        "/a/",
        "/./a",
        "/a/..",
        "/a?b",
        "/a#b",
        "/a%2fb",
        "/a b",
        "/{",
        "/}",
        "/{}",
        "/{a}",
        "/{fields}",
    ],
)
def test_a_template_is_refused_where_it_could_mislead(template: str) -> None:
    with pytest.raises(Invalid):
        parse_target(template, {}, {})
