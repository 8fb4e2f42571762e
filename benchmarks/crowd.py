"""Millions of rows in minutes on PostgreSQL: the kernel makes one item of each kind, and the server copies its rows.

So every column is what the kernel writes; a copy differs in its names and in when it is due. The kinds lie mixed in
the order in which they are due, so that any claim takes the same share of each, however many there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg
import sqlalchemy as sa

from benchmarks.doonce_schema import DEPLOYMENT, make_tables, own
from benchmarks.tidy import settle_down
from doonce.base.ids import new_id, new_token
from doonce.db.database import Database, open_database
from doonce.db.transaction import Txn
from doonce.work import history, settle, store
from doonce.work.model import Claimed, Event, NewItem, Scope, Settlement
from doonce.work.store import ClaimRequest
from doonce.work.tables import work_item, work_item_history, work_lane, work_lane_entry, work_ready

FAMILY = "bench"
SCOPE = Scope("bench", "only")
ONE_LANE = "bench/one"
LATER_US = 7 * 86_400_000_000
COPY_ID = "left(m.{0}, 28) || lpad(to_hex(m.n), 8, '0')"
"""The model's id with a number in place of its last eight digits: as long as any id."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many items of each kind.

    `plain`: pending in no lane. `lanes`: pending, each in a target lane of its own. `in_one_lane`: pending one behind
    another in one source lane. `later`: pending, due in a week. `ended`: ended, still in the working table. `moved`:
    ended, in history.
    """

    plain: int
    lanes: int = 0
    in_one_lane: int = 0
    later: int = 0
    ended: int = 0
    moved: int = 0


def crowd_of(items: int) -> Crowd:
    """So many pending items, of all kinds, and as many that have ended."""
    lanes, in_one_lane, later, ended = items // 10, items // 100, items // 10, items // 10
    return Crowd(items - lanes - in_one_lane - later, lanes, in_one_lane, later, ended, items - ended)


def new_item(*, lane: bool = False, one_lane: bool = False, delay_us: int = 0) -> NewItem:
    """One item of a kind, for the kernel's own insert."""
    return NewItem(
        new_id("wrk"), FAMILY, SCOPE, "nothing", new_token(), "sha256:bench",
        source_lane=ONE_LANE if one_lane else None,
        target_lane=f"bench/{new_token()}" if lane else None,
        delay_us=delay_us,
    )  # fmt: skip


def again(claimed: Claimed) -> NewItem:
    """A new item of the same kind as a claimed one."""
    item = claimed.item
    return new_item(lane=item.target_lane is not None, one_lane=item.source_lane is not None)


async def make_crowd(url: str, crowd: Crowd) -> None:
    """A migrated database with that many items, vacuumed and analyzed."""
    await make_tables(url)
    database = open_database(url)
    await own(database, FAMILY)
    models = await _Models.make(database, crowd)
    await database.close()
    await asyncio.gather(*(_each(url, copies) for copies in _copies(models, crowd)))
    await settle_down(url)


@dataclass(frozen=True, slots=True)
class _Models:
    """The item of each kind that the kernel has made."""

    ended: NewItem
    moved: NewItem
    plain: NewItem
    lane: NewItem
    first: NewItem
    behind: NewItem
    later: NewItem

    @classmethod
    async def make(cls, database: Database, crowd: Crowd) -> _Models:
        """Make those of which the crowd has any, and end those that have ended."""
        models = cls(
            new_item(), new_item(), new_item(), new_item(lane=True), new_item(one_lane=True), new_item(one_lane=True),
            new_item(delay_us=LATER_US),
        )  # fmt: skip
        over = [(models.ended, crowd.ended), (models.moved, crowd.moved)]
        await insert(database, [model for model, number in over if number])
        await _end_all(database)
        if crowd.moved:
            await database.transact(_move, [models.moved.id])
        pending = [
            (models.plain, crowd.plain), (models.lane, crowd.lanes), (models.first, crowd.in_one_lane),
            (models.behind, crowd.in_one_lane), (models.later, crowd.later),
        ]  # fmt: skip
        await insert(database, [model for model, number in pending if number])
        return models


async def _end_all(database: Database) -> None:
    request = ClaimRequest(
        family=FAMILY, scopes=(SCOPE,), deployment=DEPLOYMENT, owner=new_id("prc"), token=new_token(), rows_max=2,
        lease_us=30_000_000, expiries_max=5,
    )  # fmt: skip
    claims = await database.transact(store.claim, request)
    done = [Settlement(claimed, Event.SUCCEED) for claimed in claims]
    await database.transact(settle.settle, done, DEPLOYMENT)


async def insert(database: Database, items: Sequence[NewItem]) -> None:
    """Put these items there, as acceptance does."""
    await database.transact(_insert, items)


def _insert(items: Sequence[NewItem]) -> Txn[None]:
    yield from store.insert(items)


def _move(ids: Sequence[str]) -> Txn[None]:
    old, now_us = yield from history.lock_old(ids)
    assert now_us is not None
    yield from history.move([item.id for item in old], now_us)


@dataclass(frozen=True, slots=True)
class _Copy:
    """One row of a table, so many times. `into`: the columns in which a copy differs, and how; `m` is the model."""

    table: sa.Table
    key: str
    model: str
    number: int
    into: dict[str, str]

    def statement(self) -> str:
        """The INSERT, with the model's key as its parameter."""
        names = [column.name for column in self.table.columns]
        listed = ", ".join(f'"{name}"' for name in names)
        values = ", ".join(self.into.get(name, f'm."{name}"') for name in names)
        rows = (
            f"SELECT *, generate_series(1, {self.number}) AS n FROM {self.table.name} WHERE {self.key} = $1"
        )
        return f"INSERT INTO {self.table.name} ({listed}) SELECT {values} FROM ({rows}) AS m"


def _copies(models: _Models, crowd: Crowd) -> tuple[list[_Copy], list[_Copy]]:
    """What is copied, in two parts that take about as long."""
    sparser = max(1, crowd.plain // max(1, crowd.lanes))
    lane = "m.{0} || lpad(to_hex(m.n), 8, '0')"
    item = {"id": COPY_ID.format("id"), "subject_id": "m.subject_id || lpad(to_hex(m.n), 8, '0')"}
    ready = {"item_id": COPY_ID.format("item_id"), "due": "m.due + m.n"}
    one = models.lane.target_lane or ""
    into_lane = {"target_lane": lane.format("target_lane")}
    working = [
        _Copy(work_item, "id", models.plain.id, crowd.plain, item | {"run_after": "m.run_after + m.n"}),
        _Copy(
            work_item, "id", models.lane.id, crowd.lanes,
            item | into_lane | {"run_after": f"m.run_after + m.n * {sparser}"},
        ),
        _Copy(
            work_item, "id", models.behind.id, crowd.in_one_lane,
            item | {"source_position": "m.source_position + m.n", "run_after": "m.run_after + m.n"},
        ),
        _Copy(work_item, "id", models.later.id, crowd.later, item | {"run_after": "m.run_after + m.n"}),
        _Copy(work_item, "id", models.ended.id, crowd.ended, item),
    ]  # fmt: skip
    others = [
        _Copy(work_ready, "item_id", models.plain.id, crowd.plain, ready),
        _Copy(
            work_ready, "item_id", models.lane.id, crowd.lanes,
            ready | into_lane | {"due": f"m.due + m.n * {sparser}"},
        ),
        _Copy(work_ready, "item_id", models.later.id, crowd.later, ready),
        _Copy(
            work_lane, "lane", one, crowd.lanes,
            {
                "lane": lane.format("lane"), "nominee": COPY_ID.format("nominee"),
                "nominee_due": f"m.nominee_due + m.n * {sparser}",
            },
        ),
        _Copy(
            work_lane_entry, "lane", one, crowd.lanes,
            {
                "lane": lane.format("lane"), "item_id": COPY_ID.format("item_id"),
                "due": f"m.due + m.n * {sparser}",
            },
        ),
        _Copy(
            work_lane_entry, "item_id", models.behind.id, crowd.in_one_lane,
            {"position": "m.position + m.n", "item_id": COPY_ID.format("item_id"), "due": "m.due + m.n"},
        ),
        _Copy(work_item_history, "id", models.moved.id, crowd.moved, item),
    ]  # fmt: skip
    return working, others


async def _each(url: str, copies: Sequence[_Copy]) -> None:
    """Carry out copies one after another; at the end of each the one lane's tail is after its last place."""
    connection = await asyncpg.connect(url)
    await connection.execute("SET synchronous_commit = off")  # while filling
    for copy in copies:
        if copy.number:
            await connection.execute(copy.statement(), copy.model)
    await connection.execute(
        "UPDATE work_lane SET tail = (SELECT max(position) FROM work_lane_entry WHERE lane = $1) WHERE lane = $1",
        ONE_LANE,
    )
    await connection.close()
