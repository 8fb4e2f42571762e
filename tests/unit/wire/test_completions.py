"""A notice carries the digest of its other fields, and its result byte for byte."""

from typing import Any

import msgspec
import pytest

from doonce.base.errors import Invalid, Quarantined
from doonce.base.limits import LIMITS
from doonce.wire import (
    NOTICE_BODY_BYTES_MAX,
    CompletionNotice,
    CompletionOutcome,
    CompletionReceipt,
    ReceiptState,
    decode,
    encode,
    seal_notice,
    verify_notice,
)

DIGEST = "sha256:" + "a" * 64


def notice(**changed: Any) -> CompletionNotice:
    fields = {
        "command_id": "cmd_1",
        "key": "handoff:1.a",
        "outbox_id": "obx_1",
        "payload_digest": DIGEST,
        "outcome": CompletionOutcome.ACCEPTED,
        "result": b'{"etag": "x",  "n": 1.50}',
        "attempt_id": "att_1",
        "recorded_at_us": 7,
    }
    return seal_notice(**{**fields, **changed})


def test_a_notice_survives_the_wire_with_its_digest() -> None:
    sent = notice(result=b' {"etag": "x",  "n": 1.50}\n')
    received = decode(encode(sent), CompletionNotice, bytes_max=NOTICE_BODY_BYTES_MAX)
    verify_notice(received)

    assert bytes(received.result) == b'{"etag": "x",  "n": 1.50}'
    assert received.digest == sent.digest


def test_the_digest_of_a_notice_is_fixed_for_ever() -> None:
    assert notice().digest == "sha256:c006a82747f6f14b0676650e1ffa47cc58bbd50a8c16d7ed76eb37b1d6c696f9"


@pytest.mark.parametrize(
    "changed",
    [
        {"command_id": "cmd_2"},
        {"key": "handoff:1.b"},
        {"outbox_id": "obx_2"},
        {"payload_digest": "sha256:" + "b" * 64},
        {"outcome": CompletionOutcome.REJECTED},
        {"outcome": CompletionOutcome.UNKNOWN, "terminal": False},
        {"result": msgspec.Raw(b'{"etag": "x", "n": 1.50}')},
        {"attempt_id": None},
        {"recorded_at_us": 8},
        {"digest": DIGEST},
    ],
    ids=lambda one: next(iter(one)),
)
def test_every_field_is_under_the_digest(changed: dict[str, Any]) -> None:
    with pytest.raises(Quarantined):
        verify_notice(msgspec.structs.replace(notice(), **changed))


@pytest.mark.parametrize("outcome", CompletionOutcome)
def test_only_an_unknown_is_not_the_end(outcome: CompletionOutcome) -> None:
    assert notice(outcome=outcome).terminal is (outcome is not CompletionOutcome.UNKNOWN)
    with pytest.raises(Invalid):
        msgspec.structs.replace(notice(outcome=outcome), terminal=outcome is CompletionOutcome.UNKNOWN)


@pytest.mark.parametrize(
    "changed",
    [
        {"result": b"[]"},
        {"result": b"null"},
        {"result": b'{"a":1,"a":2}'},
        {"result": b"{} {}"},
        {"result": b'{"a":"' + b"x" * LIMITS.response_bytes_max + b'"}'},
        {"recorded_at_us": 2**53},
        {"command_id": ""},
        {"attempt_id": ""},
    ],
    ids=lambda one: str(one)[:40],
)
def test_a_notice_out_of_its_bounds_is_never_made(changed: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        notice(**changed)


def test_a_result_exactly_at_its_bound_fits_its_body() -> None:
    padding = b"x" * (LIMITS.response_bytes_max - len(b'{"a":""}'))
    full = notice(result=b'{"a":"' + padding + b'"}', key='"' * LIMITS.key_bytes_max)
    raw = encode(full)

    assert decode(raw, CompletionNotice, bytes_max=NOTICE_BODY_BYTES_MAX) == full


def test_a_receipt_comes_back() -> None:
    receipt = CompletionReceipt(
        command_id="cmd_1", notice_digest=DIGEST, state=ReceiptState.NOTED, receipt_id="rcp_1"
    )

    assert decode(encode(receipt), CompletionReceipt, bytes_max=1_000) == receipt
