"""How rows are shared and whose turn it is: nobody waits beyond the bound, and shares are as the weights are."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from doonce.work.fairness import LIMIT, WEIGHT_MAX, Room, Sharing, Turns, may_take, room_wanted, shares
from doonce.work.model import Scope

SCOPES = [Scope(f"org{number:02}", "main") for number in range(12)]
BIG, SMALL, THIRD = SCOPES[:3]
PLENTY = 1_000_000

scopes_of = st.integers(1, len(SCOPES)).map(lambda count: SCOPES[:count])
weights_of = st.dictionaries(st.sampled_from([scope.org for scope in SCOPES]), st.integers(1, WEIGHT_MAX))
held_of = st.dictionaries(st.sampled_from(SCOPES), st.integers(1, 100))


def shared(
    scopes: Sequence[Scope], backlog: dict[Scope, int], rows_max: int, room: Room
) -> tuple[Counter[Scope], list[tuple[Scope, int]]]:
    """What one claim finds in each scope, and its questions."""
    sharing, found, questions = Sharing(scopes, rows_max, room), Counter[Scope](), []
    while asks := sharing.asks():
        for scope, rows in asks.items():
            found[scope] = min(rows, backlog.get(scope, 0))
            sharing.found(scope, rows, found[scope])
            questions.append((scope, rows))
    return found, questions


# --- shares -------------------------------------------------------------------------------------------------------


def test_a_million_items_leave_anothers_one_its_row_and_take_the_rest() -> None:
    found, questions = shared([BIG, SMALL], {BIG: PLENTY, SMALL: 1}, 32, Room())
    assert (found[SMALL], found[BIG]) == (1, 31)
    assert len(questions) == 3


def test_one_scope_with_plenty_is_asked_once() -> None:
    assert shared([BIG], {BIG: PLENTY}, 32, Room()) == (Counter({BIG: 32}), [(BIG, 32)])


def test_shares_are_as_the_weights_are() -> None:
    found, _ = shared([BIG, SMALL], {BIG: PLENTY, SMALL: PLENTY}, 32, Room(weights={BIG.org: 3}))
    assert (found[BIG], found[SMALL]) == (24, 8)


def test_what_is_under_way_counts_as_had() -> None:
    found, _ = shared([BIG, SMALL], {BIG: PLENTY, SMALL: PLENTY}, 4, Room(held={BIG: 4}))
    assert (found[BIG], found[SMALL]) == (0, 4)


def test_a_scope_that_never_ends_leaves_slots_to_whoever_comes() -> None:
    room = Room(free=64)
    taken = shares([BIG], 64, room)[BIG]
    assert taken == 56
    others = shares([BIG, SMALL], 8, Room(free=8, held={BIG: taken}))
    assert others == {SMALL: 7}
    assert shares([THIRD], 1, Room(free=1, held={BIG: taken, SMALL: 7})) == {THIRD: 1}


def test_a_scope_alone_may_have_all_slots() -> None:
    assert shares([BIG], 64, Room(free=None)) == {BIG: 64}


def test_the_limit_never_bars_a_scope_with_nothing_under_way() -> None:
    for free in range(1, 100):
        assert may_take(0, 1, free, WEIGHT_MAX)
        assert not may_take(LIMIT * free, 1, free, 1)


@given(scopes_of, weights_of, held_of, st.integers(0, 64), st.one_of(st.none(), st.integers(0, 64)))
def test_nobody_gets_a_second_row_before_everybody_has_one_under_way(
    scopes: list[Scope], weights: dict[str, int], held: dict[Scope, int], rows_max: int, free: int | None
) -> None:
    given_rows = shares(scopes, rows_max, Room(free, held, weights))
    assert sum(given_rows.values()) <= rows_max
    assert free is None or sum(given_rows.values()) <= free
    assert all(rows > 0 for rows in given_rows.values())
    without = [scope for scope in scopes if not held.get(scope) and scope not in given_rows]
    if without:  # then everybody who got something had nothing, and got one
        assert all(rows == 1 and not held.get(scope) for scope, rows in given_rows.items())
        assert sum(given_rows.values()) == (rows_max if free is None else min(rows_max, free))


@given(scopes_of, weights_of, st.integers(1, 200))
def test_shares_are_proportional_within_one_row(
    scopes: list[Scope], weights: dict[str, int], rows_max: int
) -> None:
    """Of those that get more than the one row that everybody gets."""
    room = Room(weights=weights)
    given_rows = shares(scopes, rows_max, room)
    for one in scopes:
        for other in scopes:
            mine, theirs = given_rows.get(one, 0), given_rows.get(other, 0)
            if theirs:
                assert mine * room.weight(other) >= (theirs - 1) * room.weight(one)


@given(
    scopes_of,
    weights_of,
    held_of,
    st.dictionaries(st.sampled_from(SCOPES), st.integers(0, 40)),
    st.integers(1, 64),
    st.one_of(st.none(), st.integers(1, 64)),
)
def test_rows_are_never_too_many_and_none_are_left_lying(
    scopes: list[Scope],
    weights: dict[str, int],
    held: dict[Scope, int],
    backlog: dict[Scope, int],
    rows_max: int,
    free: int | None,
) -> None:
    room = Room(free, held, weights)
    waiting = [scope for scope in scopes if backlog.get(scope)]
    found, questions = shared(waiting, backlog, rows_max, room)
    total = found.total()
    assert total <= rows_max
    assert free is None or total <= free
    assert len(questions) <= len(waiting) + total, "each but a scope's last brings a row more"
    rest = [scope for scope in waiting if found[scope] < backlog.get(scope, 0)]
    if total < rows_max and rest:
        assert free is not None
        short = {scope for scope, rows in questions if found[scope] < rows}
        weight_max = max(room.weight(scope) for scope in waiting if scope not in short)
        for scope in rest:
            under_way = held.get(scope, 0) + found[scope]
            assert not may_take(under_way, room.weight(scope), free - total, weight_max)


# --- turns --------------------------------------------------------------------------------------------------------


@given(
    others=st.integers(0, len(SCOPES) - 1),
    weights=weights_of,
    concurrency=st.integers(1, 32),
    lasting=st.lists(st.integers(1, 6), min_size=len(SCOPES), max_size=len(SCOPES)),
    before=st.integers(0, 20),
)
def test_a_single_item_is_taken_within_as_many_claims_as_scopes_wait_by_rows(
    others: int, weights: dict[str, int], concurrency: int, lasting: list[int], before: int
) -> None:
    """The bound of docs/guarantees.md, for calls of any length and any weights, from any point of a busy worker."""
    single, busy = SCOPES[-1], SCOPES[:others]
    turns = Turns(weights)
    turns.know(SCOPES)
    ends: list[tuple[int, Scope]] = []
    backlog = dict.fromkeys(busy, PLENTY)
    rows_since = 0
    for claim in range(before + 400):
        for over in [end for end in ends if end[0] <= claim]:
            ends.remove(over)
            turns.ended(over[1])
        if claim == before:
            backlog[single] = 1
        rows_max = min(concurrency - len(ends), max(1, concurrency // 2))
        if rows_max == 0:
            continue  # a full worker makes no claim
        waiting = [scope for scope in turns.in_turn(turns.scopes) if backlog.get(scope)]
        found, _ = shared(waiting, backlog, rows_max, turns.room(concurrency - len(ends)))
        turns.served(scope for scope in found if found[scope])
        for scope in found.elements():
            backlog[scope] -= 1
            turns.started(scope)
            ends.append((claim + lasting[SCOPES.index(scope)], scope))
        if found[single]:
            return
        if claim >= before:
            rows_since += rows_max
            assert rows_since < len(waiting), "so many rows as scopes that wait, and none was for this one"
    raise AssertionError("it was never taken")


def test_among_equals_whoever_was_served_the_longest_ago_comes_first() -> None:
    turns = Turns({})
    turns.know(SCOPES)
    order = []
    for _ in range(2 * len(SCOPES)):
        (one,) = shares(turns.in_turn(SCOPES), 1, turns.room(8))
        turns.served([one])
        order.append(one)
    assert order == SCOPES * 2


def test_a_worker_of_one_scope_shares_with_nobody() -> None:
    turns = Turns({})
    turns.know([BIG])
    for _ in range(8):
        turns.started(BIG)
    assert turns.room(0).free is None
    turns.know([BIG, SMALL])
    assert turns.room(0).free == 0


def test_a_claim_that_the_limit_cut_short_knows_what_room_it_waits_for() -> None:
    assert room_wanted(Room(held={BIG: 8}), [], 2) == 0
    assert room_wanted(Room(free=8), [], 2) == 0
    assert room_wanted(Room(free=8), [BIG] * 6, 2) == 0
    assert room_wanted(Room(free=8), [BIG] * 7, 2) == 2
    assert room_wanted(Room(free=8), [BIG] * 7, 1) == 2
    assert room_wanted(Room(free=64), [BIG] * 56, 16) == 16
    assert room_wanted(Room(free=1, held={BIG: 7}), [SMALL], 2) == 2
    assert room_wanted(Room(free=8, weights={"org00": 10}), [BIG, SMALL], 2) == 0
    assert room_wanted(Room(free=8, weights={"org00": 10}), [BIG, SMALL, SMALL], 2) == 6


def test_what_is_no_longer_a_scope_is_forgotten_once_it_is_over() -> None:
    turns = Turns({})
    turns.know([BIG, SMALL])
    turns.started(BIG)
    turns.served([BIG, SMALL])
    turns.know([SMALL])
    turns.ended(BIG)
    assert turns.room(8).held == {}
    assert turns.in_turn([THIRD, SMALL]) == (THIRD, SMALL)


def test_a_round_is_over_when_every_scope_was_passed() -> None:
    turns = Turns({})
    turns.know(SCOPES)
    seen = []
    for _ in range(4):
        seen.append(turns.position)
        turns.passed(5)
    assert seen == [0, 5, 10, 3]
    assert turns.unseen == 12 - 5
    turns.passed(len(SCOPES))
    assert turns.unseen == 0
