"""Migrations in halves: two releases overlap, each may restart until it is replaced; what would break is refused."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.store.db.releases import AFTER, BEFORE, LATER, NEW, NEWEST, OLD, JobWorker, N, Release

from doonce.base.errors import Conflict, Unavailable
from doonce.db import maintenance, migrate, steps
from doonce.db.database import Database, open_database
from doonce.db.transaction import Txn, clock
from doonce.db.verify import require, verify
from doonce.work.claimers import SEEN_US, claimer_name, older_claimers

BUSY = 20
"""Transactions after which a worker has gone on."""


def nothing() -> Txn[None]:
    """The families have their owners by doonce's own steps' tests."""
    yield from ()


async def execute(url: str, *texts: str) -> None:
    def work(connection: sa.Connection) -> None:
        for text in texts:
            connection.exec_driver_sql(text)

    await maintenance.run(url, work, write=True)


async def rows(url: str, text: str) -> list[tuple[Any, ...]]:
    def read(connection: sa.Connection) -> list[tuple[Any, ...]]:
        found = [tuple(row) for row in connection.exec_driver_sql(text)]
        return [tuple(one.decode() if isinstance(one, bytes) else one for one in row) for row in found]

    return await maintenance.run(url, read, write=False)


async def until(fact: Callable[[], Awaitable[bool]], seconds: float = 30.0) -> None:
    """Wait for a fact, bounded."""
    async with asyncio.timeout(seconds):
        while not await fact():
            await asyncio.sleep(0.02)


class Deployment:
    """A database, and what each release's operator does with it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder

    async def migrate(self, release: Release, *, after: bool = False) -> migrate.MigrationReport:
        with release.installed(self.folder):
            older = older_claimers if after else None
            return await migrate.migrate(self.url, install=nothing, older=older)

    async def start(self, release: Release) -> None:
        """What a process of it does first."""
        with release.installed(self.folder):
            await require(self.url)

    async def differences(self, release: Release) -> list[str]:
        with release.installed(self.folder):
            return [str(one) for one in (await verify(self.url)).differences]

    @contextlib.asynccontextmanager
    async def working(self, *newer: bool) -> AsyncIterator[list[JobWorker]]:
        """Processes at work; one that fails, fails the test."""
        databases = [open_database(self.url) for _ in newer]
        workers = [JobWorker(database, one) for database, one in zip(databases, newer, strict=True)]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        try:
            yield workers
        finally:
            for worker in workers:
                worker.stopping = True
            done = await asyncio.gather(*running, return_exceptions=True)
            for database in databases:
                await database.close()
            if failed := [error for error in done if isinstance(error, Exception)]:
                raise ExceptionGroup("processes failed", failed)


@pytest.fixture
def place(database_url: str, tmp_path: Path) -> Deployment:
    return Deployment(database_url, tmp_path)


@pytest.fixture
async def deployment(place: Deployment) -> Deployment:
    """Release N is installed."""
    report = await place.migrate(OLD)
    assert (report.after, report.open) == (N, ())
    await place.start(OLD)
    return place


async def goes_on(workers: Sequence[JobWorker]) -> None:
    """Each of them works on from here."""
    seen = [len(worker.given) for worker in workers]

    async def further() -> bool:
        return all(len(worker.given) >= then + BUSY for worker, then in zip(workers, seen, strict=True))

    await until(further)


async def test_two_releases_overlap_and_every_job_is_taken_once(deployment: Deployment) -> None:
    url = deployment.url
    async with deployment.working(False, False) as [stays, leaves]:
        await stays.pile_up(BUSY)
        await goes_on([stays, leaves])
        with pytest.raises(Unavailable, match=f"version should be {BEFORE}, but is {N}") as refused:
            await deployment.start(NEW)
        assert "doonce migrate" in refused.value.hint

        report = await deployment.migrate(NEW)
        assert (report.before, report.after) == (N, BEFORE)
        assert (report.applied, report.open) == ((BEFORE,), (AFTER,))
        await goes_on([stays, leaves])
        await deployment.start(OLD)  # N may restart until it is replaced, and be rolled back to
        await deployment.start(NEW)
        assert (await deployment.migrate(OLD)).applied == ()
        again = await deployment.migrate(NEW)
        assert (again.applied, again.open) == ((), (AFTER,))

        async with deployment.working(True) as [new]:
            await goes_on([stays, leaves, new])
    old = [stays, leaves]

    async with deployment.working(True) as [newer]:
        report = await deployment.migrate(NEW, after=True)
        assert (report.applied, report.after, report.open) == ((AFTER,), AFTER, ())
        await goes_on([newer])
        await deployment.start(NEW)
    with pytest.raises(Unavailable) as refused:
        await deployment.start(OLD)
    assert "install the release that migrated" in refused.value.hint
    with pytest.raises(Unavailable, match="does not know"):
        await deployment.migrate(OLD)

    workers = [*old, new, newer]
    took = [job for worker in workers for job in worker.took]
    assert len(took) == len(set(took))
    assert any(job.endswith("new") for worker in old for job in worker.took)
    assert any(job.endswith("old") for job in new.took)
    stored = dict(await rows(url, "SELECT id, state FROM job"))
    assert set(stored) == {job for worker in workers for job in worker.given}
    assert {job for job, state in stored.items() if state == "done"} == set(took)


async def test_a_process_that_outlived_the_half_after_writes_nothing(deployment: Deployment) -> None:
    """An operator's word was wrong: each of its transactions is refused as a whole, and says what to do."""
    await deployment.migrate(NEW, after=True)
    database: Database = open_database(deployment.url)
    with pytest.raises(Unavailable, match=r"not what this release needs|nothing was written"):
        await JobWorker(database, newer=False).once()
    await database.close()
    assert await rows(deployment.url, "SELECT id FROM job") == []


async def claimed(url: str, owner: str, ago_us: int) -> None:
    """What a worker leaves when it claims."""
    database = open_database(url)
    at = f"{await database.transact(_now)} - {ago_us}"
    await database.close()
    columns = "owner, family, token, items, claimed_at"
    await execute(url, f"INSERT INTO work_claimer ({columns}) VALUES ('{owner}', 'effect', 't', '', {at})")


def _now() -> Txn[int]:
    return (yield from clock())


async def test_the_half_after_is_refused_while_an_older_process_is_seen_at_work(
    deployment: Deployment,
) -> None:
    await deployment.migrate(NEW)
    await claimed(deployment.url, claimer_name("prc_new", AFTER), 0)
    await claimed(deployment.url, claimer_name("prc_old", N), SEEN_US // 2)
    await claimed(deployment.url, claimer_name("prc_gone", N), SEEN_US + 60_000_000)
    with pytest.raises(Unavailable, match=r"prc_old@9001 1\d\d seconds ago") as refused:
        await deployment.migrate(NEW, after=True)
    assert "stop every process of an older release" in refused.value.hint
    assert "prc_new" not in str(refused.value)
    assert "prc_gone" not in str(refused.value)
    await deployment.start(OLD)
    await deployment.start(NEW)
    await execute(deployment.url, "DELETE FROM work_claimer WHERE owner = 'prc_old@9001'")
    assert (await deployment.migrate(NEW, after=True)).applied == (AFTER,)


async def test_a_process_that_does_not_say_what_it_knows_is_an_older_one(deployment: Deployment) -> None:
    await claimed(deployment.url, "prc_unnamed", 0)
    with pytest.raises(Unavailable, match="prc_unnamed"):
        await deployment.migrate(NEW, after=True)
    assert (await deployment.migrate(NEW)).applied == (BEFORE,)


async def test_an_empty_database_gets_both_halves(place: Deployment) -> None:
    report = await place.migrate(NEW)
    assert (report.after, report.open) == (AFTER, ())
    await place.start(NEW)
    with pytest.raises(Unavailable, match="version"):
        await place.start(OLD)


async def test_a_half_after_of_the_release_between_comes_first(deployment: Deployment) -> None:
    for step in (N, BEFORE):
        with pytest.raises(Conflict, match=f"step {AFTER} of an earlier release comes first") as refused:
            await deployment.migrate(NEWEST)
        assert "doonce migrate --after" in refused.value.hint
        assert await rows(deployment.url, f"SELECT version_num FROM {migrate.VERSION_TABLE}") == [(step,)]
        await deployment.migrate(NEW)
    await deployment.migrate(NEW, after=True)
    assert (await deployment.migrate(NEWEST)).applied == (LATER,)
    for release in (NEW, NEWEST):
        await deployment.start(release)


async def test_with_nobody_left_all_halves_are_applied_at_once(deployment: Deployment) -> None:
    report = await deployment.migrate(NEWEST, after=True)
    assert (report.applied, report.open) == ((BEFORE, AFTER, LATER), ())
    await deployment.start(NEWEST)


@pytest.mark.parametrize("kind", ["missing index", "unique key", "column"])
async def test_what_is_no_addition_is_named_to_the_older_release(deployment: Deployment, kind: str) -> None:
    await deployment.migrate(NEW)
    on = " ON job" if deployment.url.startswith("mysql") else ""
    damage, said = {
        "missing index": (
            f"DROP INDEX job_state{on}",
            "index job_state on job should be (state), but is missing",
        ),
        "unique key": (
            "CREATE UNIQUE INDEX once ON job (state, id)",
            "unique key once on job should be absent",
        ),
        "column": ("ALTER TABLE job DROP COLUMN kind", "but is missing"),
    }[kind]
    if kind == "column":
        await execute(deployment.url, f"DROP INDEX job_state{on}")
    await execute(deployment.url, damage)
    assert any(said in one for one in await deployment.differences(OLD))
    with pytest.raises(Unavailable):
        await deployment.start(OLD)


async def test_between_the_halves_the_newer_release_is_exact_but_for_what_the_half_after_names(
    deployment: Deployment,
) -> None:
    await deployment.migrate(NEW)
    on = " ON job" if deployment.url.startswith("mysql") else ""
    await execute(deployment.url, f"DROP INDEX job_next{on}", "ALTER TABLE job ADD COLUMN spare bigint")
    assert [one.partition(" should")[0] for one in await deployment.differences(NEW)] == [
        "column job.spare",
        "index job_next on job",
    ]


async def test_after_the_half_after_nothing_is_passed_over(deployment: Deployment) -> None:
    await deployment.migrate(NEW, after=True)
    await execute(deployment.url, "ALTER TABLE job ADD COLUMN kind bigint")
    assert [one.partition(",")[0] for one in await deployment.differences(NEW)] == [
        "column job.kind should be absent"
    ]


async def test_a_database_from_before_the_halves_says_what_to_run_and_gets_its_value(
    place: Deployment,
) -> None:
    await place.migrate(OLD)
    await execute(place.url, f"ALTER TABLE {migrate.VERSION_TABLE} DROP COLUMN compatible_from")
    with pytest.raises(Unavailable) as refused:
        await place.start(OLD)
    assert "doonce migrate" in refused.value.hint
    assert (await place.migrate(OLD)).applied == ()
    await place.start(OLD)


def test_each_step_says_its_half_by_its_name(tmp_path: Path) -> None:
    with NEWEST.installed(tmp_path):
        halves = {step.revision: step.half.value for step in steps.known()}
        assert [halves[revision] for revision in (N, BEFORE, AFTER, LATER)] == [
            "before",
            "before",
            "after",
            "before",
        ]
        assert steps.needed() == LATER
        assert [steps.compatible_from(revision) for revision in (BEFORE, AFTER, LATER)] == [
            "0001",
            AFTER,
            AFTER,
        ]


@pytest.fixture(params=["postgresql", "mariadb"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Deployment:
    """A deployment on each engine whose tables are locked one by one."""
    fixture = {"postgresql": "fresh_postgres", "mariadb": "fresh_mariadb"}[request.param]
    return Deployment(request.getfixturevalue(fixture), tmp_path)


@contextlib.contextmanager
def in_use(url: str, tables: Sequence[str]) -> Iterator[None]:
    """A transaction that has read and written these tables, and goes on."""
    driver = "postgresql+psycopg" if url.startswith("postgresql") else "mysql+pymysql"
    engine = sa.create_engine(sa.make_url(url).set(drivername=driver), poolclass=sa.pool.NullPool)
    with engine.connect() as connection:
        for table in tables:
            connection.execute(sa.select(sa.func.count()).select_from(sa.table(table))).scalar_one()
            if driver.startswith("postgresql"):
                connection.execute(sa.text(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE"))
        yield
        connection.rollback()


async def test_a_migration_that_waits_for_a_table_keeps_nobody_else_from_it(served: Deployment) -> None:
    await served.migrate(OLD)
    async with served.working(False) as workers:
        with in_use(served.url, ["job"]):
            migrating = asyncio.create_task(served.migrate(NEW))
            await until(lambda: waits_for_a_table(served.url))
            for _ in range(3):
                await goes_on(workers)
            assert not migrating.done()
        assert (await migrating).applied == (BEFORE,)
        await goes_on(workers)
    await served.start(NEW)


async def waits_for_a_table(url: str) -> bool:
    if url.startswith("postgresql"):
        return bool(await rows(url, "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'relation'"))
    waiting = (
        "SELECT 1 FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata lock'"
    )
    return bool(await rows(url, waiting.replace("%", "%%")))


async def test_a_migration_that_does_not_get_its_table_gives_up_and_says_so(
    served: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "LOCK_TIMEOUT_MS", 1_000)
    monkeypatch.setattr(maintenance, "DEFINITION_TIMEOUT_MS", 1_000)
    await served.migrate(OLD)
    if served.url.startswith("mysql"):  # what was defined before has been committed
        with (
            in_use(served.url, ["job"]),
            pytest.raises(Conflict, match="applied in part, since the server refused"),
        ):
            await served.migrate(NEW)
        with pytest.raises(Conflict, match="in part"):
            await served.migrate(NEW)
        return
    with in_use(served.url, ["job"]), pytest.raises(Unavailable, match="nothing was changed"):
        await served.migrate(NEW)
    assert (await served.migrate(NEW)).applied == (BEFORE,)


async def test_the_halves_before_of_this_release_touch_no_table_of_the_one_before(
    served: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transactions of the release before may last as long as they like: nothing waits for them, or they for it."""
    every = steps.known()
    with Release(steps.head(), OLD.tables).installed(served.folder):
        later = [step.path for step in steps.known()[1:]]
        for path in later:
            path.rename(path.with_suffix(".later"))
        await migrate.migrate(served.url, install=nothing)
        for path in later:
            path.with_suffix(".later").rename(path)
        monkeypatch.setattr(maintenance, "LOCK_TIMEOUT_MS", 1_000)
        monkeypatch.setattr(maintenance, "DEFINITION_TIMEOUT_MS", 1_000)
        names = await maintenance.run(served.url, lambda c: sa.inspect(c).get_table_names(), write=False)
        with in_use(served.url, [name for name in names if name != migrate.VERSION_TABLE]):
            report = await migrate.migrate(served.url, install=nothing)
    assert report.applied == tuple(step.revision for step in every[1:])
