"""I4: a gap is open until an operator has looked into all of it; the next loss opens the next one."""

import asyncio

import pytest
from tests.store.ingress.routes import CAPABILITY, INSTALLATION, ORG, Receiver, key, receiver

from doonce.base.errors import Conflict, MissingOrDenied, Stale
from doonce.db.database import Database
from doonce.ingress.gaps import CloseGap, Gap, close, open_gaps
from doonce.work.model import Scope

HERE = Scope(ORG, INSTALLATION)


async def lose(at: Receiver, webhook: str, count: int = 1) -> None:
    """Turn deliveries of a route away that may have been true."""
    for _ in range(count):
        at.ingress.turned_away(await at.ingress.route(key(webhook)), "shed", lost=True)
    await at.ingress.flush_tallies()


def word(losses: int, *, sequence: int = 1, who: str = "ann", webhook: str = "once") -> CloseGap:
    """An operator's word about a gap."""
    return CloseGap(key(webhook), sequence, losses, who, "asked the provider")


async def test_open_gaps_are_listed_within_their_scope(database: Database) -> None:
    at = await receiver(database)
    await lose(at, "once", 3)
    await lose(at, "batch", 3)  # this provider sends again
    (gap,) = await database.read(open_gaps, None)
    assert (gap.route, gap.sequence, gap.losses, gap.closed_at) == (key("once"), 1, 3, None)
    assert await database.read(open_gaps, HERE) == [gap]
    assert await database.read(open_gaps, Scope(ORG, "other")) == []


async def test_a_gap_is_closed_once_with_its_reason_and_the_next_loss_opens_another(
    database: Database,
) -> None:
    at = await receiver(database)
    await lose(at, "once", 2)
    closed = await database.transact(close, word(2))
    assert isinstance(closed, Gap)
    assert (closed.closed_by, closed.reason) == ("ann", "asked the provider")
    assert await database.transact(close, word(2)) == closed  # a rerun of the same word
    assert isinstance(await database.transact(close, word(2, who="bob")), Conflict)
    assert await database.read(open_gaps, None) == []
    await lose(at, "once")
    (following,) = await database.read(open_gaps, None)
    assert (following.sequence, following.losses) == (2, 1)
    first, _ = await at.rows("ingress_gap")
    assert (first["closed_by"], first["losses"]) == ("ann", 2)


@pytest.mark.parametrize(
    "asked, refused",
    [
        (word(1), Stale),
        (word(3), Stale),
        (word(2, sequence=2), MissingOrDenied),
        (word(2, webhook="batch"), MissingOrDenied),
    ],
)
async def test_what_was_not_looked_into_stays_open(
    database: Database, asked: CloseGap, refused: type[Exception]
) -> None:
    at = await receiver(database)
    await lose(at, "once", 2)
    assert isinstance(await database.transact(close, asked), refused)
    assert len(await database.read(open_gaps, None)) == 1


async def test_of_two_operators_one_closes(database: Database) -> None:
    at = await receiver(database)
    await lose(at, "once", 2)
    told = await asyncio.gather(*[database.transact(close, word(2, who=who)) for who in ("ann", "bob")])
    assert sorted(type(one).__name__ for one in told) == ["Conflict", "Gap"]


async def test_a_loss_at_a_route_that_was_never_opened_here_is_a_gap_too(database: Database) -> None:
    at = await receiver(database, in_flight_max=0)
    assert await at.deliver("once", b"1") == 503
    assert await at.deliver("batch", b"1") == 503
    path = f"/in/{ORG}/{INSTALLATION}/{CAPABILITY}/no-such-route"
    assert await at.deliver("", b"1", path=path) == 503
    await at.ingress.flush_tallies()
    (gap,) = await database.read(open_gaps, None)
    assert (gap.route, gap.losses) == (key("once"), 1)
    counted = {(row["webhook"], row["reason"]): row["count"] for row in await at.rows("ingress_rejection")}
    assert counted == {("once", "shed"): 1, ("batch", "shed"): 1}
