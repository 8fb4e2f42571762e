"""PostgreSQL servers for drills: a primary, its asynchronous standby, a base backup that is put back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from tests.drills.servers import START_S, Server, program

FOLDERS = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin")
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = on
full_page_writes = on
synchronous_commit = on
shared_buffers = 32MB
max_connections = 60
wal_level = replica
hot_standby = on
"""


def find(name: str) -> str:
    """A program of the newest server here."""
    return program(name, FOLDERS)


class Postgres(Server):
    """One server. `data` is what it runs on, which a drill may exchange while it is down."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "postgres")
        self.data = folder / "data"

    @property
    def url(self) -> str:
        """Its database for maintenance, which a drill uses as the service's."""
        return f"postgresql://doonce@127.0.0.1:{self.port}/postgres"

    def make(self) -> None:
        """A new, empty server."""
        self.run(
            find("initdb"), "-D", str(self.data), "-U", "doonce", "--auth=trust", "-E", "UTF8", "--locale=C",
            "--no-sync",
        )  # fmt: skip
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(SETTINGS)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.launch(find("postgres"), "-D", str(self.data), "-p", str(self.port))
        deadline_s = time.monotonic() + START_S
        while True:
            self.wait_accepting()
            try:
                self.ask("SELECT 1")
                return
            except psycopg.OperationalError:  # it is still recovering
                assert time.monotonic() < deadline_s, self.log()
                time.sleep(0.05)

    def ask(self, text: str) -> Any:
        """The first value that a statement answers, in a session of its own."""
        with psycopg.connect(self.url, autocommit=True, connect_timeout=5) as session:
            row = session.execute(text).fetchone()  # type: ignore[call-overload]
        return row[0] if row else None

    def tell(self, text: str) -> None:
        """Carry out a statement that answers nothing."""
        with psycopg.connect(self.url, autocommit=True, connect_timeout=5) as session:
            session.execute(text)  # type: ignore[call-overload]

    def back_up(self, into: Path, *options: str) -> None:
        """A base backup of what it is now, with the log that it needs."""
        self.run(
            find("pg_basebackup"), "-h", "127.0.0.1", "-p", str(self.port), "-U", "doonce", "-D", str(into),
            "--checkpoint=fast", "--no-sync", *options,
        )  # fmt: skip


@contextmanager
def postgres(folder: Path, ahead: str = "") -> Iterator[Postgres]:
    """A running server that does not outlive the block, with a clock of its own where that is asked for."""
    server = Postgres(folder)
    if ahead:
        server.tell_time(ahead)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.kill()


@contextmanager
def standby_of(primary: Postgres, folder: Path, ahead: str = "") -> Iterator[Postgres]:
    """An asynchronous standby that streams from a primary, with a clock of its own where that is asked for."""
    server = Postgres(folder)
    if ahead:
        server.tell_time(ahead)
    try:
        primary.back_up(server.data, "--write-recovery-conf")
        server.start()
        yield server
    finally:
        server.kill()


def caught_up(primary: Postgres, standby: Postgres) -> bool:
    """Whether the standby has applied all that the primary has committed by now."""
    newest = primary.ask("SELECT pg_current_wal_flush_lsn()::text")
    return bool(standby.ask(f"SELECT coalesce(pg_last_wal_replay_lsn() >= '{newest}'::pg_lsn, false)"))


def cut_off(standby: Postgres) -> None:
    """Stop the standby's receiver: what the primary commits from now on never gets there."""
    standby.tell("ALTER SYSTEM SET primary_conninfo = ''")
    standby.tell("SELECT pg_reload_conf()")
    deadline_s = time.monotonic() + START_S
    while standby.ask("SELECT count(*) FROM pg_stat_wal_receiver"):
        assert time.monotonic() < deadline_s, standby.log()
        time.sleep(0.05)


def promote(standby: Postgres) -> None:
    """Make it a primary, and wait until it is one."""
    assert standby.ask("SELECT pg_promote(true, 30)") is True, standby.log()
