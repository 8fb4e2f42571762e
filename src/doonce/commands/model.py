"""Handoff and command: what acceptance decides, and what ends a command. Pure.

A handoff is terminal at birth. The first writer of a key wins; the loser gets the winner's receipt:

| stored             | asks   | same scope, payload, outbox id | otherwise              |
|--------------------|--------|--------------------------------|------------------------|
| nothing            | accept | COMMAND_ACCEPTED               | -                      |
| nothing            | reject | HANDOFF_REJECTED               | -                      |
| COMMAND_ACCEPTED   | either | the stored receipt             | quarantined, row stays |
| HANDOFF_REJECTED   | either | the stored receipt             | quarantined, row stays |
"""

from __future__ import annotations

from enum import Enum

from doonce.base.records import Record
from doonce.work.model import LanePolicy, Scope


class HandoffState(str, Enum):
    """The two facts that a handoff key can have. "No row" proves neither."""

    COMMAND_ACCEPTED = "COMMAND_ACCEPTED"
    HANDOFF_REJECTED = "HANDOFF_REJECTED"


class Origin(str, Enum):
    """Who asked for a command; each has its own unique key (PROTOCOL F4)."""

    RUNTIME = "runtime"
    OPERATOR = "operator"


class EndedAs(str, Enum):
    """How a command ended."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    DEAD = "dead"
    CANCELLED = "cancelled"


class CommandState(str, Enum):
    """Where a command stands, derived from its end, its attempts and its work; never stored."""

    WAITING = "waiting"
    RUNNING = "running"
    UNKNOWN = "unknown"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    DEAD = "dead"
    CANCELLED = "cancelled"


class Request(Record, frozen=True):
    """The frozen request, rendered once: every attempt of the command sends exactly these bytes (PROTOCOL F5)."""

    method: str
    origin: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    body_digest: str
    idempotency_key: str | None


class Pins(Record, frozen=True):
    """What a command was accepted under. A change of any closes its dispatch; none is ever looked up again."""

    view_digest: str
    principal_id: str
    generation: int
    link_id: str | None
    link_version: int | None


class Command(Record, frozen=True):
    """An accepted command, immutable."""

    id: str
    origin: Origin
    handoff_key: str
    scope: Scope
    capability: str
    operation: str
    local_ref: str
    outbox_id: str
    payload_digest: str
    payload: bytes
    remote_id: str | None
    pins: Pins
    request: Request
    accepted_at: int


class HandoffClaim(Record, frozen=True):
    """What a caller says of a handoff key; all of it is compared with what is stored (authority §6.1)."""

    key: str
    scope: Scope
    capability: str
    binding_digest: str
    outbox_id: str
    payload_digest: str


class Acceptance(Record, frozen=True):
    """One command to accept. Ids and the nonce are made before the transaction (PROTOCOL T1, T7)."""

    handoff: HandoffClaim
    nonce: str
    receipt_id: str
    command_id: str
    work_id: str
    operation: str
    local_ref: str
    payload: bytes
    remote_id: str | None
    pins: Pins
    request: Request
    source_lane: str | None
    source_policy: LanePolicy
    target_lane: str | None


class Rejection(Record, frozen=True):
    """A wish that a handoff key may never be accepted."""

    handoff: HandoffClaim
    nonce: str
    receipt_id: str
    reason: str


class Admitted(Record, frozen=True):
    """The terminal fact of a handoff key, and whether this very request made it."""

    key: str
    state: HandoffState
    command_id: str | None
    receipt_id: str
    recorded_at: int
    reason: str
    first: bool


class ConflictFound(Record, frozen=True):
    """The key is there with another scope, payload or outbox id. Nothing of the stored row is disclosed."""

    key: str
    mismatch: str


Admission = Admitted | ConflictFound


class StoredHandoff(Record, frozen=True):
    """A handoff row as stored; `applied` tells whether its command is there."""

    claim: HandoffClaim
    state: HandoffState
    command_id: str | None
    receipt_id: str
    recorded_at: int
    reason: str
    nonce: str
    applied: bool


def mismatch(stored: HandoffClaim, asked: HandoffClaim) -> str:
    """The first axis on which a request differs from what is stored under its key, or "" (authority §6.1)."""
    pairs = (
        ("scope", (stored.scope, stored.capability, stored.binding_digest),
         (asked.scope, asked.capability, asked.binding_digest)),
        ("outbox_id", stored.outbox_id, asked.outbox_id),
        ("payload_digest", stored.payload_digest, asked.payload_digest),
    )  # fmt: skip
    return next((axis for axis, left, right in pairs if left != right), "")


def judge_admission(stored: StoredHandoff, asked: HandoffClaim, nonce: str) -> Admission:
    """What to answer a request whose key is stored and locked."""
    axis = mismatch(stored.claim, asked)
    if axis:
        return ConflictFound(asked.key, axis)
    return Admitted(
        key=asked.key,
        state=stored.state,
        command_id=stored.command_id,
        receipt_id=stored.receipt_id,
        recorded_at=stored.recorded_at,
        reason=stored.reason,
        first=stored.nonce == nonce,
    )


class CommandEnd(Record, frozen=True):
    """The end of a command: one row, written with whatever ended it. `result_json` is what the application hears."""

    command_id: str
    ended_as: EndedAs
    attempt_id: str | None
    result_json: str
    reason: str
    recorded_at: int


class NewEnd(Record, frozen=True):
    """An end to record. `asked_for`: the application asks for it by itself, so nothing has to carry it there."""

    command: Command
    ended_as: EndedAs
    attempt_id: str | None
    result_json: str
    reason: str
    asked_for: bool = False


def derive_state(*, ended_as: EndedAs | None, unresolved: bool, work_state: str | None) -> CommandState:
    """Where a command stands. An unresolved attempt outweighs everything but an end."""
    if ended_as is not None:
        return CommandState(ended_as.value)
    if unresolved:
        return CommandState.UNKNOWN
    return CommandState.RUNNING if work_state == "processing" else CommandState.WAITING
