"""Telling an application what became of its command, once (PROTOCOL K1)."""

from enum import Enum
from typing import Final

import msgspec

from doonce.base import json
from doonce.base.digests import check_digest, digest_bytes, digest_document
from doonce.base.errors import Invalid, Quarantined
from doonce.base.limits import LIMITS, check_text
from doonce.wire.checks import check_count, check_id

NOTICE_TAG: Final = "doonce/completion-notice/v1"
"""The domain tag of a notice's digest: no other document of ours can have the same one."""


class CompletionOutcome(str, Enum):
    """What is known about a command; all but `unknown` are its end."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    DEAD = "dead"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def terminal(self) -> bool:
        """Whether nothing else can follow for this command."""
        return self is not CompletionOutcome.UNKNOWN


class CompletionNotice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One statement of the service about one command; `result` is a JSON object, kept byte for byte."""

    command_id: str
    key: str
    outbox_id: str
    payload_digest: str
    outcome: CompletionOutcome
    terminal: bool
    result: msgspec.Raw
    attempt_id: str | None
    recorded_at_us: int
    digest: str

    def __post_init__(self) -> None:
        check_id("command_id", self.command_id)
        check_text("key", self.key, LIMITS.key_bytes_max)
        check_id("outbox_id", self.outbox_id)
        check_digest("payload_digest", self.payload_digest)
        check_digest("digest", self.digest)
        if self.attempt_id is not None:
            check_id("attempt_id", self.attempt_id)
        check_count("recorded_at_us", self.recorded_at_us)
        if self.terminal is not self.outcome.terminal:
            raise Invalid(f"the outcome {self.outcome.value} contradicts terminal")
        if not isinstance(json.loads(bytes(self.result), bytes_max=LIMITS.response_bytes_max), dict):
            raise Invalid("result must be a JSON object")


class ReceiptState(str, Enum):
    """What the application did with a notice."""

    APPLIED = "applied"
    DUPLICATE = "duplicate"
    NOTED = "noted"


class CompletionReceipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The application's durable answer to a notice; a repetition gets the same `receipt_id`."""

    command_id: str
    notice_digest: str
    state: ReceiptState
    receipt_id: str

    def __post_init__(self) -> None:
        check_id("command_id", self.command_id)
        check_digest("notice_digest", self.notice_digest)
        check_id("receipt_id", self.receipt_id)


def seal_notice(
    *,
    command_id: str,
    key: str,
    outbox_id: str,
    payload_digest: str,
    outcome: CompletionOutcome,
    result: bytes,
    attempt_id: str | None,
    recorded_at_us: int,
) -> CompletionNotice:
    """Return the notice with its digest; the same facts make the same notice, byte for byte.

    `result` is a JSON object. Raises `Invalid` when a field is out of its bounds.
    """
    # The white space around a JSON value is no part of it: it would not survive the wire.
    trimmed = result.strip(b" \t\r\n")
    digest = _digest(command_id, key, outbox_id, payload_digest, outcome, trimmed, attempt_id, recorded_at_us)
    return CompletionNotice(
        command_id=command_id,
        key=key,
        outbox_id=outbox_id,
        payload_digest=payload_digest,
        outcome=outcome,
        terminal=outcome.terminal,
        result=msgspec.Raw(trimmed),
        attempt_id=attempt_id,
        recorded_at_us=recorded_at_us,
        digest=digest,
    )


def verify_notice(notice: CompletionNotice) -> None:
    """Return when the notice's digest is that of its other fields; otherwise raise `Quarantined`."""
    expected = _digest(
        notice.command_id,
        notice.key,
        notice.outbox_id,
        notice.payload_digest,
        notice.outcome,
        bytes(notice.result),
        notice.attempt_id,
        notice.recorded_at_us,
    )
    if notice.digest != expected:
        raise Quarantined("the notice's digest is not that of its content")


def _digest(
    command_id: str,
    key: str,
    outbox_id: str,
    payload_digest: str,
    outcome: CompletionOutcome,
    result: bytes,
    attempt_id: str | None,
    recorded_at_us: int,
) -> str:
    """The result enters by the hash of its raw bytes: its numbers are a provider's (PROTOCOL F7)."""
    return digest_document(
        NOTICE_TAG,
        {
            "attempt_id": attempt_id,
            "command_id": command_id,
            "key": key,
            "outbox_id": outbox_id,
            "outcome": outcome.value,
            "payload_digest": payload_digest,
            "recorded_at_us": recorded_at_us,
            "result_digest": digest_bytes(result),
            "terminal": outcome.terminal,
        },
    )
