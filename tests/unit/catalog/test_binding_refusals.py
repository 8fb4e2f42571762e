"""A binding fits its pack, gives each field one owner, or is refused by file, table and field."""

import tomllib

import pytest
from tests.unit.catalog.samples import BINDING, PACK, changed, sample_binding, sample_view

from doonce.base.errors import Invalid
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import OriginPolicy
from doonce.catalog.model import CompletionMode

REFUSED = {
    "an unknown field": ('org = "acme"', 'org = "acme"\nteam = "x"', "team", "unknown field"),
    "another pack": ("shop@1.2.3", "shop@1.2.4", "pack", "this pack is shop@1.2.3"),
    "no version": ("shop@1.2.3", "shop", "pack", "spelled"),
    "an unknown operation": ('"item.create"', '"item.sell"', "operations", "no operation 'item.sell'"),
    "an operation twice": ('"item.create"', '"item.change"', "operations", "twice"),
    "no operation": (
        'operations = ["item.change", "item.create"]',
        "operations = []",
        "operations",
        "no operation",
    ),
    "an over-long org": ('org = "acme"', f'org = "{"a" * 65}"', "org", "at most 64"),
    "a missing parameter": ('store = "north"\n', "", "store", "missing"),
    "an unknown parameter": ('store = "north"', 'store = "north"\nshop = "x"', "shop", "no such parameter"),
    "a parameter that climbs": ('store = "north"', 'store = ".."', "store", "cannot stand in a path"),
    "a parameter with a slash": ('store = "north"', 'store = "a/b"', "store", "cannot stand in a path"),
    "an unknown object": ("[fields.item]", "[fields.thing]", "thing", "no such object"),
    "an unknown provider field": ('cost = "price"', 'cost = "cost"', "cost", "no field 'cost'"),
    "two owners of a field": ('stock_level = "stock"', 'stock_level = "price"', "stock_level", "two owners"),
    "a field mapped twice": ('cost = "price"', 'cost = "label"', "name", "mapped twice"),
    "two owners of a name": ('stock_level = "stock"', 'name = "stock"', "name", "two owners"),
    "a name that is a payload field": ('cost = "price"', 'note = "price"', "note", "of that name"),
    "a required field without a name": ('name = "label", ', "", "outbound", "requires the field 'label'"),
    "an unknown direction": ("inbound = {", "both = {", "both", "unknown field"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_binding_is_refused_by_file_table_and_field(case: str) -> None:
    old, new, field, what = REFUSED[case]
    with pytest.raises(Invalid) as refused:
        sample_view(binding=changed(BINDING, old, new))
    assert refused.value.message.startswith("acme.toml")
    assert field in refused.value.message
    assert what in refused.value.message, refused.value.message


POLICY_FAULTS = {
    "an unknown policy": ("[policies]\nspeed = 1", "speed"),
    "attempts out of bounds": ("[policies.retry]\nattempts_max = 0", "attempts_max"),
    "a base over the cap": ('[policies.retry]\nbase = "10m"\ncap = "1m"', "base"),
    "a push without an address": ('[policies.completion]\nmode = "push"', "url_name"),
    "a pull with an address": ('[policies.completion]\nmode = "pull"\nurl_name = "crm"', "url_name"),
    "an address instead of its name": (
        '[policies.completion]\nmode = "push"\nurl_name = "https://x.example"',
        "url_name",
    ),
}


@pytest.mark.parametrize("case", POLICY_FAULTS)
def test_a_policy_is_bounded(case: str) -> None:
    text, field = POLICY_FAULTS[case]
    with pytest.raises(Invalid, match=rf"acme\.toml \[policies.*{field}"):
        sample_binding(BINDING + text)


def test_policies_have_defaults_and_can_be_chosen() -> None:
    plain = sample_binding().policies
    assert plain.wants_rejected_result
    assert plain.attempts_max == 8
    assert plain.completion.mode is CompletionMode.PULL
    chosen = sample_binding(
        BINDING + '[policies.retry]\nbase = "250ms"\n[policies.completion]\nmode = "push"\nurl_name = "crm"\n'
    ).policies
    assert chosen.retry_base_us == 250_000
    assert chosen.completion.url_name == "crm"


def test_a_binding_may_be_a_mapping() -> None:
    assert read_binding(tomllib.loads(BINDING)) == sample_binding()


HTTP = 'principal = "prn_0123"\norigin = "http://127.0.0.1:8080"'


@pytest.mark.parametrize(
    "policy, fits",
    [
        (OriginPolicy(), False),
        (OriginPolicy(undeclared=True), False),
        (OriginPolicy(plain_http=True), False),
        (OriginPolicy(undeclared=True, plain_http=True), True),
    ],
)
def test_another_origin_needs_the_deployments_consent(policy: OriginPolicy, fits: bool) -> None:
    binding = changed(BINDING, 'principal = "prn_0123"', HTTP)
    if fits:
        assert sample_view(binding=binding, origins=policy).document.origin == "http://127.0.0.1:8080"
    else:
        with pytest.raises(Invalid, match=r"acme\.toml origin"):
            sample_view(binding=binding, origins=policy)


def test_the_origin_is_the_packs_where_the_binding_is_silent() -> None:
    assert sample_view().document.origin == "https://api.shop.example"


def test_of_several_origins_the_binding_names_one() -> None:
    pack = changed(
        PACK, '["https://api.shop.example"]', '["https://eu.shop.example", "https://us.shop.example"]'
    )
    with pytest.raises(Invalid, match=r"acme\.toml origin"):
        sample_view(pack)
    binding = changed(
        BINDING, 'principal = "prn_0123"', 'principal = "p"\norigin = "https://eu.shop.example"'
    )
    assert sample_view(pack, binding).document.origin == "https://eu.shop.example"


@pytest.mark.parametrize(
    "origin",
    [
        *("https://", "https://a b", "https://A.example", "https://a.example/", "https://u@a.example"),
        *("ftp://a.example", "https://a.example:0", "https://a.example:65536", "https://a.example:443"),
        *("https://a..example", "https://-a.example", "https://a.example?x", "https://[::1", "//a.example"),
    ],
)
def test_an_origin_has_one_spelling(origin: str) -> None:
    binding = changed(BINDING, 'principal = "prn_0123"', f'principal = "p"\norigin = "{origin}"')
    with pytest.raises(Invalid, match="is not an origin"):
        sample_view(binding=binding, origins=OriginPolicy(undeclared=True, plain_http=True))
