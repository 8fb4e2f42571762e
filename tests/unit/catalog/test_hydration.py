"""Reading a whole object: what is refused at publication, the request, and what an answer says."""
# ruff: noqa: E501 - a row a case

import json

import pytest
from tests.unit.catalog.samples import BINDING, changed, encoded_schemas, sample_binding, sample_pack
from tests.unit.catalog.test_webhook_refusals import WITH_WEBHOOK

from doonce.base.digests import digest_document
from doonce.base.errors import Invalid
from doonce.base.json import canonical
from doonce.catalog.compile import VIEW_TAG, BindingView, OriginPolicy, compile_view, open_view
from doonce.catalog.exchange import Response
from doonce.catalog.hydration import Found, fields_in, found_in, hydration_request
from doonce.catalog.pack import read_pack
from doonce.catalog.webhooks import Hydration

HYDRATED = """
[webhooks.event.events.objects.item]
types = ["item.*"]
remote_id = "/object"
deletes = ["item.gone"]

[webhooks.event.events.objects.item.hydrate]
operation = "item.read"
fields = "/attributes"
missing_status = [404, 410]
"""
PACK = WITH_WEBHOOK + HYDRATED
ROUTE = '[webhooks.event]\nhandle = ["item.*"]\nhydrate = ["item"]\n'
RULE = Hydration(operation="item.read", fields="/attributes", missing_statuses=(404, 410))


def view(route: str = ROUTE, binding: str = BINDING, pack: str = PACK) -> BindingView:
    return compile_view(sample_pack(pack), sample_binding(binding + route), origins=OriginPolicy())


READ = """
[operations."item.other"]
summary = "Another read"
method = "GET"
target = "/stores/{parameter.store}/items/{remote_id}"
object = "item"
payload_schema = "empty.json"
link = "existing"
call_budget = "10s"
send_window = "2s"
evidence = []
"""
BY_LABEL = {
    "type": "object",
    "properties": {"label": {"type": "string"}},
    "required": ["label"],
    "additionalProperties": False,
}
REFUSED = {
    "an unknown operation": ('operation = "item.read"\nfields', 'operation = "item.list"\nfields', "operation", "no operation 'item.list'"),
    "a write": ('operation = "item.read"\nfields', 'operation = "item.change"\nfields', "operation", "is not a read"),
    "no operation": ('operation = "item.read"\nfields', "fields", "operation", "missing"),
    "a wrong place": ('"/attributes"\nmissing', '"attributes"\nmissing', "fields", "JSON pointer"),
    "a status that proves nothing": ("[404, 410]", "[200]", "missing_status", "only a 4xx"),
    "a status with another meaning": ("[404, 410]", "[404, 410]\n[[operations.\"item.read\".outcomes]]\nstatus = [410]\noutcome = \"rejected\"", "missing_status", "declares what 410 means"),
    "an unknown field": ("[404, 410]", "[404, 410]\ndeleted = true", "deleted", "unknown field"),
}  # fmt: skip
UNFIT = {
    "of nothing": ('object = "item"\n', "", "reads nothing, not 'item'"),
    "without a remote id": ("/items/{remote_id}", "/items/first", "does not read by a remote id"),
    "by a command": ("/items/{remote_id}", "/items/{remote_id}/of/{command_id}", "needs {command_id}"),
    "by a payload": ("/items/{remote_id}", "/items/{remote_id}/{payload.label}", "needs {payload.label}"),
    "that may have an effect": (
        "evidence = []",
        'evidence = []\nreplay = { kind = "none" }',
        "is not a read",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_declaration_is_refused_by_table_and_field(case: str) -> None:
    old, new, field, what = REFUSED[case]
    with pytest.raises(Invalid) as refused:
        sample_pack(changed(PACK, old, new))
    assert field in refused.value.message
    assert what in refused.value.message


@pytest.mark.parametrize("case", UNFIT)
def test_a_read_that_no_event_suffices_for_is_refused(case: str) -> None:
    old, new, what = UNFIT[case]
    read = changed(READ, old, new)
    if "remote_id" not in read:
        read = changed(read, 'link = "existing"', 'link = "none"')
    schemas = encoded_schemas()
    if "payload.label" in read:
        read = changed(read, "empty.json", "label.json")
        schemas["label.json"] = json.dumps(BY_LABEL).encode()
    text = changed(PACK, 'operation = "item.read"\nfields', 'operation = "item.other"\nfields') + read
    with pytest.raises(Invalid) as refused:
        read_pack(text.encode(), schemas)
    assert "hydrate] operation" in refused.value.message
    assert what in refused.value.message


@pytest.mark.parametrize(
    "route, what",
    [
        ('handle = ["item.*"]\nhydrate = ["order"]', "the webhook has no such object"),
        ('handle = ["item.*"]\nhydrate = ["item", "item"]', "names one thing twice"),
        ('hydrate = ["item"]', "no event is handed over"),
        ('handle = ["order.*"]\nhydrate = ["item"]', "no event about 'item' is handed over"),
        ('handle = ["item.*"]\nhydrate = "item"', "a list of texts"),
    ],
)
def test_a_binding_is_refused_by_field(route: str, what: str) -> None:
    with pytest.raises(Invalid) as refused:
        view(f"[webhooks.event]\n{route}\n")
    assert what in refused.value.message


def test_a_binding_cannot_ask_for_what_the_pack_cannot_read() -> None:
    with pytest.raises(Invalid, match="the pack knows no read for it"):
        view(pack=PACK[: PACK.index("[webhooks.event.events.objects.item.hydrate]")])


def test_a_read_of_mapped_fields_needs_some() -> None:
    bare = BINDING[: BINDING.index("[fields.item]")].replace('["item.change", "item.create"]', "[]")
    with pytest.raises(Invalid, match="asks for the mapped fields of 'item', and there are none"):
        view(binding=bare)


def test_the_read_is_in_the_view_though_the_binding_does_not_offer_it() -> None:
    binding = changed(BINDING, '["item.change", "item.create"]', "[]")
    opened = view(binding=binding)
    assert [*opened.operations] == ["item.read"]
    assert not opened.document.offered


@pytest.mark.parametrize("change", [["other"], ["item", "item"]])
def test_a_hand_made_view_never_half_works(change: list[str]) -> None:
    document = json.loads(view().raw)
    document["routes"]["event"]["hydrate"] = change
    with pytest.raises(Invalid):
        open_view(canonical(document), digest_document(VIEW_TAG, document))


def test_a_hand_made_read_has_a_bound() -> None:
    document = json.loads(view().raw)
    document["operations"]["item.read"]["response_bytes_max"] = 2**40
    with pytest.raises(Invalid, match="has no bound"):
        open_view(canonical(document), digest_document(VIEW_TAG, document))


def test_the_request_names_the_object_and_its_mapped_fields_and_is_always_the_same() -> None:
    first, again = (
        hydration_request(view(), RULE, remote_id="a b", event_id=event_id) for event_id in ("evt_1", "evt_2")
    )
    assert first == again
    assert (first.method, first.body) == ("GET", b"")
    assert first.target == "/stores/north/items/a%20b?fields=label%2Cprice%2Cstock"


@pytest.mark.parametrize("remote_id", ["..", "a/b", "", "x" * 513])
def test_an_id_that_cannot_stand_in_a_target_asks_for_nothing(remote_id: str) -> None:
    with pytest.raises(Invalid):
        hydration_request(view(), RULE, remote_id=remote_id, event_id="evt_1")


@pytest.mark.parametrize(
    "status, body, found",
    [
        (200, b'{"attributes": {}}', Found.WHOLE),
        (200, b'{"attributes": null}', Found.NOTHING),
        (200, b'{"attributes": []}', Found.NOTHING),
        (200, b'{"other": {}}', Found.NOTHING),
        (200, b'{"attributes": {}} {}', Found.NOTHING),
        (200, b'{"attributes": {}, "attributes": {}}', Found.NOTHING),
        (200, b'{"attributes": {"a": NaN}}', Found.NOTHING),
        (200, b'{"attributes": {"a": "\\ud800"}}', Found.NOTHING),
        (200, b"", Found.NOTHING),
        (404, b"", Found.MISSING),
        (410, b"{}", Found.MISSING),
        (403, b'{"attributes": {}}', Found.NOTHING),
        (500, b'{"attributes": {}}', Found.NOTHING),
    ],
)
def test_what_an_answer_says(status: int, body: bytes, found: Found) -> None:
    assert found_in(RULE, Response(status, (), body)) is found
    assert found_in(RULE, Response(status, (), body, complete=False)) is Found.NOTHING


def test_fields_are_exact() -> None:
    fields = fields_in(RULE, b'{"attributes": {"price": 9007199254740993, "stock": null}}')
    assert fields == {"price": 9007199254740993, "stock": None}
