"""A webhook that would believe what nothing proves, or that contradicts itself, refuses its pack by table and field."""
# ruff: noqa: E501 - a row a case

import msgspec
import pytest
from tests.unit.catalog.samples import PACK, changed, encoded_schemas, sample_pack

from doonce.base.errors import Invalid
from doonce.catalog.compile import pack_digest
from doonce.catalog.pack import read_pack
from doonce.catalog.webhooks import Algorithm, Redelivery

WEBHOOK = """
[webhooks.event]
summary = "Something happened"
response_deadline = "10s"
delivery_id = "Delivery-Id"
redelivery = "window"
redelivery_window = "3d"

[webhooks.event.verifier]
algorithm = "hmac-sha256"
header = "X-Signature"
separator = ","
prefix = "v1="
encoding = "hex"
content = "{timestamp}.{body}"

[webhooks.event.verifier.timestamp]
header = "X-Signature"
separator = ","
prefix = "t="
format = "seconds"
past = "5m"
future = "1m"

[webhooks.event.challenge]
when = [{ json = "/type", equals = "ping" }]
echo = "/challenge"
"""
WITH_WEBHOOK = PACK + WEBHOOK


def test_a_webhook_is_read_as_it_is_written() -> None:
    webhooks = sample_pack(WITH_WEBHOOK).webhooks or {}
    event = webhooks["event"]
    assert (event.redelivery, event.redelivery_window_us) == (Redelivery.WINDOW, 259_200_000_000)
    assert (event.delivery_id, event.verifier.proof.header) == ("delivery-id", "x-signature")
    assert event.verifier.algorithm is Algorithm.HMAC_SHA256
    assert event.verifier.timestamp is not None
    assert event.verifier.timestamp.past_us == 300_000_000


def test_a_pack_without_webhooks_has_the_digest_that_it_had() -> None:
    assert "webhooks" not in msgspec.to_builtins(sample_pack())
    assert pack_digest(sample_pack()) != pack_digest(sample_pack(WITH_WEBHOOK))


REFUSED = {
    "an unknown algorithm": ('"hmac-sha256"', '"hmac-md5"', "algorithm", "not a known value"),
    "an unknown encoding": ('encoding = "hex"', 'encoding = "base32"', "encoding", "not a known value"),
    "no verifier": ("[webhooks.event.verifier]\n", "[webhooks.event.proof]\n", "verifier", "missing"),
    "no content": ('content = "{timestamp}.{body}"\n', "", "content", "missing"),
    "an unknown reference": ("{timestamp}.{body}", "{timestamp}.{payload}", "content", "not a reference"),
    "a stray brace": ("{timestamp}.{body}", "{timestamp}.{body", "content", "without its partner"),
    "a header in capitals": ("{timestamp}.{body}", "{header.Id}{timestamp}{body}", "content", "not a reference"),
    "a body that is not signed": ("{timestamp}.{body}", "{timestamp}", "content", "body is not signed"),
    "a time that is not signed": ("{timestamp}.{body}", "{body}", "timestamp", "if and only if it is signed"),
    "a digest that is not signed": ('encoding = "hex"', 'encoding = "hex"\nbody_digest_query = "sha"', "body_digest_query", "not signed"),
    "an escape without a URL": ('encoding = "hex"', 'encoding = "hex"\nurl_unescaped = ":"', "url_unescaped", "not signed"),
    "a separator in the prefix": ('prefix = "v1="', 'prefix = "v,1"', "prefix", "holds the separator"),
    "an unknown separator": ('separator = ","\nprefix = "v1="', 'separator = "|"\nprefix = "v1="', "separator", "spelled"),
    "a header that is none": ('header = "X-Signature"\nseparator = ","\nprefix = "v1="', 'header = "X Signature"\nprefix = "v1="', "header", "spelled"),
    "a token that signs": ('"hmac-sha256"', '"shared-token"', "content", "unknown field"),
    "a key that is no text": ('encoding = "hex"', 'encoding = "hex"\nsecret = "base64url"', "secret", "not a known value"),
    "a signature key as text": ('"hmac-sha256"', '"ed25519"', "secret", "not spelled so"),
    "no tolerance": ('past = "5m"\n', "", "past", "missing"),
    "an endless tolerance": ('past = "5m"', 'past = "2d"', "past", "out of bounds"),
    "an unknown time format": ('format = "seconds"', 'format = "minutes"', "format", "not a known value"),
    "no redelivery": ('redelivery = "window"\n', "", "redelivery", "missing"),
    "no window": ('redelivery_window = "3d"\n', "", "redelivery_window", "goes together"),
    "a window without redelivery": ('redelivery = "window"', 'redelivery = "none"', "redelivery_window", "goes together"),
    "a challenge that is everything": ('when = [{ json = "/type", equals = "ping" }]\n', "", "when", "every delivery"),
    "a challenge by header": ('json = "/type"', 'header = "x-type"', "when", "by its body"),
    "a challenge without an answer": ('echo = "/challenge"\n', "", "echo", "exactly one answer"),
    "a challenge with two": ('echo = "/challenge"', 'echo = "/challenge"\nconstant = "x"', "echo", "exactly one answer"),
    "a text of the sender's as a page": ('echo = "/challenge"', 'echo = "/challenge"\ncontent_type = "text/html"', "content_type", "plain text only"),
    "a wrong pointer": ('echo = "/challenge"', 'echo = "challenge"', "echo", "JSON pointer"),
    "no deadline": ('response_deadline = "10s"\n', "", "response_deadline", "missing"),
    "an overload that says no": ('response_deadline = "10s"', 'response_deadline = "10s"\nanswer = { overload_status = 430 }', "overload_status", "send again"),
    "an answer that is a failure": ('response_deadline = "10s"', 'response_deadline = "10s"\nanswer = { status = 302 }', "status", "outside"),
    "a page as an answer": ('response_deadline = "10s"', 'response_deadline = "10s"\nanswer = { content_type = "text/html" }', "content_type", "answer's type"),
    "an event without identity": ('delivery_id = "Delivery-Id"\n', "", "identity", "nothing names an event"),
    "a batch without identity": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { each = "/items" }', "identity", "regrouped"),
    "two identities": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { stable_bodies = true }', "stable_bodies", "delivery id names"),
    "an identity that needs no body": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { identity = ["/id"], stable_bodies = true }', "stable_bodies", "does not need it"),
    "a place in a raw body": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { format = "raw", type = "/type" }', "type", "has no places"),
    "a type in two places": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { type = "/type", type_header = "Shop-Event" }', "type_header", "in the event already"),
    "a type in no header": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { type_header = "Shop Event" }', "type_header", "spelled"),
    "a wrong place of identity": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { identity = ["id"] }', "identity id", "JSON pointer"),
    "an object that is not the pack's": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { identity = ["/id"], objects = { other = { types = ["a"], remote_id = "/id" } } }', "other", "no such object"),
    "an object of no event": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { identity = ["/id"], objects = { item = { types = [], remote_id = "/id" } } }', "types", "no event is about it"),
    "a type with a star inside": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { identity = ["/id"], objects = { item = { types = ["a*b"], remote_id = "/id" } } }', "types", "not an end"),
    "a deletion that is none of its types": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { identity = ["/id"], objects = { item = { types = ["a"], deletes = ["b"], remote_id = "/id" } } }', "deletes", "none of its types"),
    "a field's name without its value": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { identity = ["/id"], objects = { item = { types = ["a"], remote_id = "/id", field_name = "/n" } } }', "field_name", "goes together"),
    "fields in two places": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { identity = ["/id"], objects = { item = { types = ["a"], remote_id = "/id", fields = "/f", field_name = "/n", field_value = "/v" } } }', "fields", "in one place"),
    "a wrong place of an object's id": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { identity = ["/id"], objects = { item = { types = ["a"], remote_id = "id" } } }', "remote_id", "JSON pointer"),
    "a wrong place of the object": ('response_deadline = "10s"', 'response_deadline = "10s"\nevents = { identity = ["/id"], object_id = ["id"] }', "object_id id", "JSON pointer"),
    "an unknown field": ('summary = "Something happened"', 'summary = "x"\nretries = 1', "retries", "unknown field"),
    "a body over the bound": ('delivery_id = "Delivery-Id"', "body_bytes_max = 4194305", "body_bytes_max", "outside"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_webhook_is_refused_by_table_and_field(case: str) -> None:
    old, new, field, what = REFUSED[case]
    with pytest.raises(Invalid) as refused:
        sample_pack(PACK + changed(WEBHOOK, old, new))
    message = refused.value.message
    assert "[webhooks.event" in message, message
    assert field in message, message
    assert what in message, message


ALONE = """
format = "doonce.pack/1"
name = "asking"
version = "1.0.0"
title = "Webhooks alone"
auth = { scheme = "none" }
[webhooks.event]
summary = "An event"
response_deadline = "10s"
redelivery = "none"
events = { format = "raw", stable_bodies = true }
verifier = { algorithm = "shared-token", header = "X-Token" }
"""


def test_a_pack_may_have_webhooks_alone() -> None:
    assert not read_pack(ALONE.encode(), {}).operations


def test_a_pack_that_calls_nobody_has_no_origin() -> None:
    with pytest.raises(Invalid, match="calls nobody"):
        read_pack(changed(ALONE, "auth =", 'origins = ["https://a.example"]\nauth =').encode(), {})


def test_a_pack_has_something() -> None:
    nothing = ALONE.partition("[webhooks.event]")[0]
    with pytest.raises(Invalid, match="either these or origin_from_binding"):
        read_pack(nothing.encode(), {})
    with pytest.raises(Invalid, match="or webhooks alone"):
        read_pack(
            changed(nothing, "auth =", 'origins = ["https://a.example"]\nauth =').encode(),
            encoded_schemas({}),
        )
