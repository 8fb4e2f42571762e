"""I4: what a gap may have lost is read from the provider, each event made once, and the gap closed when all is read."""

from __future__ import annotations

import json
import time

import pytest
from tests.store.effects.catching import ROUTE, Caught, caught, view

from doonce.base.errors import Conflict, Invalid, MissingOrDenied
from doonce.base.ids import new_id
from doonce.base.secrets import Secret
from doonce.db.database import Database
from doonce.effects.model import AttemptKind
from doonce.events.making import content_place
from doonce.http import Replied, Sent, Unanswered
from doonce.ingress.catch_up_service import Asked
from doonce.ingress.catch_up_store import NewCatchUp, StartCatchUp, start_catch_up
from doonce.ingress.gaps import CloseGap, close
from doonce.ownership.model import Family

ANN = Asked("ann", "the host was down")


async def told(at: Caught) -> list[str]:
    """The provider's names of the events that were made, in the order of their work."""
    contents = {}
    for row in await at.rows("event"):
        raw = at.vault.open_bytes(content_place(row["id"]), row["sealed"], row["key_id"])
        contents[row["id"]] = json.loads(raw)["id"]
    pushes = await at.items(Family.PUSH)
    assert sorted(item["subject_id"] for item in pushes) == sorted(contents), "not one work item each"
    return sorted(contents.values())


async def test_lost_deliveries_become_one_event_each_though_some_arrived(database: Database) -> None:
    at = await caught(database)
    for name, lost in [("a", False), ("b", True), ("c", False), ("d", True), ("e", True)]:
        await at.happens(name, lost=lost)
    await at.derive()
    assert await told(at) == ["a", "c"]
    await at.catch_up()
    assert await told(at) == ["a", "b", "c", "d", "e"]
    gap = await at.gap()
    assert (gap["losses"], gap["closed_by"]) == (3, "reconciliation")
    assert gap["reason"].endswith("3 new")
    assert {item["state"] for item in await at.items()} == {"succeeded"}
    assert set(at.client.authorized) == {"Bearer the key"}


async def test_every_read_is_a_journaled_attempt_of_its_page(database: Database) -> None:
    at = await caught(database)
    for number in range(3):
        await at.happens(f"e{number}", lost=True)
    await at.catch_up()
    attempts = await at.rows("effect_attempt")
    assert len(attempts) == len(at.provider.asked) == len(await at.rows("ingress_page"))
    assert {row["kind"] for row in attempts} == {AttemptKind.PAGE.value}
    assert {row["outcome"] for row in attempts} == {"ACCEPTED"}
    assert {row["generation"] for row in attempts} == {at.principal.generation}
    assert {row["subject_id"] for row in attempts} == {row["id"] for row in await at.rows("ingress_page")}
    assert {row["receipt_id"] for row in await at.rows("event")} <= {row["subject_id"] for row in attempts}


async def test_a_page_at_a_time_and_a_cursor_between(database: Database) -> None:
    at = await caught(database)
    for number in range(5):
        await at.happens(f"e{number}", lost=True)
    await at.catch_ups.attend()
    assert await at.turn() == 1
    (run,) = await at.rows("ingress_catch_up")
    assert (run["pages"], run["items"], run["page_cursor"]) == (1, 2, "e3")
    assert (await at.gap())["closed_at"] is None
    await at.catch_up()
    assert [query.get("after") for query in at.provider.asked[:3]] == [None, "e3", "e1"]
    assert await told(at) == [f"e{number}" for number in range(5)]


async def test_of_an_object_the_older_of_a_page_is_handed_over_first(database: Database) -> None:
    at = await caught(database)
    await at.happens("e0", lost=True, thing="t")
    await at.happens("e1", lost=True, thing="t")
    await at.catch_up()
    positions = {row["subject_id"]: row["source_position"] for row in await at.items(Family.PUSH)}
    names = {}
    for row in await at.rows("event"):
        raw = at.vault.open_bytes(content_place(row["id"]), row["sealed"], row["key_id"])
        names[json.loads(raw)["id"]] = positions[row["id"]]
    assert names["e0"] < names["e1"]


async def test_a_loss_while_it_runs_keeps_the_gap_open_until_it_is_read_too(database: Database) -> None:
    at = await caught(database)
    for number in range(3):
        await at.happens(f"e{number}", lost=True)
    await at.catch_ups.attend()
    await at.turn()  # one page of two
    await at.happens("late", lost=True)
    while (await at.rows("ingress_catch_up"))[0]["covered_until"] is None:
        await at.turn()
    gap = await at.gap()
    assert (gap["closed_at"], gap["losses"]) == (None, 4)
    await at.catch_up()
    assert await told(at) == ["e0", "e1", "e2", "late"]
    assert (await at.gap())["closed_by"] == "reconciliation"
    assert len(await at.rows("ingress_gap")) == 1


async def test_a_loss_that_was_counted_late_is_read_from_its_own_time(database: Database) -> None:
    """The database was away for an hour: the gap begins when something was lost, not when it could be written."""
    at = await caught(database)
    hour_ns = 3_600_000_000_000
    at.provider.make("early", time.time() * 1_000 - 3_590_000)
    route = await at.ingress.route(ROUTE)
    began = at.ingress._now_ns
    at.ingress._now_ns = lambda: began() - hour_ns
    at.ingress.turned_away(route, "unavailable", lost=True)
    at.ingress._now_ns = began
    await at.ingress.flush_tallies()
    await at.catch_up()
    assert await told(at) == ["early"]


async def test_an_older_loss_that_comes_to_light_is_read_as_well(database: Database) -> None:
    """Another process could not count for an hour, while this one's losses were being read."""
    at = await caught(database)
    for number in range(3):
        await at.happens(f"e{number}", lost=True)
    await at.catch_ups.attend()
    await at.turn()  # one page of two
    at.provider.make("older", time.time() * 1_000 - 3_590_000)
    route = await at.ingress.route(ROUTE)
    began = at.ingress._now_ns
    at.ingress._now_ns = lambda: began() - 3_600_000_000_000
    at.ingress.turned_away(route, "unavailable", lost=True)
    at.ingress._now_ns = began
    await at.ingress.flush_tallies()
    await at.catch_up()
    assert await told(at) == ["e0", "e1", "e2", "older"]


async def test_one_catch_up_a_gap_whoever_attends(database: Database) -> None:
    at = await caught(database)
    await at.happens("e0", lost=True)
    begun = [await at.catch_ups.attend() for _ in range(3)]
    assert begun == [1, 0, 0]
    assert len(await at.items()) == 1


async def test_two_that_attend_at_once_begin_one(database: Database) -> None:
    """Both have seen the gap before either began; the other's catch-up has even died by then."""
    at = await caught(database)
    await at.happens("e0", lost=True)
    digest = view().digest
    asked = [
        StartCatchUp(ROUTE, 1, NewCatchUp(new_id("ctu"), new_id("pag"), new_id("wrk"), digest), first=True)
        for _ in range(2)
    ]
    first = await database.transact(start_catch_up, asked[0])
    assert await database.transact(start_catch_up, asked[0]) == first, "a rerun"
    at.provider.odd[1] = (401, b"{}")
    await at.turn()
    assert await database.transact(start_catch_up, asked[1]) == first
    assert [item["state"] for item in await at.items()] == ["dead"]


async def test_a_gap_without_a_declared_read_is_left_to_operators(database: Database) -> None:
    webhooks = {"once": {"reconcile": False, "accepts_loss": "a log", "handle": ["*"], "push": "app"}}
    at = await caught(database, webhooks=webhooks)
    await at.happens("e0", lost=True)
    assert await at.catch_ups.attend() == 0
    with pytest.raises(MissingOrDenied):
        await at.catch_ups.again(ROUTE, 1, ANN)
    await at.views.publish([view()])  # and once one is declared, it is read
    await at.catch_up()
    assert await told(at) == ["e0"]


async def test_a_gap_that_an_operator_closes_meanwhile_is_not_read_on(database: Database) -> None:
    at = await caught(database)
    await at.happens("e0", lost=True)
    await at.catch_ups.attend()
    await database.transact(close, CloseGap(ROUTE, 1, 1, "ann", "asked the shop"))
    assert await at.turn() == 1
    (item,) = await at.items()
    assert (item["state"], item["summary"]) == ("skipped", "the gap has been closed by ann")
    assert not at.provider.asked


ODD = [
    ((401, b"{}"), "rejected", 0, 0),
    ((200, b'{"data": [{"type": "made"}], "has_more": false}'), "undecodable", 1, 0),
    ((200, b'{"data": {}, "has_more": false}'), "undecodable", 1, 0),
    ((200, b'{"data": [{"id": "x", "type": "made"}]}'), "undecodable", 1, 1),
]


@pytest.mark.parametrize("answer, failure_class, pages, events", ODD)
async def test_what_cannot_be_read_is_dead_and_shown_and_its_gap_stays_open(
    database: Database, answer: tuple[int, bytes], failure_class: str, pages: int, events: int
) -> None:
    at = await caught(database)
    await at.happens("e0", lost=True)
    at.provider.odd[1] = answer
    await at.catch_up()
    (item,) = await at.items()
    assert (item["state"], item["failure_class"]) == ("dead", failure_class)
    assert (await at.gap())["closed_at"] is None
    stored = await at.rows("ingress_page")
    assert len(stored) == pages
    assert all(page["fault"] and page["sealed"] for page in stored)
    assert len(await at.rows("event")) == events
    assert await at.catch_ups.attend() == 0, "what is dead is an operator's to start again"
    await at.catch_ups.again(ROUTE, 1, ANN)
    await at.catch_up()
    assert "e0" in await told(at)
    assert (await at.gap())["closed_by"] == "reconciliation"


async def test_a_provider_that_leads_in_a_circle_is_found_out(database: Database) -> None:
    at = await caught(database)
    for number in range(3):
        await at.happens(f"e{number}", lost=True)
    circle = b'{"data": [{"id": "e1", "type": "made", "thing": "t"}], "has_more": true}'
    at.provider.odd |= dict.fromkeys(range(1, 20), (200, circle))
    await at.catch_up()
    dead = (await at.items())[-1]
    assert (dead["state"], dead["failure_class"]) == ("dead", "cursor_repeated")
    assert len(at.provider.asked) == 2
    assert await told(at) == ["e1"], "what it did tell is kept"


async def test_pages_without_an_end_are_bounded(database: Database) -> None:
    at = await caught(database)
    await at.happens("e0", lost=True)
    for number in range(1, 20):
        body = {"data": [{"id": f"x{number}", "type": "made"}], "has_more": True}
        at.provider.odd[number] = (200, json.dumps(body).encode())
    await at.catch_up()
    dead = (await at.items())[-1]
    assert (dead["state"], dead["failure_class"]) == ("dead", "pages_exhausted")
    assert len(at.provider.asked) == 5
    assert (await at.gap())["closed_at"] is None


@pytest.mark.parametrize(
    "failure",
    [Replied(503, (), b"", complete=True), Unanswered("reset"), Replied(200, (), b"{", complete=False)],
)
async def test_a_failure_is_tried_again_within_the_policy(database: Database, failure: Sent) -> None:
    at = await caught(database)
    await at.happens("e0", lost=True)
    at.client.down = [failure, failure]
    await at.catch_up()
    assert await told(at) == ["e0"]
    outcomes = [row["outcome"] for row in await at.rows("effect_attempt")]
    assert sorted(outcomes)[-2:] == ["REPLAY_SAFE_RETRY"] * 2
    assert "OUTCOME_UNKNOWN" not in outcomes


async def test_a_provider_that_stays_away_ends_it_and_an_operator_starts_it_again(database: Database) -> None:
    at = await caught(database)
    await at.happens("e0", lost=True)
    at.client.down = [Unanswered("reset")] * 3
    await at.catch_up()
    (item,) = await at.items()
    assert (item["state"], item["failure_class"], item["attempts"]) == ("dead", "tries_exhausted", 3)
    again = await at.catch_ups.again(ROUTE, 1, ANN)
    with pytest.raises(Conflict, match="is reading this gap already"):
        await at.catch_ups.again(ROUTE, 1, ANN)
    await at.catch_up()
    assert (await at.gap())["catch_up_id"] == again.catch_up_id
    assert await told(at) == ["e0"]
    with pytest.raises(Conflict, match="has been closed by reconciliation"):
        await at.catch_ups.again(ROUTE, 1, ANN)


async def test_a_reader_that_dies_between_two_steps_leaves_nothing_undone(database: Database) -> None:
    """Prepared or dispatched: the next claimant ends that attempt as vanished, and asks for the same page."""
    at = await caught(database)
    await at.happens("e0", lost=True)
    await at.catch_ups.attend()
    for point in (
        "begin_pass.after_commit",
        "prepare_reads.after_commit",
        "mark.after_commit",
        "call.answered",
    ):
        (unit,) = await at.claim()
        if unit.open_attempt is not None:  # of the one before
            await at.reader().run(unit)
            (unit,) = await at.claim()

        def die(reached: str, at_point: str = point) -> None:
            if reached == at_point:
                raise ZeroDivisionError

        database.points._watch = die
        with pytest.raises(Exception):  # noqa: B017,PT011  # whatever a death in the middle looks like from here
            await at.reader().run(unit)
        database.points._watch = None
        await at.lapse()
    await at.catch_up()
    assert await told(at) == ["e0"]
    assert len(await at.rows("ingress_catch_up")) == 1
    assert {row["outcome"] for row in await at.rows("effect_attempt")} == {"ACCEPTED", "REPLAY_SAFE_RETRY"}


async def test_a_page_is_read_under_the_generation_of_now(database: Database) -> None:
    at = await caught(database)
    await at.happens("e0", lost=True)
    await at.catch_ups.attend()
    gone = await at.principals.disconnect(at.principal, reason="a test")
    await at.turn()
    (item,) = await at.items()
    assert (item["state"], item["failures"]) == ("retry", 1)
    await at.principals.reconnect(gone, Secret("another key"), reason="a test")
    await at.catch_up()
    assert set(at.client.authorized) == {"Bearer another key"}
    assert {row["generation"] for row in await at.rows("effect_attempt")} == {2}


async def test_an_operator_has_a_time_read_in_which_nobody_could_count(database: Database) -> None:
    at = await caught(database)
    now_us = await at.catch_ups.now_us()
    at.provider.make("missed", now_us / 1_000 - 60_000)
    at.provider.make("before that", now_us / 1_000 - 3_600_000)
    opened = await at.catch_ups.over(ROUTE, now_us - 120_000_000, now_us - 30_000_000, ANN)
    assert (opened.cause.value, opened.asked_by, opened.asked_why) == ("operator", "ann", "the host was down")
    with pytest.raises(Conflict, match="is open for ann"):
        await at.catch_ups.over(ROUTE, now_us - 120_000_000, now_us - 30_000_000, ANN)
    await at.happens("e0", lost=True)  # a loss opens a gap of its own
    assert sorted(row["sequence"] for row in await at.rows("ingress_gap")) == [1, 2]
    await at.catch_up()
    assert await told(at) == ["e0", "missed"]
    assert {row["closed_by"] for row in await at.rows("ingress_gap")} == {"reconciliation"}


async def test_a_time_that_is_none_is_refused(database: Database) -> None:
    at = await caught(database)
    now_us = await at.catch_ups.now_us()
    for since_us, until_us in [(now_us, now_us - 1), (5, 5), (now_us - 1, now_us + 60_000_000)]:
        with pytest.raises(Invalid):
            await at.catch_ups.over(ROUTE, since_us, until_us, ANN)
    assert not await at.rows("ingress_gap")


async def test_pages_are_sealed_and_erased_when_their_time_is_over(database: Database) -> None:
    at = await caught(database)
    await at.happens("e0", lost=True)
    await at.catch_up()
    (page, *_) = await at.rows("ingress_page")
    assert b"e0" not in page["sealed"]
    assert b"e0" in await at.ingress.body(page["id"])
    assert await at.ingress.rewrap() == 0
    object.__setattr__(at.ingress.settings, "bodies_kept_us", 0)
    assert await at.ingress.erase_bodies(100) > 0
    with pytest.raises(MissingOrDenied):
        await at.ingress.body(page["id"])
