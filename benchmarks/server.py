"""The PostgreSQL under measurement: fresh databases on it, and proof that it is a durable one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from doonce.base.ids import new_token

DURABLE = ("fsync", "full_page_writes", "synchronous_commit")


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
