"""Each way in which a delivery can fail to prove itself has its own reason; none is let through by another."""

import base64
import hashlib
import hmac
from collections.abc import Sequence

import pytest
from tests.unit.ingress.deliveries import SECOND, delivery, opened, webhook

from doonce.base.errors import Invalid
from doonce.base.secrets import Secret
from doonce.ingress.headers import ITEMS_MAX, VALUE_BYTES_MAX
from doonce.ingress.model import Decision, Delivery, Reason, Rejected, Verified
from doonce.ingress.verify import PROOFS_MAX, open_verifier, verify

AT = 1_796_000_000
BODY = b'{"id":"evt_1"}'


def signature(secret: str = "s", at: int | str = AT, body: bytes = BODY) -> str:
    """One of the time-and-body kind, in hex."""
    return hmac.digest(secret.encode(), f"{at}.".encode() + body, "sha256").hex()


def judged(
    header: str | None, body: bytes = BODY, secrets: Sequence[str] = ("s",), now: int = AT
) -> Decision:
    """What the one-header, time-and-body verifier finds."""
    headers = {} if header is None else {"Stripe-Signature": header}
    return verify(opened("stripe", "event", *secrets), delivery(headers, body), now_us=now * SECOND)


GOOD = f"t={AT},v1={signature()}"

REFUSED = {
    "no header": (None, Reason.PROOF_MISSING),
    "an empty header": ("", Reason.PROOF_MISSING),
    "no signature of this version": (f"t={AT},v0={signature()}", Reason.PROOF_MISSING),
    "no hex": (f"t={AT},v1=zz", Reason.PROOF_MALFORMED),
    "an odd number of digits": (f"t={AT},v1={signature()}0", Reason.PROOF_MALFORMED),
    "an empty signature": (f"t={AT},v1=", Reason.PROOF_MALFORMED),
    "a signature cut short": (f"t={AT},v1={signature()[:-2]}", Reason.PROOF_WRONG),
    "another secret": (f"t={AT},v1={signature('other')}", Reason.PROOF_WRONG),
    "another time than the signed one": (f"t={AT + 1},v1={signature()}", Reason.PROOF_WRONG),
    "no time": (f"v1={signature()}", Reason.TIMESTAMP_MISSING),
    "two times": (f"t={AT},t={AT},v1={signature()}", Reason.TIMESTAMP_REPEATED),
    "a fraction": (f"t={AT}.0,v1={signature(at=f'{AT}.0')}", Reason.TIMESTAMP_MALFORMED),
    "a negative time": (f"t=-1,v1={signature(at=-1)}", Reason.TIMESTAMP_MALFORMED),
    "an exponent": (f"t=1e9,v1={signature(at='1e9')}", Reason.TIMESTAMP_MALFORMED),
    "a time of too many digits": (f"t={'9' * 17},v1={signature(at='9' * 17)}", Reason.TIMESTAMP_MALFORMED),
    "digits that are not ASCII": (f"t=²,v1={signature()}", Reason.TIMESTAMP_MALFORMED),
    "milliseconds for seconds": (f"t={AT}000,v1={signature(at=f'{AT}000')}", Reason.TIMESTAMP_AHEAD),
    "too old": (f"t={AT - 301},v1={signature(at=AT - 301)}", Reason.TIMESTAMP_OLD),
    "too far ahead": (f"t={AT + 301},v1={signature(at=AT + 301)}", Reason.TIMESTAMP_AHEAD),
    "too many items": (GOOD + ",v1=00" * ITEMS_MAX, Reason.ITEMS_TOO_MANY),
    "too long": (GOOD + " " * VALUE_BYTES_MAX, Reason.HEADER_LONG),
}


@pytest.mark.parametrize("case", REFUSED)
def test_each_fault_has_its_reason(case: str) -> None:
    header, reason = REFUSED[case]
    assert judged(header) == Rejected(reason)


@pytest.mark.parametrize("at", [AT - 300, AT, AT + 300])
def test_the_tolerance_counts_in_both_directions_and_to_its_edge(at: int) -> None:
    assert judged(f"t={at},v1={signature(at=at)}") == Verified(0, at * SECOND)


def test_items_of_others_and_spaces_between_items_do_not_count() -> None:
    assert judged(f"v0=zz, t={AT} , future, v1=00, v1={signature()}") == Verified(0, AT * SECOND)


def test_every_active_secret_is_tried_and_the_one_that_fits_is_named() -> None:
    assert judged(GOOD, secrets=("old", "s", "new")) == Verified(1, AT * SECOND)
    assert judged(GOOD, secrets=("old", "new")) == Rejected(Reason.PROOF_WRONG)


@pytest.mark.parametrize("more", [0, 1])
def test_as_many_signatures_are_looked_at_as_a_sender_has_keys(more: int) -> None:
    wrong = ",v1=00" * (PROOFS_MAX - 1 + more)
    found = judged(f"t={AT}{wrong},v1={signature()}")
    assert found == (Rejected(Reason.ITEMS_TOO_MANY) if more else Verified(0, AT * SECOND))


def test_a_stranger_who_sends_many_signatures_has_the_body_read_once_for_each_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    digest = hmac.digest

    def counted(key: bytes, content: bytes, name: str) -> bytes:
        made.append(len(content))
        return digest(key, content, name)

    header = f"t={AT}" + ",v1=00" * PROOFS_MAX
    monkeypatch.setattr(hmac, "digest", counted)
    assert judged(header, secrets=("a", "b")) == Rejected(Reason.PROOF_WRONG)
    assert len(made) == 2


def test_a_body_that_was_serialized_again_is_another_one() -> None:
    assert judged(GOOD, body=b'{"id": "evt_1"}') == Rejected(Reason.PROOF_WRONG)


def test_a_header_that_came_twice_is_not_chosen_from() -> None:
    twice = delivery({"Stripe-Signature": GOOD}, BODY)
    doubled = Delivery(twice.method, twice.query, twice.headers * 2, twice.body)
    found = verify(opened("stripe", "event", "s"), doubled, now_us=AT * SECOND)
    assert found == Rejected(Reason.PROOF_REPEATED)


def test_a_body_over_the_bound_is_not_even_hashed() -> None:
    bound = webhook("stripe", "event").body_bytes_max
    assert judged(GOOD, body=b"x" * (bound + 1)) == Rejected(Reason.BODY_LONG)
    assert judged(GOOD, body=b"x" * bound) == Rejected(Reason.PROOF_WRONG)


def test_a_header_that_is_signed_must_be_there_once() -> None:
    verifier = opened("svix", "message", "whsec_c2VjcmV0")
    headers = {"svix-signature": "v1,AAAA", "svix-timestamp": str(AT)}
    without = delivery(headers, BODY)
    assert verify(verifier, without, now_us=AT * SECOND) == Rejected(Reason.HEADER_MISSING)
    twice = Delivery(b"POST", b"", (*without.headers, (b"svix-id", b"1"), (b"svix-id", b"1")), BODY)
    assert verify(verifier, twice, now_us=AT * SECOND) == Rejected(Reason.HEADER_REPEATED)


@pytest.mark.parametrize("body", [b"a=%ff", b"\xff=1", b"&".join([b"a=1"] * 1_001)])
def test_a_form_that_is_none_is_refused(body: bytes) -> None:
    verifier = opened("twilio", "form", "s", url="https://acme.example/")
    form = delivery({"X-Twilio-Signature": "AAAA"}, body)
    assert verify(verifier, form, now_us=0) == Rejected(Reason.FORM_MALFORMED)


@pytest.mark.parametrize("spelling", ["AAB=", "AAA", "AAAA=", "AA A", "AA-_", "AAAA\n", "é"])
def test_base64_has_one_spelling(spelling: str) -> None:
    """AAB= has a stray bit, AAA lacks nothing but is two bytes: only what decodes and encodes back is looked at."""
    found = verify(
        opened("shopify", "event", "s"), delivery({"X-Shopify-Hmac-Sha256": spelling}, BODY), now_us=0
    )
    assert found == Rejected(Reason.PROOF_WRONG if spelling == "AAA" else Reason.PROOF_MALFORMED)


def test_a_shared_token_is_compared_whole() -> None:
    verifier = opened("gitlab", "event", "the-token")
    for shown in ("the-toke", "the-tokenx", "The-token", ""):
        found = verify(verifier, delivery({"X-Gitlab-Token": shown}, BODY), now_us=0)
        assert found == Rejected(Reason.PROOF_WRONG), shown


ZENDESK = "2026-11-30T04:00:00Z"


@pytest.mark.parametrize(
    "stamp, is_read",
    [
        ("2026-11-30T04:00:00Z", True), ("2026-11-30T04:00:00.123456789Z", True),
        ("2026-11-30t05:00:00+01:00", True), ("2026-11-30 04:00:00Z", False), ("2026-11-30T04:00:00", False),
        ("2026-13-30T04:00:00Z", False), ("2026-11-30T24:00:00Z", False), ("0000-01-01T00:00:00Z", False),
        ("2026-11-30T04:00:00+99:00", False), ("20261130T040000Z", False), ("2026-W49-1T04:00:00Z", False),
    ],
)  # fmt: skip
def test_a_written_time_is_read_exactly(stamp: str, is_read: bool) -> None:
    now_us = 1_796_011_200 * SECOND  # 2026-11-30T04:00:00Z
    proof = base64.b64encode(hmac.digest(b"s", stamp.encode() + BODY, hashlib.sha256)).decode()
    headers = {"X-Zendesk-Webhook-Signature": proof, "X-Zendesk-Webhook-Signature-Timestamp": stamp}
    found = verify(opened("zendesk", "event", "s"), delivery(headers, BODY), now_us=now_us)
    assert isinstance(found, Verified) if is_read else found == Rejected(Reason.TIMESTAMP_MALFORMED)


UNFIT = {
    "no base64": ("standard-webhooks", "message", "whsec_not base64"),
    "an empty key": ("standard-webhooks", "message", "whsec_"),
    "no hex": ("discord", "interaction", "xy"),
    "a key of another length": ("discord", "interaction", "00" * 31),
    "no key at all": ("sendgrid", "events", "AAAA"),
    "a key of another curve": (
        "sendgrid",
        "events",
        "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_a_secret_that_is_no_key_is_refused_when_the_route_is_opened(case: str) -> None:
    pack, name, secret = UNFIT[case]
    with pytest.raises(Invalid) as refused:
        opened(pack, name, secret)
    assert secret not in refused.value.message + refused.value.hint


@pytest.mark.parametrize("count", [0, 9])
def test_a_route_has_some_secrets_and_not_too_many(count: int) -> None:
    with pytest.raises(Invalid, match="1 to 8 active secrets"):
        open_verifier(webhook("github", "event"), [Secret("s")] * count, url=None)


def test_a_route_whose_url_is_signed_needs_it() -> None:
    with pytest.raises(Invalid, match="signs the URL"):
        opened("twilio", "form", "s")
