"""The kernel's decisions, pure: transitions, claims, leases and settlements at every edge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.work.items import claim_of, item_of

from doonce.work.model import (
    SETTLING,
    TERMINAL,
    TRANSITIONS,
    WAITING,
    ClaimVerdict,
    Event,
    Settled,
    Settlement,
    Shelf,
    State,
    judge_claim,
    judge_settlement,
    live,
)

TIMES = st.integers(0, 2**62)
EDGE = st.integers(-1, 1)
HELD = {"state": State.PROCESSING, "lease_token": "t" * 32, "ownership_epoch": 3}
TAKES = (ClaimVerdict.TAKE, ClaimVerdict.TAKE_POISON, ClaimVerdict.SHELVE)


def test_terminal_rows_never_reopen() -> None:
    assert not [move for move in TRANSITIONS if move[0] in TERMINAL]
    assert set(State) == TERMINAL | WAITING | {State.PROCESSING}


def test_every_settling_event_leaves_processing_and_only_that() -> None:
    for event in SETTLING:
        assert {state for state, moved in TRANSITIONS if moved is event} == {State.PROCESSING}
        assert TRANSITIONS[State.PROCESSING, event] is not State.PROCESSING


def test_the_table_in_the_docstring_is_the_table() -> None:
    import doonce.work.model

    lines = [line for line in (doonce.work.model.__doc__ or "").splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    written = {
        (State(state), Event(event.lower())): State(after)
        for states, event, after, _ in cells
        for state in states.split(", ")
    }
    assert written == TRANSITIONS


@given(TIMES, EDGE)
def test_c3_reclaiming_and_everything_else_are_complementary(lease_until: int, edge: int) -> None:
    """At every time exactly one holds: the lease lives, or the item may be claimed by another."""
    now_us = lease_until + edge
    item = item_of(**HELD, lease_until=lease_until)
    verdict, due = judge_claim(item, now_us, alone=False, expiries_max=100)
    assert live(item, claim_of(item), now_us) != (verdict in TAKES)
    assert (edge > 0) == (verdict in TAKES)
    if verdict is ClaimVerdict.LATER:
        assert due == lease_until + 1, "the first time at which it may be reclaimed"


@given(TIMES, EDGE, st.sampled_from(sorted(WAITING)))
def test_a_waiting_item_is_taken_from_its_time_on(run_after: int, edge: int, state: State) -> None:
    verdict, due = judge_claim(
        item_of(state=state, run_after=run_after), run_after + edge, alone=False, expiries_max=3
    )
    assert (verdict is ClaimVerdict.TAKE) == (edge >= 0)
    assert verdict is ClaimVerdict.TAKE or (verdict, due) == (ClaimVerdict.LATER, run_after)


@given(TIMES, st.sampled_from(sorted(TERMINAL)), st.booleans())
def test_an_ended_item_is_never_taken(now_us: int, state: State, alone: bool) -> None:
    assert judge_claim(item_of(state=state), now_us, alone=alone, expiries_max=3) == (ClaimVerdict.DROP, 0)


@given(st.integers(0, 10), st.integers(1, 10), st.booleans(), st.booleans(), st.sampled_from(State))
def test_w2_only_dying_alone_convicts(
    expiries: int, expiries_max: int, was_alone: bool, alone: bool, state: State
) -> None:
    item = item_of(**{**HELD, "state": state}, lease_until=5, expiries=expiries, alone=was_alone)
    verdict, _ = judge_claim(item, 100, alone=alone, expiries_max=expiries_max)
    if verdict is ClaimVerdict.TAKE_POISON:
        assert state is State.PROCESSING
        assert was_alone
    if verdict is ClaimVerdict.SHELVE:
        assert not alone, "who runs nothing else takes it"
        assert expiries + (state is State.PROCESSING) >= expiries_max
    if verdict is ClaimVerdict.TAKE and not alone:
        assert expiries + (state is State.PROCESSING) < expiries_max


def test_w2_shelving_twice_is_shelving_once() -> None:
    item = item_of(**HELD, lease_until=5, expiries=2)
    assert judge_claim(item, 100, alone=False, expiries_max=3) == judge_claim(
        item, 200, alone=False, expiries_max=3
    )


@given(TIMES, EDGE, st.sampled_from(sorted(SETTLING)))
def test_a_settlement_is_done_only_under_the_live_token_epoch_and_lease(
    lease_until: int, edge: int, event: Event
) -> None:
    item = item_of(**HELD, lease_until=lease_until, cancel_requested=True)
    claimed = claim_of(item)
    now_us = lease_until + edge
    expected = Settled.DONE if edge <= 0 else Settled.STALE
    assert judge_settlement(item, Settlement(claimed, event), now_us) is expected
    for wrong in (replace(claimed, token="u" * 32), replace(claimed, epoch=2), replace(claimed, epoch=4)):
        assert judge_settlement(item, Settlement(wrong, event), now_us) is Settled.STALE
    assert judge_settlement(None, Settlement(claimed, event), now_us) is Settled.STALE


@given(st.sampled_from(State), st.sampled_from(sorted(SETTLING)), TIMES)
def test_t5_a_settlement_found_done_says_repeated_and_in_no_other_state(
    state: State, event: Event, now_us: int
) -> None:
    claimed = claim_of(item_of(**HELD, lease_until=2**62))
    item = item_of(**{**HELD, "state": state}, lease_until=-1)
    verdict = judge_settlement(item, Settlement(claimed, event), now_us)
    assert (verdict is Settled.REPEATED) == (state is TRANSITIONS[State.PROCESSING, event])
    assert verdict is not Settled.DONE


@pytest.mark.parametrize("asked", [False, True])
def test_w5_only_a_request_can_be_acknowledged(asked: bool) -> None:
    item = item_of(**HELD, lease_until=9, cancel_requested=asked)
    verdict = judge_settlement(item, Settlement(claim_of(item), Event.ACK_CANCEL), 5)
    assert verdict is (Settled.DONE if asked else Settled.STALE)


def test_shelves_are_stored_as_their_numbers() -> None:
    assert [shelf.value for shelf in Shelf] == [0, 1]
