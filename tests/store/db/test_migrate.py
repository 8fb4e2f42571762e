"""Migrations: one transaction, once, or a refusal that says what to do."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from tests.store.db.owners import import_tables

from doonce.base.errors import Conflict, Unavailable
from doonce.db import incarnation, maintenance, migrate, steps
from doonce.db.database import open_database
from doonce.db.incarnation import Declaration
from doonce.db.schema import is_made_on, metadata
from doonce.db.transaction import Txn
from doonce.db.verify import compare, require, verify
from doonce.ownership import store as ownership
from doonce.ownership.model import Family

import_tables()
EVERY = tuple(step.revision for step in steps.known())
INSTALL = partial(ownership.install, "test", "sha256:0", "op_1")


def test_steps_files_are_named_by_their_revisions() -> None:
    known = ScriptDirectory(str(steps.MIGRATIONS)).walk_revisions()
    assert [script.revision for script in known] == list(reversed(EVERY))


async def execute(url: str, *texts: str) -> None:
    def work(connection: sa.Connection) -> None:
        for text in texts:
            connection.exec_driver_sql(text)

    await maintenance.run(url, work, write=True)


async def tables(url: str) -> set[str]:
    return await maintenance.run(url, lambda c: set(sa.inspect(c).get_table_names()), write=True)


async def test_a_fresh_database_gets_schema_clock_owners_and_incarnation(database_url: str) -> None:
    report = await migrate.migrate(database_url, install=INSTALL)
    assert report == migrate.MigrationReport(None, steps.head(), EVERY)
    database = open_database(database_url)
    owners = await database.read(ownership.read_all)
    assert {owner.family for owner in owners} == {family.value for family in Family}
    assert {owner.epoch for owner in owners} == {1}
    pinned = await database.read(incarnation.newest)
    assert pinned is not None
    assert (pinned.sequence, pinned.declaration) == (1, Declaration.FIRST)
    await database.transact(ownership.install, "other", "sha256:1", "op_2")
    await database.close()


async def test_migrating_again_changes_nothing(database_url: str) -> None:
    await migrate.migrate(database_url, install=INSTALL)
    database = open_database(database_url)
    owners, pinned = await database.read(ownership.read_all), await database.read(incarnation.newest)
    again = await migrate.migrate(database_url, install=partial(ownership.install, "other", "x", "y"))
    assert again == migrate.MigrationReport(steps.head(), steps.head(), ())
    assert await database.read(ownership.read_all) == owners
    assert await database.read(incarnation.newest) == pinned
    await database.close()


async def test_of_two_migrations_at_once_one_finds_nothing_to_do(database_url: str) -> None:
    reports = await asyncio.gather(*[migrate.migrate(database_url, install=INSTALL) for _ in range(4)])
    assert sorted(len(report.applied) for report in reports) == [0, 0, 0, len(EVERY)]


async def test_the_migrations_give_what_the_owners_tables_say(database_url: str) -> None:
    await migrate.migrate(database_url, install=INSTALL)

    def differences(connection: sa.Connection) -> Any:
        options = {
            "version_table": migrate.VERSION_TABLE,
            "compare_type": True,
            "include_object": lambda made, *_: (
                not isinstance(made, sa.Index) or is_made_on(made, connection.dialect.name)
            ),
        }
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    assert await maintenance.run(database_url, differences, write=False) == []
    assert (await verify(database_url)).differences == ()
    await require(database_url)


class StopError(Exception):
    """The test stops a migration."""


async def test_a_migration_that_fails_leaves_nothing_behind(database_url: str) -> None:
    def fail() -> Txn[None]:
        yield from INSTALL()
        raise StopError

    with pytest.raises(StopError):
        await migrate.migrate(database_url, install=fail)
    if database_url.startswith(
        "mysql"
    ):  # definitions commit by themselves: what is left is told apart, and refused
        with pytest.raises(Conflict, match="in part") as refused:
            await migrate.migrate(database_url, install=INSTALL)
        assert "empty database" in refused.value.hint
        assert migrate.MARK.name in await tables(database_url)
        return
    assert await tables(database_url) == set()
    assert (await migrate.migrate(database_url, install=INSTALL)).applied == EVERY
    await require(database_url)


async def newer(url: str) -> None:
    await migrate.migrate(url, install=INSTALL)
    await execute(url, f"UPDATE {migrate.VERSION_TABLE} SET version_num = '9999', compatible_from = '9999'")


async def of_another_line(url: str) -> None:
    """A revision that is no newer than ours, and that this release never had."""
    await migrate.migrate(url, install=INSTALL)
    await execute(url, f"UPDATE {migrate.VERSION_TABLE} SET version_num = '0001x'")


async def foreign(url: str) -> None:
    await execute(url, "CREATE TABLE invoice (id INTEGER PRIMARY KEY)")


async def half_without_version(url: str) -> None:
    await execute(url, "CREATE TABLE work_item (id VARCHAR(64) PRIMARY KEY)")


async def half_with_the_version_alone(url: str) -> None:
    await execute(url, f"CREATE TABLE {migrate.VERSION_TABLE} (version_num VARCHAR(32) PRIMARY KEY)")


async def half_without_revision(url: str) -> None:
    await migrate.migrate(url, install=INSTALL)
    await execute(url, f"DELETE FROM {migrate.VERSION_TABLE}")


async def half_of_a_later_step(url: str) -> None:
    """What is left on the MySQL wire when a later release's step does not come to its end."""
    await migrate.migrate(url, install=INSTALL)
    await execute(url, f"CREATE TABLE {migrate.MARK.name} (id BIGINT PRIMARY KEY)")


async def half_of_two(url: str) -> None:
    await migrate.migrate(url, install=INSTALL)
    await execute(url, f"INSERT INTO {migrate.VERSION_TABLE} (version_num) VALUES ('0001')")


@pytest.mark.parametrize(
    "prepare,error,said",
    [
        (newer, Unavailable, "does not know"),
        (of_another_line, Unavailable, "does not know"),
        (foreign, Conflict, "not doonce's"),
        (half_without_version, Conflict, "in part"),
        (half_with_the_version_alone, Conflict, "in part"),
        (half_without_revision, Conflict, "in part"),
        (half_of_two, Conflict, "in part"),
        (half_of_a_later_step, Conflict, "in part"),
    ],
)
async def test_what_cannot_be_migrated_is_refused_unchanged_with_a_mend(
    database_url: str, prepare: Callable[[str], Any], error: type[Any], said: str
) -> None:
    await prepare(database_url)
    before = await tables(database_url)
    with pytest.raises(error, match=said) as refused:
        await migrate.migrate(database_url, install=INSTALL)
    assert refused.value.hint
    assert await tables(database_url) == before
    found = await verify(database_url)
    assert found.differences
    assert found.mend


async def test_an_older_schema_is_told_to_migrate(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await migrate.migrate(database_url, install=INSTALL)
    monkeypatch.setattr(steps, "needed", lambda: "9999")
    with pytest.raises(Unavailable) as refused:
        await require(database_url)
    assert "doonce migrate" in refused.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://nobody@127.0.0.1:1/none",
        "mysql://nobody@127.0.0.1:1/none",
        "sqlite:////nonexistent/folder/doonce.db",
    ],
)
async def test_an_unreachable_database_is_unavailable(url: str) -> None:
    for work in (migrate.migrate(url, install=INSTALL), verify(url)):
        with pytest.raises(Unavailable):
            await work


async def test_an_absent_file_is_not_made_by_looking_at_it(sqlite_path: Any) -> None:
    with pytest.raises(Unavailable):
        await verify(f"sqlite:///{sqlite_path}")
    assert not sqlite_path.exists()


def test_the_metadata_holds_every_table_that_a_migration_makes() -> None:
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        migrate.run_steps(connection, steps.head())
        found = compare(connection)
        made = set(sa.inspect(connection).get_table_names()) - {migrate.VERSION_TABLE}
    engine.dispose()
    assert made == set(metadata.tables)
    assert found.differences == ()
