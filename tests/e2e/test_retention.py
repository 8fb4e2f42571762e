"""Ended work becomes history: by itself in a running process, at once by a command, after an upgrade too."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from simulators.launch import Simulator
from tests.e2e.conftest import PACK, TOKEN, deployment, people, until

from doonce import Doonce, Installation
from doonce.app.cli.root import run
from doonce.db import maintenance

pytestmark = pytest.mark.e2e

OFF = {"enabled": False}
AGE = (
    "UPDATE work_item SET finished_at = 1, id = {id} WHERE finished_at IS NOT NULL",
    {"mysql": "concat('wrk_000', substr(id, 8))", "": "'wrk_000' || substr(id, 8)"},
)
"""As if it had been made and had ended in 1970: a week passes, without the wait."""


async def made_old(url: str) -> None:
    def age(connection: sa.Connection) -> None:
        spelled = AGE[1].get(connection.dialect.name, AGE[1][""])
        connection.exec_driver_sql(AGE[0].format(id=spelled))

    await maintenance.run(url, age, write=True)


async def count(url: str, table: str) -> int:
    def read(connection: sa.Connection) -> int:
        return int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())

    return await maintenance.run(url, read, write=False)


async def ended_command(app: Doonce, simulator: Simulator) -> str:
    crm: Installation = await app.installation(
        "acme", "main", pack=PACK, binding=people(simulator.url), secret=TOKEN
    )
    await crm.link("contact", local="1", remote="501")
    command = await crm.accept("contact.patch", "1", {"title": "CTO"})
    assert (await app.outcome(command)).final

    async def all_ended() -> bool:
        return sum(family.waiting for family in (await app._operator().status()).families) == 0

    await until(all_ended)
    return str(command)


async def test_a_running_process_moves_what_is_over_and_says_so(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    async with deployment(database_url, tmp_path, retention=OFF) as app:
        command = await ended_command(app, simulator)
        status = await app._operator().status()
        assert (status.retention.enabled, status.retention.moved, status.retention.walked_us) == (
            False,
            0,
            None,
        )
    await made_old(database_url)
    async with deployment(database_url, tmp_path, retention={"every_seconds": 0.1}) as app:

        async def moved() -> bool:
            return (await app._operator().status()).retention.moved == 2

        await until(moved)
        assert (await app.outcome(command)).final
        events = [moment.event for moment in (await app.show(command))[0].moments]
        assert {"effect work succeeded", "completion work succeeded"} <= set(events)
        exposed = app.engine.metrics.text().decode()
        assert 'doonce_work_retired_total{family="effect"} 1.0' in exposed
    assert (await count(database_url, "work_item"), await count(database_url, "work_item_history")) == (0, 2)


async def test_prune_says_what_would_go_then_moves_it_and_show_still_tells_it(
    database_url: str,
    tmp_path: Path,
    simulator: Simulator,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # where the command looks for its key file
    async with deployment(database_url, tmp_path, retention=OFF) as app:
        command = await ended_command(app, simulator)
        assert (await app.prune(dry_run=True)).moved == {}
    await made_old(database_url)

    async def doonce(*tokens: str) -> Any:
        capsys.readouterr()
        keys = ("--database", database_url, "--json")
        assert await asyncio.to_thread(run, [*tokens, *keys]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    before = await doonce("show", command)
    would = await doonce("prune", "--dry-run")
    assert would == {"looked": 2, "moved": {"completion": 1, "effect": 1}, "stays": {}, "dry_run": True}
    assert await count(database_url, "work_item_history") == 0
    done = await doonce("prune")
    assert done == would | {"dry_run": False}
    assert (await count(database_url, "work_item"), await count(database_url, "work_item_history")) == (0, 2)
    assert await doonce("show", command) == before
    assert (await doonce("status"))["retention"]["moved"] == 2
    assert await asyncio.to_thread(run, ["prune", "--database", database_url]) == 0
    assert "0 moved" in capsys.readouterr().out
