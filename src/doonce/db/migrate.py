"""Migration: bring a database to this release's schema in one transaction, or say why not and change nothing.

    revision   who may start                                   `doonce migrate`      with `--after`
    older      releases that know it                           the halves before     both, if no older process is seen
    between    this release, and the ones that it extends      nothing, names what   the halves after, likewise
    newest     releases that know it                           nothing               nothing

A release is told by the newest revision that it knows. Beside the revision stands `compatible_from`: the oldest release
that may still work here. A half after moves it to itself (`db/steps.py`).

Every process asks what its database is, few migrate one: Alembic is imported by the steps alone, since it takes an
eighth of a worker's memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from doonce.base.errors import Conflict, Unavailable
from doonce.base.ids import new_token
from doonce.db import incarnation, maintenance, sidefile, sqlite, steps
from doonce.db.faults import Contended
from doonce.db.schema import metadata
from doonce.db.statement import DialectName, Statement
from doonce.db.steps import Half, Step
from doonce.db.transaction import Txn, fetch, lock_number

VERSION_TABLE: Final = "doonce_schema"
VERSIONS: Final = sa.Table(
    VERSION_TABLE,
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.Column("compatible_from", sa.String(32)),
    sa.PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)
"""Alembic's own table, with a column that it leaves alone."""
ADD_COMPATIBLE_FROM: Final = sa.text("ALTER TABLE doonce_schema ADD COLUMN compatible_from VARCHAR(32)")
LOCK: Final = "migrate"
LOCK_SECONDS: Final = 60
MARK: Final = sa.Table(
    "doonce_migrating", sa.MetaData(), sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=False)
)
"""On the MySQL wire: there while a migration runs, and after one that did not end."""


IN_PART: Final = "restore the backup from before it, or start with an empty database"

OlderSeen = Callable[[str], Txn[Sequence[str]]]
"""A transaction that names the processes, seen lately, of releases that do not know a revision."""


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What a migration did; `before` is None for a database that was empty, `open` are halves after that are left."""

    before: str | None
    after: str
    applied: tuple[str, ...]
    open: tuple[str, ...] = ()


class Finding(str, Enum):
    """What a database is, seen from the schema that this release needs."""

    EMPTY = "empty"
    CURRENT = "current"
    EXTENDED = "extended by a later release"
    OLDER = "older"
    NEWER = "newer"
    FOREIGN = "foreign"
    HALF = "half"


@dataclass(frozen=True, slots=True)
class Standing:
    """A finding, and the revision that the database says it has."""

    finding: Finding
    revision: str | None


async def migrate(
    url: str, *, install: Callable[[], Txn[Any]], older: OlderSeen | None = None
) -> MigrationReport:
    """Bring the database at `url` to what this release needs; repeating it changes nothing.

    Without `older` the halves before alone are applied, which the release before goes on beside. With it, which is the
    word that no process of an older release runs, the halves after are applied too, unless it names such a process.

    The steps, the version, `install` (which gives families without an owner their first one, and must be idempotent)
    and a fresh database's incarnation are one transaction: a crash leaves everything as it was. On the MySQL wire each
    definition commits by itself, so there a step that did not come to its end is told apart, and refused from then on.
    Of two processes at once, one migrates and the other waits, then finds nothing to do.

    Raises `Unavailable` for a schema that is newer than this release and for older processes, `Conflict` for tables
    that are not ours, for a half-applied migration and for a half after that comes first, all with what to do; nothing
    was changed then.
    """
    database_id = new_token()
    return await maintenance.run(
        url, lambda connection: _upgrade(connection, install, older, database_id), write=True
    )


def standing(connection: sa.Connection) -> Standing:
    """What the database behind this connection is."""
    inspector = sa.inspect(connection)
    tables = set(inspector.get_table_names())
    if MARK.name in tables:
        return Standing(Finding.HALF, None)
    has_version = VERSION_TABLE in tables
    found = connection.execute(sa.select(VERSIONS.c.version_num)).all() if has_version else []
    if not found:
        if tables & set(metadata.tables) or has_version:
            return Standing(Finding.HALF, None)
        return Standing(Finding.FOREIGN if tables else Finding.EMPTY, None)
    if len(found) > 1:
        return Standing(Finding.HALF, None)
    ((revision,),) = found
    return Standing(_judge(revision, _compatible_from(connection, inspector)), revision)


def _compatible_from(connection: sa.Connection, inspector: sa.Inspector) -> str | None:
    if all(column["name"] != "compatible_from" for column in inspector.get_columns(VERSION_TABLE)):
        return None
    found: str | None = connection.execute(sa.select(VERSIONS.c.compatible_from)).scalar_one()
    return found


COMPATIBLE_FROM: Final = Statement(
    "schema.compatible_from", lambda dialect: sa.select(VERSIONS.c.compatible_from)
)


def outgrown_by() -> Txn[str | None]:
    """The half after that was applied although this process, which does not know it, still runs; None if none was."""
    rows = yield from fetch(COMPATIBLE_FROM)
    return next((row[0] for row in rows if row[0] is not None and row[0] > steps.head()), None)


def _judge(revision: str, compatible: str | None) -> Finding:
    newest = steps.head()
    if revision > newest:
        return Finding.EXTENDED if compatible is not None and compatible <= newest else Finding.NEWER
    if revision not in {step.revision for step in steps.known()}:
        return Finding.NEWER
    return Finding.OLDER if revision < steps.needed() or compatible is None else Finding.CURRENT


def _upgrade(
    connection: sa.Connection, install: Callable[[], Txn[Any]], older: OlderSeen | None, database_id: str
) -> MigrationReport:
    _lock(connection)
    found = standing(connection)
    _refuse(found)
    _note_if_older(connection, found)
    planned = _plan(connection, found, older)
    reached = planned[-1].revision if planned else str(found.revision)
    with _marked(connection, planned):
        applied = run_steps(connection, reached) if planned else ()
        if found.finding is Finding.OLDER and not planned:  # made before there were halves
            _say_compatible(connection, reached)
        maintenance.drive(connection, install())
        if found.finding is Finding.EMPTY:
            _pin(connection, database_id)
    return MigrationReport(
        found.revision, reached, applied, tuple(step.revision for step in steps.ahead(reached))
    )


def _plan(connection: sa.Connection, found: Standing, older: OlderSeen | None) -> list[Step]:
    missing = steps.ahead(found.revision)
    if found.finding is Finding.EMPTY:
        return missing
    tightening = [step.revision for step in missing if step.half is Half.AFTER]
    if older is None:
        beside = steps.beside_older(missing)
        if tightening and tightening[0] < steps.needed():
            raise Conflict(
                f"step {tightening[0]} of an earlier release comes first, and older processes cannot work after it",
                hint="run `doonce migrate --after` of that release, or stop every older process and run this one's; "
                "nothing was changed",
            )
        return beside
    seen = maintenance.drive(connection, older(tightening[-1])) if tightening else ()
    if seen:
        raise Unavailable(
            f"processes of an older release worked lately, and could not go on: {'; '.join(seen)}",
            hint="replace or stop every process of an older release, wait five minutes, then try again; "
            "nothing was changed",
        )
    return missing


def _lock(connection: sa.Connection) -> None:
    """Wait for any other migration of this database; the lock ends with the transaction, or with the connection."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(lock_number(LOCK))))
    if connection.dialect.name == "mysql":
        name = f"doonce:{lock_number(f'{LOCK}:{connection.engine.url.database}')}"
        if not connection.execute(sa.select(sa.func.get_lock(name, LOCK_SECONDS))).scalar_one():
            raise Contended("another migration of this database is under way")


@contextmanager
def _marked(connection: sa.Connection, planned: list[Step]) -> Iterator[None]:
    """Where definitions commit by themselves, a mark stands while the steps run, and stays if they do not end."""
    if connection.dialect.name != "mysql" or not planned:
        yield
        return
    MARK.create(connection)
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise Conflict(
            f"a migration was applied in part, since the server refused: {error.orig}", hint=IN_PART
        ) from error
    connection.commit()
    MARK.drop(connection)


def run_steps(connection: sa.Connection, to: str) -> tuple[str, ...]:
    """Apply what is missing up to a revision, within the transaction of this connection; returns what it applied."""
    from alembic.config import Config  # noqa: PLC0415 (see above)
    from alembic.runtime.environment import EnvironmentContext  # noqa: PLC0415 (see above)
    from alembic.script import ScriptDirectory  # noqa: PLC0415 (see above)

    script = ScriptDirectory(str(steps.MIGRATIONS))
    applied: list[str] = []

    def planned(revision: Any, _: Any) -> Any:
        found = script._upgrade_revs(to, revision)  # noqa: SLF001 (as Alembic's own upgrade command does)
        applied.extend(step.revision.revision for step in found)
        return found

    VERSIONS.create(connection, checkfirst=True)
    with EnvironmentContext(Config(), script, fn=planned, destination_rev=to) as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE)
        environment.run_migrations()
    _say_compatible(connection, to)
    return tuple(applied)


def _say_compatible(connection: sa.Connection, revision: str) -> None:
    columns = {column["name"] for column in sa.inspect(connection).get_columns(VERSION_TABLE)}
    if "compatible_from" not in columns:
        connection.execute(ADD_COMPATIBLE_FROM)
    connection.execute(sa.update(VERSIONS).values(compatible_from=steps.compatible_from(revision)))


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
            f"the database has schema {found.revision}, which this release does not know; it needs {steps.needed()}",
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
            hint=f"{IN_PART}; nothing was changed",
        )
