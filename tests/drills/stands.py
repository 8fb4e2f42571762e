"""What a drill is held on: a database with one address, a copy that parts from it, and the fall of the original.

`part` is the moment after which what is committed is not in the copy; `fall` lets the copy take the original's place.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from tests.drills import mariadb as mariadbs
from tests.drills import postgresql as postgreses
from tests.process.effects.proxy import Proxy, proxied
from tests.process.effects.waiting import until


class Stand(ABC):
    """A database that a drill is held on."""

    url: str
    cause: str
    """What an operator must read in the reason."""
    lived_through = True
    """Whether processes live through the change. Nobody may work in a file or a dump that is being put back."""

    @abstractmethod
    def part(self) -> None:
        """From now on nothing that is committed comes into the copy."""

    @abstractmethod
    def fall(self) -> None:
        """The copy takes the place of the original, at its address."""


def behind(proxy: Proxy, url: str) -> str:
    """The same database, through the proxy: an address that outlives a server."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"doonce@127.0.0.1:{proxy.port}"))


def move(proxy: Proxy, port: int) -> None:
    """Let the address lead to another server; whoever is connected is cut off."""
    proxy.cut()
    proxy.lead_to("127.0.0.1", port)
    proxy.restore()


class PromotedStandby(Stand):
    """PostgreSQL: an asynchronous standby that lags is promoted; its machine's clock may be another one."""

    cause = "a standby was promoted"

    def __init__(self, folder: Path, stack: ExitStack, ahead: str = "") -> None:
        self._primary = stack.enter_context(postgreses.postgres(folder / "primary"))
        self._standby = stack.enter_context(postgreses.standby_of(self._primary, folder / "standby", ahead))
        self._proxy = stack.enter_context(proxied("127.0.0.1", self._primary.port))
        self.url = behind(self._proxy, self._primary.url)

    def part(self) -> None:
        """The standby has all, and then its receiver ends."""
        until(lambda: postgreses.caught_up(self._primary, self._standby), "the standby's catching up")
        postgreses.cut_off(self._standby)

    def fall(self) -> None:
        """The primary dies; the standby is promoted, and the address leads to it."""
        self._primary.kill()
        postgreses.promote(self._standby)
        move(self._proxy, self._standby.port)


class BaseBackup(Stand):
    """PostgreSQL: a base backup is put back, and started without a recovery target."""

    cause = "a copy was put in"

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._server = stack.enter_context(postgreses.postgres(folder / "server"))
        self._backup = folder / "server" / "backup"
        self.url = self._server.url

    def part(self) -> None:
        """The backup is taken."""
        self._server.back_up(self._backup)

    def fall(self) -> None:
        """The server dies, and the backup is in the place of its data."""
        self._server.kill()
        shutil.rmtree(self._server.data)
        shutil.copytree(self._backup, self._server.data)
        for path in (self._server.data, *self._server.data.rglob("*")):
            self._server.own(path)
        self._server.start()


class Dump(Stand):
    """PostgreSQL: a dump is loaded into the same server, in the place of what was there."""

    cause = "a copy was put in"
    lived_through = False

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._server = stack.enter_context(postgreses.postgres(folder / "server"))
        self._server.tell("CREATE DATABASE doonce")
        parts = urlsplit(self._server.url)
        self.url = urlunsplit(parts._replace(path="/doonce"))
        self._dump = b""

    def part(self) -> None:
        """The dump is taken."""
        self._dump = self._server.run(postgreses.find("pg_dump"), self.url)

    def fall(self) -> None:
        """The database is dropped, and made anew from the dump."""
        self._server.tell("DROP DATABASE doonce WITH (FORCE)")
        self._server.tell("CREATE DATABASE doonce")
        self._server.run(postgreses.find("psql"), "-q", "-v", "ON_ERROR_STOP=1", self.url, feed=self._dump)


class PromotedReplica(Stand):
    """MariaDB: an asynchronous replica that lags is promoted."""

    cause = "this is another database"

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._primary = stack.enter_context(mariadbs.mariadb(folder / "primary"))
        self._replica = stack.enter_context(mariadbs.replica_of(self._primary, folder / "replica"))
        self._proxy = stack.enter_context(proxied("127.0.0.1", self._primary.port))
        self.url = behind(self._proxy, self._primary.url)

    def part(self) -> None:
        """The replica has all, and then hears nothing more."""
        until(lambda: mariadbs.caught_up(self._primary, self._replica), "the replica's catching up")
        self._replica.tell("STOP SLAVE")

    def fall(self) -> None:
        """The primary dies; the replica is promoted, and the address leads to it."""
        self._primary.kill()
        mariadbs.promote(self._replica)
        move(self._proxy, self._replica.port)


class MariadbDump(Stand):
    """MariaDB: a dump is loaded in the place of what was there."""

    cause = "a copy was put in"
    lived_through = False

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._server = stack.enter_context(mariadbs.mariadb(folder / "server"))
        self.url = self._server.url
        self._dump = b""

    def part(self) -> None:
        """The dump is taken."""
        self._dump = self._server.dump()

    def fall(self) -> None:
        """The database is made anew from the dump."""
        self._server.load(self._dump)


class MariadbCopy(Stand):
    """MariaDB: a copy of the data, taken while the server was down, is put back."""

    cause = "a copy was put in"

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._server = stack.enter_context(mariadbs.mariadb(folder / "server"))
        self._copy = folder / "server" / "copy"
        self.url = self._server.url

    def part(self) -> None:
        """The server is stopped, copied, and started again."""
        self._server.stop()
        self._server.copy_data(self._copy)
        self._server.start()

    def fall(self) -> None:
        """The server dies, and the copy is in the place of its data."""
        self._server.kill()
        shutil.rmtree(self._server.data)
        shutil.copytree(self._copy, self._server.data)
        for path in (self._server.data, *self._server.data.rglob("*")):
            self._server.own(path)
        self._server.start()


class SqliteCopy(Stand):
    """SQLite: a backup, taken by SQLite's own command, is put back."""

    cause = "older than what was committed here"
    lived_through = False

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._file = folder / "doonce.db"
        self._backup = folder / "backup.db"
        self.url = f"sqlite:///{self._file}"

    def part(self) -> None:
        """The backup is taken."""
        with sqlite3.connect(self._file) as live, sqlite3.connect(self._backup) as copy:
            live.backup(copy)
        live.close()
        copy.close()

    def fall(self) -> None:
        """The backup is in the file's place."""
        for suffix in ("-wal", "-shm"):
            self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
        shutil.copy(self._backup, self._file)


class JumpingClock(Stand):
    """A server whose clock is moved while it runs; it neither parts nor falls."""

    cause = ""

    def __init__(self, server: postgreses.Postgres | mariadbs.Mariadb) -> None:
        self._server = server
        self.url = server.url

    def jump(self, ahead: str) -> None:
        """Move its clock to this distance from the host's."""
        self._server.tell_time(ahead)

    def part(self) -> None:
        """There is no copy."""

    def fall(self) -> None:
        """There is no copy."""


STANDS: dict[str, Callable[[Path, ExitStack], Stand]] = {
    "postgresql-promoted-standby": PromotedStandby,
    "postgresql-base-backup": BaseBackup,
    "postgresql-dump": Dump,
    "mariadb-promoted-replica": PromotedReplica,
    "mariadb-dump": MariadbDump,
    "mariadb-copy": MariadbCopy,
    "sqlite-backup": SqliteCopy,
}


@contextmanager
def stand(name: str) -> Iterator[Stand]:
    """A stand whose servers and files do not outlive the block."""
    with tempfile.TemporaryDirectory(prefix="doonce-drill-") as made, ExitStack() as stack:
        folder = Path(made)
        folder.chmod(0o711)  # the servers are other users
        yield STANDS[name](folder, stack)
