"""Deliveries that were signed by the providers' own libraries verify: our verifier meets somebody else's signer."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import standardwebhooks
import stripe
import svix
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from discord_interactions import verify_key
from hubspot.utils.signature import Signature
from sendgrid.helpers.eventwebhook import EventWebhook
from slack_sdk.signature import SignatureVerifier
from tests.unit.ingress.deliveries import SECOND, delivery, opened
from twilio.request_validator import RequestValidator

from doonce.ingress.model import Delivery, Verified
from doonce.ingress.verify import OpenVerifier, verify

AT = 1_796_000_000
NOW = datetime.fromtimestamp(AT, tz=UTC)
BODY = json.dumps({"id": "evt_1", "name": "Zoë", "amount": 1.10, "note": "a\u2028b"}, ensure_ascii=False)
KEY = base64.b64encode(bytes(range(24))).decode()
URL = "https://hooks.acme.example/in/7"

Signed = tuple[OpenVerifier, Delivery]


def of_standard_webhooks() -> Signed:
    signature = standardwebhooks.Webhook(f"whsec_{KEY}").sign("msg_1", NOW, BODY)
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(AT), "webhook-signature": signature}
    return opened("standard-webhooks", "message", f"whsec_{KEY}"), delivery(headers, BODY)


def of_svix() -> Signed:
    signature = svix.webhooks.Webhook(f"whsec_{KEY}").sign("msg_1", NOW, BODY)
    headers = {"svix-id": "msg_1", "svix-timestamp": str(AT), "svix-signature": signature}
    return opened("svix", "message", f"whsec_{KEY}"), delivery(headers, BODY)


def of_stripe() -> Signed:
    header = stripe.WebhookSignature.generate_signature_header(BODY, "whsec_stripe", timestamp=AT)
    return opened("stripe", "event", "whsec_stripe"), delivery({"Stripe-Signature": header}, BODY)


def of_slack() -> Signed:
    signature = SignatureVerifier("slack-secret").generate_signature(timestamp=str(AT), body=BODY)
    headers = {"X-Slack-Signature": signature or "", "X-Slack-Request-Timestamp": str(AT)}
    return opened("slack", "event", "slack-secret"), delivery(headers, BODY)


def of_twilio_form() -> Signed:
    fields = {"Body": "Grüße & more", "From": "+14155550100", "Empty": "", "a": "1", "B": "2"}
    signature = RequestValidator("token").compute_signature(f"{URL}?x=%20y", fields)
    body = "a=1&B=2&Empty=&From=%2B14155550100&Body=Gr%C3%BC%C3%9Fe+%26+more"
    return (
        opened("twilio", "form", "token", url=URL),
        delivery({"X-Twilio-Signature": signature}, body, query="x=%20y"),
    )


def of_twilio_json() -> Signed:
    query = f"bodySHA256={hashlib.sha256(BODY.encode()).hexdigest()}"
    signature = RequestValidator("token").compute_signature(f"{URL}?{query}", {})
    return (
        opened("twilio", "json", "token", url=URL),
        delivery({"X-Twilio-Signature": signature}, BODY, query=query),
    )


def of_hubspot_v1() -> Signed:
    signature = Signature.get_signature("app-secret", BODY, "v1")
    return opened("hubspot", "events.v1", "app-secret"), delivery({"X-HubSpot-Signature": signature}, BODY)


def of_hubspot_v2() -> Signed:
    signature = Signature.get_signature("app-secret", BODY, "v2", f"{URL}?a=1", "POST")
    return (
        opened("hubspot", "events.v2", "app-secret", url=URL),
        delivery({"X-HubSpot-Signature": signature}, BODY, query="a=1"),
    )


def of_hubspot_v3() -> Signed:
    stamp = str(AT * 1_000 + 7)
    signed_url = (
        f"{URL}?to=https://x.example/?b@c&d=%20"  # the vendor's rule: these characters are signed unescaped
    )
    signature = Signature.get_signature("app-secret", BODY, "v3", signed_url, "POST", stamp)
    headers = {"X-HubSpot-Signature-v3": signature, "X-HubSpot-Request-Timestamp": stamp}
    return (
        opened("hubspot", "events", "app-secret", url=URL),
        delivery(headers, BODY, query="to=https%3A%2F%2fx.example%2F%3Fb%40c&d=%20"),
    )


def of_discord() -> Signed:
    key = ed25519.Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    signature = key.sign(f"{AT}{BODY}".encode()).hex()
    assert verify_key(BODY.encode(), signature, str(AT), public)  # the vendor's own verifier agrees
    headers = {"X-Signature-Ed25519": signature, "X-Signature-Timestamp": str(AT)}
    return opened("discord", "interaction", public), delivery(headers, BODY)


def of_sendgrid() -> Signed:
    key = ec.generate_private_key(ec.SECP256R1())
    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    public = base64.b64encode(der).decode()
    signature = base64.b64encode(key.sign(f"{AT}{BODY}".encode(), ec.ECDSA(hashes.SHA256()))).decode()
    assert EventWebhook(public).verify_signature(BODY, signature, str(AT))  # the vendor's own verifier agrees
    headers = {
        "X-Twilio-Email-Event-Webhook-Signature": signature,
        "X-Twilio-Email-Event-Webhook-Timestamp": str(AT),
    }
    return opened("sendgrid", "events", public), delivery(headers, BODY)


def mac(secret: str, content: str, hash_name: str) -> bytes:
    """For providers whose library does not sign: their documentation's one line."""
    return hmac.new(secret.encode(), content.encode(), hash_name).digest()


def of_shopify() -> Signed:
    signature = base64.b64encode(mac("client-secret", BODY, "sha256")).decode()
    return opened("shopify", "event", "client-secret"), delivery({"X-Shopify-Hmac-Sha256": signature}, BODY)


def of_zendesk() -> Signed:
    stamp = NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
    headers = {
        "X-Zendesk-Webhook-Signature": base64.b64encode(mac("key", stamp + BODY, "sha256")).decode(),
        "X-Zendesk-Webhook-Signature-Timestamp": stamp,
    }
    return opened("zendesk", "event", "key"), delivery(headers, BODY)


def of_intercom() -> Signed:
    header = f"sha1={mac('client-secret', BODY, 'sha1').hex()}"
    return opened("intercom", "notification", "client-secret"), delivery({"X-Hub-Signature": header}, BODY)


def of_outreach() -> Signed:
    signature = mac("webhook-secret", BODY, "sha256").hex()
    return (
        opened("outreach", "event", "webhook-secret"),
        delivery({"Outreach-Webhook-Signature": signature}, BODY),
    )


def of_gitlab() -> Signed:
    return opened("gitlab", "event", "the-token"), delivery({"X-Gitlab-Token": "the-token"}, BODY)


SIGNERS: list[Callable[[], Any]] = [
    of_standard_webhooks, of_svix, of_stripe, of_slack, of_twilio_form, of_twilio_json, of_hubspot_v1,
    of_hubspot_v2, of_hubspot_v3, of_discord, of_sendgrid, of_shopify, of_zendesk, of_intercom, of_outreach, of_gitlab,
]  # fmt: skip


@pytest.mark.parametrize("signer", SIGNERS, ids=lambda signer: signer.__name__[3:])
def test_what_the_provider_signs_verifies(signer: Callable[[], Signed]) -> None:
    verifier, signed = signer()
    found = verify(verifier, signed, now_us=AT * SECOND)
    assert isinstance(found, Verified), found
