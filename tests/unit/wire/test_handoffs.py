"""Requests and admissions are whole, bounded and strict, both where they are made and where they are read."""

from typing import Any

import msgspec
import pytest

from doonce.base.digests import digest_bytes
from doonce.base.errors import ErrorClass, Invalid, Quarantined
from doonce.base.limits import LIMITS
from doonce.wire import (
    ACCEPT_BODY_BYTES_MAX,
    AcceptBatch,
    AcceptRequest,
    AcceptResults,
    Admission,
    AdmissionState,
    HandoffScope,
    Refused,
    RejectBody,
    RejectRequest,
    decode,
    encode,
    refused_from,
)

DIGEST = "sha256:" + "a" * 64


def scope(**changed: Any) -> HandoffScope:
    fields = {
        "org": "acme",
        "installation": "main",
        "capability": "people.write",
        "binding_digest": DIGEST,
        "binding_generation": 3,
    }
    return HandoffScope(**{**fields, **changed})


def request(**changed: Any) -> AcceptRequest:
    payload = changed.get("payload", b'{"a": 1.50}')
    fields = {
        "key": "handoff:1.a",
        "scope": scope(),
        "outbox_id": "obx_1",
        "operation": "person.update",
        "local_ref": "42",
        "link": None,
        "payload": payload,
        "payload_digest": digest_bytes(payload),
        "source_lane": "person/42",
    }
    return AcceptRequest(**{**fields, **changed})


def admission(**changed: Any) -> Admission:
    fields = {
        "key": "handoff:1.a",
        "state": AdmissionState.COMMAND_ACCEPTED,
        "command_id": "cmd_1",
        "receipt_id": "hnd_1",
        "recorded_at_us": 7,
        "reason": "",
    }
    return Admission(**{**fields, **changed})


def test_a_batch_comes_back_byte_for_byte() -> None:
    batch = AcceptBatch(
        requests=(request(), request(key="handoff:1.b", payload=bytes(range(256)), link="lnk_1"))
    )

    assert decode(encode(batch), AcceptBatch, bytes_max=ACCEPT_BODY_BYTES_MAX) == batch


def test_results_tell_admissions_from_refusals() -> None:
    results = AcceptResults(
        results=(admission(), refused_from("handoff:1.b", Quarantined("no", hint="look")))
    )
    assert decode(encode(results), AcceptResults, bytes_max=10_000) == results

    assert isinstance(results.results[1], Refused)
    assert results.results[1].error_class is ErrorClass.QUARANTINED


def test_a_rejection_comes_back() -> None:
    body = RejectBody(
        request=RejectRequest(key="handoff:1.a", scope=scope(), payload_digest=DIGEST, outbox_id="obx_1")
    )

    assert decode(encode(body), RejectBody, bytes_max=10_000) == body


@pytest.mark.parametrize(
    "changed",
    [
        {"key": ""},
        {"key": "k" * (LIMITS.key_bytes_max + 1)},
        {"key": "a\0b"},
        {"outbox_id": "x" * (LIMITS.name_bytes_max + 1)},
        {"operation": "\ud800"},
        {"local_ref": "r" * (LIMITS.local_ref_bytes_max + 1)},
        {"link": ""},
        {"source_lane": "s" * (LIMITS.lane_bytes_max + 1)},
        {"payload": b"x" * (LIMITS.payload_bytes_max + 1)},
        {"payload_digest": "sha256:abc"},
        {"payload_digest": DIGEST},
        {"payload_digest": digest_bytes(b'{"a": 1.50}').upper()},
    ],
    ids=lambda one: next(iter(one)),
)
def test_a_request_out_of_its_bounds_is_never_made(changed: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        request(**changed)


def test_a_request_exactly_at_its_bounds_is_made() -> None:
    request(
        key="k" * LIMITS.key_bytes_max,
        outbox_id="x" * LIMITS.name_bytes_max,
        local_ref="r" * LIMITS.local_ref_bytes_max,
        source_lane="s" * LIMITS.lane_bytes_max,
        payload=b"x" * LIMITS.payload_bytes_max,
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"org": "o" * (LIMITS.org_bytes_max + 1)},
        {"installation": ""},
        {"capability": "c" * (LIMITS.capability_bytes_max + 1)},
        {"binding_digest": "latest"},
        {"binding_generation": -1},
        {"binding_generation": 2**53},
        {"binding_generation": True},
    ],
    ids=str,
)
def test_a_scope_out_of_its_bounds_is_never_made(changed: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        scope(**changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"command_id": None},
        {"state": AdmissionState.HANDOFF_REJECTED},
        {"receipt_id": ""},
        {"recorded_at_us": -1},
        {"reason": "x" * (LIMITS.reason_bytes_max + 1)},
    ],
    ids=str,
)
def test_an_admission_that_contradicts_itself_is_never_made(changed: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        admission(**changed)


def test_a_batch_is_bounded_and_names_each_key_once() -> None:
    for requests in (
        (),
        (request(), request()),
        tuple(request(key=f"handoff:{number}") for number in range(LIMITS.batch_rows_max + 1)),
        tuple(
            request(key=f"handoff:{number}", payload=b"x" * LIMITS.payload_bytes_max)
            for number in range(LIMITS.batch_bytes_max // LIMITS.payload_bytes_max + 1)
        ),
    ):
        with pytest.raises(Invalid):
            AcceptBatch(requests=requests)


def test_a_full_batch_fits_its_body() -> None:
    longest = scope(
        org="o" * LIMITS.org_bytes_max,
        installation="i" * LIMITS.installation_bytes_max,
        capability="c" * LIMITS.capability_bytes_max,
        binding_generation=2**53 - 1,
    )
    requests = tuple(
        request(
            key=f"{number:0{LIMITS.key_bytes_max}}",
            scope=longest,
            outbox_id="x" * LIMITS.name_bytes_max,
            operation="p" * LIMITS.name_bytes_max,
            local_ref='"' * LIMITS.local_ref_bytes_max,
            link="l" * LIMITS.name_bytes_max,
            source_lane='"' * LIMITS.lane_bytes_max,
            payload=b"x" * (LIMITS.batch_bytes_max // LIMITS.batch_rows_max),
        )
        for number in range(LIMITS.batch_rows_max)
    )

    assert len(encode(AcceptBatch(requests=requests))) <= ACCEPT_BODY_BYTES_MAX


def mangled(**fields: Any) -> bytes:
    return msgspec.json.encode({**msgspec.to_builtins(admission()), **fields})


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        encode(admission()) + b"{}",
        encode(admission())[:-1],
        encode(admission()).replace(b'"reason":""', b'"reason":"","reason":"again"'),
        encode(admission()).replace(b"7", b"NaN"),
        encode(admission()).replace(b"7", b"7.5"),
        encode(admission()).replace(b"7", b'"7"'),
        encode(admission()).replace(b'"hnd_1"', b'"\\ud800"'),
        encode(admission()).replace(b'"hnd_1"', b'"\\u0000"'),
        encode(admission()).replace(b"hnd_1", b"\xff"),
        mangled(surprise=1),
        mangled(state="MAYBE"),
        mangled(kind="refused"),
        mangled(command_id=None),
    ],
)
def test_whatever_is_not_exactly_an_admission_is_one_typed_error(raw: bytes) -> None:
    with pytest.raises(Invalid):
        decode(raw, Admission, bytes_max=10_000)


def test_a_document_over_its_bound_is_not_read() -> None:
    raw = encode(admission())
    decode(raw, Admission, bytes_max=len(raw))
    with pytest.raises(Invalid):
        decode(raw, Admission, bytes_max=len(raw) - 1)


def test_a_refusals_texts_are_made_to_fit() -> None:
    refused = refused_from("handoff:1.a", Invalid("é\n" * LIMITS.reason_bytes_max, hint="a\0b\ud800"))

    assert len(refused.message.encode()) <= LIMITS.reason_bytes_max
    assert "\n" not in refused.message
    assert refused.hint.startswith("a b")
