"""The servers under measurement: fresh databases on them, and proof that they are durable ones."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import asyncmy
import psycopg
from psycopg import sql

from doonce.base.ids import new_token

DURABLE = ("fsync", "full_page_writes", "synchronous_commit")
DURABLE_MARIADB = {"innodb_flush_log_at_trx_commit": "1", "innodb_doublewrite": "ON"}


class NotDurableError(Exception):
    """The server would be fast because it may forget."""


def durability(url: str) -> dict[str, str]:
    """The server's version and settings; raises `NotDurableError` when one of `DURABLE` is not on."""
    with psycopg.connect(url, autocommit=True) as server:
        found = {name: _show(server, name) for name in (*DURABLE, "server_version", "shared_buffers")}
    off = [name for name in DURABLE if found[name] != "on"]
    if off:
        raise NotDurableError(
            f"this server has {', '.join(off)} switched off: nothing measured on it would count"
        )
    return found


def _show(server: psycopg.Connection[tuple[str]], name: str) -> str:
    row = server.execute(sql.SQL("SHOW {}").format(sql.Identifier(name))).fetchone()
    return row[0] if row else ""


@contextlib.contextmanager
def fresh_databases(server_url: str, count: int) -> Iterator[list[str]]:
    """New, empty databases, dropped afterwards whoever still uses them."""
    names = [f"bench_{new_token()}" for _ in range(count)]
    with psycopg.connect(server_url, autocommit=True) as server:
        for name in names:
            server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        server.execute("CHECKPOINT")  # what an earlier measurement left to write is not this one's to pay
        try:
            yield [urlunsplit(urlsplit(server_url)._replace(path=f"/{name}")) for name in names]
        finally:
            for name in names:
                server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def mariadb_durability(url: str) -> dict[str, str]:
    """The same of a MariaDB: raises `NotDurableError` when one of `DURABLE_MARIADB` is otherwise."""
    names = (*DURABLE_MARIADB, "version", "innodb_buffer_pool_size")
    listed = ", ".join(f"'{name}'" for name in names)
    found = dict(on_mariadb(url, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({listed})"))
    weak = [f"{name}={found[name]}" for name, least in DURABLE_MARIADB.items() if found[name] != least]
    if weak:
        raise NotDurableError(f"this server has {', '.join(weak)}: nothing measured on it would count")
    return found


@contextlib.contextmanager
def fresh_mariadb_databases(server_url: str, count: int) -> Iterator[list[str]]:
    """The same on a MariaDB."""
    names = [f"bench_{new_token()}" for _ in range(count)]
    on_mariadb(server_url, *[f"CREATE DATABASE {name}" for name in names])
    try:
        yield [urlunsplit(urlsplit(server_url)._replace(path=f"/{name}")) for name in names]
    finally:
        on_mariadb(server_url, *[f"DROP DATABASE {name}" for name in names])


def on_mariadb(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """The rows that the last statement answers."""
    parts = urlsplit(url)

    async def execute() -> list[tuple[Any, ...]]:
        connection = await asyncmy.connect(
            host=parts.hostname, port=parts.port or 3306, user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
        )  # fmt: skip
        async with connection.cursor() as cursor:
            for statement in statements:
                await cursor.execute(statement)
            rows: list[tuple[Any, ...]] = list(await cursor.fetchall())
        connection.close()
        return rows

    return asyncio.run(execute())
