"""Claims of a server that cannot skip what is locked: who claims at the same moment is not left with nothing."""

import pytest
from tests.conftest import PLAIN
from tests.store.work.kernel import EFFECT, SCOPE, Kernel, Places
from tests.store.work.stepper import interleaver

from doonce.db.statement import DRAWN_FROM
from doonce.work import store
from doonce.work.model import Shelf
from doonce.work.tables import work_ready

pytestmark = pytest.mark.parametrize("server_places", [PLAIN], indirect=True)
ALTERNATELY = [0, 1] * 8


async def test_two_claims_that_look_at_once_both_take_and_never_the_same(server_places: Places) -> None:
    async with server_places.kernel() as kernel, interleaver(kernel.database.driver) as pairs:
        await kernel.insert(*[kernel.new() for _ in range(64)])
        requests = [kernel.request(4, owner=owner) for owner in ("prc_1", "prc_2")]
        first, second = await pairs.run([store.claim(request) for request in requests], ALTERNATELY)
        taken = [claimed.item.id for claimed in (*first, *second)]
        assert first
        assert second
        assert len(taken) == len(set(taken))
        assert set((await kernel.states()).values()) == {"pending", "processing"}


async def test_only_what_has_been_due_for_longest_is_drawn(server_places: Places) -> None:
    async with server_places.kernel() as kernel:
        await kernel.insert(kernel.new("old"))
        await hints_that_are_spare(kernel, DRAWN_FROM)
        assert await kernel.names(1) == []
        assert len(await kernel.rows(work_ready)) == DRAWN_FROM
        assert [*await kernel.names(DRAWN_FROM), *await kernel.names()] == ["old"]


async def hints_that_are_spare(kernel: Kernel, count: int) -> None:
    """Hints of no item, that have been due for longer than any item."""
    same = {"family": EFFECT, "shelf": Shelf.OPEN.value, "org": SCOPE.org, "installation": SCOPE.installation}
    rows = [{**same, "due": 1, "item_id": f"wrk_gone{number}"} for number in range(count)]
    await kernel.execute(work_ready.insert().values(rows))
