"""An application that embeds doonce is killed, or stopped for longer than its lease, around and inside its handler.

The witness is the application's own database: each event's change is there once, one object's in the order of its work.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import msgspec
import pytest
import sqlalchemy as sa
from tests.process.effects.journal import Journal
from tests.process.effects.processes import Process
from tests.process.effects.settings import Armed
from tests.process.effects.waiting import until
from tests.process.kill.boundaries import EMBEDDED_OPERATIONS, HANDLER, sides
from tests.process.kill.embedding import EmbeddingSettings, applied, deployment
from tests.store.ingress.routes import BINDING, INSTALLATION, ORG, PACK, key, signed
from tests.store.runtime.applications import database, sqlalchemy_engine

from doonce.base.secrets import Secret
from doonce.runtime import schema
from doonce.work.tables import work_item

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

PATH = "/in/acme/main/shop.events/batch"
OBJECTS = tuple("abcdef")
ENGINES = {"sqlite": "sqlite", "postgresql": "postgresql", "mysql": "mariadb"}
POINTS = (*HANDLER, *(side for name in EMBEDDED_OPERATIONS for side in sides(name)))


@dataclass(slots=True)
class Sender:
    """Tells of one object after the other event, and goes on only where it was answered with success."""

    rng: random.Random
    told: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OBJECTS, 0))
    url: str = ""

    def send_while(self, going_on: Callable[[], bool]) -> None:
        """Send for every object at once, each delivery until it is taken and sometimes once more."""

        async def lane(session: aiohttp.ClientSession, name: str) -> None:
            while going_on():
                again = 2 if self.rng.random() < 0.2 else 1
                taken = [await self._taken(session, name, self.told[name]) for _ in range(again)]
                self.told[name] += any(taken)
                await asyncio.sleep(0.03)  # what is sent must also be handled while the process lives

        async def all_lanes() -> None:
            patience = aiohttp.ClientTimeout(
                total=3
            )  # a stopped process answers nothing, and hangs up on nobody
            async with aiohttp.ClientSession(timeout=patience) as session, asyncio.timeout(90):
                await asyncio.gather(*(lane(session, name) for name in OBJECTS))

        asyncio.run(all_lanes())

    async def _taken(self, session: aiohttp.ClientSession, name: str, number: int) -> bool:
        delivery = f"{name}{number}"
        raw = json.dumps({"events": [{"type": "made", "id": delivery, "object": name}]}).encode()
        headers = {"Shop-Delivery": delivery, "Shop-Signature": signed(raw)}
        try:
            async with session.post(self.url + PATH, data=raw, headers=headers) as answer:
                await answer.read()
                return answer.status == 202
        except (aiohttp.ClientError, ConnectionError, TimeoutError):
            return False


@dataclass(slots=True)
class Embedded:
    """The two databases, and the processes on them."""

    folder: Path
    settings: EmbeddingSettings
    mine: sa.Engine
    journal: Journal
    processes: list[Process] = field(default_factory=list)

    def start(self, *armed: Armed, plain: bool = True) -> tuple[Process, str]:
        """A process, and its address."""
        process = Process("embedding", self.folder / f"embedding-{len(self.processes)}.log")
        self.processes.append(process)
        told = msgspec.structs.replace(self.settings, armed=armed, plain=plain)
        process.tell(msgspec.json.encode(told))
        said = process.hear().decode()
        assert said.startswith("http://"), process.tail()
        return process, said

    def is_quiet(self) -> bool:
        """Whether every derivation and every handing has ended."""
        items = [*self.journal.items("event"), *self.journal.items("handler")]
        return bool(items) and all(item.finished_at is not None for item in items)

    def check(self, sender: Sender) -> None:
        """Each event once, nothing lost, and each object's in the order in which its work was made."""
        with self.mine.connect() as connection:
            rows = connection.execute(sa.select(applied).order_by(applied.c.number)).all()
        assert Counter(row.event_id for row in rows).most_common(1)[0][1] == 1, (
            "an event had its effect twice"
        )
        sent = {f"{name}{number}" for name in OBJECTS for number in range(sender.told[name])}
        done = {row.delivery for row in rows}
        assert sent <= done, "an answered delivery has no effect"
        assert len(done) == len(rows), "a delivery had two events"
        items = self.journal.rows(sa.select(work_item).where(work_item.c.family == "handler"))
        assert {item.state for item in items} == {"succeeded"}
        assert {item.subject_id for item in items} == {row.event_id for row in rows}
        lanes = defaultdict(list)
        for item in sorted(items, key=lambda one: one.source_position):
            lanes[item.source_lane].append(item.subject_id)
        order = defaultdict(list)
        for row in rows:
            order[row.object].append(row.event_id)
        assert sorted(lanes.values()) == sorted(order.values()), "an object's events out of order"


@contextmanager
def opened(url: str, folder: Path) -> Iterator[Embedded]:
    """A deployment with one binding, and an application with its tables."""
    engine = ENGINES[sa.make_url(url).drivername]
    keys = str(folder / "keys.toml")
    with database(engine, folder) as application:
        mine = sqlalchemy_engine(engine, application)
        with mine.begin() as connection:
            schema.create(connection)
            applied.create(connection)
        asyncio.run(_install(url, keys, folder))
        settings = EmbeddingSettings(
            url=url, key_file=keys, engine=engine, application=application, watch=str(folder / "points")
        )
        made = Embedded(folder, settings, mine, Journal(url))
        try:
            yield made
        finally:
            for process in made.processes:
                process.signal(signal.SIGCONT)
                process.close()
            made.journal.close()
            mine.dispose()


async def _install(url: str, keys: str, folder: Path) -> None:
    pack = folder / "shop"
    pack.mkdir()
    (pack / "pack.toml").write_bytes(PACK)
    webhooks = {"batch": {"handle": ["*"]}, "once": {"accepts_loss": "a test"}}
    async with deployment(url, keys, migrate=True) as app:
        await app.installation(ORG, INSTALLATION, pack=pack, binding=BINDING | {"webhooks": webhooks})
        await app.engine.ingress.add_secret(key("batch"), Secret("s"), alone=True)


def test_killed_around_and_inside_its_handler(database_url: str, tmp_path: Path, kill_seed: int) -> None:
    rng = random.Random(f"embedding {kill_seed}")  # a seed is to be repeated
    sender = Sender(rng)
    with opened(database_url, tmp_path) as embedded:
        for point in rng.sample(POINTS, len(POINTS)):
            armed = Armed(point, "kill", hit=rng.randint(1, 3))
            doomed, sender.url = embedded.start(armed, plain=rng.random() < 0.5)
            sender.send_while(lambda doomed=doomed: not doomed.is_dead())  # type: ignore[misc]
            doomed.wait_killed()
        _, sender.url = embedded.start()
        until(embedded.is_quiet, "the end of every handing", seconds=60)
        reached = set((tmp_path / "points").read_text().split())
        assert set(POINTS) <= reached
        embedded.check(sender)


@pytest.mark.parametrize("point", ["claim_handings.after_commit", *HANDLER])
def test_stopped_for_longer_than_its_lease(
    database_url: str, tmp_path: Path, kill_seed: int, point: str
) -> None:
    """Another process takes the event over; the first one wakes up with a transaction, or a result, of its own."""
    sender = Sender(random.Random(f"stopped {point} {kill_seed}"))
    with opened(database_url, tmp_path) as embedded:
        sleeper, sender.url = embedded.start(Armed(point, "stop"), plain=kill_seed % 2 == 0)
        sender.send_while(lambda: not sleeper.is_stopped() and min(sender.told.values()) < 3)
        until(sleeper.is_stopped, "the pause")
        _, sender.url = embedded.start()
        taken = sa.select(work_item.c.claims).where(work_item.c.family == "handler", work_item.c.claims > 1)
        until(lambda: embedded.journal.rows(taken), "the takeover", seconds=120)
        sleeper.signal(signal.SIGCONT)
        until(embedded.is_quiet, "the end of every handing", seconds=60)
        embedded.check(sender)
