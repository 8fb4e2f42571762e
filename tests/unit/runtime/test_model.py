"""Decisions of the application's side, without a database."""

import pytest

from doonce.base.errors import ErrorClass, Quarantined
from doonce.runtime.model import (
    ADMITTED,
    OPEN,
    UNADMITTED,
    Accepted,
    Note,
    NoticedRow,
    OutboxState,
    Project,
    RefusedForGood,
    Rejected,
    TryAgain,
    is_final,
    read_answer,
    read_notice,
    retry_delay_us,
)
from doonce.wire import (
    Admission,
    AdmissionState,
    CompletionNotice,
    CompletionOutcome,
    CompletionReceipt,
    ReceiptState,
    Refused,
    seal_notice,
)

DIGEST = "sha256:" + "a" * 64


def admission(state: AdmissionState) -> Admission:
    accepted = state is AdmissionState.COMMAND_ACCEPTED
    return Admission(
        key="k",
        state=state,
        command_id="cmd_1" if accepted else None,
        receipt_id="hnd_1",
        recorded_at_us=7,
        reason="because",
    )


def test_an_admission_is_a_fact() -> None:
    assert read_answer("k", admission(AdmissionState.COMMAND_ACCEPTED)) == Accepted(
        "cmd_1", "hnd_1", "because", 7
    )
    assert read_answer("k", admission(AdmissionState.HANDOFF_REJECTED)) == Rejected("hnd_1", "because", 7)


@pytest.mark.parametrize("error_class", ErrorClass)
def test_a_refusal_stands_or_passes(error_class: ErrorClass) -> None:
    answer = read_answer("k", Refused(key="k", error_class=error_class, message="no", hint=""))

    assert isinstance(answer, RefusedForGood if is_final(error_class) else TryAgain)
    assert answer.error_class is error_class


def test_what_passes_is_what_a_person_need_not_repair_in_the_row() -> None:
    assert {one for one in ErrorClass if not is_final(one)} == {
        ErrorClass.UNAUTHENTICATED,
        ErrorClass.UNAVAILABLE,
        ErrorClass.EXHAUSTED,
        ErrorClass.DEADLINE,
        ErrorClass.INTERNAL,
    }


@pytest.mark.parametrize("state", AdmissionState)
def test_an_answer_about_another_key_is_none(state: AdmissionState) -> None:
    assert isinstance(read_answer("other", admission(state)), TryAgain)


def test_every_state_has_its_place() -> None:
    assert set(ADMITTED) == set(OutboxState) - {OutboxState.REJECTED}
    assert set(UNADMITTED) == {OutboxState.PENDING, OutboxState.REFUSED, OutboxState.DISMISSED}
    assert set(OPEN) < set(UNADMITTED)
    assert ADMITTED[OutboxState.COMPLETED] is OutboxState.COMPLETED


@pytest.mark.parametrize(
    "tries,ceiling", [(0, 100), (1, 200), (3, 800), (4, 1_000), (62, 1_000), (10**9, 1_000)]
)
def test_the_delay_doubles_to_its_cap_with_full_jitter(tries: int, ceiling: int) -> None:
    assert retry_delay_us(tries, base_us=100, cap_us=1_000, draw=0.0) == 1
    assert retry_delay_us(tries, base_us=100, cap_us=1_000, draw=0.999_999) == ceiling
    assert retry_delay_us(tries, base_us=100, cap_us=1_000, draw=0.5) == 1 + ceiling // 2


def notice(outcome: CompletionOutcome = CompletionOutcome.ACCEPTED) -> CompletionNotice:
    return seal_notice(
        command_id="cmd_1",
        key="k",
        outbox_id="obx_1",
        payload_digest=DIGEST,
        outcome=outcome,
        result=b"{}",
        attempt_id=None,
        recorded_at_us=7,
    )


def row(
    state: OutboxState, *, key: str = "k", command_id: str | None = None, terminal_digest: str | None = None
) -> NoticedRow:
    return NoticedRow(key, DIGEST, state, command_id, terminal_digest)


@pytest.mark.parametrize("state", [one for one in OutboxState if one is not OutboxState.REJECTED])
def test_a_first_notice_counts_in_every_state_but_rejected(state: OutboxState) -> None:
    assert read_notice(notice(), row(state), None) == Project()
    assert read_notice(notice(CompletionOutcome.UNKNOWN), row(state), None) == Note()


@pytest.mark.parametrize("outcome", CompletionOutcome)
def test_an_exact_repetition_gets_its_first_receipt(outcome: CompletionOutcome) -> None:
    told = notice(outcome)
    ended = row(OutboxState.COMPLETED, command_id="cmd_1", terminal_digest=told.digest)

    assert read_notice(told, ended, "rcp_1") == CompletionReceipt(
        command_id="cmd_1", notice_digest=told.digest, state=ReceiptState.DUPLICATE, receipt_id="rcp_1"
    )


@pytest.mark.parametrize(
    "found",
    [
        row(OutboxState.ACCEPTED, key="other"),
        row(OutboxState.ACCEPTED, command_id="cmd_2"),
        row(OutboxState.REJECTED),
        row(OutboxState.COMPLETED, command_id="cmd_1", terminal_digest=DIGEST),
    ],
    ids=["key", "command", "rejected", "ended"],
)
def test_a_notice_that_contradicts_the_row_is_quarantined(found: NoticedRow) -> None:
    with pytest.raises(Quarantined):
        read_notice(notice(), found, None)


def test_a_late_unknown_does_not_contradict_an_end() -> None:
    ended = row(OutboxState.COMPLETED, command_id="cmd_1", terminal_digest=DIGEST)

    assert read_notice(notice(CompletionOutcome.UNKNOWN), ended, None) == Note()
