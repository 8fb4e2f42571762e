"""A pack is used as it is written, or refused by file, table and field with what to write instead."""
# ruff: noqa: E501 - a row a case

import json

import pytest
from tests.unit.catalog.samples import PACK, SCHEMAS, changed, encoded_schemas, sample_pack

from doonce.base.errors import Invalid
from doonce.catalog.pack import read_pack

CHANGE = '[operations."item.change"]'
KEY = '[operations."item.create".replay]\nkind = "idempotency_key"\nheader = "Idempotency-Key"\nwindow = "24h"\n'


def test_the_sample_is_accepted() -> None:
    pack = sample_pack()
    assert sorted(pack.operations) == ["item.change", "item.create", "item.read"]
    assert pack.operations["item.change"].settle_after_us == 60_000_000


REFUSED = {
    "an unknown top field": ('title = "A shop"', 'title = "A shop"\ncolour = 1', "colour", "unknown field"),
    "an unknown table": ("[auth]", "[extra]\na = 1\n[auth]", "extra", "unknown field"),
    "another format": ('"doonce.pack/1"', '"doonce.pack/2"', "format", "spelled"),
    "a missing field": ('title = "A shop"\n', "", "title", "missing"),
    "a wrong type": ('version = "1.2.3"', "version = 123", "version", "not a whole number"),
    "a fraction": ('call_budget = "10s"\nsend_window = "2s"\nsettle', "call_budget = 1.5\nsettle", "call_budget", "not a fraction"),
    "a number without unit": ('send_window = "2s"\nsettle', "send_window = 2\nsettle", "send_window", "with its unit"),
    "an unknown unit": ('send_window = "2s"\nsettle', 'send_window = "2 s"\nsettle', "send_window", "not a duration"),
    "a zero": ('send_window = "2s"\nsettle', 'send_window = "0s"\nsettle', "send_window", "out of bounds"),
    "an unknown operation field": ('settle_after = "60s"', 'settle_after = "60s"\nretries = 3', "retries", "unknown field"),
    "an unknown method": ('method = "PATCH"', 'method = "LINK"', "method", "not a known value"),
    "http": ("https://api.shop", "http://api.shop", "origins", "https"),
    "an origin with a path": ("shop.example", "shop.example/v1", "origins", "not an origin"),
    "a default port": ("shop.example", "shop.example:443", "origins", "not an origin"),
    "both origins": ('title = "A shop"', 'title = "A shop"\norigin_from_binding = true', "origins", "either"),
    "a secret header": ('Accept = "application/json"', 'X-Api-Key = "k"', "X-Api-Key", "may carry a secret"),
    "the auth header": ('Accept = "application/json"', 'Authorization = "k"', "Authorization", "secret"),
    "a cookie": ('Accept = "application/json"', 'Cookie = "k"', "Cookie", "may carry a secret"),
    "a framing header": ('Accept = "application/json"', 'Content-Length = "0"', "Content-Length", "itself"),
    "a header with a line end": ('Accept = "application/json"', 'Accept = "a\\r\\nb: c"', "Accept", "U+000D"),
    "two spellings of a header": ('Accept = "application/json"', 'Accept = "a"\naccept = "b"', "accept", "twice"),
    "a target that climbs": ("/stores/{parameter.store}/items/{remote_id}\"\nobject = \"item\"\npayload_schema = \"change", "/a/../{remote_id}\"\nobject = \"item\"\npayload_schema = \"change", "target", ".."),
    "a target with a query": ("/items/{remote_id}\"\nobject = \"item\"\npayload_schema = \"change", "/items/{remote_id}?x=1\"\nobject = \"item\"\npayload_schema = \"change", "target", "percent-encoded"),
    "an unknown parameter": ("/stores/{parameter.store}/items\"", "/stores/{parameter.shop}/items\"", "target", "no parameter 'shop'"),
    "an unknown reference": ("/stores/{parameter.store}/items\"", "/stores/{secret}/items\"", "target", "not a reference"),
    "two values in one segment": ("/stores/{parameter.store}/items\"", "/{parameter.store}{command_id}/items\"", "target", "told apart"),
    "a payload field that is neither text nor integer": ("/stores/{parameter.store}/items/{remote_id}\"\nobject = \"item\"\npayload_schema = \"change", "/{payload.label}/{remote_id}\"\nobject = \"item\"\npayload_schema = \"change", "target", "neither text nor integer"),
    "a payload field that may be absent": ("/stores/{parameter.store}/items/{remote_id}\"\nobject = \"item\"\npayload_schema = \"change", "/{payload.colour}/{remote_id}\"\nobject = \"item\"\npayload_schema = \"change", "target", "may be absent"),
    "a link that nothing names": ("/items/{remote_id}\"\nobject = \"item\"\npayload_schema = \"change", "/items/all\"\nobject = \"item\"\npayload_schema = \"change", "link", "does not name"),
    "a remote id without a link": ('link = "creates"', 'link = "creates"\ntarget_lane = "{remote_id}"', "target_lane", "needs a link"),
    "an undeclared object": ('[objects.item]', '[objects.thing]', "object", "no object 'item'"),
    "a missing schema": ('"change.json"', '"chnage.json"', "payload_schema", "no schema file"),
    "a payload field that goes nowhere": ('members = { "/data/note" = "note" }\n', "", "payload_schema", "'note' goes nowhere"),
    "colliding places": ('"/dry_run" = false', '"/data/attributes/x" = false', "/data/attributes", "another place"),
    "an object's field as a member": ('"/data/note" = "note"', '"/data/note" = "label"', "/data/note", "is a field"),
    "a body on a read": ('query = { fields = "{fields}" }', 'query = { fields = "{fields}" }\nbody = { kind = "json", constants = { "/a" = 1 } }', "kind", "has no body"),
    "a create without its id": ('evidence = [{ json = "/id" }]\nresults.remote_id = { json = "/id" }\n\n[operations."item.create".body]', 'evidence = []\nresults.remote_id = { json = "/id" }\n\n[operations."item.create".body]', "evidence", "remote id is not demanded"),
    "no evidence at all": ('evidence = [{ json = "/id" }]\nreceipt', "receipt", "evidence", "missing"),
    "a replay without a window": ('\nwindow = "24h"', "", "window", "how long"),
    "a window within a call": ('window = "24h"', 'window = "30s"', "window", "shorter than one call"),
    "a key without a header": ('header = "Idempotency-Key"\n', "", "header", "needs it"),
    "a bare write called a read": (KEY, '[operations."item.create".replay]\nkind = "read"\n', "kind", "a bare POST is not replay-safe"),
    "a precondition on a POST": (KEY, '[operations."item.create".replay]\nkind = "precondition"\nif_none_match = "*"\nwindow = "1h"\n', "kind", "has no precondition"),
    "a precondition without a condition": (KEY, '[operations."item.create".replay]\nkind = "precondition"\nwindow = "1h"\n', "if_match", "exactly one"),
    "a budget over the limit": ('call_budget = "10s"\nsend_window = "2s"\nsettle', 'call_budget = "3m"\nsend_window = "2s"\nsettle', "call_budget", "out of bounds"),
    "a window longer than the call": ('call_budget = "10s"\nsend_window = "2s"\nsettle', 'call_budget = "1s"\nsend_window = "2s"\nsettle', "send_window", "longer than"),
    "an unknown probe": ('operation = "item.read"', 'operation = "item.find"', "operation", "no operation 'item.find'"),
    "a probe that writes": ('operation = "item.read"', 'operation = "item.create"', "operation", "is not a read"),
    "no effect without a horizon": ('settle_after = "60s"\n', "", "settle_after", "still on its way"),
    "a difference that proves": ('mismatch = "cannot_tell"', 'mismatch = "effect_proven"', "mismatch", "does not prove"),
    "absence that proves a change": ('missing = "no_effect_proven"', 'missing = "effect_proven"', "missing", "ends a link"),
    "missing without its status": ('missing_status = [404]\n', "", "missing_status", "goes together"),
    "evidence that names no attempt": ('mismatch = "cannot_tell"', 'mismatch = "cannot_tell"\nnames_attempt = true', "names_attempt", "idempotency key"),
    "comparing what was not sent": ('kind = "json", request', 'kind = "idempotency_key", request', "request", "unknown field"),
    "a rule that is never reached": ("[[operations.\"item.change\".outcomes]]", "[[operations.\"item.change\".outcomes]]\nstatus = [\"4xx\"]\noutcome = \"rejected\"\n[[operations.\"item.change\".outcomes]]", "status", "earlier rule"),
    "a success that is none": ("status = [429]", "status = [200]", "body", "needs a condition"),
    "a wait without a bound": ('retry_after_max = "10m"\n', "", "retry_after_max", "how long"),
    "a status that is none": ("status = [429]", "status = [42]", "status", "not a final"),
    "no status": ("status = [429]", "status = []", "status", "missing"),
    "verify without a probe": (KEY, KEY + '[[operations."item.create".outcomes]]\nstatus = [409]\noutcome = "verify"\n', "outcome", "needs a probe"),
    "a secret in the receipt": ('"X-Request-Id"', '"Set-Cookie"', "receipt_headers", "may carry a secret"),
    "a wrong pointer": ('{ json = "/error/code" }', '{ json = "error.code" }', "code", "JSON pointer"),
    "two places for one value": ('{ json = "/error/code" }', '{ json = "/a", header = "b" }', "json", "exactly one place"),
    "a lane that names nothing": ('target_lane = "{remote_id}"', 'target_lane = "items"', "target_lane", "the one thing"),
    "a repeated list entry": ('"label", "price"', '"label", "label"', "fields", "twice"),
    "a boolean for a number": ('settle_after = "60s"', 'settle_after = "60s"\nresponse_bytes_max = true', "response_bytes_max", "not a boolean"),
    "a number for a boolean": ('settle_after = "60s"', 'settle_after = "60s"\nduplicates_rejected = 1', "duplicates_rejected", "not a whole number"),
    "over the response bound": ('settle_after = "60s"', 'settle_after = "60s"\nresponse_bytes_max = 1048577', "response_bytes_max", "outside 1 to 1048576"),
    "a bad name": ('name = "shop"', 'name = "Shop"', "name", "spelled"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_pack_is_refused_by_file_table_and_field(case: str) -> None:
    old, new, field, what = REFUSED[case]
    with pytest.raises(Invalid) as refused:
        sample_pack(changed(PACK, old, new))
    message = refused.value.message
    assert message.startswith(("shop/pack.toml: ", "shop/pack.toml ")), message
    assert field in message
    assert what in message, message


def test_a_refusal_names_the_table_and_says_what_to_write() -> None:
    with pytest.raises(Invalid) as refused:
        sample_pack(changed(PACK, 'settle_after = "60s"\n', ""))
    assert refused.value.message.startswith('shop/pack.toml [operations."item.change"] settle_after: missing')
    assert refused.value.hint == 'write settle_after = "60s"'


SCHEMA_FAULTS = {
    "open": ({"type": "object", "properties": {}}, "closed"),
    "no object": ({"type": "array"}, "describes an object"),
    "a misspelled keyword": (
        {"type": "object", "proprties": {}, "additionalProperties": False},
        "proprties is not a keyword",
    ),
    "a remote reference": (
        {
            "type": "object",
            "properties": {"a": {"$ref": "https://evil.example/x"}},
            "additionalProperties": False,
        },
        "within the schema",
    ),
    "a dangling reference": (
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "additionalProperties": False},
        "not valid",
    ),
    "an inner open object": (
        {
            "type": "object",
            "properties": {"a": {"type": "object", "properties": {"b": {}}}},
            "additionalProperties": False,
        },
        "additionalProperties",
    ),
    "a fraction": (
        {
            "type": "object",
            "properties": {"a": {"type": "number", "multipleOf": 0.01}},
            "additionalProperties": False,
        },
        "canonical",
    ),
    "another dialect": (
        {
            "$schema": "http://127.0.0.1:1/draft.json",
            "type": "object",
            "properties": {"label": {"type": "string"}},
            "additionalProperties": False,
        },
        "one dialect",
    ),
    "a format that nothing checks": (
        {
            "type": "object",
            "properties": {"label": {"type": "string", "format": "email"}},
            "additionalProperties": False,
        },
        "format is not a keyword",
    ),
    "a wrong keyword type": (
        {"type": "object", "properties": {"a": {"type": "txt"}}, "additionalProperties": False},
        "not valid",
    ),
    "a pattern that is none": (
        {
            "type": "object",
            "properties": {"a": {"type": "string", "pattern": "("}},
            "additionalProperties": False,
        },
        "not valid",
    ),
}


@pytest.mark.parametrize("case", SCHEMA_FAULTS)
def test_a_schema_is_closed_and_self_contained(case: str) -> None:
    schema, what = SCHEMA_FAULTS[case]
    with pytest.raises(Invalid) as refused:
        sample_pack(schemas={**SCHEMAS, "create.json": schema})
    assert '[operations."item.create"] payload_schema: schemas/create.json' in refused.value.message
    assert what in refused.value.message


def test_a_schema_that_nothing_names_is_refused() -> None:
    with pytest.raises(Invalid, match=r"no operation names the schema spare\.json"):
        sample_pack(schemas={**SCHEMAS, "spare.json": SCHEMAS["empty.json"]})


def test_a_schema_file_is_strict_json() -> None:
    schemas = encoded_schemas()
    schemas["create.json"] = b'{"type":"object","type":"object"}'
    with pytest.raises(Invalid, match=r"schemas/create\.json"):
        read_pack(PACK.encode(), schemas)


@pytest.mark.parametrize(
    "raw, what",
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"a = ", "not TOML"),
        (b"a = 1\na = 2", "not TOML"),
        (b"a = " + b"[" * 5_000, "deeply"),
        (b"#" * 1_048_577, "at most 1048576"),
    ],
)
def test_what_is_not_toml_is_one_clear_error(raw: bytes, what: str) -> None:
    with pytest.raises(Invalid, match=what):
        read_pack(raw, {})


def test_the_order_of_lines_does_not_matter() -> None:
    reordered = json.loads(json.dumps(dict(reversed(SCHEMAS["change.json"].items()))))  # type: ignore[attr-defined]
    assert sample_pack() == sample_pack(schemas={**SCHEMAS, "change.json": reordered})
