"""T4: everything at once over few lanes ends, in order, without a storm of deadlocks."""

import asyncio
import random
from collections import defaultdict

from tests.store.work.kernel import HERE, SCOPE, Kernel, cancel_items, name_of, passing

from doonce.db.committer import Committer
from doonce.db.transaction import Txn
from doonce.work import settle, store
from doonce.work.model import Claimed, Event, NewItem, Settled, Settlement

ITEMS = 240
DEADLOCKS_MAX = ITEMS // 10
"""A ready row and a lane have no common order, so a deadlock is possible in a corner: two to seven of them were seen,
by how busy the machine was. A storm, where nearly every flush meets one, is a fault.
"""


class Faults:
    """Counts what the database had to run again."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = defaultdict(int)

    def rolled_back(self, operation: str, fault: str) -> None:
        self.seen[fault] += 1

    def commit_unknown(self, operation: str) -> None:
        self.seen["unknown"] += 1


async def test_t4_claims_settlements_inserts_cancellations_and_sweeps_over_shared_lanes_end(
    kernel: Kernel,
) -> None:
    faults = kernel.database.observer = Faults()
    dice = random.Random(4)
    items = [
        kernel.new(f"{number:04}", **passing(f"s{number % 5}"), target_lane=f"t{number % 7}")
        for number in range(ITEMS)
    ]
    inserts: Committer[NewItem, None] = Committer(kernel.database, insert_all, key=lambda item: item.id)
    settlements: Committer[Settlement, Settled] = Committer(
        kernel.database, settle_all, key=lambda settlement: settlement.claimed.item.id
    )
    ran: list[str] = []
    running: set[str] = set()
    all_in = asyncio.Event()

    async def produce() -> None:
        for start in range(0, ITEMS, 8):
            await asyncio.gather(*map(inserts.submit, items[start : start + 8]))
        all_in.set()

    async def work(claimed: Claimed) -> None:
        lane = claimed.item.target_lane or ""
        assert lane not in running
        running.add(lane)
        await asyncio.sleep(0)
        running.remove(lane)
        event = dice.choice([Event.SUCCEED, Event.SUCCEED, Event.RETRY, Event.HAND_BACK, Event.DIE])
        if event in (Event.SUCCEED, Event.DIE):
            ran.append(name_of(claimed))
        assert await settlements.submit(Settlement(claimed, event)) is Settled.DONE

    async def consume(owner: str) -> None:
        while not (all_in.is_set() and await ended(kernel)):
            claims = await kernel.claim(16, owner=owner)
            await asyncio.gather(*map(work, claims))

    async def meddle() -> None:
        while not all_in.is_set():
            await kernel.database.transact(cancel_items, [dice.choice(items).id for _ in range(3)])
            await kernel.sweep()

    async with asyncio.timeout(100):
        await asyncio.gather(produce(), consume("prc_1"), consume("prc_2"), meddle())
    for lane in range(5):
        mine = [name for name in ran if int(name) % 5 == lane]
        assert mine == sorted(mine)
    assert faults.seen["RolledBack"] <= DEADLOCKS_MAX, dict(faults.seen)
    assert faults.seen["Contended"] == 0
    assert SCOPE.org == items[0].scope.org


def insert_all(items: list[NewItem]) -> Txn[list[None]]:
    yield from store.enqueue(items)
    return [None] * len(items)


def settle_all(settlements: list[Settlement]) -> Txn[list[Settled]]:
    return settle.settle(settlements, HERE)


async def ended(kernel: Kernel) -> bool:
    return set((await kernel.states()).values()) <= {"succeeded", "dead", "cancelled"}
