"""Migration: bring a database to this release's schema in one transaction, or say why not and change nothing.

Every process asks what its database is, few migrate one: Alembic is imported by the steps alone, since it takes an
eighth of a worker's memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from doonce.base.errors import Conflict, Unavailable
from doonce.base.ids import new_token
from doonce.db import incarnation, maintenance, sidefile, sqlite
from doonce.db.faults import Contended
from doonce.db.schema import metadata
from doonce.db.statement import DialectName
from doonce.db.transaction import Txn, lock_number

VERSION_TABLE: Final = "doonce_schema"
MIGRATIONS: Final = Path(__file__).with_name("migrations")
VERSIONS: Final = sa.table(VERSION_TABLE, sa.column("version_num", sa.Text()))
STEP: Final = re.compile(r"v(\d{4})_\w+\.py")
LOCK: Final = "migrate"
LOCK_SECONDS: Final = 60
MARK: Final = sa.Table(
    "doonce_migrating", sa.MetaData(), sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=False)
)
"""On the MySQL wire: there while a migration runs, and after one that did not end."""


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What a migration did; `before` is None for a database that was empty."""

    before: str | None
    after: str
    applied: tuple[str, ...]


class Finding(str, Enum):
    """What a database is, seen from the schema that this release needs."""

    EMPTY = "empty"
    CURRENT = "current"
    OLDER = "older"
    NEWER = "newer"
    FOREIGN = "foreign"
    HALF = "half"


@dataclass(frozen=True, slots=True)
class Standing:
    """A finding, and the revision that the database says it has."""

    finding: Finding
    revision: str | None


async def migrate(url: str, *, install: Callable[[], Txn[Any]]) -> MigrationReport:
    """Bring the database at `url` to this release's schema; repeating it changes nothing.

    The steps, the version, `install` (which gives families without an owner their first one, and must be idempotent)
    and a fresh database's incarnation are one transaction: a crash leaves everything as it was. On the MySQL wire each
    definition commits by itself, so there a step that did not come to its end is told apart, and refused from then on.
    Of two processes at once, one migrates and the other waits, then finds nothing to do.

    Raises `Unavailable` for a schema that is newer than this release, `Conflict` for tables that are not ours and for a
    half-applied migration, both with what to do; nothing was changed then.
    """
    database_id = new_token()
    return await maintenance.run(
        url, lambda connection: _upgrade(connection, install, database_id), write=True
    )


def revisions() -> list[str]:
    """The revisions that this release knows, the first one first: its steps' files are named by them."""
    names = (STEP.fullmatch(path.name) for path in (MIGRATIONS / "versions").iterdir())
    return sorted(name[1] for name in names if name is not None)


def head() -> str:
    """The revision that this release needs."""
    return revisions()[-1]


def standing(connection: sa.Connection) -> Standing:
    """What the database behind this connection is."""
    tables = set(sa.inspect(connection).get_table_names())
    if MARK.name in tables:
        return Standing(Finding.HALF, None)
    ours = tables & set(metadata.tables)
    found = connection.execute(sa.select(VERSIONS.c.version_num)).all() if VERSION_TABLE in tables else []
    if not found:
        if ours or VERSION_TABLE in tables:
            return Standing(Finding.HALF, None)
        return Standing(Finding.FOREIGN if tables else Finding.EMPTY, None)
    if len(found) > 1:
        return Standing(Finding.HALF, None)
    ((revision,),) = found
    if revision == head():
        return Standing(Finding.CURRENT, revision)
    return Standing(Finding.OLDER if revision in revisions() else Finding.NEWER, revision)


def _upgrade(connection: sa.Connection, install: Callable[[], Txn[Any]], database_id: str) -> MigrationReport:
    _lock(connection)
    found = standing(connection)
    _refuse(found)
    _note_if_older(connection, found)
    with _marked(connection, found):
        applied = () if found.finding is Finding.CURRENT else run_steps(connection)
        maintenance.drive(connection, install())
        if found.finding is Finding.EMPTY:
            _pin(connection, database_id)
    return MigrationReport(found.revision, head(), applied)


def _lock(connection: sa.Connection) -> None:
    """Wait for any other migration of this database; the lock ends with the transaction, or with the connection."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(lock_number(LOCK))))
    if connection.dialect.name == "mysql":
        name = f"doonce:{lock_number(f'{LOCK}:{connection.engine.url.database}')}"
        if not connection.execute(sa.select(sa.func.get_lock(name, LOCK_SECONDS))).scalar_one():
            raise Contended("another migration of this database is under way")


@contextmanager
def _marked(connection: sa.Connection, found: Standing) -> Iterator[None]:
    """Where definitions commit by themselves, a mark stands while the steps run, and stays if they do not end."""
    if connection.dialect.name != "mysql" or found.finding is Finding.CURRENT:
        yield
        return
    MARK.create(connection)
    yield
    connection.commit()
    MARK.drop(connection)


def run_steps(connection: sa.Connection) -> tuple[str, ...]:
    """Apply what is missing, within the transaction of this connection; returns the revisions that it applied."""
    from alembic.config import Config  # noqa: PLC0415 (see above)
    from alembic.runtime.environment import EnvironmentContext  # noqa: PLC0415 (see above)
    from alembic.script import ScriptDirectory  # noqa: PLC0415 (see above)

    script = ScriptDirectory(str(MIGRATIONS))
    applied: list[str] = []

    def steps(revision: Any, _: Any) -> Any:
        planned = script._upgrade_revs("head", revision)  # noqa: SLF001 (as Alembic's own upgrade command does)
        applied.extend(step.revision.revision for step in planned)
        return planned

    with EnvironmentContext(Config(), script, fn=steps, destination_rev="head") as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE)
        environment.run_migrations()
    return tuple(applied)


def _note_if_older(connection: sa.Connection, found: Standing) -> None:
    """Before the first write here, as in the writer itself: afterwards an older copy's clock looks current."""
    path = _sqlite_path(connection)
    if path is None:
        return
    fresh = found.finding is Finding.EMPTY
    now_us = 0 if fresh else connection.exec_driver_sql(sqlite.CLOCK_AS_STORED).scalar_one()
    with _side(path) as side:
        sidefile.note_if_older(side, now_us)


def _pin(connection: sa.Connection, database_id: str) -> None:
    pinned = maintenance.drive(
        connection, incarnation.pin_first(DialectName(connection.dialect.name), database_id)
    )
    path = _sqlite_path(connection)
    if path is not None:
        with _side(path) as side:
            sidefile.remember_identity(side, pinned.place.identity)


def _sqlite_path(connection: sa.Connection) -> Path | None:
    if connection.dialect.name != "sqlite":
        return None
    return Path(
        connection.exec_driver_sql("SELECT file FROM pragma_database_list WHERE name = 'main'").scalar_one()
    )


@contextmanager
def _side(path: Path) -> Iterator[int]:
    side = sidefile.open_side_file(path)  # its lock is held by whoever opened the connection
    try:
        yield side
    finally:
        os.close(side)


def _refuse(found: Standing) -> None:
    if found.finding is Finding.NEWER:
        raise Unavailable(
            f"the database has schema {found.revision}, which this release does not know; it needs {head()}",
            hint="install the release that migrated it, or a later one",
        )
    if found.finding is Finding.FOREIGN:
        raise Conflict(
            "the database has tables that are not doonce's, and none that are",
            hint="give doonce a database or schema of its own; nothing was changed",
        )
    if found.finding is Finding.HALF:
        raise Conflict(
            "the database has some of doonce's tables but no single version: a migration was applied in part",
            hint="restore the backup from before it, or start with an empty database; nothing was changed",
        )
