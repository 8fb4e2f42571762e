"""The scratch place: made, marked, dropped; and whatever is not it is refused and left alone."""

import asyncio
import os
import sqlite3
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec
import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql
from tests.conformance.running import conformance
from tests.process.effects.proxy import proxied

from doonce.base.errors import Conflict, Forbidden, Invalid
from doonce.base.ids import new_token
from doonce.conformance.jobs import ClaimJob, Place
from doonce.conformance.model import Broken
from doonce.conformance.processes import processes
from doonce.conformance.scratch import MARKER, PREFIX, Scratch, scratch
from doonce.db.statement import DialectName


def mark(url: str, name: str, guard: str) -> None:
    """Write another guard into the marker's row."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        with sqlite3.connect(Path(parts.path).with_name(name)) as file:
            file.execute("UPDATE doonce_conformance SET guard = ?", (guard,))
        file.close()
        return
    if parts.scheme == "mysql":
        engine = sa.create_engine(sa.make_url(url).set(drivername="mysql+pymysql", database=name))
        with engine.begin() as connection:
            connection.execute(MARKER.update().values(guard=guard))
        engine.dispose()
        return
    with psycopg.connect(url) as connection:
        connection.execute(
            sql.SQL("UPDATE {}.doonce_conformance SET guard = %s").format(sql.Identifier(name)), (guard,)
        )


async def test_it_is_made_marked_and_dropped(database_url: str) -> None:
    async with scratch(database_url) as place:
        assert place.name.startswith(PREFIX)
        assert place.guard in place.name
        await place.check()
    with pytest.raises(Conflict):
        await place.check()


async def test_two_runs_at_once_do_not_meet(database_url: str) -> None:
    async with scratch(database_url) as one, scratch(database_url) as other:
        assert one.name != other.name
        await asyncio.gather(one.check(), other.check())


async def test_a_place_whose_mark_is_another_is_not_dropped(database_url: str) -> None:
    with pytest.raises(Conflict, match="does not have the mark of this run"):
        async with scratch(database_url) as place:
            await asyncio.to_thread(mark, database_url, place.name, "somebody else's")
    await asyncio.to_thread(mark, database_url, place.name, place.guard)  # it is still there
    await place.check()


async def test_it_is_dropped_although_the_database_is_gone_for_a_moment(fresh_mariadb: str) -> None:
    server = sa.make_url(fresh_mariadb)
    with proxied(server.host or "", server.port or 3306) as proxy:
        by_proxy = server.set(host="127.0.0.1", port=proxy.port)
        async with scratch(by_proxy.render_as_string(hide_password=False)) as place:
            proxy.cut()
            back = asyncio.get_running_loop().call_later(1.0, proxy.restore)
    assert back.when() <= asyncio.get_running_loop().time(), "it did not wait"
    there = Scratch(fresh_mariadb, fresh_mariadb, place.name, place.guard, place.dialect)
    with pytest.raises(Conflict, match="is gone"):
        await there.check()


async def test_the_file_of_the_url_is_neither_read_nor_written(tmp_path: Path) -> None:
    mine = tmp_path / "mine.db"
    mine.write_bytes(b"not even a database")
    async with scratch(f"sqlite:///{mine}"):
        pass
    assert mine.read_bytes() == b"not even a database"
    assert os.listdir(tmp_path) == [mine.name]  # noqa: PTH208 (a list at once)


async def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="no file can be made"):
        async with scratch(f"sqlite:///{tmp_path / 'no' / 'such.db'}"):
            pass


async def test_a_user_who_may_not_create_is_refused(fresh_postgres: str) -> None:
    parts = urlsplit(fresh_postgres)
    user = f"reader_{new_token()}"
    with psycopg.connect(fresh_postgres, autocommit=True) as server:
        server.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'reader'").format(sql.Identifier(user)))
        try:
            where = parts.netloc.rpartition("@")[2]
            url = urlunsplit(parts._replace(netloc=f"{user}:reader@{where}"))
            with pytest.raises(Forbidden, match="may not create a schema") as refused:
                async with scratch(url):
                    pass
            assert "GRANT CREATE" in refused.value.hint
        finally:
            server.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(user)))


async def test_a_user_of_mariadb_who_may_not_create_is_refused(fresh_mariadb: str) -> None:
    place = sa.make_url(fresh_mariadb)
    user = f"reader_{new_token()[:16]}"
    engine = sa.create_engine(place.set(drivername="mysql+pymysql"))
    with engine.begin() as server:
        server.exec_driver_sql(f"CREATE USER {user}@'127.0.0.1' IDENTIFIED BY 'reader'")
        server.exec_driver_sql(f"GRANT SELECT ON {place.database}.* TO {user}@'127.0.0.1'")
        try:
            url = place.set(username=user, password="reader").render_as_string(hide_password=False)
            with pytest.raises(Forbidden, match="may not create a database") as refused:
                async with scratch(url):
                    pass
            assert "GRANT ALL" in refused.value.hint
        finally:
            server.exec_driver_sql(f"DROP USER {user}@'127.0.0.1'")
    engine.dispose()


@pytest.mark.process
async def test_a_worker_refuses_a_place_without_the_mark(tmp_path: Path) -> None:
    async with scratch(f"sqlite:///{tmp_path / 'x.db'}") as made:
        place = Place(
            url=made.url, home=made.home, name=made.name, guard=made.guard, key="00" * 32, origin="http://127.0.0.1:1",
            org="o", installation="i", capability="c",
        )  # fmt: skip
        job = ClaimJob(place=place, owner="prc_1", items=(), rows_max=1, lease_us=1)
        with processes() as forks:
            process = await forks.start(job)
            await process.begin()
            assert (await process.result()).took == ()
            wrong = msgspec.structs.replace(place, guard=new_token())
            with pytest.raises(Broken, match="Conflict"):
                await forks.start(msgspec.structs.replace(job, place=wrong))


async def test_a_place_that_is_not_named_as_one_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'production.db'}"
    with pytest.raises(Conflict, match="not a scratch place"):
        await Scratch(url, url, "production.db", new_token(), DialectName.SQLITE).check()


@pytest.mark.process
@pytest.mark.parametrize(
    "options, said",
    [
        (("sqlite:///:memory:",), "cannot survive a crash"),
        (("oracle://x",), "is not supported"),
        (("sqlite:///x.db", "--case", "one-loser"), "there is no case 'one-loser'"),
    ],
)
def test_a_wrong_question_is_refused_with_what_to_do(options: tuple[str, ...], said: str) -> None:
    ran = conformance(*options)
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert "next: " in ran.err
