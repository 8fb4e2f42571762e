"""Answers to a provider that only asks whether anybody is there. Pure and total."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl

from msgspec import UNSET

from doonce.base.errors import Invalid
from doonce.base.json import JsonValue, loads
from doonce.catalog.extraction import same_scalar
from doonce.catalog.parts import Condition
from doonce.catalog.pointers import ABSENT, lookup
from doonce.catalog.webhooks import Webhook
from doonce.ingress.model import ChallengeAnswer, Delivery

ECHO_BYTES_MAX: Final = 1_024
"""What is echoed; the longest known challenge has some 300 characters."""

QUERY_FIELDS_MAX: Final = 100
"""Parameters of a query that asks; the known ones have three."""

PLAIN: Final = "text/plain"


def answer_body(webhook: Webhook, delivery: Delivery) -> ChallengeAnswer | None:
    """The answer to a verified delivery that is a challenge; None for every other."""
    challenge = webhook.body_challenge
    if challenge is None:
        return None
    try:
        document = loads(delivery.body, bytes_max=webhook.body_bytes_max)
    except Invalid:
        return None
    if not all(_holds(document, condition) for condition in challenge.when):
        return None
    if challenge.constant is not None:
        return ChallengeAnswer(challenge.constant.encode(), challenge.content_type)
    found = lookup(document, challenge.echo or "")
    return _echo(found) if isinstance(found, str) else None


def answer_query(webhook: Webhook, delivery: Delivery) -> ChallengeAnswer | None:
    """The answer to a GET that is a challenge; None for every other request."""
    challenge = webhook.query_challenge
    if challenge is None or delivery.method != b"GET":
        return None
    try:
        fields = parse_qsl(
            delivery.query.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=QUERY_FIELDS_MAX,
        )
    except ValueError:
        return None
    if not all(list(_named(fields, name)) == [value] for name, value in challenge.when.items()):
        return None
    asked = list(_named(fields, challenge.echo))
    return _echo(asked[0]) if len(asked) == 1 else None


def _named(fields: list[tuple[str, str]], wanted: str) -> Iterator[str]:
    return (value for name, value in fields if name == wanted)


def _holds(document: JsonValue, condition: Condition) -> bool:
    found = lookup(document, condition.json or "")
    if found is ABSENT or found is None:
        return False
    return condition.equals is UNSET or same_scalar(found, condition.equals)


def _echo(text: str) -> ChallengeAnswer | None:
    """A sender's own text, and only where it can do no harm: plain, printable, short."""
    if not (text and text.isascii() and text.isprintable() and len(text) <= ECHO_BYTES_MAX):
        return None
    return ChallengeAnswer(text.encode(), PLAIN)
