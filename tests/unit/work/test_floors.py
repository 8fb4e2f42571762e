"""Where a worker begins to look: at the front, unless that takes long; and at the front again before long."""

import math

import pytest

from doonce.work.floors import CHEAP_NS, MARGIN_US, PATIENCE, Floors
from doonce.work.model import Scope

HERE, THERE = Scope("acme", "main"), Scope("acme", "other")
SLOW_NS = 2 * CHEAP_NS
DUE_US = 10**15


class Looks:
    """Floors under a clock of the test's own."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.floors = Floors(lambda: self.now_ns)

    def look(self, took_ns: int, first_due_us: int | None = DUE_US, scope: Scope = HERE) -> int:
        """One look; where it began."""
        since_us = self.floors.begin(scope)
        self.now_ns += took_ns
        self.floors.end(scope, since_us, [] if first_due_us is None else [first_due_us])
        return since_us


def test_while_whole_looks_are_cheap_all_are_whole() -> None:
    looks = Looks()
    assert [looks.look(CHEAP_NS) for _ in range(3)] == [0, 0, 0]


def test_after_a_slow_one_looks_begin_at_what_it_found() -> None:
    looks = Looks()
    assert looks.look(SLOW_NS) == 0
    assert looks.look(1) == DUE_US


def test_the_floor_stays_behind_the_databases_time() -> None:
    """What was written a moment ago may be committed after what is written now."""
    looks = Looks()
    looks.floors.know(DUE_US + 1)
    looks.look(SLOW_NS)
    assert looks.look(1) == DUE_US + 1 - MARGIN_US
    looks.floors.know(DUE_US + 2)
    looks.look(1)
    assert looks.look(1) == DUE_US + 2 - MARGIN_US
    looks.floors.know(DUE_US + 2 * MARGIN_US)
    looks.look(1)
    assert looks.look(1) == DUE_US


def test_the_floor_follows_what_is_found_and_never_goes_back() -> None:
    looks = Looks()
    looks.look(SLOW_NS)
    looks.look(1, DUE_US + 5)
    assert looks.look(1, DUE_US + 3) == DUE_US + 5
    assert looks.look(1, None) == DUE_US + 5
    assert looks.look(1) == DUE_US + 5


def test_whole_looks_have_a_bounded_share_of_the_time() -> None:
    looks = Looks()
    looks.look(SLOW_NS)
    looks.now_ns += PATIENCE * SLOW_NS - 1
    assert looks.look(0) > 0
    looks.now_ns += 1
    assert looks.look(SLOW_NS) == 0, "what was put in below the floor is found now"
    assert looks.look(1) > 0


def test_one_cheap_whole_look_ends_it() -> None:
    looks = Looks()
    looks.look(SLOW_NS)
    looks.now_ns += PATIENCE * SLOW_NS
    assert [looks.look(1), looks.look(1)] == [0, 0]


def test_a_look_that_found_nothing_says_nothing_about_where_to_begin() -> None:
    looks = Looks()
    looks.look(SLOW_NS, None)
    assert looks.look(1) == 0


def test_where_nothing_is_left_the_floor_is_at_the_last_that_was_seen() -> None:
    looks = Looks()
    looks.look(1)
    looks.look(SLOW_NS, None)
    assert looks.look(1, None) == DUE_US


def test_a_whole_look_that_takes_long_is_announced() -> None:
    looks = Looks()
    assert looks.floors.since(HERE) == 0
    looks.look(SLOW_NS)
    assert looks.floors.since(HERE) == DUE_US
    looks.now_ns += PATIENCE * SLOW_NS
    assert looks.floors.since(HERE) is None


def test_it_is_known_when_the_next_whole_look_is_due() -> None:
    looks = Looks()
    assert looks.floors.whole_in_seconds() == math.inf
    looks.look(SLOW_NS)
    looks.look(2 * SLOW_NS, scope=THERE)
    assert looks.floors.whole_in_seconds() == pytest.approx((PATIENCE - 2) * SLOW_NS / 1e9)
    looks.now_ns += 10 * SLOW_NS
    assert looks.floors.whole_in_seconds() == 0


def test_each_scope_has_its_own() -> None:
    looks = Looks()
    looks.look(SLOW_NS)
    assert looks.look(1, scope=THERE) == 0
    assert looks.look(1) > 0
