"""A provider that asks whether anybody is there gets the answer that its pack declares, and nobody's HTML."""

import pytest
from tests.unit.catalog.samples import sample_pack
from tests.unit.ingress.deliveries import delivery, webhook

from doonce.catalog.webhooks import Webhook
from doonce.ingress.challenge import ECHO_BYTES_MAX, answer_body, answer_query
from doonce.ingress.model import ChallengeAnswer

ASKING = """
format = "doonce.pack/1"
name = "asking"
version = "1.0.0"
title = "A provider that asks by GET"
auth = { scheme = "none" }
[webhooks.event]
summary = "An event"
response_deadline = "10s"
redelivery = "window"
redelivery_window = "1h"
events = { identity = ["/id"] }
query_challenge = { when = { "hub.mode" = "subscribe" }, echo = "hub.challenge" }
verifier = { algorithm = "hmac-sha256", header = "X-Signature", encoding = "hex", content = "{body}" }
"""


def asking() -> Webhook:
    """The webhook of a pack that asks by GET."""
    return (sample_pack(ASKING, {}).webhooks or {})["event"]


def test_a_text_from_the_body_is_echoed_plainly() -> None:
    asked = delivery({}, '{"type":"url_verification","challenge":"3eZb <b>"}')
    assert answer_body(webhook("slack", "event"), asked) == ChallengeAnswer(b"3eZb <b>", "text/plain")


def test_a_ping_gets_its_constant() -> None:
    ping = delivery({}, '{"type":1,"id":"7"}')
    assert answer_body(webhook("discord", "interaction"), ping) == ChallengeAnswer(
        b'{"type":1}', "application/json"
    )


@pytest.mark.parametrize(
    "body",
    [
        '{"type":"event_callback"}', '{"type":"url_verification"}', '{"type":"url_verification","challenge":1}',
        '{"type":"url_verification","challenge":""}', '{"type":"url_verification","challenge":"a\\nb"}',
        '{"type":"url_verification","challenge":"é"}', '{"type":["url_verification"]}', "", "[]", "{", "\ufeff{}",
        '{"type":"url_verification","challenge":"%s"}' % ("x" * (ECHO_BYTES_MAX + 1)),
        '{"type":"url_verification","type":"x","challenge":"y"}',
    ],
)  # fmt: skip
def test_whatever_else_is_no_challenge(body: str) -> None:
    assert answer_body(webhook("slack", "event"), delivery({}, body)) is None


def test_true_is_not_one() -> None:
    assert answer_body(webhook("discord", "interaction"), delivery({}, '{"type":true}')) is None


def test_a_query_is_echoed() -> None:
    asked = delivery({}, "", method="GET", query="hub.mode=subscribe&hub.challenge=12%2034")
    assert answer_query(asking(), asked) == ChallengeAnswer(b"12 34", "text/plain")


@pytest.mark.parametrize(
    "method, query",
    [
        ("POST", "hub.mode=subscribe&hub.challenge=1"), ("GET", "hub.challenge=1"), ("GET", "hub.mode=subscribe"),
        ("GET", "hub.mode=subscribe&hub.mode=subscribe&hub.challenge=1"),
        ("GET", "hub.mode=subscribe&hub.challenge=1&hub.challenge=2"),
        ("GET", "hub.mode=subscribe&hub.challenge=%ff"), ("GET", "hub.mode=subscribe&hub.challenge=%0d%0a"),
    ],
)  # fmt: skip
def test_whatever_else_is_asked_gets_nothing(method: str, query: str) -> None:
    assert answer_query(asking(), delivery({}, "", method=method, query=query)) is None
