"""When a pass begins, what it reads, and when its gap is closed: never with a loss that it may not have seen."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from doonce.ingress.catch_ups import Again, CatchUp, Close, Overlap, begin, covered, judge
from doonce.ingress.gaps import Cause, Gap
from doonce.ingress.receipts import RouteKey

ROUTE = RouteKey("acme", "main", "shop", "once")
SECOND = 1_000_000
OVERLAP = Overlap(10 * SECOND, 5 * SECOND)
FRESH = CatchUp(
    id="ctu_1", route=ROUTE, sequence=1, view_digest="d", asked_by=None, asked_why=None, covered_since=None,
    covered_until=None, passes=0, from_at=None, since_at=None, until_at=None, losses=None, page_id="pag_1",
    page_number=0, page_cursor=None, pages=0, items=0, events=0,
)  # fmt: skip


def gap(opened: int, last: int, losses: int = 3) -> Gap:
    """A gap, in seconds."""
    return Gap(
        ROUTE, 1, losses, opened * SECOND, last * SECOND, None, None, None, Cause.LOSS, None, None, "ctu_1"
    )


def begun(found: Gap, now: int, catch_up: CatchUp = FRESH) -> CatchUp:
    return begin(catch_up, found, OVERLAP, now * SECOND)


def window(catch_up: CatchUp) -> tuple[int, int]:
    assert catch_up.window is not None
    return catch_up.window.since_us // SECOND, catch_up.window.until_us // SECOND


@pytest.mark.parametrize(
    "found, now, reads",
    [
        (gap(100, 200), 1_000, (90, 205)),
        (gap(100, 200), 202, (90, 202)),
        (gap(3, 4), 1_000, (0, 9)),
    ],
)
def test_a_window_is_wider_than_the_losses_and_not_in_the_future(
    found: Gap, now: int, reads: tuple[int, int]
) -> None:
    assert window(begun(found, now)) == reads


def test_a_pass_under_way_keeps_its_window_and_its_losses() -> None:
    first = begun(gap(100, 200), 1_000)
    assert begun(gap(50, 900, losses=9), 2_000, first) == first
    assert (first.passes, first.losses, first.page_number) == (1, 3, 1)


def test_the_next_pass_reads_on_from_what_is_covered() -> None:
    after = covered(begun(gap(100, 200), 202))
    assert window(begun(gap(100, 300, losses=4), 1_000, after)) == (192, 305)


def test_a_loss_that_is_older_than_all_that_is_covered_is_read_from_there() -> None:
    after = covered(begun(gap(100, 200), 202))
    assert window(begun(gap(40, 300, losses=4), 1_000, after)) == (30, 305)


def test_a_gap_is_closed_when_all_of_it_has_been_read() -> None:
    assert isinstance(judge(begun(gap(100, 200), 1_000), gap(100, 200), OVERLAP, 2_000 * SECOND), Close)


@pytest.mark.parametrize(
    "read_at, stands, now, waits",
    [
        (1_000, gap(100, 200, losses=4), 2_000, 1),  # one more, whenever that was
        (1_000, gap(100, 300), 2_000, 1),  # a later one
        (202, gap(100, 200), 203, 2),  # the provider may still add to what was read
        (1_000, gap(40, 200), 2_000, 1),  # an earlier one
    ],
)
def test_otherwise_there_is_another_pass_and_never_at_once(
    read_at: int, stands: Gap, now: int, waits: int
) -> None:
    verdict = judge(begun(gap(100, 200), read_at), stands, OVERLAP, now * SECOND)
    assert isinstance(verdict, Again)
    assert verdict.delay_us == waits * SECOND


def test_an_operators_gap_has_no_losses_and_closes_too() -> None:
    found = replace(gap(100, 200, losses=0), cause=Cause.OPERATOR)
    assert isinstance(judge(begun(found, 1_000), found, OVERLAP, 2_000 * SECOND), Close)
