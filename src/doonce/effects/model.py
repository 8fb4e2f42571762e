"""EffectAttempt: its states, and what follows from each outcome. Pure.

| from       | event                                   | to                                      |
|------------|-----------------------------------------|-----------------------------------------|
| -          | claim                                   | prepared                                |
| prepared   | mark, everything pinned still holds     | dispatched (before the first byte)      |
| prepared   | sender gone, or proved that nothing left| ended RETRYABLE_PRE_DISPATCH            |
| dispatched | answer, no answer, sender gone          | ended with one of the five outcomes     |
| ended UNKNOWN | evidence, probe, operator            | stays; a disposition is appended        |

Nothing here schedules: an attempt has no `run_after` and no claim. Its outcome decides the next step of the work
item that it was made for, in the same transaction.
"""

from __future__ import annotations

from enum import Enum

from doonce.base.records import Record
from doonce.catalog.model import Outcome, Verdict
from doonce.commands.model import Command, EndedAs
from doonce.work.model import Claimed, Event, Item, RetryPolicy


class AttemptState(str, Enum):
    """Where an attempt stands."""

    PREPARED = "prepared"
    DISPATCHED = "dispatched"
    ENDED = "ended"


class AttemptKind(str, Enum):
    """What an attempt calls for."""

    EFFECT = "effect"
    PROBE = "probe"
    HYDRATION = "hydration"
    PAGE = "page"


class EvidenceKind(str, Enum):
    """What a sender that had lost its claim still saw."""

    CLOSED_UNSENT = "closed_unsent"
    ANSWERED = "answered"
    NO_ANSWER = "no_answer"


class Attempt(Record, frozen=True):
    """One attempt as its row has it; times are microseconds UTC of the database."""

    id: str
    kind: AttemptKind
    subject_id: str
    work_id: str
    state: AttemptState
    outcome: Outcome | None
    reason: str
    effect_free: bool
    """Proven to have done nothing: never dispatched, closed unsent, or refused by an answer that says so."""
    mark_nonce: str | None
    prepared_at: int
    dispatched_at: int | None
    settled_by: str | None
    evidence_version: int
    horizon_at: int | None
    """Until when bytes of this attempt may still arrive: dispatch + send window + the pack's `settle_after`."""


class Evidence(Record, frozen=True):
    """What was seen after the claim was lost: append-only, and no transition by itself."""

    id: str
    attempt_id: str
    kind: EvidenceKind
    outcome: Outcome | None
    result_json: str
    reason: str


class Lineage(Record, frozen=True):
    """A successor's predecessor attempt, and the evidence that its verdict had seen (PROTOCOL H4)."""

    attempt_id: str
    evidence_version: int


class Start(Record, frozen=True):
    """A claimed effect, ready to go: either a fresh prepared attempt, or an open one to settle first."""

    claimed: Claimed
    command: Command | None
    attempt_id: str
    open_attempt: Attempt | None
    evidence: tuple[Evidence, ...]
    earlier: Attempt | None
    """The newest earlier attempt of this command that may have had an effect, while it was safe to repeat."""
    first_dispatched_at: int | None
    """When the command was first dispatched with a possible effect: a replay window counts from then (PROTOCOL D7)."""
    lineage: Lineage | None
    lossy_at: int | None
    """When an operator last declared that commits of this database may be lost (PROTOCOL S2)."""


class Ending(Record, frozen=True):
    """How one attempt ended, as its live claimant says, and what the policy needs to know.

    `effect_free` tells that nothing happened: nothing was sent, or the provider's contract proves it of this answer.
    `give_up` asks for no further try. `jitter` is uniform in [0, 1), drawn before the transaction. REJECTED has to
    speak for every earlier attempt of the command as well; the classification sees to that.
    """

    outcome: Outcome
    reason: str
    result_json: str = "{}"
    receipt_json: str = "{}"
    status: int | None = None
    retry_after_us: int = 0
    effect_free: bool = False
    give_up: bool = False
    jitter: float = 0.5


class Terms(Record, frozen=True):
    """What the pinned view says about ending attempts of one command.

    `asks`: the application asks for results by itself, so that no completion has to be pushed. `creates`: the kind of
    object that an accepted command has made, None where it makes none.
    """

    policy: RetryPolicy
    wants_rejected_result: bool
    asks: bool = False
    creates: str | None = None


class Unresolved(str, Enum):
    """Which attempt of a command nobody knows the outcome of."""

    NONE = "none"
    THIS = "this"
    EARLIER = "earlier"


class NextStep(Record, frozen=True):
    """What an outcome makes of its work item and command; all of it happens in one transaction."""

    outcome: Outcome
    event: Event
    delay_us: int = 0
    failed: bool = False
    failure_class: str | None = None
    ended_as: EndedAs | None = None
    unresolved: Unresolved = Unresolved.NONE
    linked: str | None = None
    """What became of the link of an accepted create (`linking.Linked`); only the transaction can say."""


def next_step(
    item: Item, ending: Ending, terms: Terms, now_us: int, *, poison: bool = False, earlier: bool = False
) -> NextStep:
    """The one automatic next action of an outcome (authority §6), within the bounds of the binding's policy.

    `earlier`: an earlier attempt of the command may have had an effect, so giving up does not end it as dead.
    """
    policy = terms.policy
    match ending.outcome:
        case Outcome.ACCEPTED:
            return NextStep(Outcome.ACCEPTED, Event.SUCCEED, ended_as=EndedAs.ACCEPTED)
        case Outcome.REJECTED:
            event = Event.SUCCEED if terms.wants_rejected_result else Event.DIE
            return NextStep(Outcome.REJECTED, event, failure_class="rejected", ended_as=EndedAs.REJECTED)
        case Outcome.OUTCOME_UNKNOWN:
            return _unknown(Outcome.OUTCOME_UNKNOWN, Unresolved.THIS)
        case Outcome.RETRYABLE_PRE_DISPATCH:
            if item.cancel_requested and not earlier:
                return NextStep(ending.outcome, Event.ACK_CANCEL, ended_as=EndedAs.CANCELLED)
            spent = policy.exhausted_failures(item.failures + 1, item.first_failed_at, now_us)
            if spent or poison or ending.give_up:
                return _give_up(ending, "poison" if poison else "never_dispatched", earlier=earlier)
            delay_us = policy.delay_us(item.failures + 1, ending.jitter, ending.retry_after_us)
            return NextStep(ending.outcome, Event.RETRY, delay_us, failed=True)
        case Outcome.REPLAY_SAFE_RETRY:
            if item.attempts >= policy.tries_max or poison or ending.give_up:
                return _give_up(ending, "poison" if poison else "tries_exhausted", earlier=earlier)
            delay_us = policy.delay_us(item.attempts, ending.jitter, ending.retry_after_us)
            return NextStep(ending.outcome, Event.RETRY, delay_us)


def _unknown(outcome: Outcome, unresolved: Unresolved) -> NextStep:
    return NextStep(outcome, Event.DIE, failure_class="outcome_unknown", unresolved=unresolved)


def _give_up(ending: Ending, failure_class: str, *, earlier: bool) -> NextStep:
    """No further try. Dead is a claim too: that nothing happened. Where that is not proven, nobody knows."""
    if ending.outcome is Outcome.REPLAY_SAFE_RETRY and not ending.effect_free:
        return _unknown(Outcome.OUTCOME_UNKNOWN, Unresolved.THIS)
    if earlier:
        return _unknown(ending.outcome, Unresolved.EARLIER)
    return NextStep(ending.outcome, Event.DIE, failure_class=failure_class, ended_as=EndedAs.DEAD)


class RefusedMark(str, Enum):
    """Why a mark was not made. The first two mean that somebody else owns the work now; the rest end it."""

    OWNERSHIP = "ownership"
    LEASE = "lease"
    ATTEMPT = "attempt"
    GENERATION = "generation"
    LINK = "link"
    EVIDENCE = "evidence"
    CANCELLED = "cancelled"


def judge_mark(
    *,
    owned: bool,
    leased: bool,
    attempt: Attempt | None,
    generation_current: bool,
    link_current: bool,
    evidence_unchanged: bool,
    cancelled: bool,
) -> RefusedMark | None:
    """Which fence refuses a mark, the outermost first; None when all hold (PROTOCOL D2)."""
    if not owned:
        return RefusedMark.OWNERSHIP
    if not leased:
        return RefusedMark.LEASE
    if attempt is None or attempt.state is not AttemptState.PREPARED:
        return RefusedMark.ATTEMPT
    if not generation_current:
        return RefusedMark.GENERATION
    if not link_current:
        return RefusedMark.LINK
    if not evidence_unchanged:
        return RefusedMark.EVIDENCE
    return RefusedMark.CANCELLED if cancelled else None


class Marked(Record, frozen=True):
    """The attempt is durably `dispatched`: bytes may leave now, on the connection held, until the send-by time."""

    dispatched_at: int
    lease_until: int


MarkResult = Marked | RefusedMark


class Question(Record, frozen=True):
    """A claimed reconciliation: the attempt in question and all that is known of it."""

    claimed: Claimed
    attempt: Attempt | None
    command: Command | None
    attempt_status: int | None
    evidence: tuple[Evidence, ...]
    first_dispatched_at: int | None
    open_probe: Attempt | None
    decided: bool


class Verdicted(Record, frozen=True):
    """A verdict on an attempt, from a probe, late evidence or an operator, to be recorded as its disposition.

    `resend` asks for a successor when there was no effect; it is allowed only where the provider rejects duplicates,
    the sender recorded that it closed unsent, or an operator decides (PROTOCOL H3).
    """

    verdict: Verdict
    reason: str
    evidence_version: int
    names_attempt: bool = False
    result_json: str = "{}"
    resend: bool = False
    ends_rejected: bool = False
