"""What a shipped pack's events say about its objects, on a delivery of the shape that the provider documents."""

import json
from typing import Any

import pytest
from tests.e2e.conftest import PACK

from doonce.base.json import loads
from doonce.catalog.files import load_pack
from doonce.catalog.model import FieldMap
from doonce.events.mapping import Told, told_of
from doonce.events.model import Derived, derive

MAPS = {"contact": FieldMap(outbound={"title": "jobtitle"}, inbound={"stage": "lifecyclestage"})}
CHANGE = {
    "objectId": 1246965,
    "propertyName": "lifecyclestage",
    "propertyValue": "subscriber",
    "changeSource": "ACADEMY",
    "eventId": 3816279340,
    "subscriptionId": 25,
    "portalId": 33,
    "appId": 1160452,
    "occurredAt": 1462216307945,
    "subscriptionType": "contact.propertyChange",
    "attemptNumber": 0,
}


@pytest.mark.parametrize("webhook", ["events", "events.v1", "events.v2"])
@pytest.mark.parametrize(
    "changed, told",
    [
        ({}, Told("contact", "1246965", deleted=False, fields={"stage": "subscriber"})),
        ({"propertyName": "jobtitle"}, Told("contact", "1246965", deleted=False, fields={})),
        ({"subscriptionType": "contact.deletion"}, Told("contact", "1246965", deleted=True, fields={})),
        (
            {"subscriptionType": "contact.creation", "propertyName": None},
            Told("contact", "1246965", deleted=False, fields={}),
        ),
        ({"subscriptionType": "deal.propertyChange"}, None),
    ],
)
def test_hubspot_contacts(webhook: str, changed: dict[str, Any], told: Told | None) -> None:
    rule = (load_pack(PACK).webhooks or {})[webhook].events
    found = derive(
        rule, ("acme", "main", "people", webhook), "receipt", json.dumps([CHANGE | changed]).encode()
    )
    assert isinstance(found, tuple)
    (event,) = found
    assert isinstance(event, Derived)
    assert event.object_id == ("1246965",)
    assert told_of(rule, MAPS, event.type, loads(event.content, bytes_max=10_000)) == told
