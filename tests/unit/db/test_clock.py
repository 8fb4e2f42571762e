"""C1: the watch tells a jump of the database's clock from a slow answer, and holds claims after one."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from doonce.db.clock import ClockWatch, boottime_ns

TOLERANCE_US = 5_000_000
HOLD_US = 60_000_000
TIMES = st.integers(0, 10**16)
SPANS = st.integers(0, 10**9)


def watch() -> ClockWatch:
    return ClockWatch(TOLERANCE_US, HOLD_US)


def test_c1_the_first_look_is_never_a_jump() -> None:
    clock = watch()
    clock.observe(10**15, 5, 6)
    assert clock.jumps == 0
    assert clock.steady(6)


def test_c1_a_jump_holds_claims_for_one_lease_and_no_longer() -> None:
    for jump_us in (TOLERANCE_US + 1, -TOLERANCE_US - 1):
        clock = watch()
        clock.observe(1_000_000_000, 0, 0)
        clock.observe(1_000_000_100 + jump_us, 100, 100)
        assert clock.jumps == 1
        assert not clock.steady(100)
        assert not clock.steady(100 + HOLD_US - 1)
        assert clock.steady(100 + HOLD_US)


def test_c1_a_jump_is_told_once_with_how_long_nothing_is_claimed() -> None:
    clock = watch()
    with capture_logs() as told:
        clock.observe(1_000_000_000, 0, 0)
        clock.observe(1_000_000_000 - TOLERANCE_US - 1_000_000, 0, 0)
        clock.observe(1_000_000_000 - TOLERANCE_US - 1_000_000, 0, 0)
    assert [(line["log_level"], line["jumped_seconds"], line["held_seconds"]) for line in told] == [
        ("warning", 6.0, 60.0)
    ]


def test_c1_the_hold_begins_with_the_answer_that_shows_the_jump() -> None:
    clock = watch()
    clock.observe(1_000_000_000, 0, 0)
    clock.observe(2_000_000_000, 100, 2_000)
    assert not clock.steady(2_000 + HOLD_US - 1)
    assert clock.steady(2_000 + HOLD_US)


def test_c1_a_clock_that_has_jumped_is_compared_with_itself_from_then_on() -> None:
    clock = watch()
    clock.observe(1_000_000_000, 0, 0)
    clock.observe(2_000_000_000, 0, 0)
    clock.observe(2_000_000_000 + HOLD_US, HOLD_US, HOLD_US)
    assert clock.jumps == 1
    assert clock.steady(HOLD_US)


def test_c1_slow_drift_is_no_jump_however_far_it_comes() -> None:
    clock = watch()
    for look in range(100):
        clock.observe(1_000_000_000 + look * TOLERANCE_US, 0, 0)
    assert clock.jumps == 0


def test_c1_a_difference_within_the_tolerance_is_no_jump() -> None:
    for drift_us in (TOLERANCE_US, -TOLERANCE_US):
        clock = watch()
        clock.observe(1_000_000_000, 0, 0)
        clock.observe(1_000_000_000 + drift_us, 0, 0)
        assert clock.jumps == 0


@given(TIMES, st.lists(st.tuples(SPANS, SPANS, st.floats(0, 1)), min_size=2, max_size=20))
def test_c1_no_delay_of_question_or_answer_looks_like_a_jump(
    offset_us: int, looks: list[tuple[int, int, float]]
) -> None:
    """The database reads its true clock somewhere between asking and answering, however far apart these are."""
    clock, host_us = watch(), 0
    for pause_us, wait_us, where in looks:
        before_us = host_us + pause_us
        host_us = before_us + wait_us
        clock.observe(offset_us + before_us + int(wait_us * where), before_us, host_us)
    assert clock.jumps == 0


@given(TIMES, st.integers(-(10**12), 10**12), SPANS)
def test_c1_a_jump_beyond_what_the_answer_took_is_always_seen(
    offset_us: int, jump_us: int, wait_us: int
) -> None:
    clock = watch()
    clock.observe(offset_us, 0, 0)
    clock.observe(offset_us + jump_us, 0, wait_us)
    seen = clock.jumps == 1
    assert seen == (jump_us > wait_us + TOLERANCE_US or jump_us < -TOLERANCE_US)


def test_c4_time_of_a_suspended_host_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No clock but this one runs on while the host sleeps; a test cannot send it to sleep."""
    monkeypatch.setattr(
        time, "clock_gettime_ns", {time.CLOCK_BOOTTIME: 7, time.CLOCK_MONOTONIC: 3}.__getitem__
    )
    assert boottime_ns() == 7


def test_boot_time_goes_forward() -> None:
    assert boottime_ns() <= boottime_ns()
