"""Reading a binding: how one installation of one organization uses a pack (docs/packs.md)."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import UNSET

from doonce.base.limits import LIMITS
from doonce.catalog.bounds import SECOND_US
from doonce.catalog.model import Binding, Completion, CompletionMode, FieldMap, Policies
from doonce.catalog.reading import NAME, Place, Table, read_toml
from doonce.catalog.webhooks import Route

BINDING_FORMAT: Final = "doonce.binding/1"

_PACK: Final = re.compile(r"[a-z][a-z0-9_.-]*@[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}", re.ASCII)
_HOUR_US: Final = 3_600 * SECOND_US


def read_binding(source: bytes | Mapping[str, object], *, file: str = "binding.toml") -> Binding:
    """Return the binding that a TOML document, or the same as a mapping, describes.

    It is checked against its pack by `compile_view`. Raises one `Invalid` that names file, table and field.
    """
    top = read_toml(source, file) if isinstance(source, bytes) else Table(Place(file), source)
    top.text("format", pattern=re.compile(re.escape(BINDING_FORMAT)), wanted=f'"{BINDING_FORMAT}"')
    policies = top.optional_table("policies")
    binding = Binding(
        org=top.text("org", bytes_max=LIMITS.org_bytes_max),
        installation=top.text("installation", bytes_max=LIMITS.installation_bytes_max),
        capability=top.text(
            "capability", pattern=NAME, wanted='"dotted.words"', bytes_max=LIMITS.capability_bytes_max
        ),
        pack=top.text("pack", pattern=_PACK, wanted='"name@1.0.0"', bytes_max=LIMITS.name_bytes_max),
        origin=top.optional_text("origin", wanted='"https://host"'),
        principal=top.text("principal", bytes_max=LIMITS.name_bytes_max),
        operations=tuple(sorted(top.texts("operations"))),
        parameters=top.text_map("parameters"),
        fields={name: _read_fields(table) for name, table in top.named_tables("fields").items()},
        policies=_read_policies(policies or Table(Place(file, "policies"), {})),
        webhooks={name: _read_route(table) for name, table in top.named_tables("webhooks").items()} or UNSET,
    )
    top.close()
    return binding


def _read_fields(table: Table) -> FieldMap:
    fields = FieldMap(outbound=table.text_map("outbound"), inbound=table.text_map("inbound"))
    table.close('write outbound = { yours = "theirs" } and inbound = { yours = "theirs" }')
    return fields


def _read_route(table: Table) -> Route:
    route = Route(
        url=table.optional_text("url", wanted='"https://hooks.example.com/path"'),
        accepts_loss=table.optional_text("accepts_loss", bytes_max=LIMITS.reason_bytes_max),
        reconcile=table.boolean("reconcile", default=True),
        handle=table.texts("handle", default=()),
        push=table.optional_text("push", pattern=NAME, wanted='"the-name-of-a-configured-url"'),
        hydrate=table.texts("hydrate", default=()),
    )
    table.close()
    return route


def _read_policies(table: Table) -> Policies:
    retry = table.optional_table("retry") or Table(table.place.inner("retry"), {})
    predispatch = table.optional_table("pre_dispatch") or Table(table.place.inner("pre_dispatch"), {})
    deferral = table.optional_table("deferral") or Table(table.place.inner("deferral"), {})
    completion = table.optional_table("completion")
    policies = Policies(
        wants_rejected_result=table.boolean("wants_rejected_result", default=True),
        retry_base_us=retry.duration_us("base", most_us=_HOUR_US, default_us=SECOND_US),
        retry_cap_us=retry.duration_us("cap", most_us=24 * _HOUR_US, default_us=300 * SECOND_US),
        attempts_max=retry.integer("attempts_max", least=1, most=100, default=8),
        predispatch_failures_max=predispatch.integer("failures_max", least=1, most=10_000, default=100),
        predispatch_age_us_max=predispatch.duration_us("age_max", default_us=24 * _HOUR_US),
        deferrals_max=deferral.integer("count_max", least=1, most=100_000, default=1_000),
        deferral_age_us_max=deferral.duration_us("age_max", default_us=24 * _HOUR_US),
        completion=Completion(mode=CompletionMode.PULL)
        if completion is None
        else _read_completion(completion),
    )
    if policies.retry_base_us > policies.retry_cap_us:
        raise retry.fault("base", "is longer than cap", "lower base, or raise cap")
    for inner in (retry, predispatch, deferral, table):
        inner.close()
    return policies


def _read_completion(table: Table) -> Completion:
    mode = table.choice("mode", CompletionMode)
    url_name = table.optional_text("url_name", pattern=NAME, wanted='"the-name-of-a-configured-url"')
    if (mode is CompletionMode.PUSH) != (url_name is not None):
        raise table.fault("url_name", 'goes together with mode = "push"', "write both or neither")
    table.close()
    return Completion(mode=mode, url_name=url_name)
