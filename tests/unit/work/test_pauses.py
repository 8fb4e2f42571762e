"""No thundering herd: what many processes begin at one moment they do not all repeat at one."""

from collections import Counter
from collections.abc import Callable

import pytest

from doonce.work import pauses

PROCESSES = 1_000
POLL_SECONDS = 0.5
NEVER_WHOLE_SECONDS = 3_600.0


def after_failure() -> float:
    return pauses.after_failure(POLL_SECONDS)


def until_next_look() -> float:
    return pauses.until_next_look(POLL_SECONDS, NEVER_WHOLE_SECONDS)


@pytest.mark.parametrize("pause, least, most", [(after_failure, 0.25, 0.75), (until_next_look, 0.25, 0.5)])
def test_many_processes_are_spread_over_the_whole_pause(
    pause: Callable[[], float], least: float, most: float
) -> None:
    drawn = [pause() for _ in range(PROCESSES)]
    assert all(least <= seconds <= most for seconds in drawn)
    tenths = Counter(int((seconds - least) / (most - least) * 10) for seconds in drawn)
    assert max(tenths.values()) < PROCESSES / 5, (
        "twice what an even spread has: a thousand draws never come to that"
    )
    assert all(tenths[tenth] for tenth in range(10))


def test_what_may_be_below_a_floor_is_looked_for_sooner() -> None:
    assert pauses.until_next_look(POLL_SECONDS, 0.15) == 0.15


def test_and_yet_not_without_a_pause() -> None:
    assert pauses.until_next_look(POLL_SECONDS, 0.0) == POLL_SECONDS / 5
