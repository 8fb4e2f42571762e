"""Handing one event to an application, which takes it once (PROTOCOL K3)."""

from enum import Enum
from typing import Final

import msgspec

from doonce.base.digests import check_digest, digest_bytes, digest_document
from doonce.base.errors import Quarantined
from doonce.base.limits import LIMITS, check_size, check_text
from doonce.wire.checks import check_count, check_id

EVENT_TAG: Final = "doonce/event-notice/v1"
"""The domain tag of an event notice's digest: no other document of ours can have the same one."""

EVENT_CONTENT_BYTES_MAX: Final = 8_388_608
"""One event's content: twice the largest body of a delivery, since an exact number may be spelled a little longer."""


class EventNotice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One event, as it will always be told; `content` is its part of the delivery's body, byte for byte."""

    event_id: str
    pack: str
    type: str
    org: str
    installation: str
    capability: str
    webhook: str
    receipt_id: str
    recorded_at_us: int
    content: bytes
    digest: str

    def __repr__(self) -> str:
        """Which event, and nothing of what it says."""
        return f"EventNotice({self.event_id}, {self.pack}.{self.type})"

    def __post_init__(self) -> None:
        check_id("event_id", self.event_id)
        check_text("pack", self.pack, LIMITS.name_bytes_max)
        check_text("type", self.type, LIMITS.name_bytes_max)
        check_text("org", self.org, LIMITS.org_bytes_max)
        check_text("installation", self.installation, LIMITS.installation_bytes_max)
        check_text("capability", self.capability, LIMITS.capability_bytes_max)
        check_text("webhook", self.webhook, LIMITS.name_bytes_max)
        check_id("receipt_id", self.receipt_id)
        check_count("recorded_at_us", self.recorded_at_us)
        check_size("content", len(self.content), EVENT_CONTENT_BYTES_MAX)
        check_digest("digest", self.digest)


class EventState(str, Enum):
    """What the application did with an event."""

    APPLIED = "applied"
    DUPLICATE = "duplicate"


class EventReceipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The application's durable answer to an event; a repetition gets the same `receipt_id`."""

    event_id: str
    notice_digest: str
    state: EventState
    receipt_id: str

    def __post_init__(self) -> None:
        check_id("event_id", self.event_id)
        check_digest("notice_digest", self.notice_digest)
        check_id("receipt_id", self.receipt_id)


def seal_event(  # noqa: PLR0913  # an event has this many facts, each by its name
    *,
    event_id: str,
    pack: str,
    type: str,  # noqa: A002  # what everybody calls it
    org: str,
    installation: str,
    capability: str,
    webhook: str,
    receipt_id: str,
    recorded_at_us: int,
    content: bytes,
) -> EventNotice:
    """Return the notice with its digest; the same event makes the same notice, byte for byte."""
    notice = EventNotice(
        event_id=event_id,
        pack=pack,
        type=type,
        org=org,
        installation=installation,
        capability=capability,
        webhook=webhook,
        receipt_id=receipt_id,
        recorded_at_us=recorded_at_us,
        content=content,
        digest=digest_bytes(b""),
    )
    return msgspec.structs.replace(notice, digest=_digest(notice))


def verify_event(notice: EventNotice) -> None:
    """Return when the notice's digest is that of its other fields; otherwise raise `Quarantined`."""
    if notice.digest != _digest(notice):
        raise Quarantined("the notice's digest is not that of its content")


def _digest(notice: EventNotice) -> str:
    """The content enters by the hash of its raw bytes: its numbers are a provider's (PROTOCOL F7)."""
    document = {
        name: getattr(notice, name) for name in notice.__struct_fields__ if name not in ("content", "digest")
    }
    return digest_document(EVENT_TAG, document | {"content_digest": digest_bytes(notice.content)})
