"""The place where conformance works: made by it, marked by it, and the only thing that it ever writes or drops.

On PostgreSQL a schema in the database of the URL, on the MySQL wire a database beside it, on SQLite a file in the
folder of the URL's file. Its name has a fixed prefix and a random guard, and a row inside repeats the guard: what lacks
any of them is refused.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from doonce.base.errors import Conflict, Forbidden, Invalid, Unavailable
from doonce.base.ids import new_token
from doonce.db import maintenance
from doonce.db.database import open_database, safe_url
from doonce.db.migrate import migrate
from doonce.db.mysql_faults import DENIED, code_of
from doonce.db.statement import DialectName
from doonce.ownership import store as ownership

PREFIX: Final = "doonce_conformance_"
DEPLOYMENT: Final = "conformance"
MARKER: Final = sa.Table(
    "doonce_conformance", sa.MetaData(), sa.Column("guard", sa.String(64), primary_key=True)
)
"""Holds exactly one row, the guard: in no other schema and no other file."""

BACK_SECONDS: Final = 30.0
BACK_POLL_SECONDS: Final = 0.5
MAY_CREATE: Final = sa.text("SELECT has_database_privilege(current_database(), 'CREATE')")


@dataclass(frozen=True, slots=True)
class Scratch:
    """A scratch place by its URL; `name` is the schema, database or file, `guard` what its marker must say."""

    url: str
    home: str
    name: str
    guard: str
    dialect: DialectName

    async def check(self) -> None:
        """Raise `Conflict` unless the marker is there and says the guard: then it is not the place that was made."""
        if self.name.removesuffix(".db") != f"{PREFIX}{self.guard}":
            raise Conflict(f"{self.name} is not a scratch place of conformance; nothing was touched")
        if self.dialect is DialectName.SQLITE and not _file_of(self.url).exists():
            raise Conflict(f"{self.name} is gone")
        if self.dialect is DialectName.MYSQL and self.name not in await maintenance.run(
            self.home, _databases, write=False
        ):
            raise Conflict(f"{self.name} is gone")
        if await maintenance.run(self.url, _guards, write=False) != [self.guard]:
            raise Conflict(f"{self.name} does not have the mark of this run; nothing was touched")


@asynccontextmanager
async def scratch(url: str) -> AsyncIterator[Scratch]:
    """A migrated, marked scratch place at `url`, dropped afterwards whatever happened: a database that is not there
    at that moment, as a cluster that has just lost a node, gets a while to come back.

    Raises `Invalid` for a URL that names no place, `Forbidden` for a user who may not make one, `Unavailable` for a
    database that cannot be had. Whatever else is at the URL is neither read nor written.
    """
    made = await _make(url)
    try:
        await migrate(
            made.url, install=lambda: ownership.install(DEPLOYMENT, "sha256:conformance", made.guard)
        )
        await maintenance.run(made.url, lambda connection: _mark(connection, made.guard), write=True)
    except BaseException:
        await _remove(made)  # this run made it a moment ago, and nobody else knows its name
        raise
    try:
        yield made
    finally:
        await _once_back(made.check)
        await _once_back(lambda: _remove(made))


async def _once_back(act: Callable[[], Awaitable[None]]) -> None:
    """Do what may be done twice, again until the database can be had; `Unavailable` when that takes too long."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BACK_SECONDS
    while True:
        try:
            return await act()
        except Unavailable:
            if loop.time() > deadline:
                raise
        await asyncio.sleep(BACK_POLL_SECONDS)


async def other_ways(made: Scratch, also: Sequence[str]) -> tuple[Scratch, ...]:
    """The same scratch place by other URLs; raises `Invalid` for one that goes elsewhere."""
    found = []
    for url in also:
        parsed = sa.make_url(url)
        if made.dialect is not DialectName.MYSQL or open_database(url).dialect is not made.dialect:
            raise Invalid(
                f"{safe_url(url)} is no other way to the same database",
                hint="only a cluster on the MySQL wire has several: give the URLs of its nodes",
            )
        place = parsed.set(database=made.name).render_as_string(hide_password=False)
        other = Scratch(place, url, made.name, made.guard, made.dialect)
        try:
            await other.check()
        except Conflict as conflict:
            raise Invalid(
                f"{safe_url(url)} leads to another database: what was made in the first one is not there",
                hint="give the URLs of nodes of one cluster",
            ) from conflict
        found.append(other)
    return tuple(found)


async def _make(url: str) -> Scratch:
    guard = new_token()
    dialect = open_database(url).dialect  # checks the URL; opens nothing
    parsed = sa.make_url(url)
    if dialect is DialectName.SQLITE:
        name = f"{PREFIX}{guard}.db"
        file = Path(parsed.database or "").with_name(name)
        try:
            os.close(await asyncio.to_thread(os.open, file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            raise Invalid(
                f"no file can be made in {file.parent}: {error.strerror}",
                hint="give a file in a folder that exists and may be written; the file itself is left alone",
            ) from error
        place = parsed.set(database=str(file))
    else:
        name = f"{PREFIX}{guard}"
        await maintenance.run(url, lambda connection: _make_schema(connection, name, url), write=True)
        at_mysql = dialect is DialectName.MYSQL
        place = parsed.set(database=name) if at_mysql else parsed.update_query_dict({"search_path": name})
    return Scratch(place.render_as_string(hide_password=False), url, name, guard, dialect)


def _make_schema(connection: sa.Connection, name: str, url: str) -> None:
    if connection.dialect.name == "mysql":
        _make_database(connection, name, url)
        return
    if not connection.execute(MAY_CREATE).scalar_one():
        raise Forbidden(
            f"this user may not create a schema in {safe_url(url)}",
            hint="GRANT CREATE ON DATABASE to it, or give another user; doonce itself needs it to migrate",
        )
    connection.execute(sa.schema.CreateSchema(name))


def _make_database(connection: sa.Connection, name: str, url: str) -> None:
    try:
        connection.execute(sa.schema.CreateSchema(name))
    except sa.exc.OperationalError as error:
        if code_of(error.orig or error) not in DENIED:
            raise
        raise Forbidden(
            f"this user may not create a database beside {safe_url(url)}",
            hint=r"GRANT ALL PRIVILEGES ON `doonce\_conformance\_%`.* to it, or give another user",
        ) from error


def _mark(connection: sa.Connection, guard: str) -> None:
    MARKER.create(connection)
    connection.execute(MARKER.insert().values(guard=guard))


def _guards(connection: sa.Connection) -> list[str]:
    if MARKER.name not in sa.inspect(connection).get_table_names():
        return []
    return list(connection.execute(sa.select(MARKER.c.guard)).scalars())


def _databases(connection: sa.Connection) -> list[str]:
    return list(sa.inspect(connection).get_schema_names())


async def _remove(made: Scratch) -> None:
    if made.dialect is DialectName.SQLITE:
        file = _file_of(made.url)
        for path in (file, *(file.with_name(file.name + suffix) for suffix in ("-wal", "-shm", "-doonce"))):
            await asyncio.to_thread(path.unlink, missing_ok=True)
    else:
        await maintenance.run(made.home, lambda connection: _drop_schema(connection, made.name), write=True)


def _drop_schema(connection: sa.Connection, name: str) -> None:
    # One that is gone already was dropped by an attempt whose answer was lost.
    connection.execute(sa.schema.DropSchema(name, cascade=connection.dialect.name != "mysql", if_exists=True))


def _file_of(url: str) -> Path:
    return Path(sa.make_url(url).database or "")
