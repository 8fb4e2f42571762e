"""The application's tables on a cluster (PROTOCOL S5): what is decided at a node that lags behind conflicts with what
another node has changed. It is not committed, and when it is run again it tells the truth.

The transactions are the application's own, as are their errors: 1213, at COMMIT.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
import sqlalchemy as sa
from tests.galera.lagging import lag, make_plug
from tests.store.runtime.applications import Application, application, prepare
from tests.store.runtime.authority import Authority
from tests.store.runtime.relays import SCOPE, emit, run_once, status

from doonce.base.ids import new_token
from doonce.runtime import inbox, outbox
from doonce.runtime.connections import execute
from doonce.runtime.model import OutboxState
from doonce.runtime.outbox import Withdrawal
from doonce.runtime.relay import Relay, RelaySettings
from doonce.runtime.relay_claim import HeadPolicy, claim
from doonce.wire import AcceptRequest, CompletionOutcome, ReceiptState

pytestmark = pytest.mark.timeout(120)

DEADLOCK = 1213
LANES, ROWS = 4, 40
LEASE_US = 60_000_000


@dataclass
class Cluster:
    """One application at several nodes; `far`: where things are changed, `near`: where they are decided."""

    nodes: list[Application]
    urls: list[str]
    authority: Authority = field(default_factory=Authority)
    ids: list[outbox.OutboxId] = field(default_factory=list)

    @property
    def far(self) -> Application:
        return self.nodes[0]

    @property
    def near(self) -> Application:
        return self.nodes[1]

    async def relay(self) -> None:
        """Hand over what is due, at the far node."""
        await run_once(self.far, self.authority)


@pytest.fixture
def cluster(galera_nodes: list[str]) -> Iterator[Cluster]:
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(application("mariadb", "sqlalchemy", address))
            for address in (
                sa.make_url(url).set(drivername="mysql+pymysql").render_as_string(hide_password=False)
                for url in galera_nodes
            )
        ]
        prepare(nodes[0])
        make_plug(galera_nodes[0])
        yield Cluster(nodes, galera_nodes)


def claims(_cluster: Cluster, connection: Any) -> list[str]:
    """What a relay may ask about that looks now."""
    found = execute(connection, claim(new_token(), rows_max=10, lease_us=LEASE_US, policy=HeadPolicy.BLOCK))
    return [one.intent.outbox_id for one in found]


def claims_first(cluster: Cluster, connection: Any) -> bool:
    return claims(cluster, connection) == cluster.ids[:1]


def claims_second(cluster: Cluster, connection: Any) -> bool:
    return claims(cluster, connection) == cluster.ids[1:]


def claims_nothing(cluster: Cluster, connection: Any) -> bool:
    return claims(cluster, connection) == []


def emits(cluster: Cluster, connection: Any) -> bool:
    cluster.ids.append(
        outbox.emit(
            connection,
            scope=SCOPE,
            operation="person.update",
            payload={"title": "CTO"},
            local_ref="42",
            source_lane="person/42",
        )
    )
    return True


def is_first(_cluster: Cluster, connection: Any) -> bool:
    return inbox.once(connection, "evt_1")


def is_known(cluster: Cluster, connection: Any) -> bool:
    return not is_first(cluster, connection)


def withdraws(cluster: Cluster, connection: Any) -> bool:
    return outbox.withdraw(connection, cluster.ids[0]) is Withdrawal.ASKED


def withdraws_too_late(cluster: Cluster, connection: Any) -> bool:
    return outbox.withdraw(connection, cluster.ids[0]) is Withdrawal.TOO_LATE


def applies(cluster: Cluster, connection: Any, expected: ReceiptState = ReceiptState.APPLIED) -> bool:
    notice = cluster.authority.complete(cluster.authority.accepted_order[0], CompletionOutcome.ACCEPTED)
    return inbox.apply(connection, notice, lambda *_: None).state is expected


def applies_again(cluster: Cluster, connection: Any) -> bool:
    return applies(cluster, connection, ReceiptState.DUPLICATE)


Step = Callable[[Cluster, Any], bool]


async def two_of_a_lane(cluster: Cluster) -> None:
    for _ in range(2):
        with cluster.far.transaction() as connection:
            emits(cluster, connection)


async def one_accepted(cluster: Cluster) -> None:
    await two_of_a_lane(cluster)
    await cluster.relay()


async def nothing(_cluster: Cluster) -> None:
    pass


@dataclass(frozen=True)
class Pair:
    """`change` is made at the far node; `lags` is what the near one decides before it has it, `knows` afterwards."""

    prepare: Callable[[Cluster], Any]
    change: Step | Callable[[Cluster], Any]
    lags: Step
    knows: Step


async def first_is_accepted(cluster: Cluster) -> None:
    await cluster.relay()


PAIRS = {
    "two relays": Pair(two_of_a_lane, claims_first, claims_first, claims_nothing),
    "a relay and a head that is gone": Pair(two_of_a_lane, first_is_accepted, claims_first, claims_second),
    "two emissions of a lane": Pair(two_of_a_lane, emits, emits, emits),
    "the first two of a lane": Pair(nothing, emits, emits, emits),
    "two handlers of an event": Pair(nothing, is_first, is_first, is_known),
    "two who apply a notice": Pair(one_accepted, applies, applies, applies_again),
    "a withdrawal and an acceptance": Pair(two_of_a_lane, first_is_accepted, withdraws, withdraws_too_late),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=list(PAIRS))
async def test_s5_what_a_lagging_node_decides_is_rolled_back_and_is_right_when_it_is_run_again(
    cluster: Cluster, pair: Pair
) -> None:
    await pair.prepare(cluster)
    async with lag(cluster.urls[1], cluster.urls[0]):
        if asyncio.iscoroutinefunction(pair.change):
            await pair.change(cluster)
        else:
            with cluster.far.transaction() as connection:
                assert pair.change(cluster, connection)
        before = list(cluster.ids)
        decided: list[bool] = []

        def decide() -> None:
            with cluster.near.transaction() as connection:
                decided.append(pair.lags(cluster, connection))

        deciding = asyncio.create_task(asyncio.to_thread(decide))
        async with asyncio.timeout(30):
            while not decided:
                await asyncio.sleep(0.01)
    with pytest.raises(sa.exc.OperationalError) as lost:
        await deciding
    assert lost.value.orig is not None
    assert lost.value.orig.args[0] == DEADLOCK
    assert decided == [True], "it lagged behind, and decided from what it had"
    cluster.ids[:] = before
    with cluster.near.transaction() as connection:
        connection.exec_driver_sql("SET SESSION wsrep_sync_wait = 1")
        assert pair.knows(cluster, connection)
    positions = [row[0] for row in cluster.near.rows("SELECT lane_position FROM doonce_outbox")]
    assert len(set(positions)) == len(positions)


async def test_l2_relays_at_every_node_keep_each_lane_in_order_and_ask_about_each_row_once(
    cluster: Cluster,
) -> None:
    """A row whose claim lost at certification is claimed again; nobody asks about what another relay holds."""
    ids: dict[str, list[str]] = {}
    for number in range(ROWS):
        lane = f"person/{number % LANES}"
        ids.setdefault(lane, []).append(emit(cluster.far, SCOPE, source_lane=lane))
    settings = RelaySettings(idle_us=10_000, retry_base_us=10_000)
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        relays = [
            await stack.enter_async_context(Relay(node.transaction, cluster.authority, settings))
            for node in cluster.nodes
        ]
        async with asyncio.timeout(90), asyncio.TaskGroup() as tasks:
            for relay in relays:
                tasks.create_task(relay.run(stop))
            while len(cluster.authority.accepted_order) < ROWS:
                await asyncio.sleep(0.05)
            stop.set()
    lanes: dict[str, list[str]] = {}
    for key in cluster.authority.accepted_order:
        request = cluster.authority.requests[key]
        assert isinstance(request, AcceptRequest)
        lanes.setdefault(str(request.source_lane), []).append(request.outbox_id)
    assert lanes == ids
    assert len(cluster.authority.asked) == ROWS
    ended = {status(cluster.far, one).state for lane in ids.values() for one in lane}
    assert ended == {OutboxState.ACCEPTED}
