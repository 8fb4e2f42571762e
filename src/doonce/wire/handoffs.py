"""Handing an outbox row over: the request to accept or reject it, and the one durable answer."""

from enum import Enum

import msgspec

from doonce.base.digests import check_digest, digest_bytes
from doonce.base.errors import DoonceError, ErrorClass, Invalid
from doonce.base.limits import LIMITS, check_size, check_text
from doonce.wire.checks import check_count, check_id


class HandoffScope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole trusted scope that an outbox row pins for ever (authority §6.1, PROTOCOL F1)."""

    org: str
    installation: str
    capability: str
    binding_digest: str
    binding_generation: int

    def __post_init__(self) -> None:
        check_text("org", self.org, LIMITS.org_bytes_max)
        check_text("installation", self.installation, LIMITS.installation_bytes_max)
        check_text("capability", self.capability, LIMITS.capability_bytes_max)
        check_digest("binding_digest", self.binding_digest)
        check_count("binding_generation", self.binding_generation)


class AcceptRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks the service to own one effect; the same bytes on every repetition.

    `local_ref` is the application's id of the record. `link` names the remote link; without it the service
    looks it up by `local_ref`.
    """

    key: str
    scope: HandoffScope
    outbox_id: str
    operation: str
    local_ref: str
    link: str | None
    payload: bytes
    payload_digest: str
    source_lane: str | None

    def __post_init__(self) -> None:
        check_text("key", self.key, LIMITS.key_bytes_max)
        check_id("outbox_id", self.outbox_id)
        check_text("operation", self.operation, LIMITS.name_bytes_max)
        check_text("local_ref", self.local_ref, LIMITS.local_ref_bytes_max)
        if self.link is not None:
            check_id("link", self.link)
        if self.source_lane is not None:
            check_text("source_lane", self.source_lane, LIMITS.lane_bytes_max)
        check_size("payload", len(self.payload), LIMITS.payload_bytes_max)
        check_digest("payload_digest", self.payload_digest)
        if digest_bytes(self.payload) != self.payload_digest:
            raise Invalid("payload_digest is not the digest of the payload")


class RejectRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks that one handoff never becomes a command; all four arguments, never looked up (authority §6.1)."""

    key: str
    scope: HandoffScope
    payload_digest: str
    outbox_id: str

    def __post_init__(self) -> None:
        check_text("key", self.key, LIMITS.key_bytes_max)
        check_digest("payload_digest", self.payload_digest)
        check_id("outbox_id", self.outbox_id)


class AdmissionState(str, Enum):
    """The two terminal facts of a handoff key."""

    COMMAND_ACCEPTED = "COMMAND_ACCEPTED"
    HANDOFF_REJECTED = "HANDOFF_REJECTED"


class Admission(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="admission"
):
    """The durable receipt of a handoff key: for every asker, for ever, the same one."""

    key: str
    state: AdmissionState
    command_id: str | None
    receipt_id: str
    recorded_at_us: int
    reason: str

    def __post_init__(self) -> None:
        check_text("key", self.key, LIMITS.key_bytes_max)
        check_id("receipt_id", self.receipt_id)
        check_count("recorded_at_us", self.recorded_at_us)
        check_text("reason", self.reason, LIMITS.reason_bytes_max, empty_allowed=True)
        accepted = self.state is AdmissionState.COMMAND_ACCEPTED
        if self.command_id is not None:
            check_id("command_id", self.command_id)
        if accepted is (self.command_id is None):
            raise Invalid("an accepted handoff names its command, and a rejected one has none")


class Refused(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="refused"
):
    """One request of a batch was refused; it is no admission and proves nothing about the key."""

    key: str
    error_class: ErrorClass
    message: str
    hint: str

    def __post_init__(self) -> None:
        check_text("key", self.key, LIMITS.key_bytes_max)
        check_text("message", self.message, LIMITS.reason_bytes_max, empty_allowed=True)
        check_text("hint", self.hint, LIMITS.reason_bytes_max, empty_allowed=True)


def refused_from(key: str, error: DoonceError) -> Refused:
    """Return `error` as the answer to the request for `key`; its texts are made to fit."""
    return Refused(
        key=key, error_class=error.error_class, message=fitted(error.message), hint=fitted(error.hint)
    )


def fitted(text: str) -> str:
    """Return `text` as one storable line within the bound of a reason."""
    line = "".join(character if character.isprintable() else " " for character in text)
    return line.encode("utf-8", "replace")[: LIMITS.reason_bytes_max].decode("utf-8", "ignore")


class AcceptBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/handoffs/accept`; each key once."""

    requests: tuple[AcceptRequest, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.requests) <= LIMITS.batch_rows_max:
            raise Invalid(f"a batch holds from 1 to {LIMITS.batch_rows_max} requests")
        check_size("the batch", sum(len(one.payload) for one in self.requests), LIMITS.batch_bytes_max)
        if len({one.key for one in self.requests}) != len(self.requests):
            raise Invalid("a batch names each key once")


class AcceptResults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Its answer: one result for each request, in the order of the requests."""

    results: tuple[Admission | Refused, ...]


class RejectBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/handoffs/reject`; the answer is an `Admission`."""

    request: RejectRequest
