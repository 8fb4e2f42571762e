"""The packs that declare a reconciliation: their requests and pages are what the providers document."""

import json
from pathlib import Path

from doonce.catalog.binding import read_binding
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view
from doonce.catalog.exchange import Response
from doonce.catalog.files import load_pack
from doonce.catalog.paging import next_cursor, page_request, page_rule
from doonce.catalog.windows import Window
from doonce.events.model import derive

PACKS = Path(__file__).parents[3] / "packs"
PARTS = ("acme", "main", "payments.events", "event")

EVENTS = [
    {"id": "evt_3", "object": "event", "created": 1686089970, "type": "setup_intent.created"},
    {"id": "evt_2", "object": "event", "created": 1686089960, "type": "invoice.paid"},
]
"""Shaped as https://docs.stripe.com/api/events/list shows them, cut to what is read."""


def stripe() -> BindingView:
    """A binding that receives the webhook."""
    document = {
        "format": "doonce.binding/1", "org": "acme", "installation": "main", "capability": "payments.events",
        "pack": "stripe@1.0.0", "principal": "account", "operations": [], "webhooks": {"event": {"handle": ["*"]}},
    }  # fmt: skip
    return compile_view(load_pack(PACKS / "stripe"), read_binding(document), origins=OriginPolicy())


def test_stripe_lists_the_events_of_a_time_the_newest_first() -> None:
    view = stripe()
    webhook = (view.document.webhooks or {})["event"]
    declared = webhook.reconciliation
    assert declared is not None
    window = Window(1686089000_000_000, 1686090000_000_000)
    first = page_request(view, declared, window, None)
    assert first.origin == "https://api.stripe.com"
    assert first.target == "/v1/events?limit=25&created%5Bgte%5D=1686089000&created%5Blte%5D=1686090000"
    body = json.dumps({"object": "list", "url": "/v1/events", "has_more": True, "data": EVENTS}).encode()
    cursor = next_cursor(declared, Response(200, (), body))
    assert cursor == "evt_2"
    assert page_request(view, declared, window, cursor).target.endswith("&starting_after=evt_2")
    last = {"object": "list", "url": "/v1/events", "has_more": False, "data": []}
    assert next_cursor(declared, Response(200, (), json.dumps(last).encode())) is None


def test_a_stripe_event_is_the_same_by_webhook_and_by_page() -> None:
    webhook = (stripe().document.webhooks or {})["event"]
    assert webhook.reconciliation is not None
    page = json.dumps({"data": EVENTS, "has_more": False}).encode()
    by_page = derive(page_rule(webhook, webhook.reconciliation), PARTS, "pag_1", page)
    by_webhook = [derive(webhook.events, PARTS, "a receipt", json.dumps(one).encode()) for one in EVENTS]
    assert isinstance(by_page, tuple)
    delivered = [one[0] for one in by_webhook if isinstance(one, tuple)]
    assert [(one.identity, one.type, one.content) for one in by_page] == [
        (one.identity, one.type, one.content) for one in delivered
    ]
