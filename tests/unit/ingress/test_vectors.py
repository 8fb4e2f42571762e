"""What providers publish as correct verifies, and nothing near it does.

Every secret here is one that its provider prints in public.
"""
# ruff: noqa: E501 - vectors are kept as they were published

from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.unit.ingress.deliveries import SECOND, delivery, opened

from doonce.ingress.model import Delivery, Reason, Rejected, Verified
from doonce.ingress.verify import OpenVerifier, verify


@dataclass(frozen=True)
class Vector:
    """A published delivery with its verifier, and the time at which it was sent, in seconds."""

    opened: OpenVerifier
    delivery: Delivery
    at: int = 0


SLACK_BODY = (
    "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    "&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    "&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    "&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
HUBSPOT_BODY = (
    '[{"eventId":1,"subscriptionId":12345,"portalId":62515,"occurredAt":1564113600000,"subscriptionType":'
    '"contact.creation","attemptNumber":0,"objectId":123,"changeSource":"CRM","changeFlag":"NEW","appId":54321}]'
)
SENDGRID_BODY = (
    '[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address","sg_event_id":'
    '"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA","sg_message_id":'
    '"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0","smtp-id":'
    '"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>","timestamp":1600112492}]\r\n'
)
ADYEN_BODY = """
        {
            "type": "merchant.created",
            "environment": "test",
            "createdAt": "01-01-2024",
            "data": {
                "capabilities": {
                    "sendToTransferInstrument": {
                        "requested": true,
                        "requestedLevel": "notApplicable"
                    }
                },
                "companyId": "YOUR_COMPANY_ID",
                "merchantId": "YOUR_MERCHANT_ACCOUNT",
                "status": "PreActive"
            }
        }
        """
HUBSPOT_SECRET = "yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy"
MESSAGE = {
    "id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "timestamp": "1614265330",
    "signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}

VECTORS: dict[str, Vector] = {
    # https://docs.svix.com/receiving/verifying-payloads/how-manual
    "svix": Vector(
        opened("svix", "message", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        delivery({f"svix-{name}": value for name, value in MESSAGE.items()}, '{"test": 2432232314}'),
        1614265330,
    ),
    # the same message: the Standard Webhooks libraries are tested with it (standard-webhooks/standard-webhooks)
    "standard-webhooks": Vector(
        opened("standard-webhooks", "message", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        delivery({f"webhook-{name}": value for name, value in MESSAGE.items()}, '{"test": 2432232314}'),
        1614265330,
    ),
    # https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries
    "github": Vector(
        opened("github", "event", "It's a Secret to Everybody"),
        delivery(
            {
                "X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
            },
            "Hello, World!",
        ),
    ),
    # https://docs.slack.dev/authentication/verifying-requests-from-slack
    "slack": Vector(
        opened("slack", "interaction", "8f742231b10e8888abcd99yyyzzz85a5"),
        delivery(
            {
                "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
                "X-Slack-Request-Timestamp": "1531420618",
            },
            SLACK_BODY,
        ),
        1531420618,
    ),
    # https://www.twilio.com/docs/usage/security and the tests of twilio-python (tests/unit/test_request_validator.py)
    "twilio form": Vector(
        opened("twilio", "form", "12345", url="https://mycompany.com/myapp.php"),
        delivery(
            {"X-Twilio-Signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8="},
            "To=%2B18005551212&From=%2B14158675309&Digits=1234&Caller=%2B14158675309&CallSid=CA1234567890ABCDE",
            query="foo=1&bar=2",
        ),
    ),
    "twilio json": Vector(
        opened("twilio", "json", "12345", url="https://mycompany.com/myapp.php"),
        delivery(
            {"X-Twilio-Signature": "a9nBmqA0ju/hNViExpshrM61xv4="},
            '{"property": "value", "boolean": true}',
            query="foo=1&bar=2&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620",
        ),
    ),
    # https://developers.hubspot.com/docs/faq/v1-request-validation
    "hubspot v1": Vector(
        opened("hubspot", "events.v1", HUBSPOT_SECRET),
        delivery(
            {"X-HubSpot-Signature": "232db2615f3d666fe21a8ec971ac7b5402d33b9a925784df3ca654d05f4817de"},
            HUBSPOT_BODY,
        ),
    ),
    # https://developers.hubspot.com/docs/faq/v2-request-validation
    "hubspot v2": Vector(
        opened("hubspot", "events.v2", HUBSPOT_SECRET, url="https://www.example.com/webhook_uri"),
        delivery(
            {"X-HubSpot-Signature": "eee2dddcc73c94d699f5e395f4b9d454a069a6855fbfa152e91e88823087200e"},
            "",
            method="GET",
        ),
    ),
    # the tests of adyen-python-api-library (test/UtilTest.py)
    "adyen": Vector(
        opened("adyen", "event", "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"),
        delivery({"HmacSignature": "fX74xUdztFmaXAn3IusMFFUBUSkLmDQUK0tm8xL6ZTU="}, ADYEN_BODY),
    ),
    # the tests of sendgrid-python (test/unit/test_eventwebhook.py)
    "sendgrid": Vector(
        opened(
            "sendgrid",
            "events",
            "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==",
        ),
        delivery(
            {
                "X-Twilio-Email-Event-Webhook-Signature": "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=",
                "X-Twilio-Email-Event-Webhook-Timestamp": "1600112502",
            },
            SENDGRID_BODY,
        ),
        1600112502,
    ),
}


def judged(vector: Vector, **changes: Any) -> Verified | Rejected:
    """What is found about a vector with something changed."""
    changed = replace(vector.delivery, **changes)
    return verify(vector.opened, changed, now_us=vector.at * SECOND)


@pytest.mark.parametrize("name", VECTORS)
def test_what_the_provider_publishes_verifies(name: str) -> None:
    vector = VECTORS[name]
    signed = vector.at * SECOND if vector.opened.verifier.timestamp is not None else None
    assert judged(vector) == Verified(0, signed)


@pytest.mark.parametrize("name", sorted(set(VECTORS) - {"twilio json", "hubspot v2"}))
def test_any_byte_more_is_another_content(name: str) -> None:
    for body in (VECTORS[name].delivery.body + b"x", b"x" + VECTORS[name].delivery.body):
        assert judged(VECTORS[name], body=body) == Rejected(Reason.PROOF_WRONG)


def test_a_body_that_the_signed_url_does_not_name_is_refused() -> None:
    vector = VECTORS["twilio json"]
    assert judged(vector, body=vector.delivery.body + b" ") == Rejected(Reason.BODY_DIGEST_WRONG)
    twice = vector.delivery.query + b"&bodySHA256=" + b"0" * 64
    assert judged(vector, query=twice) == Rejected(Reason.PROOF_WRONG)


def test_method_and_query_are_part_of_the_content() -> None:
    assert judged(VECTORS["hubspot v2"], method=b"POST") == Rejected(Reason.PROOF_WRONG)
    assert judged(VECTORS["hubspot v2"], query=b"a=1") == Rejected(Reason.PROOF_WRONG)
    assert judged(VECTORS["twilio form"], query=b"foo=1") == Rejected(Reason.PROOF_WRONG)


def test_a_signed_id_cannot_be_changed() -> None:
    vector = VECTORS["standard-webhooks"]
    headers = tuple(
        (name, b"msg_other" if name == b"webhook-id" else value) for name, value in vector.delivery.headers
    )
    assert judged(vector, headers=headers) == Rejected(Reason.PROOF_WRONG)
