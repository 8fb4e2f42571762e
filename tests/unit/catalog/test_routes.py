"""Routes of a binding: what is received, under which address, and what becomes of losses (PROTOCOL I4)."""

import json
from dataclasses import dataclass

import pytest
from tests.unit.catalog.samples import BINDING, sample_binding, sample_pack
from tests.unit.catalog.test_webhook_refusals import WITH_WEBHOOK

from doonce.base.digests import digest_document
from doonce.base.errors import Invalid
from doonce.base.json import canonical
from doonce.catalog.compile import (
    VIEW_FORMAT,
    VIEW_FORMAT_WITH_ROUTES,
    VIEW_TAG,
    BindingView,
    OriginPolicy,
    compile_view,
    open_view,
)

ONCE = """
[webhooks.once]
summary = "Sent once"
response_deadline = "10s"
redelivery = "none"
events = { identity = ["/id"] }
verifier = { algorithm = "hmac-sha1", header = "X-Signature", encoding = "base64", content = "{url}{body}" }
"""


@dataclass(frozen=True)
class Refusal:
    """A part of a binding that is refused, and what is said of it."""

    text: str
    field: str
    what: str


def view(routes: str) -> BindingView:
    """The view of the sample binding with these routes."""
    pack = sample_pack(WITH_WEBHOOK + ONCE)
    return compile_view(pack, sample_binding(BINDING + routes), origins=OriginPolicy())


def test_a_view_without_routes_is_spelled_as_it_always_was() -> None:
    compiled = view("")
    assert compiled.document.format == VIEW_FORMAT
    assert not {"webhooks", "routes"} & {*json.loads(compiled.raw)}


def test_a_view_with_routes_holds_them() -> None:
    compiled = view(
        '[webhooks.event]\n[webhooks.once]\nurl = "https://h.example/1"\naccepts_loss = "a log"\n'
    )
    opened = open_view(compiled.raw, compiled.digest)
    assert opened.document.format == VIEW_FORMAT_WITH_ROUTES
    assert opened.document.webhooks == compiled.document.webhooks
    assert opened.document.routes == compiled.document.routes


@pytest.mark.parametrize(
    "refusal",
    [
        Refusal("[webhooks.other]", "webhooks", "no webhook 'other'"),
        Refusal('[webhooks.event]\nurl = "https://h.example/"', "url", "nothing signs it"),
        Refusal('[webhooks.event]\naccepts_loss = "x"', "accepts_loss", "sent again"),
        Refusal("[webhooks.event]\nsecret = 1", "secret", "unknown field"),
        Refusal('[webhooks.event]\nhandle = ["a*b"]', "handle", "has a * that is not its end"),
        Refusal('[webhooks.event]\nhandle = ["a", "a"]', "handle", "names one thing twice"),
        Refusal('[webhooks.event]\nhandle = [""]', "handle", "must not be empty"),
        Refusal('[webhooks.event]\nhandle = "a"', "handle", "a list of texts"),
        Refusal('[webhooks.event]\npush = "crm"', "push", "no event is handed over"),
        Refusal('[webhooks.event]\nhandle = ["a"]\npush = "https://h"', "push", "https://h"),
        Refusal('[webhooks.once]\nurl = "https://h.example/"', "accepts_loss", "never sent again"),
        Refusal('[webhooks.once]\naccepts_loss = "x"', "url", "missing"),
        Refusal('[webhooks.once]\naccepts_loss = "x"\nurl = "h.example"', "url", "not a public address"),
        Refusal('[webhooks.once]\naccepts_loss = "x"\nurl = "https://h.example/?a=1"', "url", "not a public"),
    ],
    ids=lambda refusal: refusal.text.replace("\n", " "),
)
def test_a_route_is_refused_by_field(refusal: Refusal) -> None:
    with pytest.raises(Invalid) as refused:
        view(refusal.text)
    assert refusal.field in refused.value.message
    assert refusal.what in refused.value.message


@pytest.mark.parametrize("change", [{"format": VIEW_FORMAT}, {"routes": {}}, {"webhooks": {}}])
def test_a_hand_made_view_never_half_works(change: dict[str, object]) -> None:
    document = json.loads(view("[webhooks.event]\n").raw) | change
    with pytest.raises(Invalid):
        open_view(canonical(document), digest_document(VIEW_TAG, document))


def test_a_route_keeps_what_it_hands_over_and_where() -> None:
    compiled = view('[webhooks.event]\nhandle = ["made", "paid.*"]\npush = "crm"\n')
    route = (open_view(compiled.raw, compiled.digest).document.routes or {})["event"]
    assert (route.handle, route.push) == (("made", "paid.*"), "crm")


@pytest.mark.parametrize(
    "change", [{"handle": ["a", "a"]}, {"handle": ["a*b"]}, {"handle": [], "push": "crm"}]
)
def test_a_hand_made_route_is_refused(change: dict[str, object]) -> None:
    document = json.loads(view("[webhooks.event]\n").raw)
    document["routes"]["event"] |= change
    with pytest.raises(Invalid):
        open_view(canonical(document), digest_document(VIEW_TAG, document))
