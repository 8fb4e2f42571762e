"""An event's notice carries the digest of its other fields, and its content byte for byte."""

from typing import Any

import msgspec
import pytest

from doonce.base.errors import Invalid, Quarantined
from doonce.base.limits import LIMITS
from doonce.wire import (
    EVENT_BODY_BYTES_MAX,
    EventNotice,
    EventObject,
    EventObjectRead,
    EventReceipt,
    EventState,
    decode,
    encode,
    seal_event,
    verify_event,
)
from doonce.wire.events import EVENT_CONTENT_BYTES_MAX

DIGEST = "sha256:" + "a" * 64


def notice(**changed: Any) -> EventNotice:
    fields = {
        "event_id": "evt_1",
        "pack": "shop",
        "type": "order.paid",
        "org": "acme",
        "installation": "main",
        "capability": "shop.events",
        "webhook": "batch",
        "receipt_id": "ing_1",
        "recorded_at_us": 7,
        "content": b'{"n": 1.50}\x00\xff',
    }
    return seal_event(**{**fields, **changed})


def item(**changed: Any) -> EventObject:
    fields = {
        "kind": "item",
        "remote_id": "7",
        "deleted": False,
        "link": "lnk_1",
        "local_ref": "42",
        "fields": msgspec.Raw(b'{"cost": 1.50}'),
    }
    return EventObject(**{**fields, **changed})


def test_an_object_survives_the_wire_byte_for_byte() -> None:
    sent = notice(object=item())
    received = decode(encode(sent), EventNotice, bytes_max=EVENT_BODY_BYTES_MAX)
    verify_event(received)
    assert received.object is not None
    assert bytes(received.object.fields) == b'{"cost": 1.50}'
    assert "1.50" not in repr(received.object)


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "other"},
        {"remote_id": "8"},
        {"deleted": True},
        {"link": "lnk_2"},
        {"local_ref": "43"},
        {"fields": msgspec.Raw(b'{"cost": 1.5}')},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_an_object_that_was_changed_is_not_believed(changed: dict[str, Any]) -> None:
    with pytest.raises(Quarantined):
        verify_event(msgspec.structs.replace(notice(object=item()), object=item(**changed)))


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": ""},
        {"remote_id": ""},
        {"remote_id": "x" * (LIMITS.remote_id_bytes_max + 1)},
        {"link": None},
        {"local_ref": None},
        {"fields": msgspec.Raw(b"[]")},
        {"fields": msgspec.Raw(b'{"a":1,"a":2}')},
    ],
)
def test_an_object_is_whole(changed: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        item(**changed)


READ = EventObjectRead(at_us=9, document=b'{"price": 1.50}\xff')


def test_what_was_read_survives_the_wire_byte_for_byte() -> None:
    received = decode(encode(notice(object=item(read=READ))), EventNotice, bytes_max=EVENT_BODY_BYTES_MAX)
    verify_event(received)
    assert received.object is not None
    assert received.object.read == READ
    assert "1.50" not in repr(received.object.read)


@pytest.mark.parametrize(
    "read",
    [
        None,
        EventObjectRead(at_us=8, document=READ.document),
        EventObjectRead(at_us=9, document=None),
        EventObjectRead(at_us=9, document=b""),
        EventObjectRead(at_us=9, document=b'{"price": 1.5}\xff'),
    ],
    ids=repr,
)
def test_what_was_read_and_changed_is_not_believed(read: EventObjectRead | None) -> None:
    with pytest.raises(Quarantined):
        verify_event(msgspec.structs.replace(notice(object=item(read=READ)), object=item(read=read)))


def test_what_was_read_is_bounded() -> None:
    assert EventObjectRead(at_us=0, document=b"x" * LIMITS.response_bytes_max).document
    with pytest.raises(Invalid):
        EventObjectRead(at_us=0, document=b"x" * (LIMITS.response_bytes_max + 1))
    with pytest.raises(Invalid):
        EventObjectRead(at_us=-1, document=None)


def test_the_largest_event_with_the_largest_object_fits_into_a_push() -> None:
    read = EventObjectRead(at_us=2**53 - 1, document=b"\xff" * LIMITS.response_bytes_max)
    fields = msgspec.Raw(b'{"x":"' + b"x" * (EVENT_CONTENT_BYTES_MAX - 100) + b'"}')
    largest = notice(content=b"\xff" * EVENT_CONTENT_BYTES_MAX, object=item(read=read, fields=fields))
    raw = encode(largest)
    assert len(raw) <= EVENT_BODY_BYTES_MAX
    assert decode(raw, EventNotice, bytes_max=EVENT_BODY_BYTES_MAX) == largest


def test_a_notice_survives_the_wire_with_its_digest() -> None:
    sent = notice()
    received = decode(encode(sent), EventNotice, bytes_max=EVENT_BODY_BYTES_MAX)
    verify_event(received)
    assert received == sent
    assert received.content == b'{"n": 1.50}\x00\xff'


def test_the_digest_of_a_notice_is_fixed_for_ever() -> None:
    assert notice().digest == "sha256:c29024acd2c594cd76c8b17a47da9feb13e50ed6f558199bd5a439e6fb76f5ec"


@pytest.mark.parametrize(
    "changed",
    [
        {"event_id": "evt_2"},
        {"pack": "shop2"},
        {"type": "order.made"},
        {"org": "other"},
        {"installation": "other"},
        {"capability": "other"},
        {"webhook": "other"},
        {"receipt_id": "ing_2"},
        {"recorded_at_us": 8},
        {"content": b"{}"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_notice_that_was_changed_is_not_believed(changed: dict[str, Any]) -> None:
    assert notice(**changed).digest != notice().digest
    with pytest.raises(Quarantined):
        verify_event(msgspec.structs.replace(notice(), **changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"event_id": ""},
        {"type": "a\n"},
        {"type": "t" * (LIMITS.name_bytes_max + 1)},
        {"recorded_at_us": -1},
        {"content": b" " * (EVENT_CONTENT_BYTES_MAX + 1)},
    ],
)
def test_a_notice_is_bounded(changed: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        notice(**changed)


def test_the_largest_notice_fits_into_its_body() -> None:
    largest = notice(content=b"\xff" * EVENT_CONTENT_BYTES_MAX, type="t" * LIMITS.name_bytes_max)
    assert len(encode(largest)) <= EVENT_BODY_BYTES_MAX


def test_a_notice_does_not_print_what_it_says() -> None:
    assert "1.50" not in repr(notice())


def test_a_receipt_is_whole() -> None:
    receipt = EventReceipt(
        event_id="evt_1", notice_digest=DIGEST, state=EventState.APPLIED, receipt_id="rcp_1"
    )
    assert decode(encode(receipt), EventReceipt, bytes_max=10_000) == receipt
    for changed in ({"event_id": ""}, {"notice_digest": "x"}, {"receipt_id": ""}):
        with pytest.raises(Invalid):
            msgspec.structs.replace(receipt, **changed).__post_init__()
