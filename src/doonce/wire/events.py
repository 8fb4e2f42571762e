"""Handing one event to an application, which takes it once (PROTOCOL K3)."""

from enum import Enum
from typing import Final

import msgspec

from doonce.base import json
from doonce.base.digests import check_digest, digest_bytes, digest_document
from doonce.base.errors import Invalid, Quarantined
from doonce.base.limits import LIMITS, check_size, check_text
from doonce.wire.checks import check_count, check_id

EVENT_TAG: Final = "doonce/event-notice/v1"
"""The domain tag of an event notice's digest: no other document of ours can have the same one."""

EVENT_CONTENT_BYTES_MAX: Final = 8_388_608
"""One event's content: twice the largest body of a delivery, since an exact number may be spelled a little longer."""


class EventObjectRead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole object as it was read after the event came, byte for byte; None where the provider had none any more.

    `at_us` is the database's time before the read was sent: the object is no older than that.
    """

    at_us: int
    document: bytes | None

    def __repr__(self) -> str:
        """When, and nothing of what was read."""
        return f"EventObjectRead({self.at_us})"

    def __post_init__(self) -> None:
        check_count("at_us", self.at_us)
        check_size("document", len(self.document or b""), LIMITS.response_bytes_max)


class EventObject(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The provider's object that an event is about, and what the binding maps of it.

    `link` and `local_ref` are the link that it has now, None where nothing is linked to it. `fields` is a JSON object,
    kept byte for byte: the application's names of the inbound fields that the event has, or that the object has where
    `read` has it. `read` is None where nothing was read for the event.
    """

    kind: str
    remote_id: str
    deleted: bool
    link: str | None
    local_ref: str | None
    fields: msgspec.Raw
    read: EventObjectRead | None = None

    def __repr__(self) -> str:
        """Which object, and nothing of what is said about it."""
        return f"EventObject({self.kind})"

    def __post_init__(self) -> None:
        check_text("kind", self.kind, LIMITS.name_bytes_max)
        check_text("remote_id", self.remote_id, LIMITS.remote_id_bytes_max)
        if (self.link is None) != (self.local_ref is None):
            raise Invalid("link and local_ref go together")
        if self.link is not None:
            check_id("link", self.link)
            check_text("local_ref", self.local_ref, LIMITS.local_ref_bytes_max)
        if not isinstance(json.loads(bytes(self.fields), bytes_max=EVENT_CONTENT_BYTES_MAX), dict):
            raise Invalid("fields must be a JSON object")


class EventNotice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One event; `content` is its part of the delivery's body, byte for byte.

    It is the same each time that it is told, but for the link that its object has at that time.
    """

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
    object: EventObject | None
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
    object: EventObject | None = None,  # noqa: A002  # what it is
) -> EventNotice:
    """Return the notice with its digest; the same facts make the same notice, byte for byte."""
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
        object=object,
        digest=digest_bytes(b""),
    )
    return msgspec.structs.replace(notice, digest=_digest(notice))


def verify_event(notice: EventNotice) -> None:
    """Return when the notice's digest is that of its other fields; otherwise raise `Quarantined`."""
    if notice.digest != _digest(notice):
        raise Quarantined("the notice's digest is not that of its content")


def _digest(notice: EventNotice) -> str:
    """Content and fields enter by the hash of their raw bytes: their numbers are a provider's (PROTOCOL F7)."""
    own = [name for name in notice.__struct_fields__ if name not in ("content", "object", "digest")]
    document: dict[str, json.JsonValue] = {name: getattr(notice, name) for name in own}
    document["content_digest"] = digest_bytes(notice.content)
    document["object"] = None if notice.object is None else _of_object(notice.object)
    return digest_document(EVENT_TAG, document)


def _of_object(told: EventObject) -> json.JsonValue:
    return {
        "kind": told.kind,
        "remote_id": told.remote_id,
        "deleted": told.deleted,
        "link": told.link,
        "local_ref": told.local_ref,
        "fields_digest": digest_bytes(bytes(told.fields)),
        "read": None if told.read is None else _of_read(told.read),
    }


def _of_read(read: EventObjectRead) -> json.JsonValue:
    document = read.document
    return {"at_us": read.at_us, "document_digest": None if document is None else digest_bytes(document)}
