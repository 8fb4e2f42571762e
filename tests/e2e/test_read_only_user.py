"""A user who may only read is told so at the start, with the mend, and nothing is changed.

Whoever is root may write every file: on SQLite the commands run in a process that gives root up. Where nobody is root
modes are enough.
"""

from __future__ import annotations

import json
import os
import pwd
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.e2e.conftest import ROOT, deployment

from doonce import Doonce
from doonce.base.errors import Unavailable
from doonce.base.ids import new_token

pytestmark = pytest.mark.e2e

UNAVAILABLE = 5
MEND = "next: let this user write the database's file and its folder"
READS = (["status"], ["credential", "list"])
WRITES = (
    ["migrate"],
    ["declare", "lossy", "--reason", "a test"],
    ["up", "--port", "0"],
    ["serve", "--port", "0"],
)
AS_NOBODY = """
import contextlib, io, json, os, pwd, sys
import uvicorn
from doonce.app.cli.root import run

database, commands = sys.argv[1], json.loads(sys.argv[2])
with contextlib.redirect_stdout(io.StringIO()):  # on a database of its own: all that commands import is loaded by then
    os.environ["DOONCE_DATABASE"] = "sqlite:///own.db"
    loaded = [run(["migrate"]), run(["status"])]
os.environ |= {"DOONCE_DATABASE": database, "DOONCE_KEY_FILE": "mine.toml"}
if os.geteuid() == 0:
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
said = []
for command in commands:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        status = run(command)
    said.append((status, errors.getvalue()))
print(json.dumps((loaded, os.geteuid(), said)))
"""


@pytest.fixture
def readable() -> Iterator[Path]:
    """A migrated database in a folder that everybody may read and nobody may write, root excepted."""
    with tempfile.TemporaryDirectory(prefix="doonce-read-only-") as made:
        folder = Path(made)
        try:
            migrated = subprocess.run(
                [sys.executable, "-m", "doonce.app.cli", "migrate"],
                cwd=folder,
                env=environment() | {"DOONCE_DATABASE": f"sqlite:///{folder / 'doonce.db'}"},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert migrated.returncode == 0, migrated.stderr
            yield folder / "doonce.db"
        finally:
            folder.chmod(0o700)


def environment() -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}


def close_to_writers(folder: Path) -> None:
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("in_use", [False, True])
def test_a_user_who_may_only_read_is_told_so_and_writes_nothing(readable: Path, in_use: bool) -> None:
    """Nobody can even look into a file that is not in use: that would write beside it."""
    commands = [*READS, *WRITES]
    with (
        tempfile.TemporaryDirectory(prefix="doonce-nobody-") as own,
        closing(sqlite3.connect(readable)) as other,
    ):
        if in_use:
            other.execute("SELECT count(*) FROM doonce_clock").fetchone()
        close_to_writers(readable.parent)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(own, nobody.pw_uid, nobody.pw_gid)
        before = contents(readable.parent)
        assert (len(before) > 2) == in_use
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, f"sqlite:///{readable}", json.dumps(commands)],
            cwd=own,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        loaded, user, said = json.loads(done.stdout)
        assert contents(readable.parent) == before
    assert (loaded, user == 0) == ([0, 0], False)
    for command, (status, errors) in zip(commands, said, strict=True):
        if in_use and command in READS:
            assert (status, errors) == (0, ""), command
            continue
        assert status == UNAVAILABLE, (command, errors)
        told, mend = [line.strip() for line in errors.splitlines() if not line.startswith("migrating")]
        assert "readonly database" in told or "Permission denied" in told, (command, errors)
        assert str(readable) in told, (command, errors)
        assert mend == MEND, (command, errors)


SERVERS: dict[str, tuple[str, str, list[str], list[str]]] = {
    "postgresql": (
        "fresh_postgres",
        "postgresql+psycopg",
        ["CREATE ROLE {name} LOGIN PASSWORD 'x'", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}"],
        ["DROP OWNED BY {name}", "DROP ROLE {name}"],
    ),
    "mariadb": (
        "fresh_mariadb",
        "mysql+pymysql",
        [
            "CREATE USER {name}@'127.0.0.1' IDENTIFIED BY 'x'",
            "GRANT SELECT ON {database}.* TO {name}@'127.0.0.1'",
        ],
        ["DROP USER {name}@'127.0.0.1'"],
    ),
}
"""A new database on each server, its driver here, and how a reader of it is made and unmade."""


@contextmanager
def reader_of(url: str, driver: str, made: list[str], unmade: list[str]) -> Iterator[str]:
    """The URL of a user who may read all of the database, and nothing else."""
    place, name = sa.make_url(url), f"reader_{new_token()[:16]}"
    engine = sa.create_engine(place.set(drivername=driver), poolclass=sa.pool.NullPool)

    def tell(texts: list[str]) -> None:
        with engine.begin() as connection:
            for text in texts:
                connection.exec_driver_sql(text.format(name=name, database=place.database))

    tell(made)
    try:
        yield place.set(username=name, password="x").render_as_string(hide_password=False)
    finally:
        tell(unmade)


@pytest.mark.parametrize("server", SERVERS)
async def test_a_process_whose_user_may_only_read_a_servers_tables_does_not_start(
    request: pytest.FixtureRequest, tmp_path: Path, server: str
) -> None:
    fixture, driver, made, unmade = SERVERS[server]
    url: str = request.getfixturevalue(fixture)
    async with deployment(url, tmp_path):
        pass
    with (
        reader_of(url, driver, made, unmade) as reader,
        pytest.raises(Unavailable, match="denied") as refused,
    ):
        async with Doonce(reader, migrate=False, key_file=str(tmp_path / "keys.toml")):
            pass
    assert "GRANT" in refused.value.hint
