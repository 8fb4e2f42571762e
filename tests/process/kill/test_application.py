"""SIGKILL around every commit of an application: its change and its intent are one, and so are end and projection.

The witnesses are the application's own database, and the ledger of an authority that no kill reaches.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from aiohttp import ClientError, ClientSession, ClientTimeout
from examples.crm.leads import changes, leads
from tests.process.effects.journal import sync_url
from tests.process.effects.processes import Process
from tests.process.kill.crm_process import CrmSettings, projected
from tests.store.runtime.authority import Authority
from tests.store.runtime.service import serving
from tests.store.runtime.test_crm import configure

from doonce.runtime.tables import outbox
from doonce.wire import CompletionOutcome, encode

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

POINTS = [(kind, side) for kind in ("change", "claim", "record", "apply") for side in ("before", "after")]
HEADERS = {"Authorization": "Bearer the inbox's token", "Content-Type": "application/json"}


async def test_killed_at_each_commit_of_the_application(
    database_url: str, tmp_path: Path, kill_seed: int
) -> None:
    rng = random.Random(f"application {kill_seed}")  # a seed is to be repeated
    points = rng.sample(POINTS, len(POINTS))
    authority = Authority()
    url = sync_url(database_url)
    started: list[Process] = []
    try:
        async with serving(authority) as service, ClientSession(timeout=ClientTimeout(5)) as session:
            config = str(configure(tmp_path, url, service))
            for kind, side in points:
                told = CrmSettings(config=config, dies_of=kind, side=side, hit=rng.randint(1, 4))
                process = await start(tmp_path / f"crm-{len(started)}.log", told, started)
                await complete_until(process.is_dead, authority, session, process)
                process.wait_killed()
            quiet = CrmSettings(config=config, changes=False)
            last = await start(tmp_path / "crm-last.log", quiet, started)
            engine = sa.create_engine(url)
            await complete_until(lambda: all_ended(engine), authority, session, last)
            check(engine, authority)
            engine.dispose()
    finally:
        for process in started:
            process.close()


async def start(log: Path, told: CrmSettings, started: list[Process]) -> Process:
    process = Process("crm", log)
    started.append(process)
    process.tell(msgspec.json.encode(told))
    return process


async def complete_until(
    fact: object, authority: Authority, session: ClientSession, process: Process
) -> None:
    """Tell the application what became of everything that was accepted, again and again, until the fact."""
    assert callable(fact)
    ready = await asyncio.to_thread(process.hear)
    address = json.loads(ready)["ready"] if ready else ""
    told: set[str] = set()
    async with asyncio.timeout(60):
        while not fact():
            await asyncio.sleep(0.01)  # facts of other processes have no event
            for key in list(authority.accepted_order):
                if key in told:
                    continue
                notice = authority.complete(key, CompletionOutcome.ACCEPTED)
                try:
                    async with session.post(address, data=encode(notice), headers=HEADERS) as answer:
                        if answer.status == 200:
                            told.add(key)
                except (ClientError, ConnectionError, TimeoutError):
                    break


def all_ended(engine: sa.Engine) -> bool:
    with engine.connect() as connection:
        open_rows = sa.select(sa.func.count()).where(outbox.c.state != "completed")
        return connection.scalar(open_rows) == 0


def text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def check(engine: sa.Engine, authority: Authority) -> None:
    """Each change has its intent, its acceptance and its projection, each once, and each lead its order."""
    with engine.connect() as connection:
        made = connection.execute(sa.select(changes).order_by(changes.c.number)).all()
        rows = {text(row.outbox_id): row for row in connection.execute(sa.select(outbox))}
        ended = Counter(connection.scalars(sa.select(projected.c.outbox_id)))
        titles = {row.id: row.title for row in connection.execute(sa.select(leads))}
    assert len(made) >= len(POINTS) // 2, "the application did something between its deaths"
    assert set(rows) == {change.outbox_id for change in made}, "a change without its intent, or the reverse"
    assert set(map(text, (row.handoff_key for row in rows.values()))) == set(authority.accepted_order)
    assert len(set(authority.accepted_order)) == len(authority.accepted_order)
    assert ended == Counter({change.outbox_id: 1 for change in made}), "an end was projected twice, or never"
    assert {change.outcome for change in made} == {"accepted"}
    position = {key: number for number, key in enumerate(authority.accepted_order)}
    for lead, title in titles.items():
        own = [change for change in made if change.lead_id == lead]
        handed = [position[text(rows[change.outbox_id].handoff_key)] for change in own]
        assert handed == sorted(handed), "handed over in another order than committed"
        if own:
            assert title == own[-1].title, "a change without its row, or a row without its change"
        for change in own:
            request = authority.requests[text(rows[change.outbox_id].handoff_key)]
            assert json.loads(bytes(request.payload)) == {"title": change.title}  # type: ignore[union-attr]
