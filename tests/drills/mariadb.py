"""MariaDB servers for drills: a primary, its asynchronous replica, a dump and a copy of the data that is put back."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
from pymysql.cursors import DictCursor
from tests.drills.servers import START_S, Server, program

FOLDERS = ("usr/sbin", "usr/bin", "usr/local/bin")
DATABASE = "doonce"


def find(name: str) -> str:
    """A program of the server."""
    return program(name, FOLDERS)


class Mariadb(Server):
    """One server with a number of its own, as replication demands."""

    def __init__(self, folder: Path, number: int) -> None:
        super().__init__(folder, "mysql")
        self.number = number
        self.data = folder / "data"

    @property
    def url(self) -> str:
        """The service's database on it."""
        return f"mysql://doonce@127.0.0.1:{self.port}/{DATABASE}"

    def make(self) -> None:
        """A new, empty server."""
        self.run(
            find("mariadb-install-db"), "--no-defaults", f"--datadir={self.data}", "--skip-test-db",
            "--auth-root-authentication-method=normal", f"--tmpdir={self.folder}",
        )  # fmt: skip

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.launch(
            find("mariadbd"), "--no-defaults", f"--datadir={self.data}", f"--tmpdir={self.folder}",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}", "--bind-address=127.0.0.1", f"--port={self.port}",
            f"--server-id={self.number}", f"--log-bin={self.data / 'binlog'}", "--binlog-format=ROW",
            "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=1",
            "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M", "--performance-schema=OFF",
            "--skip-name-resolve", "--skip-slave-start", "--max-connections=60",
        )  # fmt: skip
        deadline_s = time.monotonic() + START_S
        while True:
            self.wait_accepting()
            try:
                self.tell("SELECT 1")
                return
            except pymysql.err.OperationalError:  # it listens before it answers
                assert time.monotonic() < deadline_s, self.log()
                time.sleep(0.05)

    def prepare(self) -> None:
        """Make the service's user and database, and the replicas' user."""
        self.tell(
            "CREATE USER doonce@'127.0.0.1'",
            "GRANT ALL PRIVILEGES ON *.* TO doonce@'127.0.0.1' WITH GRANT OPTION",
            "CREATE USER replica@'127.0.0.1'",
            "GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'",
            f"CREATE DATABASE {DATABASE}",
        )

    def tell(self, *texts: str) -> list[dict[str, Any]]:
        """Carry out statements as the server's own administrator; what the last one answered."""
        session = pymysql.connect(
            unix_socket=str(self.folder / "socket"), user="root", autocommit=True, cursorclass=DictCursor,
            connect_timeout=5,
        )  # fmt: skip
        with session, session.cursor() as cursor:
            for text in texts:
                cursor.execute(text)
            return list(cursor.fetchall())

    def dump(self) -> bytes:
        """The service's database as statements, as it is at one moment."""
        return self.run(
            find("mariadb-dump"), "--no-defaults", f"--socket={self.folder / 'socket'}", "--user=root",
            "--single-transaction", DATABASE,
        )  # fmt: skip

    def load(self, dumped: bytes) -> None:
        """Put a dump in the place of the service's database."""
        self.tell(f"DROP DATABASE {DATABASE}", f"CREATE DATABASE {DATABASE}")
        self.run(
            find("mariadb"), "--no-defaults", f"--socket={self.folder / 'socket'}", "--user=root", DATABASE,
            feed=dumped,
        )  # fmt: skip

    def copy_data(self, into: Path) -> None:
        """Copy the data while nothing runs on it."""
        shutil.copytree(self.data, into)
        for path in (into, *into.rglob("*")):
            self.own(path)


@contextmanager
def mariadb(folder: Path, ahead: str = "") -> Iterator[Mariadb]:
    """A running, prepared server that does not outlive the block, with a clock of its own where that is asked for."""
    server = Mariadb(folder, 1)
    if ahead:
        server.tell_time(ahead)
    try:
        server.make()
        server.start()
        server.prepare()
        yield server
    finally:
        server.kill()


@contextmanager
def replica_of(primary: Mariadb, folder: Path) -> Iterator[Mariadb]:
    """An asynchronous replica that has everything from the primary's first statement on."""
    server = Mariadb(folder, primary.number + 1)
    try:
        server.make()
        server.start()
        server.tell(
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, MASTER_USER='replica',"
            " MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1",
            "START SLAVE",
            "SET GLOBAL read_only = 1",
        )
        yield server
    finally:
        server.kill()


def caught_up(primary: Mariadb, replica: Mariadb) -> bool:
    """Whether the replica has applied all that the primary has committed by now."""
    (newest,) = primary.tell("SELECT @@gtid_binlog_pos AS at")
    (applied,) = replica.tell("SELECT @@gtid_slave_pos AS at")
    return bool(newest["at"] == applied["at"])


def promote(replica: Mariadb) -> None:
    """Make it a primary."""
    replica.tell("STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0")
