"""An embedded deployment goes on looking, as the service does: at its database, its families, and who stands still."""

import asyncio
from pathlib import Path

import asyncpg
import pytest
from simulators.launch import Simulator
from tests.e2e.conftest import PACK, TOKEN, deployment, people, until
from tests.store.db.elsewhere import pinned_elsewhere

from doonce.db.database import open_database

pytestmark = pytest.mark.e2e

LOOKS_OFTEN = {"check_every_seconds": 0.1}


async def test_s2_a_database_that_is_another_one_by_now_closes_dispatch_under_an_embedded_deployment(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    async with deployment(database_url, tmp_path, durability=LOOKS_OFTEN) as app:
        crm = await app.installation("acme", "main", pack=PACK, binding=people(simulator.url), secret=TOKEN)
        await crm.link("contact", local="1", remote="501")
        assert app.causes == {}
        beside = open_database(database_url)
        await beside.transact(pinned_elsewhere)
        await beside.close()

        async def noticed() -> bool:
            return "doonce declare" in app.causes.get("dispatch", "")

        await until(noticed)
        command = await crm.accept("contact.patch", "1", {"title": "CTO"})
        assert not (await app.outcome(command, timeout_seconds=1.0)).final
        assert simulator.stats().get("method:PATCH", 0) == 0


async def test_an_embedded_deployment_ends_what_a_frozen_process_holds(
    fresh_postgres: str, tmp_path: Path
) -> None:
    quick = {"idle_in_transaction_timeout_ms": 300}
    async with deployment(fresh_postgres, tmp_path, durability=LOOKS_OFTEN, postgresql=quick):
        frozen = await asyncpg.connect(
            fresh_postgres, statement_cache_size=0, server_settings={"application_name": "doonce"}
        )
        await frozen.execute("BEGIN; SELECT pg_advisory_xact_lock(4711)")
        await frozen.prepare("SELECT 1")
        other = await asyncpg.connect(fresh_postgres)

        async def freed() -> bool:
            return bool(await other.fetchval("SELECT pg_try_advisory_lock(4711)"))

        await until(freed)
        frozen.terminate()
        await other.close()


async def test_an_application_hears_that_a_part_of_doonce_has_ended(
    sqlite_path: Path, tmp_path: Path
) -> None:
    async with deployment(f"sqlite:///{sqlite_path}", tmp_path) as app:

        async def failing() -> None:
            raise ZeroDivisionError

        app.engine._running.begin(failing(), "failing")
        await asyncio.sleep(0)
        assert app.causes == {"engine": "a part of this process ended: ZeroDivisionError"}
