"""From the first schema to this release's: what waited goes on; no release works on a schema that it does not know."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from simulators.launch import Simulator
from tests.e2e.conftest import LOCAL, PACK, QUICK, TOKEN, deployment, people, until

from doonce import Doonce, Installation
from doonce.app import installing
from doonce.app.cli.root import run
from doonce.app.config import settings_from
from doonce.app.engine import Engine
from doonce.app.opening import open_engine
from doonce.app.operate.service import Operator
from doonce.app.proof import prove
from doonce.app.web.readiness import Readiness
from doonce.base.errors import Unavailable
from doonce.base.secrets import Secret
from doonce.commands.model import CommandState
from doonce.db import maintenance, migrate, steps, verify
from doonce.effects.retire import Retire, retire
from doonce.ownership import store as ownership
from doonce.ownership.model import Family
from doonce.trust import InstallationConfig, embedded

pytestmark = pytest.mark.e2e

FIRST = "0001"
UNAVAILABLE = 5
OLD_FAMILIES = (Family.EFFECT, Family.RECONCILE, Family.COMPLETION)


def older_steps(folder: Path) -> Path:
    """The migrations as the first release had them."""
    shutil.copytree(steps.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for script in (folder / "versions").glob("v*.py"):
        if not script.name.startswith(f"v{FIRST}"):
            script.unlink()
    return folder


@pytest.fixture
async def older(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database that the first release has migrated."""
    with monkeypatch.context() as release:
        release.setattr(steps, "MIGRATIONS", older_steps(tmp_path / "older"))
        release.setattr(ownership, "Family", OLD_FAMILIES)
        install = partial(ownership.install, "default", "sha256:0", "op_1")
        report = await migrate.migrate(database_url, install=install)
    assert report.after == FIRST
    return database_url


@asynccontextmanager
async def engine_of(url: str, folder: Path, *families: Family) -> AsyncIterator[Engine]:
    """A process of the first release: it proves nothing here, and does only what that release did."""
    given = {"database": url, "key_file": str(folder / "keys.toml"), "egress": LOCAL, "effects": QUICK}
    given |= {"sweep_seconds": 600.0, "retention": {"enabled": False}}  # it has no history
    engine = open_engine(settings_from(given))
    engine.start(families)
    try:
        yield engine
    finally:
        await engine.stop()


async def installed(engine: Engine, simulator: Simulator) -> Installation:
    """An installation with two linked records."""
    settings = settings_from({"database": engine.database.url, "egress": LOCAL})
    view = await asyncio.to_thread(
        installing.compiled, PACK, people(simulator.url), settings.egress.origins()
    )
    made = await installing.install(engine, view, Secret(TOKEN), reason="a test")
    crm = Installation(
        engine, made, embedded(InstallationConfig("acme", "main", frozenset({"people.write"})))
    )
    simulator.seed({"id": "502", "properties": {"email": "b@example.com", "jobtitle": "Engineer"}})
    for record, remote in (("1", "501"), ("2", "502")):
        await crm.link("contact", local=record, remote=remote)
    return crm


async def until_state(engine: Engine, command: str, state: CommandState) -> None:
    """Wait for it in the tables that both schemas have: an operator's view is this release's."""

    async def there() -> bool:
        url, about = engine.database.url, f"'{command}'"
        if state is CommandState.UNKNOWN:
            found = await rows(url, f"SELECT outcome FROM effect_attempt WHERE subject_id = {about}")
            return ("OUTCOME_UNKNOWN",) in found
        found = await rows(url, f"SELECT ended_as FROM command_end WHERE command_id = {about}")
        return found == [(state.value,)]

    await until(there)


def as_text(value: Any) -> Any:
    """On the MySQL wire identities are bytes."""
    return value.decode() if isinstance(value, bytes) else value


async def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    def read(connection: sa.Connection) -> list[tuple[Any, ...]]:
        return [tuple(map(as_text, row)) for row in connection.exec_driver_sql(query)]

    return await maintenance.run(url, read, write=False)


WORK = "SELECT id, family, subject_id, state, created_at FROM work_item ORDER BY id"
COMMANDS = "SELECT id, origin_key FROM command ORDER BY id"


async def test_what_waits_in_the_first_schema_goes_on_after_the_migration(
    older: str, tmp_path: Path, simulator: Simulator, capsys: pytest.CaptureFixture[str]
) -> None:
    async with engine_of(older, tmp_path, Family.EFFECT) as engine:
        crm = await installed(engine, simulator)
        done = await crm.accept("contact.patch", "1", {"title": "CTO"})
        await until_state(engine, done, CommandState.ACCEPTED)
        simulator.faults({"fault": "reset_after_body", "method": "PATCH", "times": 1})
        unknown = await crm.accept("contact.patch", "1", {"title": "CFO"})
        await until_state(engine, unknown, CommandState.UNKNOWN)
    async with engine_of(older, tmp_path) as engine:
        crm = await installed(engine, simulator)
        waiting = await crm.accept("contact.patch", "2", {"title": "CEO"})
    before = await rows(older, WORK)
    assert {(family, state) for _, family, _, state, _ in before} >= {
        ("effect", "pending"),
        ("reconcile", "pending"),
    }

    with pytest.raises(Unavailable, match=f"version should be {steps.head()}, but is {FIRST}") as refused:
        await verify.require(older)
    assert "doonce migrate" in refused.value.hint
    missing = {difference.what for difference in (await verify.verify(older)).differences}
    assert missing >= {"table ingress_receipt", "table event", "table webhook_secret"}
    with pytest.raises(Unavailable, match="not what this release needs"):
        async with Doonce(older, migrate=False, key_file=str(tmp_path / "keys.toml")):
            pass

    capsys.readouterr()
    assert await asyncio.to_thread(run, ["migrate", "--database", older, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["before"], told["after"]) == (FIRST, steps.head())
    assert await rows(older, WORK) == before
    assert len(await rows(older, COMMANDS)) == 3
    assert (await verify.verify(older)).differences == ()
    owners = await rows(older, "SELECT family, deployment, epoch FROM work_ownership")
    assert set(owners) == {(family.value, "default", 1) for family in Family}

    async with deployment(older, tmp_path) as app:
        assert (await app.outcome(waiting)).state is CommandState.ACCEPTED
        attempt = (await Operator(app.engine).command(unknown)).attempt_id
        assert attempt is not None
        await app.resolve(attempt, "happened", who="ann", reason="I looked")

        async def told_all() -> bool:
            completions = [row[3] for row in await rows(older, WORK) if row[1] == "completion"]
            return len(completions) >= 3 and set(completions) == {"succeeded"}

        await until(told_all)
    assert simulator.stats()["method:PATCH"] == 3


async def test_a_process_of_the_first_release_goes_on_beside_the_migration_and_may_start_again_after_it(
    older: str, tmp_path: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is replaced: all steps so far are halves before."""
    async with engine_of(older, tmp_path, Family.EFFECT) as engine:
        crm = await installed(engine, simulator)
        first = await crm.accept("contact.patch", "1", {"title": "CTO"})
        await until_state(engine, first, CommandState.ACCEPTED)
        assert await asyncio.to_thread(run, ["migrate", "--database", older]) == 0
        second = await crm.accept("contact.patch", "2", {"title": "CFO"})
        await until_state(engine, second, CommandState.ACCEPTED)
    monkeypatch.setattr(steps, "MIGRATIONS", older_steps(tmp_path / "old"))
    await verify.require(older)
    again = await migrate.migrate(older, install=partial(ownership.install, "default", "sha256:0", "op_2"))
    assert again.applied == ()
    async with engine_of(older, tmp_path, Family.EFFECT) as engine:
        crm = await installed(engine, simulator)
        third = await crm.accept("contact.patch", "1", {"title": "CEO"})
        await until_state(engine, third, CommandState.ACCEPTED)
    assert simulator.stats()["method:PATCH"] == 3


async def test_a_process_that_outlived_a_half_after_says_so_and_claims_no_more(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    assert await asyncio.to_thread(run, ["migrate", "--database", database_url]) == 0

    def half_after(connection: sa.Connection) -> None:
        text = f"UPDATE {migrate.VERSION_TABLE} SET version_num = '9001', compatible_from = '9001'"
        connection.exec_driver_sql(text)

    async with engine_of(database_url, tmp_path, Family.EFFECT) as engine:
        settings = settings_from({"database": database_url, "key_file": str(tmp_path / "keys.toml")})
        watch, readiness = await prove(engine, settings), Readiness()
        readiness.clear("start")
        await watch.look(readiness)
        assert readiness.ready
        crm = await installed(engine, simulator)
        first = await crm.accept("contact.patch", "1", {"title": "CTO"})
        await until_state(engine, first, CommandState.ACCEPTED)

        await maintenance.run(database_url, half_after, write=True)
        await watch.look(readiness)
        assert "step 9001 took away" in readiness.document().causes["schema"]
        await engine.last_claims()
        await crm.accept("contact.patch", "2", {"title": "CFO"})
        pending = await rows(database_url, "SELECT state FROM work_item WHERE family = 'effect'")
        assert ("pending",) in pending
    assert simulator.stats()["method:PATCH"] == 1


HALF_AFTER = """
revision = "9001"
down_revision = "{head}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass
"""


async def test_the_half_after_waits_until_no_worker_of_the_older_release_is_seen(
    database_url: str,
    tmp_path: Path,
    simulator: Simulator,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    head = steps.head()
    assert await asyncio.to_thread(run, ["migrate", "--database", database_url]) == 0
    async with engine_of(database_url, tmp_path, Family.EFFECT) as engine:
        crm = await installed(engine, simulator)
        command = await crm.accept("contact.patch", "1", {"title": "CTO"})
        await until_state(engine, command, CommandState.ACCEPTED)
    folder = shutil.copytree(steps.MIGRATIONS, tmp_path / "newer")
    (folder / "versions" / "v9001_after_nothing_much.py").write_text(HALF_AFTER.format(head=head))
    monkeypatch.setattr(steps, "MIGRATIONS", folder)

    capsys.readouterr()
    assert await asyncio.to_thread(run, ["migrate", "--database", database_url]) == 0
    assert "9001 wait until no process of an older release runs" in capsys.readouterr().out
    assert await asyncio.to_thread(run, ["migrate", "--after", "--database", database_url]) == UNAVAILABLE
    said = capsys.readouterr().err
    assert f"@{head}" in said
    assert "stop every process of an older release" in said

    def an_hour_later(connection: sa.Connection) -> None:
        connection.exec_driver_sql("UPDATE work_claimer SET claimed_at = claimed_at - 3600000000")

    await maintenance.run(database_url, an_hour_later, write=True)
    assert await asyncio.to_thread(run, ["migrate", "--after", "--database", database_url, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["before"], told["after"], told["open"]) == (head, "9001", [])


async def test_work_that_ended_in_the_first_schema_becomes_history_after_the_migration(
    older: str, tmp_path: Path, simulator: Simulator
) -> None:
    """And what waits or is unknown in it stays, and goes on."""
    async with engine_of(older, tmp_path, Family.EFFECT, Family.COMPLETION) as engine:
        crm = await installed(engine, simulator)
        done = await crm.accept("contact.patch", "1", {"title": "CTO"})
        await until_state(engine, done, CommandState.ACCEPTED)
        simulator.faults({"fault": "reset_after_body", "method": "PATCH", "times": 1})
        unknown = await crm.accept("contact.patch", "1", {"title": "CFO"})
        await until_state(engine, unknown, CommandState.UNKNOWN)

        async def told() -> bool:
            states = [row[3] for row in await rows(older, WORK) if row[1] == "completion"]
            return len(states) == 2 and set(states) == {"succeeded"}

        await until(told)
    before = await rows(older, WORK)
    assert await asyncio.to_thread(run, ["migrate", "--database", older]) == 0
    async with deployment(older, tmp_path, retention={"enabled": False}) as app:
        moved = await app.engine.database.transact(retire, Retire("default", 0, 0, 100, after=""))
        assert moved.moved == {"effect": 1, "completion": 1}
        history = await rows(older, WORK.replace("work_item", "work_item_history"))
        left = await rows(older, WORK)
        assert {row[2] for row in history} == {done}
        assert {row[:3] for row in [*history, *left]} >= {row[:3] for row in before}
        assert (await app.outcome(done)).state is CommandState.ACCEPTED
        attempt = (await Operator(app.engine).command(unknown)).attempt_id
        assert attempt is not None
        ended = await app.resolve(attempt, "happened", who="ann", reason="I looked")
        assert ended.state is CommandState.ACCEPTED
