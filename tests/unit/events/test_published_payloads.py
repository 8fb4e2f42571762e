"""The events that shipped packs make of payloads which their providers publish: types, identities, objects.

Payloads are shortened to the parts that are read, and one that nobody declared.
"""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from tests.unit.ingress.deliveries import delivery, webhook

from doonce.catalog.webhooks import EventRule
from doonce.events.model import Derived, Undecodable, derive
from doonce.ingress import headers

ROUTE = ("acme", "main", "events", "the-webhook")


@dataclass(frozen=True)
class Published:
    """A delivery as published; what each try of it may change; and the types and objects of its events."""

    pack: str
    webhook: str
    body: Any
    types: tuple[str, ...]
    objects: tuple[tuple[str, ...] | None, ...] = (None,)
    again: tuple[tuple[str, Any], ...] = ()
    header: tuple[str, str] | None = None


PAYLOADS: dict[str, Published] = {
    # https://docs.stripe.com/api/events/object
    "stripe": Published(
        "stripe", "event",
        {
            "id": "evt_1NG8Du2eZvKYlo2CUI79vXWy", "object": "event", "api_version": "2019-02-19", "created": 1686089970,
            "data": {"object": {"id": "seti_1NG8Du2eZvKYlo2C9XMqbR0x", "object": "setup_intent"}},
            "livemode": False, "pending_webhooks": 0, "type": "setup_intent.created",
        },
        ("setup_intent.created",),
        again=(("pending_webhooks", 1),),
    ),
    # https://docs.slack.dev/reference/objects/event-object
    "slack": Published(
        "slack", "event",
        {
            "token": "XXYYZZ", "team_id": "TXXXXXXXX", "api_app_id": "AXXXXXXXXX",
            "event": {"type": "name_of_event", "event_ts": "1234567890.123456", "user": "UXXXXXXX1"},
            "type": "event_callback", "authed_users": ["UXXXXXXX1", "UXXXXXXX2"], "event_id": "Ev08MFMKH6",
            "event_time": 1234567890,
        },
        ("name_of_event",),
        again=(("authed_users", ["UXXXXXXX2"]),),
    ),
    # https://developer.zendesk.com/api-reference/webhooks/event-types/webhook-event-types
    "zendesk": Published(
        "zendesk", "event",
        {
            "type": "zen:event-type:user.active_changed", "account_id": 12514403,
            "id": "2b24ef10-19d4-4740-93cf-8f98ec4776c0", "time": "2099-07-04T05:33:18Z",
            "zendesk_event_version": "2022-06-20", "subject": "zen:user:6596848315901",
            "detail": {"id": "6596848315901", "role": "end-user"}, "event": {"current": False, "previous": True},
        },
        ("zen:event-type:user.active_changed",),
        (("zen:user:6596848315901",),),
        again=(("zendesk_event_version", "2099-01-01"),),
    ),
    # https://developers.intercom.com/docs/references/rest-api/webhooks/webhook-models
    "intercom": Published(
        "intercom", "notification",
        {
            "type": "notification_event", "topic": "company.created",
            "id": "notif_ccd8a4d0-f965-11e3-a367-c779cae3e1b3",
            "app_id": "a86dr8yl", "created_at": 1392731331, "delivery_attempts": 1, "first_sent_at": 1392731392,
            "data": {"item": {"type": "company", "id": "531ee472cce572a6ec000006", "name": "Blue Sun"}},
        },
        ("company.created",),
        again=(("delivery_attempts", 2),),
    ),
    # https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event
    "sendgrid": Published(
        "sendgrid", "events",
        [
            {
                "email": "example@test.com", "timestamp": 1513299569, "event": event,
                "smtp-id": "<14c5d75ce93.dfd.64b469@ismtpd-555>", "category": ["cat facts"],
                "sg_event_id": f"sg_event_id {event}", "sg_message_id": "sg_message_id",
            }
            for event in ("processed", "deferred", "delivered")
        ],
        ("processed", "deferred", "delivered"),
        (None, None, None),
    ),
    # https://developers.hubspot.com/docs/api-reference/webhooks-webhooks-v3/guide
    "hubspot": Published(
        "hubspot", "events",
        [
            {
                "objectId": 1246965, "propertyName": "lifecyclestage", "propertyValue": "subscriber",
                "changeSource": "ACADEMY", "eventId": 3816279340, "subscriptionId": 25, "portalId": 33,
                "appId": 1160452, "occurredAt": 1462216307945, "subscriptionType": "contact.propertyChange",
                "attemptNumber": 0,
            }
        ],
        ("contact.propertyChange",),
        (("1246965",),),
        again=(("attemptNumber", 1),),
    ),
    # https://github.com/balena-io/jellyfish: a delivery of the provider's, in its tests; and, for the shape,
    # https://developers.outreach.io/api/webhooks
    "outreach": Published(
        "outreach", "event",
        {
            "data": {
                "type": "sequence", "id": 54,
                "attributes": {"updatedAt": "2019-08-15T19:52:07.000Z", "throttleMaxAddsPerDay": 70},
                "relationships": {},
            },
            "meta": {"deliveredAt": "2019-08-15T19:52:07.697+00:00", "eventName": "sequence.updated"},
        },
        ("sequence.updated",),
        (("sequence", "54"),),
    ),
    # https://docs.adyen.com/issuing/notification-webhooks
    "adyen": Published(
        "adyen", "event",
        {
            "platform": "test", "type": "balancePlatform.payment.created",
            "data": {
                "id": "BPP1234123412341234", "amount": {"currency": "EUR", "value": 1500}, "status": "AUTHORISED",
                "pspReference": "9915717338410470",
            },
        },
        ("balancePlatform.payment.created",),
        (("BPP1234123412341234",),),
    ),
    # https://docs.github.com/webhooks/webhook-events-and-payloads (the example delivery)
    "github": Published(
        "github", "event",
        {
            "action": "opened", "issue": {"number": 1347},
            "repository": {"id": 1296269, "full_name": "octocat/Hello-World"},
            "sender": {"login": "octocat", "id": 1},
        },
        ("issues",),
        header=("X-GitHub-Event", "issues"),
    ),
    # https://shopify.dev/docs/apps/build/webhooks/delivery-structure
    "shopify": Published(
        "shopify", "event",
        {"id": 820982911946154508, "email": "jon@example.com", "total_price": "403.00"},
        ("orders/create",),
        header=("X-Shopify-Topic", "orders/create"),
    ),
    # https://docs.gitlab.com/user/project/integrations/webhook_events
    "gitlab": Published(
        "gitlab", "event",
        {"object_kind": "push", "ref": "refs/heads/master", "project_id": 15},
        ("Push Hook",),
        header=("X-Gitlab-Event", "Push Hook"),
    ),
    # https://www.standardwebhooks.com: the payload structure of the specification
    "standard-webhooks": Published(
        "standard-webhooks", "message",
        {"type": "user.created", "timestamp": "2022-11-03T20:26:10.344522Z", "data": {"id": "1f81eb52"}},
        ("user.created",),
    ),
}  # fmt: skip


def derived(one: Published, body: Any, receipt: str = "the receipt") -> tuple[Derived, ...]:
    """Its events."""
    found = derive(rule_of(one), ROUTE, receipt, json.dumps(body).encode(), named(one))
    assert not isinstance(found, Undecodable), found.reason
    return found


def rule_of(one: Published) -> EventRule:
    """What its pack says about events."""
    return webhook(one.pack, one.webhook).events


def named(one: Published) -> str | None:
    """The type that its header names."""
    if one.header is None:
        return None
    header = rule_of(one).type_header
    assert header is not None
    return headers.type_of(delivery(dict([one.header]), ""), header)


@pytest.mark.parametrize("name", PAYLOADS)
def test_types_and_objects_are_the_providers_and_content_is_kept_whole(name: str) -> None:
    one = PAYLOADS[name]
    events = derived(one, one.body)
    assert tuple(event.type for event in events) == one.types
    assert tuple(event.object_id for event in events) == one.objects
    content = [json.loads(event.content) for event in events]
    assert content == (one.body if isinstance(one.body, list) else [one.body])
    assert len({event.identity for event in events}) == len(events)


@pytest.mark.parametrize("name", [name for name, one in PAYLOADS.items() if one.again])
def test_what_a_further_try_may_change_makes_no_other_event(name: str) -> None:
    """Another receipt, another attempt number: the same identity. Another id: another."""
    one = PAYLOADS[name]
    (first,) = derived(one, one.body)
    body = one.body[0] if isinstance(one.body, list) else one.body
    changed = body | dict(one.again)
    (again,) = derived(one, [changed] if isinstance(one.body, list) else changed, "another receipt")
    assert again.identity == first.identity
    assert again.content != first.content


@pytest.mark.parametrize("name", [name for name, one in PAYLOADS.items() if one.header is not None])
@pytest.mark.parametrize("sent", [(), ("a", "b"), ("",), ("x" * 256,), ("é",), ("a\tb",)])
def test_a_delivery_whose_header_names_no_type_is_dead_with_its_body(
    name: str, sent: tuple[str, ...]
) -> None:
    one = PAYLOADS[name]
    header = rule_of(one).type_header
    assert header is not None
    came = tuple((header.encode(), value.encode("latin-1")) for value in sent)
    kind = headers.type_of(type(delivery({}, ""))(b"POST", b"", came, b""), header)
    assert kind is None
    found = derive(rule_of(one), ROUTE, "r", json.dumps(one.body).encode(), kind)
    assert found == Undecodable(f"the delivery had no type in {header}")
