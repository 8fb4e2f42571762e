"""What the kernel's tests share: fresh databases, short names for its transactions, and a look at its tables."""

import asyncio
import contextlib
import itertools
import re
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from doonce.base.ids import new_token
from doonce.db.database import Database, RetrySettings, open_database
from doonce.db.schema import clock, fence, metadata
from doonce.db.sqlite import SqliteDriver, SqliteSettings
from doonce.db.transaction import Txn
from doonce.db.transaction import clock as read_clock
from doonce.ownership import store as ownership
from doonce.ownership.tables import work_ownership
from doonce.work import lanes as lane_store
from doonce.work import settle, store
from doonce.work.model import Claimed, Event, Item, LanePolicy, NewItem, Scope, Settled, Settlement
from doonce.work.settle import Cancelled
from doonce.work.tables import (
    work_claimer,
    work_item,
    work_item_history,
    work_lane,
    work_lane_entry,
    work_lease,
    work_ready,
    work_retention,
)

T = TypeVar("T")
HERE = "here"
SCOPE = Scope("acme", "main")
EFFECT = "effect"
TABLES = (
    work_item, work_ready, work_lane, work_lane_entry, work_lease, work_claimer, work_ownership, work_item_history,
    work_retention,
)  # fmt: skip
LONG_US = 60_000_000
EXPIRED_US = -1
"""A lease that has run out when it is given: what a crash leaves behind, without the wait."""


@dataclass(slots=True)
class HostClock:
    """A host's time of day that a test moves by hand, also backwards."""

    now_us: int = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now_us


def cost_of(call: Any, value: Any) -> str:
    """What a call costs whatever the machine: which kind it is, and how many rows it brought."""
    return f"{type(call).__name__} {len(value) if isinstance(value, list) else ''}"


class Kernel:
    """The kernel's transactions on one database, with the arguments that tests rarely care about filled in."""

    def __init__(self, database: Database, url: str, schema: str | None, host: HostClock) -> None:
        self.database = database
        self.url = url
        self.schema = schema
        self.host = host
        self._numbers = itertools.count(1)
        self.engine = engine_of(url, schema)

    @property
    def on_sqlite(self) -> bool:
        return self.schema is None

    @property
    def on_mariadb(self) -> bool:
        return self.url.startswith("mysql")

    def new(self, name: str = "", **fields: Any) -> NewItem:
        """A new item; its id is `wrk_<name>`."""
        number = next(self._numbers)
        return NewItem(
            **{
                "id": f"wrk_{name or f'{number:06}'}",
                "family": EFFECT,
                "scope": SCOPE,
                "subject_kind": "command",
                "subject_id": f"cmd_{name or number}",
                "view_digest": "sha256:view",
                **fields,
            }
        )

    async def insert(self, *items: NewItem) -> None:
        await self.database.transact(store.enqueue, items)

    def request(self, rows_max: int = 100, **fields: Any) -> store.ClaimRequest:
        return store.ClaimRequest(
            **{
                "family": EFFECT,
                "scopes": (SCOPE,),
                "deployment": HERE,
                "owner": "prc_1",
                "token": new_token(),
                "rows_max": rows_max,
                "lease_us": LONG_US,
                "expiries_max": 3,
                **fields,
            }
        )

    async def claim(self, rows_max: int = 100, **fields: Any) -> list[Claimed]:
        return await self.database.transact(store.claim, self.request(rows_max, **fields))

    async def claim_one(self, **fields: Any) -> Claimed:
        (claimed,) = await self.claim(1, **fields)
        return claimed

    async def names(self, rows_max: int = 100, **fields: Any) -> list[str]:
        """The names of what a claim takes now."""
        return sorted(name_of(claimed) for claimed in await self.claim(rows_max, **fields))

    async def settle(self, claimed: Claimed, event: Event, **fields: Any) -> Settled:
        (settled,) = await self.database.transact(settle.settle, [Settlement(claimed, event, **fields)], HERE)
        return settled

    async def renew(self, claimed: Claimed, lease_us: int = LONG_US) -> int | None:
        (until_us,) = await self.database.transact(store.renew, [store.RenewRequest(claimed, HERE, lease_us)])
        return until_us

    async def cancel(self, *names: str) -> dict[str, Cancelled]:
        return await self.database.transact(cancel_items, [f"wrk_{name}" for name in names])

    def watch(self, described: Callable[[Any, Any], str] = cost_of) -> list[str]:
        """All that every later transaction asks for, in the order of the answers; it grows by itself."""
        seen: list[str] = []
        run = self.database.driver.run

        async def watching(factory: Callable[[], Any], *, readonly: bool) -> Any:
            def watched() -> Any:
                transaction, value = factory(), None
                while True:
                    try:
                        call = transaction.send(value)
                    except StopIteration as stop:
                        return stop.value
                    value = yield call
                    seen.append(described(call, value))

            return await run(watched, readonly=readonly)

        self.database.driver.run = watching  # type: ignore[method-assign]
        return seen

    async def sweep(self) -> None:
        after = ""
        while (after := await self.database.transact(store.sweep, after, 50)) != "":
            pass

    async def lose_hints(self) -> None:
        """Forget all that says where to look (PROTOCOL W7)."""
        await self.execute(work_ready.delete(), work_lease.delete())

    async def drain(self) -> list[str]:
        """Claim and succeed until nothing is ready; the names in the order in which they ran, a batch sorted."""
        ran: list[str] = []
        while claims := await self.claim():
            ran += sorted(name_of(claimed) for claimed in claims)
            done = [Settlement(claimed, Event.SUCCEED) for claimed in claims]
            assert set(await self.database.transact(settle.settle, done, HERE)) == {Settled.DONE}
        return ran

    async def finish_row(self, item_id: str) -> bool:
        """Succeed an item that runs, whoever holds it."""
        item = (await self.database.transact(store.lock_items, [item_id]))[item_id]
        claimed = Claimed(item, item.lease_token or "", item.ownership_epoch, item.lease_until, poison=False)
        return await self.settle(claimed, Event.SUCCEED) is Settled.DONE

    async def clear(self) -> None:
        """Forget all work; ownership stays."""
        await self.execute(*[table.delete() for table in TABLES if table is not work_ownership])

    async def now(self) -> int:
        return await self.database.transact(read_clock)

    async def item(self, name: str) -> Item:
        items = await self.database.transact(store.lock_items, [f"wrk_{name}"])
        return items[f"wrk_{name}"]

    async def states(self) -> dict[str, str]:
        """Every item's state by its name."""
        return {row["id"][4:]: row["state"] for row in await self.rows(work_item)}

    async def rows(self, table: sa.Table) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._rows, table)

    def _rows(self, table: sa.Table) -> list[dict[str, Any]]:
        with self.connect() as connection:
            return [dict(row._mapping) for row in connection.execute(sa.select(table))]

    async def execute(self, *statements: sa.Executable) -> None:
        """Change the tables behind the kernel's back."""
        await asyncio.to_thread(self._execute, statements)

    def _execute(self, statements: Iterable[sa.Executable]) -> None:
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    @contextlib.contextmanager
    def connect(self) -> Any:
        """A connection beside the kernel's own, committed at the end."""
        with self.engine.begin() as connection:
            yield connection

    def close(self) -> None:
        self.engine.dispose()

    async def tables(self) -> dict[str, list[str]]:
        """All the kernel's tables, comparable between databases."""
        return await asyncio.to_thread(self._tables)

    def _tables(self) -> dict[str, list[str]]:
        with self.connect() as connection:
            return {
                table.name: sorted(
                    self.comparable(tuple(row)) for row in connection.execute(sa.select(table))
                )
                for table in TABLES
            }

    def comparable(self, value: Any) -> str:
        """A value as text; where the engine's own clock has written times, without them."""
        text = repr(value)
        return re.sub(r"\b\d{15,}\b", "T", text) if not self.on_sqlite else text


@dataclass(slots=True)
class Places:
    """Makes fresh databases on one engine: files in a folder, or schemas in a PostgreSQL or MariaDB server."""

    server: str | None
    folder: Path
    made: int = field(default=0)

    def url(self) -> tuple[str, str | None]:
        """The URL of a database with the kernel's tables, and its schema."""
        self.made += 1
        if self.server is None:
            url, schema = f"sqlite:///{self.folder / f'kernel{self.made}.db'}", None
            engine = engine_of(url, schema)
        elif self.server.startswith("mysql"):
            schema = f"k{new_token()}"
            url = sa.make_url(self.server).set(database=schema).render_as_string(hide_password=False)
            made = engine_of(self.server, schema="")
            with made.begin() as connection:
                connection.execute(sa.schema.CreateSchema(schema))
            made.dispose()
            engine = engine_of(url, schema)
        else:
            schema = f"k{new_token()}"
            url = f"{self.server}?search_path={schema}&synchronous_commit=off"
            engine = engine_of(url, schema)
            with engine.begin() as connection:
                connection.execute(sa.schema.CreateSchema(schema))
        create_schema(engine)
        engine.dispose()
        return url, schema

    @contextlib.asynccontextmanager
    async def kernel(
        self, *, wrap: Callable[[Any], Any] = lambda driver: driver, install: bool = True
    ) -> AsyncIterator[Kernel]:
        """A fresh kernel; `wrap` puts a test's own driver in front of the engine's."""
        url, schema = await asyncio.to_thread(self.url)
        host = HostClock()
        database = open_database(url)
        if schema is None:
            driver = SqliteDriver(Path(url.removeprefix("sqlite:///")), SqliteSettings(), host)
            database = Database(url, driver, RetrySettings(clock_tolerance_us=10**15))
        database.driver = wrap(database.driver)
        kernel = Kernel(database, url, schema, host)
        try:
            if install:
                await database.transact(ownership.install, HERE, "sha256:release", "op_1")
            yield kernel
        finally:
            kernel.close()
            await database.close()


def create_schema(engine: sa.Engine) -> None:
    """The kernel's tables, and the clock's row."""
    with warnings.catch_warnings(), engine.begin() as connection:
        warnings.simplefilter("ignore")  # MariaDB keeps no names of primary keys, and says so
        metadata.create_all(connection, [*TABLES, clock, fence], checkfirst=False)
        connection.execute(sa.insert(clock).values(id=1, now_us=0))


def engine_of(url: str, schema: str | None) -> sa.Engine:
    """SQLAlchemy's own engine for what the kernel's driver opens by this URL."""
    if schema is None:
        return sa.create_engine(url)
    if url.startswith("mysql"):
        return sa.create_engine(sa.make_url(url).set(drivername="mysql+pymysql"))
    plain = sa.make_url(url).set(drivername="postgresql+psycopg", query={})
    return sa.create_engine(plain, connect_args={"options": f"-csearch_path={schema}"})


def cancel_items(ids: Sequence[str]) -> Txn[dict[str, Cancelled]]:
    """Cancel items in a transaction of its own, as an operator's command does."""
    before = yield from store.plain_anywhere(ids)
    held = yield from lane_store.lock(
        lane for item in before.values() for lane in (item.source_lane, item.target_lane)
    )
    found = yield from store.lock_items(before)
    now_us = yield from read_clock()
    cancelled = yield from settle.cancel(found, held, now_us, "cancelled by a test")
    yield from lane_store.save(held.values())
    return cancelled


def name_of(claimed: Claimed) -> str:
    return claimed.item.id.removeprefix("wrk_")


def blocking(lane: str) -> dict[str, Any]:
    return {"source_lane": lane, "source_policy": LanePolicy.BLOCK}


def passing(lane: str) -> dict[str, Any]:
    return {"source_lane": lane, "source_policy": LanePolicy.PASS}
