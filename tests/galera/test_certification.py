"""PROTOCOL S5 on a cluster: whatever one node decided from what it had, conflicts with what another one changed.

Each pair runs with the deciding node lagging behind: its row locks are seen by nobody, and it commits after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest
import sqlalchemy as sa
from msgspec.structs import replace
from tests.galera.lagging import begun, lag, make_plug
from tests.store.conftest import create_on_mariadb
from tests.store.effects.world import DEPLOYMENT, World, make_world

from doonce.base.ids import new_id
from doonce.catalog.model import Outcome, Verdict
from doonce.commands import store as commands
from doonce.commands.model import ConflictFound
from doonce.commands.tables import handoff_conflict
from doonce.db.database import open_database
from doonce.db.faults import RolledBack
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch
from doonce.effects import reconcile
from doonce.effects import store as effects
from doonce.effects.model import EvidenceKind, Lineage, Marked, RefusedMark, Start, Verdicted
from doonce.effects.reconcile import Resolve
from doonce.effects.store import LateEvidence
from doonce.links import store as links
from doonce.links.model import LinkEvent, LinkMove
from doonce.ownership import store as ownership
from doonce.ownership.model import Family
from doonce.principals import store as principals
from doonce.principals.model import Disconnection
from doonce.work import lanes as lane_store
from doonce.work import store as work
from doonce.work.model import LanePolicy


@dataclass(frozen=True, slots=True)
class Cluster:
    """The same world, seen at three nodes."""

    worlds: list[World]
    urls: list[str]

    @property
    def near(self) -> World:
        """Where things are decided, from what that node has."""
        return self.worlds[1]

    @property
    def far(self) -> World:
        """Where they are changed."""
        return self.worlds[0]


@pytest.fixture
async def cluster(galera_nodes: list[str]) -> AsyncIterator[Cluster]:
    await asyncio.to_thread(create_on_mariadb, galera_nodes[0])
    await asyncio.to_thread(make_plug, galera_nodes[0])
    databases = [open_database(url) for url in galera_nodes]
    first = await make_world(databases[0])
    await databases[0].transact(ownership.install, DEPLOYMENT, "sha256:test", "op_1")
    worlds = [World(database, first.principals, first.principal, first.link) for database in databases]
    yield Cluster(worlds, galera_nodes)
    for database in databases:
        await database.close()


async def started(cluster: Cluster, key: str = "k1") -> Start:
    """A command that is accepted at one node, and claimed at the other."""
    await cluster.far.accept(cluster.far.acceptance(key))
    (start,) = await cluster.near.claim()
    return start


async def unknown(cluster: Cluster) -> Start:
    """An attempt that nobody knows the outcome of."""
    start = await started(cluster, "before")
    assert isinstance(await cluster.near.mark(start), Marked)
    await cluster.near.finish(start, Outcome.OUTCOME_UNKNOWN)
    return start


def evidence(start: Start) -> LateEvidence:
    return LateEvidence(
        new_id("evd"),
        start.attempt_id,
        start.claimed.token,
        EvidenceKind.ANSWERED,
        Outcome.ACCEPTED,
        "{}",
        "late",
    )


CONFLICTS = Statement(
    "test.conflicts", lambda _: sa.select(handoff_conflict.c.slot, handoff_conflict.c.outbox_id)
)


def conflicts() -> Txn[set[tuple[int, str]]]:
    return {(row["slot"], row["outbox_id"]) for row in (yield from fetch(CONFLICTS))}


def suspension(world: World) -> LinkMove:
    return LinkMove(world.link.id, world.link.org, world.link.installation, LinkEvent.SUSPEND)


async def collides(
    cluster: Cluster, deciding: Callable[[], Txn[object]], change: Callable[[], Txn[object]]
) -> None:
    """What was decided at the lagging node is rolled back, proven, because of the change at the other one."""
    with pytest.raises(RolledBack):
        await decided_late(cluster, deciding, change, certifies=True)


async def decided_late(
    cluster: Cluster,
    deciding: Callable[[], Txn[object]],
    change: Callable[[], Txn[object]],
    *,
    certifies: bool,
) -> object:
    """Decide at the lagging node, change at the other, and only then commit the decision; its result."""
    deciding_now = await begun(cluster.near.database, deciding(), certifies=certifies)
    async with lag(cluster.urls[1], cluster.urls[0]):
        await cluster.far.database.transact(change)
        committing = asyncio.create_task(deciding_now.commit())
        await asyncio.wait([committing], timeout=0.3)  # it waits for its turn behind the plug, or has failed
    return await committing


async def test_s5_a_mark_collides_with_the_move_of_its_link(cluster: Cluster) -> None:
    request = cluster.near.mark_request(await started(cluster))
    await collides(
        cluster,
        lambda: effects.mark([request]),
        lambda: links.move([suspension(cluster.far)]),
    )
    assert await cluster.near.database.transact(effects.mark, [request]) == [RefusedMark.LINK]


async def test_s5_without_the_certified_slot_the_same_mark_would_commit(cluster: Cluster) -> None:
    request = cluster.near.mark_request(await started(cluster))
    marked = await decided_late(
        cluster,
        lambda: effects.mark([request]),
        lambda: links.move([suspension(cluster.far)]),
        certifies=False,
    )
    assert [type(one) for one in marked] == [Marked]  # type: ignore[attr-defined]  # why the slot is there


async def test_s5_h4_a_successors_mark_collides_with_late_evidence(cluster: Cluster) -> None:
    before = await unknown(cluster)
    start = await started(cluster, "after")
    lineage = Lineage(before.attempt_id, 0)
    request = cluster.near.mark_request(start, lineage=lineage)
    await collides(
        cluster,
        lambda: effects.mark([request]),
        lambda: effects.append_evidence([evidence(before)]),
    )
    assert await cluster.near.database.transact(effects.mark, [request]) == [RefusedMark.EVIDENCE]


async def test_s5_h4_a_verdict_collides_with_late_evidence(cluster: Cluster) -> None:
    before = await unknown(cluster)
    assert before.command is not None
    verdict = Verdicted(Verdict.NO_EFFECT_PROVEN, "an operator looked", 0)
    row = Resolve(
        None, DEPLOYMENT, before.attempt_id, before.command, "operator", new_id("wrk"), verdict=verdict
    )
    await collides(
        cluster, lambda: reconcile.resolve(row), lambda: effects.append_evidence([evidence(before)])
    )
    assert await cluster.near.database.transact(reconcile.resolve, row) is reconcile.Resolved.CHANGED


async def test_s5_a_mark_collides_with_the_end_of_its_generation(cluster: Cluster) -> None:
    request = cluster.near.mark_request(await started(cluster))
    principal = cluster.far.principal
    ended = Disconnection(principal.id, principal.org, principal.installation, principal.generation, "test")
    await collides(cluster, lambda: effects.mark([request]), lambda: principals.disconnect(ended))
    assert await cluster.near.database.transact(effects.mark, [request]) == [RefusedMark.GENERATION]


async def test_s5_a_mark_collides_with_a_transfer_of_ownership(cluster: Cluster) -> None:
    request = cluster.near.mark_request(await started(cluster))
    await collides(
        cluster,
        lambda: effects.mark([request]),
        lambda: ownership.install("another", "sha256:other", "op_2"),
    )


async def test_s5_two_nodes_never_claim_one_item(cluster: Cluster) -> None:
    await cluster.far.accept(cluster.far.acceptance("k1"))
    near, far = (world.claim_request(Family.EFFECT) for world in (cluster.near, cluster.far))
    await collides(cluster, lambda: work.claim(near), lambda: work.claim(far))
    assert await cluster.near.database.transact(work.claim, near) == []


async def test_s5_two_nodes_never_admit_one_key_twice(cluster: Cluster) -> None:
    near, far = cluster.near.acceptance("k1"), cluster.far.acceptance("k1")
    await collides(cluster, lambda: commands.accept([near]), lambda: commands.accept([far]))
    (admission,) = await cluster.near.accept(near)
    assert getattr(admission, "first", None) is False
    assert getattr(admission, "command_id", None) == far.command_id


async def test_s5_two_nodes_never_take_one_slot_of_a_quarantine(cluster: Cluster) -> None:
    stands = cluster.far.acceptance("k1")
    await cluster.far.accept(stands)
    near, far = (replace(stands, handoff=replace(stands.handoff, outbox_id=new_id("obx"))) for _ in range(2))
    await collides(cluster, lambda: commands.accept([near]), lambda: commands.accept([far]))
    assert await cluster.near.accept(near) == [ConflictFound(stands.handoff.key, "outbox_id")]
    kept = await cluster.near.database.read(conflicts)
    assert kept == {(0, far.handoff.outbox_id), (1, near.handoff.outbox_id)}


async def test_s5_two_nodes_never_draw_one_position_of_a_lane(cluster: Cluster) -> None:
    def drawn() -> Txn[int]:
        (lane,) = (yield from lane_store.make_and_lock({"lane": LanePolicy.BLOCK})).values()
        position = lane.draw()
        yield from lane_store.save([lane])
        return position

    await cluster.far.database.transact(drawn)
    await collides(cluster, drawn, drawn)
    assert await cluster.near.database.transact(drawn) == 3


async def test_t5_a_read_at_a_lagging_node_waits_for_what_was_committed_before(cluster: Cluster) -> None:
    near, link = cluster.near.database, cluster.near.link
    await near.read(links.get, [link.id])
    async with lag(cluster.urls[1], cluster.urls[0]):
        await cluster.far.database.transact(links.move, [suspension(cluster.far)])
        reading = asyncio.create_task(near.read(links.get, [link.id]))
        await asyncio.wait([reading], timeout=0.3)
        assert not reading.done(), "it answered before it had what the cluster had committed"
    assert (await reading)[link.id].version == link.version + 1
