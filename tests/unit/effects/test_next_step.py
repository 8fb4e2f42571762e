"""The one automatic next action of each outcome (authority §6), within the binding's policy, as a table."""

import pytest
from msgspec.structs import replace

from doonce.catalog.model import Outcome
from doonce.commands.model import EndedAs
from doonce.effects.model import Ending, NextStep, Terms, Unresolved, next_step
from doonce.work.model import Event, Item, RetryPolicy, Scope, State

NOW_US = 1_700_000_000_000_000
POLICY = RetryPolicy(
    base_us=1_000, cap_us=1_000_000, tries_max=3, failures_max=4, failing_us_max=3_600_000_000
)
TERMS = Terms(POLICY, wants_rejected_result=True)
ITEM = Item(
    id="wrk_1",
    family="effect",
    scope=Scope("acme", "main"),
    subject_kind="command",
    subject_id="cmd_1",
    view_digest="sha256:view",
    capability_version=1,
    source_lane=None,
    source_position=None,
    target_lane=None,
    target_position=None,
    state=State.PROCESSING,
    run_after=NOW_US,
    attempts=1,
    claims=1,
    failures=0,
    first_failed_at=None,
    deferrals=0,
    first_deferred_at=None,
    expiries=0,
    alone=False,
    lease_owner="prc_1",
    lease_token="t",
    lease_until=NOW_US + 1,
    ownership_epoch=1,
    cancel_requested=False,
    predecessor=None,
)


def step(
    outcome: Outcome,
    *,
    item: Item = ITEM,
    terms: Terms = TERMS,
    poison: bool = False,
    earlier: bool = False,
    **ending: object,
) -> NextStep:
    given = replace(Ending(outcome, "test"), **ending)  # type: ignore[arg-type]  # test shorthand
    return next_step(item, given, terms, NOW_US, poison=poison, earlier=earlier)


def test_authority_6_an_accepted_effect_completes() -> None:
    found = step(Outcome.ACCEPTED)
    assert (found.event, found.ended_as, found.unresolved) == (
        Event.SUCCEED,
        EndedAs.ACCEPTED,
        Unresolved.NONE,
    )


@pytest.mark.parametrize("wanted, event", [(True, Event.SUCCEED), (False, Event.DIE)])
def test_k2_a_rejected_effect_succeeds_or_dies_as_its_binding_says(wanted: bool, event: Event) -> None:
    found = step(Outcome.REJECTED, terms=Terms(POLICY, wants_rejected_result=wanted))
    assert (found.event, found.ended_as) == (event, EndedAs.REJECTED)


@pytest.mark.parametrize("poison", [False, True])
def test_authority_6_an_unknown_outcome_is_never_scheduled_again(poison: bool) -> None:
    found = step(Outcome.OUTCOME_UNKNOWN, poison=poison)
    assert (found.event, found.ended_as, found.unresolved) == (Event.DIE, None, Unresolved.THIS)
    assert found.failure_class == "outcome_unknown"


def test_w3_a_failure_before_dispatch_is_tried_again_until_its_own_bounds() -> None:
    found = step(Outcome.RETRYABLE_PRE_DISPATCH, item=replace(ITEM, attempts=100, failures=2), jitter=0.5)
    assert (found.event, found.failed, found.ended_as) == (Event.RETRY, True, None)
    assert found.delay_us == 2_000, "what was sent does not count among the failures"
    for spent in (
        replace(ITEM, failures=3),
        replace(ITEM, failures=1, first_failed_at=NOW_US - POLICY.failing_us_max),
    ):
        found = step(Outcome.RETRYABLE_PRE_DISPATCH, item=spent)
        assert (found.event, found.failure_class, found.ended_as) == (
            Event.DIE,
            "never_dispatched",
            EndedAs.DEAD,
        )


def test_w3_a_repetition_is_tried_again_until_its_tries_are_spent() -> None:
    found = step(Outcome.REPLAY_SAFE_RETRY, item=replace(ITEM, attempts=2, failures=100), jitter=0.5)
    assert (found.event, found.failed, found.delay_us) == (Event.RETRY, False, 1_000)
    found = step(Outcome.REPLAY_SAFE_RETRY, item=replace(ITEM, attempts=3), effect_free=True)
    assert (found.event, found.failure_class, found.ended_as) == (Event.DIE, "tries_exhausted", EndedAs.DEAD)


@pytest.mark.parametrize("how", ["tries", "poison", "give_up"])
def test_w6_dead_is_said_only_where_it_is_proven_that_nothing_happened(how: str) -> None:
    item = replace(ITEM, attempts=3) if how == "tries" else ITEM
    given = {"item": item, "poison": how == "poison", "give_up": how == "give_up"}
    found = step(Outcome.REPLAY_SAFE_RETRY, **given)  # type: ignore[arg-type]  # test shorthand
    assert (found.outcome, found.ended_as, found.unresolved) == (
        Outcome.OUTCOME_UNKNOWN,
        None,
        Unresolved.THIS,
    )
    found = step(Outcome.REPLAY_SAFE_RETRY, effect_free=True, **given)  # type: ignore[arg-type]
    assert (found.ended_as, found.unresolved) == (EndedAs.DEAD, Unresolved.NONE)
    found = step(Outcome.REPLAY_SAFE_RETRY, effect_free=True, earlier=True, **given)  # type: ignore[arg-type]
    assert (found.ended_as, found.unresolved) == (None, Unresolved.EARLIER)


def test_w6_giving_up_before_dispatch_leaves_an_earlier_call_in_question() -> None:
    found = step(Outcome.RETRYABLE_PRE_DISPATCH, give_up=True, earlier=True)
    assert (found.outcome, found.ended_as) == (Outcome.RETRYABLE_PRE_DISPATCH, None)
    assert found.unresolved is Unresolved.EARLIER


def test_w5_a_cancel_is_acknowledged_only_where_nothing_was_sent() -> None:
    asked = replace(ITEM, cancel_requested=True)
    found = step(Outcome.RETRYABLE_PRE_DISPATCH, item=asked)
    assert (found.event, found.ended_as) == (Event.ACK_CANCEL, EndedAs.CANCELLED)
    assert step(Outcome.RETRYABLE_PRE_DISPATCH, item=asked, earlier=True).event is Event.RETRY
    for outcome in (Outcome.ACCEPTED, Outcome.REJECTED, Outcome.OUTCOME_UNKNOWN, Outcome.REPLAY_SAFE_RETRY):
        assert step(outcome, item=asked).ended_as is not EndedAs.CANCELLED


def test_a_provider_that_asks_for_time_gets_it() -> None:
    for outcome in (Outcome.RETRYABLE_PRE_DISPATCH, Outcome.REPLAY_SAFE_RETRY):
        assert step(outcome, retry_after_us=7_000_000, jitter=0.0).delay_us == 7_000_000


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("poison", [False, True])
@pytest.mark.parametrize("give_up", [False, True])
def test_every_step_either_ends_the_command_or_leaves_somebody_to_work_on_it(
    outcome: Outcome, earlier: bool, poison: bool, give_up: bool
) -> None:
    found = step(outcome, earlier=earlier, poison=poison, give_up=give_up)
    unresolved = found.unresolved is not Unresolved.NONE
    assert [found.ended_as is not None, found.event is Event.RETRY, unresolved].count(True) == 1
