"""A pack with every method under three kinds of contract: silent, with outcome rules, and with a replay contract."""

from __future__ import annotations

import json

from doonce.catalog.model import Pack
from doonce.catalog.pack import read_pack

METHODS = ("PATCH", "POST", "PUT", "DELETE", "GET")
SAYS = ("silent", "declares", "replay")

HEAD = """
format = "doonce.pack/1"
name = "table"
version = "1.0.0"
title = "Every method under every kind of contract"
origin_from_binding = true

[auth]
scheme = "header"
header = "Authorization"
prefix = "Bearer "

[objects.contact]
fields = ["email", "jobtitle"]
"""

OUTCOMES = """
[[operations."{name}".outcomes]]
status = [200]
body = {{ json = "/ok", equals = false }}
outcome = "rejected"

[[operations."{name}".outcomes]]
status = [429]
outcome = "no_effect"
retry_after_max = "1h"

[[operations."{name}".outcomes]]
status = [503]
outcome = "rejected"
"""

VERIFY = """
[[operations."{name}".outcomes]]
status = [409]
outcome = "unknown"
"""

REPLAY = {
    "PATCH": 'kind = "precondition"\nif_match = "etag"\nwindow = "24h"',
    "POST": 'kind = "idempotency_key"\nheader = "Idempotency-Key"\nwindow = "24h"',
    "PUT": 'kind = "precondition"\nif_none_match = "*"\nwindow = "24h"',
    "DELETE": 'kind = "precondition"\nif_match = "etag"\nwindow = "24h"',
    "GET": 'kind = "read"',
}


def operation_name(method: str, says: str) -> str:
    """The operation of one method under one kind of contract."""
    return f"{method.lower()}.{says}"


def _operation(method: str, says: str) -> str:
    name = operation_name(method, says)
    base = "/sim/objects/contacts" if method == "PUT" else "/crm/v3/objects/contacts"
    target = base if method == "POST" else f"{base}/{{remote_id}}"
    evidence = "[]" if method == "DELETE" else '[{ json = "/id" }]'
    parts = [
        f'[operations."{name}"]',
        'summary = "one cell"',
        f'method = "{method}"',
        f'target = "{target}"',
        'query = { case = "{payload.case}", command = "{command_id}" }',
        'object = "contact"',
        f'payload_schema = "{_schema_name(method, says)}"',
        f'link = "{"none" if method == "POST" else "existing"}"',
        'call_budget = "6s"',
        'send_window = "1s"',
        "response_bytes_max = 262144",
        f"evidence = {evidence}",
    ]
    text = "\n".join(parts) + "\n"
    if method not in ("GET", "DELETE"):
        text += f'[operations."{name}".body]\nkind = "json"\nfields_at = "/properties"\n'
    if says == "declares":
        text += OUTCOMES.format(name=name)
        text += "" if method == "GET" else VERIFY.format(name=name)
    if says == "replay":
        text += f'[operations."{name}".replay]\n{REPLAY[method]}\n'
    return text


def _schema_name(method: str, says: str) -> str:
    conditional = says == "replay" and method in ("PATCH", "DELETE")
    return f"{'bare' if method in ('GET', 'DELETE') else 'title'}{'-etag' if conditional else ''}.json"


def _schema(*fields: str) -> bytes:
    return json.dumps(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {field: {"type": "string", "maxLength": 254} for field in fields},
            "required": list(fields),
            "additionalProperties": False,
        }
    ).encode()


def table_pack() -> Pack:
    """The pack."""
    operations = [_operation(method, says) for method in METHODS for says in SAYS]
    schemas = {
        "bare.json": _schema("case"),
        "bare-etag.json": _schema("case", "etag"),
        "title.json": _schema("case", "jobtitle"),
        "title-etag.json": _schema("case", "etag", "jobtitle"),
    }
    return read_pack("\n".join([HEAD, *operations]).encode(), schemas)
