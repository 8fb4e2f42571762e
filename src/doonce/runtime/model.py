"""What an outbox row can be, and what each answer and each notice makes of it. Pure: no clock, no I/O.

    pending ──accepted──▶ accepted ──terminal notice──▶ completed
       │ ──HANDOFF_REJECTED──▶ rejected
       └ ──refused──▶ refused ──resend, withdraw──▶ pending
                         └ ──dismiss──▶ dismissed

A notice proves an acceptance by itself: it may come before the relay has recorded one, so every state but
`rejected` can become `completed`. A refusal and a dismissal prove nothing about the key.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, NewType, assert_never

from doonce.base.errors import ErrorClass, Quarantined
from doonce.wire import (
    Admission,
    AdmissionState,
    CompletionNotice,
    CompletionReceipt,
    ReceiptState,
    Refused,
)

OutboxId = NewType("OutboxId", str)


class OutboxState(str, Enum):
    """Where an outbox row stands."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    REFUSED = "refused"
    DISMISSED = "dismissed"
    COMPLETED = "completed"


class Wish(str, Enum):
    """What the application wants of a pending row; the relay asks for exactly this."""

    ACCEPT = "accept"
    WITHDRAW = "withdraw"


class Withdrawal(str, Enum):
    """What `withdraw` found: only `WITHDRAWN` proves that no effect can follow (authority §6.1)."""

    ASKED = "asked"
    WITHDRAWN = "withdrawn"
    TOO_LATE = "too_late"
    DISMISSED = "dismissed"


ADMITTED: Final[dict[OutboxState, OutboxState]] = {
    OutboxState.PENDING: OutboxState.ACCEPTED,
    OutboxState.REFUSED: OutboxState.ACCEPTED,
    OutboxState.DISMISSED: OutboxState.ACCEPTED,
    OutboxState.ACCEPTED: OutboxState.ACCEPTED,
    OutboxState.COMPLETED: OutboxState.COMPLETED,
}
"""What a durable acceptance makes of each state; a row that is not here contradicts it."""

UNADMITTED: Final = (OutboxState.PENDING, OutboxState.REFUSED, OutboxState.DISMISSED)
"""The states that a durable rejection ends."""

OPEN: Final = (OutboxState.PENDING, OutboxState.REFUSED)
"""The states that `withdraw` can still ask for; in a source lane they hold up the later rows."""


# ------------------------------------------------------------------------------------ what an answer says


@dataclass(frozen=True, slots=True)
class Accepted:
    """The service owns the effect; a durable receipt, true whoever asked."""

    command_id: str
    receipt_id: str
    reason: str
    admitted_at_us: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """No command will ever exist for this key; a durable receipt, true whoever asked."""

    receipt_id: str
    reason: str
    admitted_at_us: int


@dataclass(frozen=True, slots=True)
class RefusedForGood:
    """The service will not take this as it is: an operator looks at it, nothing is dropped."""

    error_class: ErrorClass
    message: str


@dataclass(frozen=True, slots=True)
class TryAgain:
    """No durable answer: the same bytes are sent again later."""

    error_class: ErrorClass
    message: str


Verdict = Accepted | Rejected | RefusedForGood | TryAgain


def read_answer(key: str, answer: Admission | Refused) -> Verdict:
    """Return what `answer` means for the row of `key`; an answer about another key is no answer."""
    if answer.key != key:
        return TryAgain(ErrorClass.INTERNAL, "the service answered about another key")
    match answer:
        case Refused():
            return read_refusal(answer.error_class, answer.message)
        case Admission(state=AdmissionState.COMMAND_ACCEPTED, command_id=str(command_id)):
            return Accepted(command_id, answer.receipt_id, answer.reason, answer.recorded_at_us)
        case Admission():
            return Rejected(answer.receipt_id, answer.reason, answer.recorded_at_us)
        case _:
            assert_never(answer)


def read_refusal(error_class: ErrorClass, message: str) -> Verdict:
    """Tell a refusal that stands from a failure that may pass."""
    if is_final(error_class):
        return RefusedForGood(error_class, message)
    return TryAgain(error_class, message)


def is_final(error_class: ErrorClass) -> bool:
    """Whether the same request would be refused again until a person changes something.

    A credential that is not recognized stops every row alike, and is repaired outside of them: the rows wait.
    """
    match error_class:
        case (
            ErrorClass.INVALID
            | ErrorClass.FORBIDDEN
            | ErrorClass.MISSING_OR_DENIED
            | ErrorClass.CONFLICT
            | ErrorClass.QUARANTINED
            | ErrorClass.STALE
        ):
            return True
        case (
            ErrorClass.UNAUTHENTICATED
            | ErrorClass.UNAVAILABLE
            | ErrorClass.EXHAUSTED
            | ErrorClass.DEADLINE
            | ErrorClass.INTERNAL
        ):
            return False
        case _:
            assert_never(error_class)


def retry_delay_us(tries: int, *, base_us: int, cap_us: int, draw: float) -> int:
    """Return the delay before try `tries` + 1: exponential, full jitter, capped; `draw` is in [0, 1).

    The jitter is over the whole range, so that the rows of a broken service do not come back together.
    """
    ceiling = min(cap_us, base_us << min(tries, 62))
    return 1 + int(draw * ceiling)


# ------------------------------------------------------------------------------------- what a notice does


@dataclass(frozen=True, slots=True)
class NoticedRow:
    """The facts of an outbox row that a notice must agree with."""

    key: str
    payload_digest: str
    state: OutboxState
    command_id: str | None
    terminal_digest: str | None


@dataclass(frozen=True, slots=True)
class Project:
    """A first terminal notice: run the projection, then write the receipt."""


@dataclass(frozen=True, slots=True)
class Note:
    """A first notice that ends nothing: keep it, and wait for the terminal one."""


Reading = Project | Note | CompletionReceipt


def read_notice(notice: CompletionNotice, row: NoticedRow, receipt_id: str | None) -> Reading:
    """Return what to do with a verified `notice`; `receipt_id` is that of an exact earlier copy of it.

    Raises `Quarantined`, and nothing may be applied, when the notice names another key, payload or command
    than the row, when the row was durably rejected, or when another notice has already ended the command.
    """
    if notice.key != row.key or notice.payload_digest != row.payload_digest:
        raise Quarantined("the notice does not belong to this outbox row")
    if row.command_id is not None and row.command_id != notice.command_id:
        raise Quarantined("the notice names another command than the one that was accepted")
    if row.state is OutboxState.REJECTED:
        raise Quarantined("the handoff was durably rejected, so no command can have ended")
    if receipt_id is not None:
        return CompletionReceipt(
            command_id=notice.command_id,
            notice_digest=notice.digest,
            state=ReceiptState.DUPLICATE,
            receipt_id=receipt_id,
        )
    if not notice.terminal:
        return Note()
    if row.terminal_digest is not None:
        raise Quarantined("another notice has already ended this command")
    return Project()
