"""A view is its bytes: content-addressed, strictly decoded, complete, however its files are written."""

import json
import random
import tomllib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.catalog.samples import BINDING, PACK, changed, sample_binding, sample_pack, sample_view

from doonce.base.digests import digest_document
from doonce.base.errors import Invalid
from doonce.base.json import canonical
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import VIEW_TAG, OriginPolicy, compile_view, open_view, pack_digest


def addressed(document: dict[str, Any]) -> tuple[bytes, str]:
    """Bytes and digest of a document that somebody wrote by hand, correctly addressed."""
    return canonical(document), digest_document(VIEW_TAG, document)


def test_what_is_compiled_opens_to_the_same() -> None:
    view = sample_view()
    again = open_view(view.raw, view.digest)
    assert again.document == view.document
    assert again.raw == view.raw == canonical(msgspec.to_builtins(view.document))
    assert set(again.operations) == {"item.change", "item.create", "item.read"}
    assert again.document.offered == ("item.change", "item.create")


def test_a_probe_comes_with_its_operation_but_is_not_offered() -> None:
    view = sample_view()
    with pytest.raises(Invalid, match=r"offers no operation 'item\.read'"):
        view.operation("item.read")
    assert view.operation("item.change").contract.probe is not None


def test_only_what_is_needed_is_in_a_view() -> None:
    view = sample_view(binding=changed(BINDING, '"item.change", "item.create"', '"item.create"'))
    assert set(view.operations) == {"item.create"}


@given(
    org=st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=16),
    names=st.lists(st.from_regex(r"[a-z]{1,12}", fullmatch=True), min_size=2, max_size=2, unique=True),
    attempts=st.integers(1, 100),
)
@settings(max_examples=60, deadline=None)
def test_every_binding_that_compiles_opens_to_the_same(org: str, names: list[str], attempts: int) -> None:
    source: dict[str, Any] = tomllib.loads(BINDING)
    source |= {"org": org, "policies": {"retry": {"attempts_max": attempts}}}
    source["fields"] = {"item": {"outbound": {f"a_{names[0]}": "label", f"b_{names[1]}": "price"}}}
    view = compile_view(sample_pack(), read_binding(source), origins=OriginPolicy())
    assert open_view(view.raw, view.digest).document == view.document


def shuffled(value: Any, order: random.Random) -> Any:
    """`value` with the keys of every table in another order."""
    if isinstance(value, dict):
        keys = list(value)
        order.shuffle(keys)
        return {key: shuffled(value[key], order) for key in keys}
    return [shuffled(item, order) for item in value] if isinstance(value, list) else value


@given(order=st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_the_digest_does_not_depend_on_the_order_of_keys(order: random.Random) -> None:
    binding = read_binding(shuffled(tomllib.loads(BINDING), order))
    view = compile_view(sample_pack(), binding, origins=OriginPolicy())
    assert view.digest == sample_view().digest


def test_the_digest_of_a_pack_does_not_depend_on_the_order_of_its_tables() -> None:
    blocks = PACK.split('\n[operations."item.create"]')
    other, read = blocks[1].split('\n[operations."item.read"]')
    moved = f'{blocks[0]}\n[operations."item.read"]{read}\n[operations."item.create"]{other}'
    assert moved != PACK
    assert pack_digest(sample_pack(moved)) == pack_digest(sample_pack())


def test_every_difference_has_its_own_digest() -> None:
    digests = {
        sample_view().digest,
        sample_view(changed(PACK, 'settle_after = "60s"', 'settle_after = "61s"')).digest,
        sample_view(binding=changed(BINDING, 'org = "acme"', 'org = "acne"')).digest,
        sample_view(binding=changed(BINDING, 'cost = "price"', 'costs = "price"')).digest,
    }
    assert len(digests) == 4


def test_a_view_with_another_digest_is_refused() -> None:
    view = sample_view()
    with pytest.raises(Invalid, match="not what the digest names"):
        open_view(view.raw.replace(b'"org":"acme"', b'"org":"evil"'), view.digest)
    with pytest.raises(Invalid, match="not what the digest names"):
        open_view(view.raw, "sha256:" + "0" * 64)


def test_bytes_that_are_not_canonical_are_refused() -> None:
    view = sample_view()
    spaced = json.dumps(json.loads(view.raw), indent=1).encode()
    with pytest.raises(Invalid, match="not canonical"):
        open_view(spaced, view.digest)


def edited(path: str, value: object) -> tuple[bytes, str]:
    """A correctly addressed view with one place changed; a value of `...` removes it."""
    document: dict[str, Any] = json.loads(sample_view().raw)
    *steps, last = path.split("|")
    inner = document
    for step in steps:
        inner = inner[step]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return addressed(document)


HOSTILE = {
    "another format": ("format", "doonce.binding-view/2", "not known to this release"),
    "a missing format": ("format", ..., "not known to this release"),
    "an unknown field": ("extra", 1, "unknown field"),
    "a missing field": ("principal", ..., "missing required field"),
    "a wrong type": ("org", 5, "Expected `str`"),
    "a left-out default": ("operations|item.change|body|text_from", ..., "a default is left out"),
    "an operation without its probe": ("operations|item.read", ..., "no operation 'item.read'"),
    "an offer without its operation": ("operations|item.create", ..., "no operation 'item.create'"),
    "a dropped field map": ("fields|item", ..., "needs a field mapping"),
    "an emptied field map": ("fields|item|outbound", {}, "requires the field 'label'"),
    "an inbound field written": ("fields|item|inbound", {"x": "label"}, "two owners"),
    "a missing parameter": ("parameters|store", ..., "missing"),
    "a write turned into a read": ("operations|item.change|replay|kind", "read", "not replay-safe"),
    "no horizon": ("operations|item.change|settle_after_us", None, "still on its way"),
    "a smuggled secret": ("operations|item.change|headers", {"Authorization": "x"}, "secret"),
    "a body that goes nowhere": ("operations|item.change|body|members", {}, "goes nowhere"),
    "an opened schema": ("operations|item.change|payload_schema|additionalProperties", True, "closed"),
    "an origin with a path": ("origin", "https://api.shop.example/x", "not an origin"),
    "nothing offered": ("offered", [], "no operation is offered"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_well_addressed_but_unfit_view_is_refused_at_opening(case: str) -> None:
    path, value, what = HOSTILE[case]
    raw, digest = edited(path, value)
    with pytest.raises(Invalid) as refused:
        open_view(raw, digest)
    assert what in refused.value.message, refused.value.message
    assert digest in refused.value.message


@given(raw=st.binary(max_size=200))
def test_no_bytes_do_anything_but_open_or_be_refused(raw: bytes) -> None:
    with pytest.raises(Invalid):
        open_view(raw, sample_view().digest)


def test_a_view_holds_no_secret_and_no_open_field() -> None:
    assert b"Bearer " in sample_view().raw  # the prefix, and nothing behind it
    assert sample_binding().principal == "prn_0123"
