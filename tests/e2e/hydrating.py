"""A binding of the shipped pack that reads whole contacts, and deliveries as its provider signs and shapes them."""

from __future__ import annotations

import base64
import hmac
import itertools
import json
import time
import urllib.request
from typing import Any

from tests.e2e.conftest import people

from doonce.ingress.receipts import RouteKey

CAPABILITY = "people.write"
ROUTE = RouteKey("acme", "main", CAPABILITY, "events")
PATH = f"/in/acme/main/{CAPABILITY}/events"
URL = f"https://hooks.example{PATH}"
SECRET = "the app's client secret"
INBOUND = {"stage": "lifecyclestage", "town": "city", "telephone": "phone"}
_numbers = itertools.count(1)


def binding(origin: str, **route: Any) -> dict[str, Any]:
    """People whose stage, town and telephone are the provider's to write, each contact read as a whole."""
    given = {"url": URL, "handle": ["contact.*"], "hydrate": ["contact"]} | route
    return people(
        origin,
        fields={"contact": {"outbound": {"title": "jobtitle", "email": "email"}, "inbound": INBOUND}},
        webhooks={"events": given},
    )


def event(contact: str, kind: str = "contact.propertyChange", **more: Any) -> dict[str, Any]:
    """One event as the provider tells it: of a change it names one property."""
    change = {"propertyName": "lifecyclestage", "propertyValue": "lead"} if "Change" in kind else {}
    return {
        "eventId": next(_numbers), "subscriptionId": 25, "portalId": 33, "appId": 1160452,
        "occurredAt": 1462216307945, "subscriptionType": kind, "attemptNumber": 0, "objectId": int(contact),
        **change, **more,
    }  # fmt: skip


def signed(body: bytes) -> dict[str, str]:
    """The headers of the third version of the provider's signature."""
    stamp = str(time.time_ns() // 1_000_000)
    content = b"POST" + URL.encode() + body + stamp.encode()
    proof = base64.b64encode(hmac.digest(SECRET.encode(), content, "sha256")).decode()
    return {"X-HubSpot-Signature-v3": proof, "X-HubSpot-Request-Timestamp": stamp}


def deliver(url: str, *events: dict[str, Any]) -> None:
    """One delivery of these events to a running service."""
    body = json.dumps(events).encode()
    asked = urllib.request.Request(url + PATH, body, signed(body))
    with urllib.request.urlopen(asked, timeout=30) as answer:
        assert answer.status == 200


def reads(ledger: list[dict[str, Any]], contact: str) -> list[dict[str, Any]]:
    """The whole reads of one contact that reached the provider."""
    path = f"/crm/v3/objects/contacts/{contact}"
    return [one for one in ledger if one["method"] == "GET" and one["target"].split("?")[0] == path]
