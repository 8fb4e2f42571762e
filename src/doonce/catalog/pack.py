"""Reading a definition pack: one `pack.toml` and the JSON Schemas that it names (docs/packs.md)."""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET

from doonce.base.errors import Invalid
from doonce.base.json import loads
from doonce.base.limits import LIMITS
from doonce.catalog.bounds import SUMMARY_BYTES_MAX
from doonce.catalog.closure import check_pack
from doonce.catalog.model import (
    Auth,
    AuthScheme,
    BodyKind,
    BodyRule,
    LinkUse,
    Method,
    OperationContract,
    Pack,
    Parameter,
    ParameterKind,
    Replay,
    ReplayKind,
    SourceFailure,
)
from doonce.catalog.pack_answers import read_conditions, read_outcomes, read_probe, read_sources
from doonce.catalog.pack_webhooks import read_webhook
from doonce.catalog.reading import NAME, Place, Table, read_toml
from doonce.catalog.schemas import PayloadSchema, check_schema

PACK_FORMAT: Final = "doonce.pack/1"

_VERSION: Final = re.compile(r"[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}", re.ASCII)
_SCHEMA_FILE: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}\.json", re.ASCII)
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)


def read_pack(raw: bytes, schemas: Mapping[str, bytes], *, file: str = "pack.toml") -> Pack:
    """Return the pack that a TOML document and its schema files (by name) describe, whole and checked.

    Raises one `Invalid` that names file, table and field, with what to write instead as its hint: for an
    unknown field, a wrong type or unit, a combination that cannot be safe, a schema file that is missing,
    and one that nothing names.
    """
    top = read_toml(raw, file)
    top.text("format", pattern=re.compile(re.escape(PACK_FORMAT)), wanted=f'"{PACK_FORMAT}"')
    named: set[str] = set()
    pack = Pack(
        name=top.text("name", pattern=NAME, wanted='"a-lower-case-name"', bytes_max=LIMITS.name_bytes_max),
        version=top.text("version", pattern=_VERSION, wanted='"1.0.0"'),
        title=top.text("title", bytes_max=SUMMARY_BYTES_MAX),
        origins=tuple(sorted(top.texts("origins", default=()))),
        origin_from_binding=top.boolean("origin_from_binding", default=False),
        auth=_read_auth(top.table("auth")),
        parameters={name: _read_parameter(table) for name, table in top.named_tables("parameters").items()},
        objects={name: _read_object(table) for name, table in top.named_tables("objects").items()},
        operations={
            name: _read_operation(table, schemas, named)
            for name, table in top.named_tables("operations").items()
        },
        webhooks={name: read_webhook(table) for name, table in top.named_tables("webhooks").items()} or UNSET,
    )
    top.close()
    for unnamed in sorted(set(schemas) - named):
        raise Place(file).fault("", f"no operation names the schema {unnamed}", "remove the file, or name it")
    check_pack(Place(file), pack)
    return pack


def _read_auth(table: Table) -> Auth:
    scheme = table.choice("scheme", AuthScheme)
    header, prefix = "", ""
    if scheme is AuthScheme.HEADER:
        header = table.text("header", pattern=_HEADER, wanted='"Authorization"')
        prefix = str(table.scalar("prefix"))
    elif scheme is AuthScheme.BASIC:
        header = "Authorization"
    table.close()
    return Auth(scheme=scheme, header=header, prefix=prefix)


def _read_parameter(table: Table) -> Parameter:
    parameter = Parameter(kind=table.choice("kind", ParameterKind), summary=_summary(table))
    table.close()
    return parameter


def _read_object(table: Table) -> tuple[str, ...]:
    fields = tuple(sorted(table.texts("fields")))
    table.close()
    return fields


def _summary(table: Table) -> str:
    return table.text("summary", wanted='"one line for people"', bytes_max=SUMMARY_BYTES_MAX)


def _read_operation(table: Table, schemas: Mapping[str, bytes], named: set[str]) -> OperationContract:
    method = table.choice("method", Method)
    default_replay = Replay(kind=ReplayKind.READ if method is Method.GET else ReplayKind.NONE)
    replay = table.optional_table("replay")
    probe = table.optional_table("probe")
    body = table.optional_table("body")
    operation = OperationContract(
        summary=_summary(table),
        method=method,
        target=table.text("target", wanted='"/path/{remote_id}"'),
        query=table.text_map("query"),
        headers=table.text_map("headers"),
        object=table.optional_text("object", pattern=NAME),
        payload_schema=_read_schema(table, schemas, named),
        body=BodyRule(kind=BodyKind.NONE) if body is None else _read_body(body),
        link=table.choice("link", LinkUse),
        target_lane=table.optional_text("target_lane", wanted='"{remote_id}"'),
        source_lane=table.choice("source_lane", SourceFailure, default=SourceFailure.BLOCK),
        replay=default_replay if replay is None else _read_replay(replay),
        duplicates_rejected=table.boolean("duplicates_rejected", default=False),
        call_budget_us=table.duration_us("call_budget"),
        send_window_us=table.duration_us("send_window"),
        settle_after_us=table.optional_duration_us("settle_after"),
        response_bytes_max=table.integer(
            "response_bytes_max", least=1, most=LIMITS.response_bytes_max, default=LIMITS.response_bytes_max
        ),
        evidence=read_conditions(table, "evidence"),
        outcomes=read_outcomes(table),
        results=read_sources(table, "results"),
        rejection=read_sources(table, "rejection"),
        receipt_headers=tuple(sorted(name.lower() for name in table.texts("receipt_headers", default=()))),
        probe=None if probe is None else read_probe(probe),
    )
    table.close()
    return operation


def _read_schema(table: Table, schemas: Mapping[str, bytes], named: set[str]) -> dict[str, Any]:
    name = table.text(
        "payload_schema", pattern=_SCHEMA_FILE, wanted='"name.json", a file in the folder schemas'
    )
    if name not in schemas:
        raise table.fault(
            "payload_schema", f"there is no schema file {name}", "put it into the pack's folder schemas"
        )
    named.add(name)
    try:
        schema = check_schema(loads(schemas[name], bytes_max=LIMITS.document_bytes_max))
        PayloadSchema(schema).compile()
        return dict(schema)
    except Invalid as fault:
        raise table.fault("payload_schema", f"schemas/{name}: {fault.message}", fault.hint) from None


def _read_body(table: Table) -> BodyRule:
    kind = table.choice("kind", BodyKind)
    rule = BodyRule(
        kind=kind,
        content_type=table.text("content_type") if table.has("content_type") else _default_content_type(kind),
        fields_at=str(table.scalar("fields_at")) if table.has("fields_at") else None,
        members=table.text_map("members"),
        constants=table.scalar_map("constants"),
        text_from=table.optional_text("from"),
    )
    table.close()
    return rule


def _default_content_type(kind: BodyKind) -> str | None:
    return "application/json" if kind is BodyKind.JSON else None


def _read_replay(table: Table) -> Replay:
    kind = table.choice("kind", ReplayKind)
    if_none_match = table.optional_text("if_none_match", pattern=re.compile(r"\*"), wanted='"*"')
    replay = Replay(
        kind=kind,
        window_us=table.optional_duration_us("window"),
        header=table.optional_text("header", pattern=_HEADER, wanted='"Idempotency-Key"'),
        if_none_match=if_none_match is not None,
        if_match=table.optional_text("if_match", wanted='"the payload field that holds the ETag"'),
    )
    table.close()
    return replay
