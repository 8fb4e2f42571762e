"""A small pack of nobody's, as the text that an author would write, and ways to change one line of it."""

import json
from collections.abc import Mapping

from doonce.catalog.binding import read_binding
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view
from doonce.catalog.model import Binding, OperationContract, Pack
from doonce.catalog.pack import read_pack

PACK = """
format = "doonce.pack/1"
name = "shop"
version = "1.2.3"
title = "A shop"
origins = ["https://api.shop.example"]

[auth]
scheme = "header"
header = "Authorization"
prefix = "Bearer "

[parameters.store]
kind = "segment"
summary = "The store's name"

[objects.item]
fields = ["colour", "label", "price", "stock"]

[operations."item.change"]
summary = "Change an item"
method = "PATCH"
target = "/stores/{parameter.store}/items/{remote_id}"
object = "item"
payload_schema = "change.json"
link = "existing"
target_lane = "{remote_id}"
call_budget = "10s"
send_window = "2s"
settle_after = "60s"
evidence = [{ json = "/id" }]
receipt_headers = ["X-Request-Id"]
results.remote_id = { json = "/id" }
rejection.code = { json = "/error/code" }

[operations."item.change".headers]
Accept = "application/json"

[operations."item.change".body]
kind = "json"
fields_at = "/data/attributes"
members = { "/data/note" = "note" }
constants = { "/data/type" = "item", "/dry_run" = false }

[[operations."item.change".outcomes]]
status = [429]
outcome = "no_effect"
retry_after_default = "5s"
retry_after_max = "10m"

[operations."item.change".probe]
operation = "item.read"
compare = [{ kind = "json", request = "/data/attributes", response = "/attributes" }]
missing_status = [404]
missing = "no_effect_proven"
mismatch = "cannot_tell"
changed_at.json = "/changed"
changed_at.format = "rfc3339"
changed_at.skew = "1m"
changed_at.before = "no_effect_proven"
changed_at.after = "superseded"

[operations."item.create"]
summary = "Create an item under a key"
method = "POST"
target = "/stores/{parameter.store}/items"
object = "item"
payload_schema = "create.json"
link = "creates"
call_budget = "10s"
send_window = "2s"
evidence = [{ json = "/id" }]
results.remote_id = { json = "/id" }

[operations."item.create".body]
kind = "json"
fields_at = ""

[operations."item.create".replay]
kind = "idempotency_key"
header = "Idempotency-Key"
window = "24h"

[operations."item.read"]
summary = "Read an item"
method = "GET"
target = "/stores/{parameter.store}/items/{remote_id}"
query = { fields = "{fields}" }
object = "item"
payload_schema = "empty.json"
link = "existing"
call_budget = "10s"
send_window = "2s"
evidence = [{ json = "/id" }]
"""

SCHEMAS: Mapping[str, object] = {
    "change.json": {
        "type": "object",
        "properties": {
            "label": {"type": ["string", "null"]},
            "price": {"type": ["number", "null", "boolean", "string"]},
            "colour": {"type": "string"},
            "note": {"type": "string"},
        },
        "additionalProperties": False,
    },
    "create.json": {
        "type": "object",
        "properties": {"label": {"type": "string"}},
        "required": ["label"],
        "additionalProperties": False,
    },
    "empty.json": {"type": "object", "properties": {}, "additionalProperties": False},
}

BINDING = """
format = "doonce.binding/1"
org = "acme"
installation = "main"
capability = "shop.items"
pack = "shop@1.2.3"
principal = "prn_0123"
operations = ["item.change", "item.create"]

[parameters]
store = "north"

[fields.item]
outbound = { name = "label", cost = "price" }
inbound = { stock_level = "stock" }
"""


def encoded_schemas(schemas: Mapping[str, object] = SCHEMAS) -> dict[str, bytes]:
    """The schema files as bytes."""
    return {name: json.dumps(schema).encode() for name, schema in schemas.items()}


def sample_pack(text: str = PACK, schemas: Mapping[str, object] = SCHEMAS) -> Pack:
    """The pack that `text` describes."""
    return read_pack(text.encode(), encoded_schemas(schemas), file="shop/pack.toml")


def sample_binding(text: str = BINDING) -> Binding:
    """The binding that `text` describes."""
    return read_binding(text.encode(), file="acme.toml")


def sample_view(
    pack: str = PACK,
    binding: str = BINDING,
    origins: OriginPolicy | None = None,
    schemas: Mapping[str, object] = SCHEMAS,
) -> BindingView:
    """The view of both."""
    return compile_view(
        sample_pack(pack, schemas),
        sample_binding(binding),
        origins=origins or OriginPolicy(),
        file="acme.toml",
    )


def changed(text: str, old: str, new: str) -> str:
    """`text` with its one occurrence of `old` replaced."""
    assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
    return text.replace(old, new)


ONE = """
format = "doonce.pack/1"
name = "one"
version = "1.0.0"
title = "One operation and its probe"
origins = ["https://api.one.example"]

[auth]
scheme = "none"

[operations."thing.do"]
summary = "Do it"
method = "{method}"
target = "/things/{{remote_id}}"
payload_schema = "payload.json"
link = "existing"
call_budget = "10s"
send_window = "2s"
settle_after = "60s"
evidence = [{{ json = "/id" }}]
{rest}

[operations."thing.read"]
summary = "Read it"
method = "GET"
target = "/things/{{remote_id}}"
payload_schema = "empty.json"
link = "existing"
call_budget = "10s"
send_window = "2s"
evidence = []
"""


def one_operation(method: str, rest: str = "", properties: tuple[str, ...] = ()) -> OperationContract:
    """The contract of one operation with the given method and further TOML."""
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in properties},
        "required": list(properties),
        "additionalProperties": False,
    }
    text = ONE.format(method=method, rest=rest)
    pack = sample_pack(text, {"payload.json": schema, "empty.json": SCHEMAS["empty.json"]})
    return pack.operations["thing.do"]
