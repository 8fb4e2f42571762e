"""Reading the half of a pack that comes in: webhooks, their verifiers and challenges."""

import re
from typing import Final

from doonce.catalog.bounds import (
    OVERLAP_US_MAX,
    PAGES_DEFAULT,
    PAGES_MAX,
    RESPONSE_DEADLINE_US_MAX,
    STAMP_TOLERANCE_US_MAX,
    SUMMARY_BYTES_MAX,
    WEBHOOK_BODY_BYTES_DEFAULT,
    WEBHOOK_BODY_BYTES_MAX,
)
from doonce.catalog.pack_answers import read_condition, read_missing_statuses
from doonce.catalog.reading import NAME, Table
from doonce.catalog.webhooks import (
    Algorithm,
    Answers,
    BodyChallenge,
    BodyFormat,
    EventRule,
    HeaderPart,
    Hydration,
    ObjectRule,
    PageCursor,
    QueryChallenge,
    Reconciliation,
    Redelivery,
    SecretForm,
    SignatureEncoding,
    StampFormat,
    Timestamp,
    Verifier,
    Webhook,
)

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)
_SEPARATOR: Final = re.compile(r"[ ,;]", re.ASCII)
_TEXT_PLAIN: Final = "text/plain"
_JSON: Final = "application/json"
_AUTHORIZATION: Final = "authorization"


def read_webhook(table: Table) -> Webhook:
    """Return one webhook of a pack; raises `Invalid` for whatever is not read."""
    events = table.optional_table("events")
    answer = table.optional_table("answer")
    body_challenge = table.optional_table("challenge")
    query_challenge = table.optional_table("query_challenge")
    reconciliation = table.optional_table("reconciliation")
    webhook = Webhook(
        summary=table.text("summary", wanted='"one line for people"', bytes_max=SUMMARY_BYTES_MAX),
        body_bytes_max=table.integer(
            "body_bytes_max", least=1, most=WEBHOOK_BODY_BYTES_MAX, default=WEBHOOK_BODY_BYTES_DEFAULT
        ),
        response_deadline_us=table.duration_us("response_deadline", most_us=RESPONSE_DEADLINE_US_MAX),
        answers=_read_answers(answer or Table(table.place.inner("answer"), {})),
        events=_read_events(events or Table(table.place.inner("events"), {"format": BodyFormat.RAW.value})),
        verifier=_read_verifier(table.table("verifier")),
        body_challenge=None if body_challenge is None else _read_body_challenge(body_challenge),
        query_challenge=None if query_challenge is None else _read_query_challenge(query_challenge),
        delivery_id=_lower(table.optional_text("delivery_id", pattern=_HEADER, wanted='"Delivery-Id"')),
        redelivery=table.choice("redelivery", Redelivery),
        redelivery_window_us=table.optional_duration_us("redelivery_window"),
        reconciliation=None if reconciliation is None else _read_reconciliation(reconciliation),
    )
    table.close()
    return webhook


def _read_events(table: Table) -> EventRule:
    events = EventRule(
        format=table.choice("format", BodyFormat, default=BodyFormat.JSON),
        each=str(table.scalar("each")) if table.has("each") else None,
        type=table.optional_text("type", wanted='"/type"'),
        type_header=_lower(table.optional_text("type_header", pattern=_HEADER, wanted='"Shop-Event"')),
        identity=table.texts("identity", default=()),
        object_id=table.texts("object_id", default=()),
        objects={name: _read_object(inner) for name, inner in table.named_tables("objects").items()},
        stable_bodies=table.boolean("stable_bodies", default=False),
    )
    table.close()
    return events


def _read_object(table: Table) -> ObjectRule:
    hydrate = table.optional_table("hydrate")
    rule = ObjectRule(
        types=table.texts("types"),
        remote_id=table.text("remote_id", wanted='"/id"'),
        fields=str(table.scalar("fields")) if table.has("fields") else None,
        field_name=table.optional_text("field_name", wanted='"/name"'),
        field_value=table.optional_text("field_value", wanted='"/value"'),
        deletes=table.texts("deletes", default=()),
        hydrate=None if hydrate is None else _read_hydration(hydrate),
    )
    table.close()
    return rule


def _read_hydration(table: Table) -> Hydration:
    hydration = Hydration(
        operation=table.text("operation", pattern=NAME, wanted='"the name of a GET operation"'),
        fields=str(table.scalar("fields")) if table.has("fields") else "",
        missing_statuses=read_missing_statuses(table),
    )
    table.close()
    return hydration


def _read_answers(table: Table) -> Answers:
    answers = Answers(
        status=table.integer("status", least=200, most=299, default=200),
        body=str(table.scalar("body")) if table.has("body") else "",
        content_type=table.optional_text("content_type") or _TEXT_PLAIN,
        overload_status=table.integer("overload_status", least=429, most=599, default=503),
        retry_after_seconds=table.integer("retry_after_seconds", least=1, most=3_600)
        if table.has("retry_after_seconds")
        else None,
    )
    table.close()
    return answers


def _read_verifier(table: Table) -> Verifier:
    algorithm = table.choice("algorithm", Algorithm)
    timestamp = table.optional_table("timestamp")
    verifier = Verifier(
        algorithm=algorithm,
        proof=HeaderPart(header=_AUTHORIZATION, prefix="", separator="")
        if algorithm is Algorithm.BASIC
        else _read_header_part(table),
        encoding=table.choice("encoding", SignatureEncoding) if algorithm.signs else None,
        content=table.text("content", wanted='"{timestamp}.{body}"') if algorithm.signs else None,
        secret=table.choice("secret", SecretForm, default=SecretForm.TEXT),
        secret_prefix=table.optional_text("secret_prefix") or "",
        timestamp=None if timestamp is None else _read_timestamp(timestamp),
        url_unescaped=table.optional_text("url_unescaped") or "",
        body_digest_query=table.optional_text("body_digest_query"),
    )
    table.close()
    return verifier


def _read_header_part(table: Table) -> HeaderPart:
    return HeaderPart(
        header=table.text("header", pattern=_HEADER, wanted='"X-Signature"').lower(),
        prefix=table.optional_text("prefix") or "",
        separator=table.optional_text("separator", pattern=_SEPARATOR, wanted='" ", "," or ";"') or "",
    )


def _read_timestamp(table: Table) -> Timestamp:
    timestamp = Timestamp(
        source=_read_header_part(table),
        format=table.choice("format", StampFormat),
        past_us=table.duration_us("past", most_us=STAMP_TOLERANCE_US_MAX),
        future_us=table.duration_us("future", most_us=STAMP_TOLERANCE_US_MAX),
    )
    table.close()
    return timestamp


def _read_body_challenge(table: Table) -> BodyChallenge:
    echo = str(table.scalar("echo")) if table.has("echo") else None
    challenge = BodyChallenge(
        when=tuple(read_condition(inner) for inner in table.tables("when")),
        echo=echo,
        constant=table.optional_text("constant"),
        content_type=table.optional_text("content_type") or (_JSON if echo is None else _TEXT_PLAIN),
    )
    table.close()
    return challenge


def _read_query_challenge(table: Table) -> QueryChallenge:
    challenge = QueryChallenge(when=table.text_map("when"), echo=table.text("echo"))
    table.close()
    return challenge


def _read_reconciliation(table: Table) -> Reconciliation:
    cursor, more = table.optional_table("cursor"), table.optional_table("more")
    reconciliation = Reconciliation(
        operation=table.text("operation", pattern=NAME, wanted='"the name of a GET operation"'),
        query=table.text_map("query"),
        time_format=table.choice("time_format", StampFormat),
        before_us=table.duration_us("before", most_us=OVERLAP_US_MAX),
        after_us=table.duration_us("after", most_us=OVERLAP_US_MAX),
        items=str(table.scalar("items")),
        cursor=None if cursor is None else _read_cursor(cursor),
        more=None if more is None else read_condition(more),
        newest_first=table.boolean("newest_first", default=False),
        pages_max=table.integer("pages_max", least=1, most=PAGES_MAX, default=PAGES_DEFAULT),
        type=table.optional_text("type", wanted='"/type"'),
        identity=table.texts("identity", default=()),
        object_id=table.texts("object_id", default=()),
    )
    table.close()
    return reconciliation


def _read_cursor(table: Table) -> PageCursor:
    header = table.optional_text("header", pattern=_HEADER, wanted='"X-Next-Page"')
    cursor = PageCursor(
        json=table.optional_text("json", wanted='"/next"'),
        header=_lower(header),
        last_item=table.optional_text("last_item", wanted='"/id"'),
    )
    table.close()
    return cursor


def _lower(name: str | None) -> str | None:
    return None if name is None else name.lower()
