"""PROTOCOL S1, S2 on a cluster: a node without a majority is not worked with, and a bootstrapped minority dispatches
nothing until an operator has said whether commits were lost."""

from __future__ import annotations

import asyncio

import pymysql
import pytest
import sqlalchemy as sa
from tests.galera.cluster import do
from tests.galera.lagging import engine_of

from doonce.base.errors import Unavailable
from doonce.db.database import Database, open_database
from doonce.db.durability import Durability
from doonce.db.faults import DatabaseFault
from doonce.db.incarnation import Declaration, database_incarnation
from doonce.db.migrate import migrate
from doonce.ownership import store as ownership

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]
WAIT_SECONDS = 60.0


def say(url: str, text: str) -> list[tuple[object, ...]]:
    """Ask one node in its own words, or tell it something."""
    at = sa.make_url(url)  # SQLAlchemy asks for things that a node without a majority does not answer
    connection = pymysql.connect(
        host=at.host, port=at.port or 3306, user=at.username, password=at.password or "", autocommit=True
    )
    with connection, connection.cursor() as cursor:
        cursor.execute(text)
        return list(cursor.fetchall())


def is_primary(url: str) -> bool:
    return say(url, "SHOW STATUS LIKE 'wsrep_cluster_status'")[0][1] == "Primary"


def members(url: str) -> int:
    """How many nodes there are in the group that this one believes to be in."""
    return int(str(say(url, "SHOW STATUS LIKE 'wsrep_cluster_size'")[0][1]))


async def until_primary(url: str, *, wanted: bool) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while await asyncio.to_thread(is_primary, url) is not wanted:
            await asyncio.sleep(0.1)


async def until_apart(urls: list[str], wanted: list[int]) -> None:
    """Wait until each node believes to be in a group of so many."""
    async with asyncio.timeout(WAIT_SECONDS):
        while [await asyncio.to_thread(members, url) for url in urls] != wanted:
            await asyncio.sleep(0.1)


async def checked(url: str) -> tuple[Durability, Database]:
    database = open_database(url)
    durability = Durability(database)
    await durability.check()
    return durability, database


def declarations(url: str) -> list[str]:
    with engine_of(url).connect() as connection:
        rows = connection.execute(
            sa.select(database_incarnation.c.declaration).order_by(database_incarnation.c.sequence)
        )
        return [row[0].decode() if isinstance(row[0], bytes) else row[0] for row in rows]


async def migrated(url: str) -> None:
    await migrate(url, install=lambda: ownership.install("default", "sha256:test", "op_1"))


async def test_s1_a_node_that_is_cut_off_is_not_worked_with_until_it_is_back(galera_nodes: list[str]) -> None:
    await migrated(galera_nodes[0])
    durability, database = await checked(galera_nodes[1])
    assert durability.gate.open
    await do("cut", 2)
    try:
        assert not is_primary(galera_nodes[1]), "its clients reach it, and it has not noticed"
        await until_apart(galera_nodes, [2, 1, 2])
        with pytest.raises((Unavailable, DatabaseFault)):
            await durability.check()
        fresh = open_database(galera_nodes[1])
        with pytest.raises(Unavailable):
            await Durability(fresh).check()
        await fresh.close()
    finally:
        await do("mend", 2)
    await until_primary(galera_nodes[1], wanted=True)
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            try:
                await durability.check()
                break
            except (Unavailable, DatabaseFault):
                await asyncio.sleep(0.2)
    assert durability.gate.open, durability.gate.reason
    await database.close()


async def test_s2_a_bootstrapped_minority_closes_dispatch_until_it_is_declared(
    galera_nodes: list[str],
) -> None:
    url = galera_nodes[0]
    await migrated(url)
    durability, database = await checked(url)
    assert durability.gate.open, durability.gate.reason
    await do("kill", 2)
    await do("kill", 3)
    try:
        await until_primary(url, wanted=False)
        with pytest.raises((Unavailable, DatabaseFault)):
            await durability.check()
        await asyncio.to_thread(say, url, "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=1'")
        await until_primary(url, wanted=True)
        async with asyncio.timeout(WAIT_SECONDS):
            while durability.gate.open:
                try:
                    await durability.check()
                except (Unavailable, DatabaseFault):
                    await asyncio.sleep(0.1)
        assert "minority was bootstrapped" in durability.gate.reason
        await durability.declare(Declaration.LOSSY, "operator", "two nodes are gone")
        assert durability.gate.open
    finally:
        await do("start", 2)
        await do("start", 3)
    await durability.check()
    assert durability.gate.open, durability.gate.reason
    assert declarations(url)[:2] == [Declaration.FIRST.value, Declaration.LOSSY.value]
    assert set(declarations(url)[2:]) == {Declaration.FOLLOWED.value}
    await database.close()
