"""What the end of one attempt means: PROTOCOL D4 and D6 as pure, total functions.

No answer, however malformed, raises here: what cannot be understood proves nothing.
"""

from enum import Enum
from typing import TYPE_CHECKING, Final, assert_never

from doonce.catalog.bounds import REPLAY_MARGIN_US, RETRY_AFTER_SILENT_US_MAX
from doonce.catalog.exchange import Classified, FrozenRequest, Response
from doonce.catalog.extraction import Answer, encode_result, extract, receipt, retry_after_us
from doonce.catalog.model import (
    RESULT_REMOTE_ID,
    RESULT_STATUS,
    Action,
    LinkUse,
    OperationContract,
    Outcome,
    OutcomeRule,
    ReplayKind,
)

if TYPE_CHECKING:
    from doonce.base.json import JsonValue

REASON_CHARACTERS_MAX: Final = 255

_UNPROVEN_4XX: Final = frozenset({408, 425, 429})


class CrashedState(str, Enum):
    """How far an attempt had come when its sender vanished."""

    PREPARED = "prepared"
    DISPATCHED = "dispatched"


def classify_response(
    contract: OperationContract,
    request: FrozenRequest,
    response: Response,
    *,
    earlier_maybe_sent: bool = False,
) -> Classified:
    """Return what an answer with a status means (PROTOCOL D6); never raises.

    The first outcome rule of the pack that fits decides; where the pack is silent, D6 does. An incomplete
    answer is as good as none. `earlier_maybe_sent` says that an earlier attempt of the same command may have
    reached the provider: then a refusal of this one (an expired token, say) does not prove that there was no
    effect, and is `OUTCOME_UNKNOWN` unless the rule says `settles_earlier`.
    """
    kept = receipt(contract.receipt_headers, response)
    if not response.complete or not 200 <= response.status <= 599:
        return _unproven(
            contract, f"status {response.status}, unusable: {response.reason or 'malformed'}", kept
        )
    answer = Answer(response, bytes_max=contract.response_bytes_max)
    rules = [rule for rule in contract.outcomes if _covers(rule, response.status)]
    if not answer.is_json and any(rule.body is not None and rule.body.json is not None for rule in rules):
        return _unproven(contract, f"status {response.status}, and the body that decides is malformed", kept)
    rule = next((rule for rule in rules if rule.body is None or answer.holds(rule.body)), None)
    action = _default_action(response.status) if rule is None else rule.action
    said = f"status {response.status}: {action.value}{' (declared)' if rule else ''}"
    match action:
        case Action.ACCEPTED:
            return _accepted(contract, request, answer, said, kept)
        case Action.ACCEPTED_FOR_LATER:
            result = encode_result(extract(contract.results, answer, request.target))
            return Classified(Outcome.ACCEPTED, said, result=result, for_later=True, receipt=kept)
        case Action.REJECTED:
            settled = _is_settled(rule, earlier_maybe_sent)
            return _rejected(contract, request, answer, said, kept, settled=settled)
        case Action.NO_EFFECT:
            return Classified(
                Outcome.REPLAY_SAFE_RETRY,
                said,
                retry_after_us=_declared_wait_us(rule, response),
                effect_free=True,
                receipt=kept,
            )
        case Action.UNKNOWN:
            asked = retry_after_us(response)
            wait = None if asked is None else min(asked, RETRY_AFTER_SILENT_US_MAX)
            return _unproven(contract, said, kept, retry_after_us=wait)
        case Action.VERIFY:
            return Classified(Outcome.OUTCOME_UNKNOWN, said, verify=True, receipt=kept)
        case _:
            assert_never(action)


def classify_unsent(contract: OperationContract, stage: str, reason: str) -> Classified:
    """Return the end of an attempt whose live sender proves that no request byte left (PROTOCOL D4)."""
    del contract  # proven for every operation: nothing in a pack can change it
    return Classified(Outcome.RETRYABLE_PRE_DISPATCH, _cut(f"not sent ({stage}): {reason}"), effect_free=True)


def classify_unanswered(contract: OperationContract, reason: str) -> Classified:
    """Return the end of an attempt of which a byte may have left and no usable answer came (PROTOCOL D6)."""
    return _unproven(contract, f"no answer: {reason}", ())


def settle_crash(
    contract: OperationContract, state: CrashedState, *, now_us: int, first_dispatched_at_us: int | None
) -> Classified:
    """Return the end of an attempt whose sender vanished; the next claimant records it before anything else.

    Prepared only: nothing was sent. Dispatched: unknown, unless the contract proves a repetition harmless and
    its window, counted from the command's *first* dispatch, is still open with its margin (PROTOCOL D7).
    """
    if state is CrashedState.PREPARED:
        return Classified(
            Outcome.RETRYABLE_PRE_DISPATCH, "the sender vanished before the dispatch mark", effect_free=True
        )
    if may_replay(contract, now_us=now_us, first_dispatched_at_us=first_dispatched_at_us):
        return Classified(Outcome.REPLAY_SAFE_RETRY, "the sender vanished; a repetition is proven harmless")
    return Classified(Outcome.OUTCOME_UNKNOWN, "the sender vanished after the dispatch mark")


def may_replay(contract: OperationContract, *, now_us: int, first_dispatched_at_us: int | None) -> bool:
    """Say whether sending a command's request again is proven harmless now (PROTOCOL D7)."""
    if contract.replay.kind is ReplayKind.NONE:
        return False
    if contract.replay.window_us is None:
        return True  # a read
    if first_dispatched_at_us is None:
        return False
    return now_us < first_dispatched_at_us + contract.replay.window_us - REPLAY_MARGIN_US


def no_effect_admissible_from_us(contract: OperationContract, dispatched_at_us: int) -> int | None:
    """Return when a probe may start to find no effect (PROTOCOL H3), None where it never may."""
    if contract.settle_after_us is None:
        return None
    return dispatched_at_us + contract.send_window_us + contract.settle_after_us


def resends_by_itself(
    contract: OperationContract, *, now_us: int, first_dispatched_at_us: int | None
) -> bool:
    """Say whether a proven *no effect* may be followed by a new call without an operator (PROTOCOL H3)."""
    return contract.duplicates_rejected or may_replay(
        contract, now_us=now_us, first_dispatched_at_us=first_dispatched_at_us
    )


def _covers(rule: OutcomeRule, status: int) -> bool:
    return any(low <= status <= high for low, high in rule.statuses)


def _default_action(status: int) -> Action:
    if 200 <= status <= 299:
        return Action.ACCEPTED
    return Action.REJECTED if 400 <= status <= 499 and status not in _UNPROVEN_4XX else Action.UNKNOWN


def _accepted(
    contract: OperationContract,
    request: FrozenRequest,
    answer: Answer,
    said: str,
    kept: tuple[tuple[str, str], ...],
) -> Classified:
    status = answer.status
    if 200 <= status <= 299:
        for condition in contract.evidence:
            if not answer.holds(condition):
                missing = condition.header or f"JSON {condition.json or 'document'}"
                return _unproven(contract, f"status {status} without its evidence: {missing}", kept)
    values = extract(contract.results, answer, request.target)
    if contract.link is LinkUse.CREATES and RESULT_REMOTE_ID not in values:
        return _unproven(contract, f"status {status} without a usable remote id", kept)
    return Classified(Outcome.ACCEPTED, said, result=encode_result(values), receipt=kept)


def _is_settled(rule: OutcomeRule | None, earlier_maybe_sent: bool) -> bool:
    return not earlier_maybe_sent or (rule is not None and rule.settles_earlier)


def _rejected(
    contract: OperationContract,
    request: FrozenRequest,
    answer: Answer,
    said: str,
    kept: tuple[tuple[str, str], ...],
    *,
    settled: bool,
) -> Classified:
    if not settled and contract.replay.kind is not ReplayKind.READ:
        return Classified(
            Outcome.OUTCOME_UNKNOWN, f"{said}, but an earlier attempt may be in effect", receipt=kept
        )
    values: dict[str, JsonValue] = {RESULT_STATUS: answer.status}
    values |= extract(contract.rejection, answer, request.target)
    return Classified(Outcome.REJECTED, said, result=encode_result(values), effect_free=True, receipt=kept)


def _declared_wait_us(rule: OutcomeRule | None, response: Response) -> int | None:
    if rule is None:
        return None
    asked = retry_after_us(response)
    if asked is None:
        return rule.retry_after_default_us
    return asked if rule.retry_after_us_max is None else min(asked, rule.retry_after_us_max)


def _unproven(
    contract: OperationContract,
    reason: str,
    kept: tuple[tuple[str, str], ...],
    *,
    retry_after_us: int | None = None,
) -> Classified:
    if contract.replay.kind is ReplayKind.NONE:
        return Classified(Outcome.OUTCOME_UNKNOWN, _cut(reason), receipt=kept)
    return Classified(Outcome.REPLAY_SAFE_RETRY, _cut(reason), retry_after_us=retry_after_us, receipt=kept)


def _cut(reason: str) -> str:
    return reason[:REASON_CHARACTERS_MAX]
