"""I4: a reconciliation is whole when its pack is published: which read, which time, which pages, whose events."""
# ruff: noqa: E501 - a row a case

import pytest
from tests.unit.catalog.samples import BINDING, changed, sample_binding, sample_pack

from doonce.base.errors import Invalid
from doonce.base.json import dumps
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view, open_view
from doonce.catalog.exchange import Response
from doonce.catalog.paging import Unpaged, next_cursor, page_request, page_rule
from doonce.catalog.webhooks import Reconciliation
from doonce.catalog.windows import Window
from doonce.events.model import Derived, derive

PACK = """
format = "doonce.pack/1"
name = "shop"
version = "1.2.3"
title = "A shop"
origins = ["https://api.shop.example"]
auth = { scheme = "none" }

[parameters.store]
kind = "segment"
summary = "The store's name"

[objects.item]
fields = ["label"]

[operations."event.list"]
summary = "List events"
method = "GET"
target = "/stores/{parameter.store}/events"
query = { limit = "50" }
payload_schema = "empty.json"
link = "none"
call_budget = "10s"
send_window = "2s"
evidence = [{ json = "/data" }]

[operations."item.read"]
summary = "Read an item"
method = "GET"
target = "/items/{remote_id}"
payload_schema = "empty.json"
link = "existing"
call_budget = "10s"
send_window = "2s"
evidence = []

[operations."item.make"]
summary = "Make an item"
method = "POST"
target = "/items"
payload_schema = "empty.json"
link = "none"
call_budget = "10s"
send_window = "2s"
evidence = []

[webhooks.event]
summary = "Sent once"
response_deadline = "5s"
redelivery = "none"
verifier = { algorithm = "shared-token", header = "X-Token" }

[webhooks.event.events]
type = "/type"
identity = ["/id"]
object_id = ["/item"]

[webhooks.event.reconciliation]
operation = "event.list"
query = { "created[gte]" = "{since}", to = "{until}", page = "{cursor}" }
time_format = "seconds"
before = "10m"
after = "1m"
items = "/data"
cursor = { json = "/next" }
more = { json = "/more", equals = true }
"""
EMPTY = {"empty.json": {"type": "object", "properties": {}, "additionalProperties": False}}
ROUTE = (
    BINDING.partition("[fields.item]")[0].replace('["item.change", "item.create"]', "[]")
    + "[webhooks.event]\n"
)
PARTS = ("acme", "main", "shop.items", "event")
WINDOW = Window(1_796_000_000_600_000, 1_796_000_100_400_000)


def view(pack: str = PACK, route: str = "") -> BindingView:
    """The view of a binding that receives the webhook."""
    binding = sample_binding(ROUTE + route)
    return compile_view(sample_pack(pack, EMPTY), binding, origins=OriginPolicy())


def declared(pack: str = PACK) -> Reconciliation:
    """The reconciliation of the webhook."""
    found = (view(pack).document.webhooks or {})["event"].reconciliation
    assert found is not None
    return found


def with_line(old: str, new: str) -> str:
    return changed(PACK, old, new)


def test_a_view_that_receives_holds_the_read() -> None:
    compiled = view()
    opened = open_view(compiled.raw, compiled.digest)
    assert [*opened.operations] == ["event.list"]
    assert opened.document.offered == ()
    assert opened.document.webhooks == compiled.document.webhooks


def test_a_binding_may_do_without_and_then_says_what_of_losses() -> None:
    with pytest.raises(Invalid, match="accepts_loss"):
        view(route="reconcile = false\n")
    without = view(route='reconcile = false\naccepts_loss = "a log"\n')
    assert not without.operations
    with pytest.raises(Invalid, match="sent again, or found"):
        view(route='accepts_loss = "a log"\n')


@pytest.mark.parametrize(
    "time_format, since, until",
    [
        ("seconds", "1796000000", "1796000101"),
        ("milliseconds", "1796000000600", "1796000100400"),
        ("rfc3339", "2026-11-30T00%3A53%3A20Z", "2026-11-30T00%3A55%3A01Z"),
    ],
)
def test_a_window_is_spelled_wider_never_narrower(time_format: str, since: str, until: str) -> None:
    pack = with_line('time_format = "seconds"', f'time_format = "{time_format}"')
    request = page_request(view(pack), declared(pack), WINDOW, None)
    assert (request.method, request.body) == ("GET", b"")
    assert request.target == f"/stores/north/events?limit=50&created%5Bgte%5D={since}&to={until}"


def test_a_cursor_is_one_value_whatever_it_holds() -> None:
    request = page_request(view(), declared(), WINDOW, "a&b=c/é {since}")
    assert request.target.endswith("&page=a%26b%3Dc%2F%C3%A9%20%7Bsince%7D&to=1796000101")
    with pytest.raises(Invalid, match="at most"):
        page_request(view(), declared(), WINDOW, "é" * 1_000)


@pytest.mark.parametrize(
    "document, found",
    [
        ({"data": [1], "more": True, "next": "p2"}, "p2"),
        ({"data": [1], "more": True, "next": 7}, "7"),
        ({"data": [1], "more": False, "next": "p2"}, None),
        ({"data": [], "more": True, "next": "p2"}, "p2"),
        ({"data": [1], "more": True}, Unpaged("it says that there is another page, and not which")),
        ({"data": [1], "more": True, "next": True}, Unpaged("what names the next page is neither a text nor a whole number")),
        ({"data": [1], "next": "p2"}, Unpaged("it does not say whether there is another page")),
    ],
)  # fmt: skip
def test_an_answer_says_whether_there_is_another_page(document: dict[str, object], found: object) -> None:
    assert next_cursor(declared(), Response(200, (), dumps(document))) == found  # type: ignore[arg-type]


def test_a_cursor_that_cannot_be_sent_is_a_finding() -> None:
    for cursor in ("x" * 3_000, "a\nb"):
        answer = Response(200, (), dumps({"data": [], "more": True, "next": cursor}))
        assert isinstance(next_cursor(declared(), answer), Unpaged)


def test_the_last_item_may_lead_on_until_a_page_is_empty() -> None:
    pack = with_line(
        'cursor = { json = "/next" }\nmore = { json = "/more", equals = true }',
        'cursor = { last_item = "/id" }',
    )
    found = declared(pack)
    assert next_cursor(found, Response(200, (), b'{"data": [{"id": "a"}, {"id": "b"}]}')) == "b"
    assert next_cursor(found, Response(200, (), b'{"data": []}')) is None
    assert next_cursor(found, Response(200, (), b"no JSON")) is None


def test_a_header_may_lead_on() -> None:
    pack = with_line(
        'cursor = { json = "/next" }\nmore = { json = "/more", equals = true }',
        'cursor = { header = "X-Next" }',
    )
    assert next_cursor(declared(pack), Response(200, (("X-Next", "p2"),), b"{}")) == "p2"
    assert next_cursor(declared(pack), Response(200, (), b"{}")) is None


def identities(rule: object, body: bytes) -> list[tuple[str, str]]:
    derived = derive(rule, PARTS, "a receipt", body)  # type: ignore[arg-type]
    assert isinstance(derived, tuple), derived
    return [(one.identity, one.type) for one in derived if isinstance(one, Derived)]


@pytest.mark.parametrize("moved", [False, True])
def test_an_event_is_the_same_by_webhook_and_by_page(moved: bool) -> None:
    pack = (
        with_line('items = "/data"', 'items = "/data"\ntype = "/kind"\nidentity = ["/event"]')
        if moved
        else PACK
    )
    webhook = (view(pack).document.webhooks or {})["event"]
    item = {"kind": "made", "event": "e1"} if moved else {"type": "made", "id": "e1"}
    by_page = identities(page_rule(webhook, declared(pack)), dumps({"data": [item]}))  # type: ignore[arg-type]
    assert by_page == identities(webhook.events, b'{"type": "made", "id": "e1", "item": 1}')


REFUSED = {
    "no such operation": ('operation = "event.list"', 'operation = "event.find"', "operation", "no operation"),
    "an operation that writes": ('operation = "event.list"', 'operation = "item.make"', "operation", "not a read"),
    "an operation of a record": ('operation = "event.list"', 'operation = "item.read"', "operation", "belongs to a command"),
    "no beginning": ('"created[gte]" = "{since}", ', "", "query", "since when"),
    "an unknown reference": ('"{until}"', '"{end}"', "to", "not a reference"),
    "a parameter of the operation's": ("to = ", "limit = ", "limit", "the operation sets it too"),
    "a constant": ('"{until}"', '"now"', "to", "no reference"),
    "two references": ('"{until}"', '"{since}{until}"', "to", "two references"),
    "a cursor that is never sent": (', page = "{cursor}"', "", "cursor", "goes together"),
    "a cursor from nowhere": ('cursor = { json = "/next" }\n', "", "cursor", "goes together"),
    "a cursor in two places": ('{ json = "/next" }', '{ json = "/next", header = "X-Next" }', "cursor", "exactly one place"),
    "a wrong place of the cursor": ('{ json = "/next" }', '{ json = "next" }', "cursor", "JSON pointer"),
    "a wrong place of items": ('items = "/data"', 'items = "data"', "items", "JSON pointer"),
    "no items": ('items = "/data"\n', "", "items", "missing"),
    "more without a cursor": (', page = "{cursor}" }\ntime_format = "seconds"\nbefore = "10m"\nafter = "1m"\nitems = "/data"\ncursor = { json = "/next" }', ' }\ntime_format = "seconds"\nbefore = "10m"\nafter = "1m"\nitems = "/data"', "more", "nothing leads to them"),
    "no end of pages": ('items = "/data"', 'items = "/data"\npages_max = 10001', "pages_max", "outside"),
    "an endless overlap": ('before = "10m"', 'before = "8d"', "before", "out of bounds"),
    "an unknown time format": ('time_format = "seconds"', 'time_format = "days"', "time_format", "not a known value"),
    "an unknown field": ('items = "/data"', 'items = "/data"\nretries = 3', "retries", "unknown field"),
    "events that their delivery names": ('type = "/type"\nidentity = ["/id"]\nobject_id = ["/item"]', "stable_bodies = true", "identity", "sees no delivery"),
    "raw events": ('type = "/type"\nidentity = ["/id"]\nobject_id = ["/item"]', 'stable_bodies = true\nformat = "raw"', "identity", "sees no delivery"),
    "another number of names": ('items = "/data"', 'items = "/data"\nidentity = ["/id", "/type"]', "identity", "none is the same"),
    "a type where there is none": ('type = "/type"\nidentity = ["/id"]', 'identity = ["/id"]', "type", "webhook's name"),
    "objects that are elsewhere": ('object_id = ["/item"]', 'object_id = ["/item"]\nobjects = { item = { types = ["a"], remote_id = "/item" } }', "identity", "not spelled as deliveries"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_reconciliation_is_refused_by_table_and_field(case: str) -> None:
    old, new, field, what = REFUSED[case]
    pack = changed(PACK, old, new)
    if case in ("a type where there is none", "objects that are elsewhere"):
        pack = changed(pack, 'items = "/data"', 'items = "/data"\ntype = "/kind"')
    with pytest.raises(Invalid) as refused:
        sample_pack(pack, EMPTY)
    message = refused.value.message
    assert "[webhooks.event.reconciliation" in message, message
    assert field in message, message
    assert what in message, message
