"""Principals in the database: one generation is current, rotations stay within it, fences hold it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
from tests.store.conftest import create_on_postgresql

from doonce.base.errors import Conflict, Invalid, MissingOrDenied, Stale
from doonce.base.ids import new_id
from doonce.base.secrets import Secret
from doonce.db.database import Database, open_database
from doonce.db.statement import Statement
from doonce.db.transaction import LockNames, Txn, fetch, lock_number
from doonce.principals import store
from doonce.principals.model import (
    Connect,
    Disconnection,
    Identity,
    Principal,
    PrincipalState,
    Reconnect,
    Rotation,
)
from doonce.principals.tables import token_version
from doonce.principals.vault import KeyRing, Vault

VAULT = Vault(KeyRing.generate())


def connection(name: str = "crm", org: str = "acme", principal_id: str = "") -> Connect:
    principal_id = principal_id or new_id("prn")
    token = VAULT.seal(principal_id, 1, 1, Secret("first"))
    return Connect(
        principal_id, new_id("gen"), org, "main", "pack", name, Identity("subject", "tenant"), token
    )


def reconnection(principal: Principal, after: int = 1) -> Reconnect:
    token = VAULT.seal(principal.id, after + 1, 1, Secret("second"))
    return Reconnect(
        principal.id, principal.org, principal.installation, after, new_id("gen"), Identity(), token, "test"
    )


def rotation(principal: Principal, version: int, generation: int = 1, org: str = "acme") -> Rotation:
    return Rotation(org, "main", VAULT.seal(principal.id, generation, version, Secret(f"v{version}")))


async def connected(database: Database, wanted: Connect | None = None) -> Principal:
    result = await database.transact(store.connect, wanted or connection())
    assert isinstance(result, Principal)
    return result


async def current(database: Database, principal: Principal) -> int | None:
    return (await database.transact(store.fence, [principal.id]))[principal.id]


async def test_a_connected_principal_is_found_with_its_token(database: Database) -> None:
    wanted = connection()
    principal = await connected(database, wanted)
    assert principal == Principal(
        wanted.principal_id, "acme", "main", "pack", "crm", 1, PrincipalState.CONNECTED
    )
    assert await database.read(store.by_name, [("acme", "main", "crm"), ("acme", "main", "absent")]) == {
        ("acme", "main", "crm"): principal
    }
    assert await database.read(store.get, [principal.id]) == {principal.id: principal}
    assert await database.read(store.tokens, [principal.id]) == {principal.id: wanted.token}


async def test_the_fence_knows_no_generation_of_the_unknown_and_the_disconnected(database: Database) -> None:
    principal = await connected(database)
    gone = await connected(database, connection("gone"))
    await database.transact(store.disconnect, Disconnection(gone.id, "acme", "main", 1, "test"))
    assert await database.transact(store.fence, [principal.id, gone.id, "prn_absent"]) == {
        principal.id: 1,
        gone.id: None,
        "prn_absent": None,
    }
    assert await database.transact(store.fence, []) == {}


async def test_t5_a_rerun_of_connect_finds_itself_and_a_taken_name_conflicts(database: Database) -> None:
    wanted = connection()
    assert await connected(database, wanted) == await connected(database, wanted)
    assert isinstance(await database.transact(store.connect, connection()), Conflict)
    await connected(database, connection(org="other"))


async def test_a_race_for_a_name_has_one_winner(database: Database) -> None:
    results = await asyncio.gather(*[database.transact(store.connect, connection()) for _ in range(8)])
    assert sum(isinstance(result, Principal) for result in results) == 1
    assert sum(isinstance(result, Conflict) for result in results) == 7


async def test_a_reconnect_begins_the_next_generation_and_ends_the_old_one(database: Database) -> None:
    principal = await connected(database)
    wanted = reconnection(principal)
    for _ in range(2):  # again, as after an unknown commit
        result = await database.transact(store.reconnect, wanted)
        assert isinstance(result, Principal)
        assert result.current == 2
        assert await current(database, principal) == 2
        assert await database.read(store.tokens, [principal.id]) == {principal.id: wanted.token}
    rival = await database.transact(store.reconnect, reconnection(principal))
    assert isinstance(rival, Stale)
    assert rival.axis == "generation"


async def test_a_disconnected_principal_reconnects_in_a_new_generation(database: Database) -> None:
    principal = await connected(database)
    ended = Disconnection(principal.id, "acme", "main", 1, "test")
    for _ in range(2):
        result = await database.transact(store.disconnect, ended)
        assert isinstance(result, Principal)
        assert result.current is None
    assert await database.read(store.tokens, [principal.id]) == {}
    again = await database.transact(store.reconnect, reconnection(principal))
    assert isinstance(again, Principal)
    assert again.current == 2
    late = await database.transact(store.disconnect, ended)
    assert isinstance(late, Stale)
    assert await current(database, principal) == 2


async def test_a_rotation_keeps_the_generation_and_comes_in_order(database: Database) -> None:
    principal = await connected(database)
    wanted = rotation(principal, 2)
    for _ in range(2):
        assert await database.transact(store.rotate, wanted) == 2
    assert await current(database, principal) == 1
    assert await database.read(store.tokens, [principal.id]) == {principal.id: wanted.token}
    for version in (2, 4):
        refused = await database.transact(store.rotate, rotation(principal, version))
        assert isinstance(refused, Stale)
        assert refused.axis == "token_version"


async def test_a_rotation_in_an_ended_generation_is_stale(database: Database) -> None:
    principal = await connected(database)
    await database.transact(store.reconnect, reconnection(principal))
    refused = await database.transact(store.rotate, rotation(principal, 2))
    assert isinstance(refused, Stale)
    assert refused.axis == "generation"


async def test_superseded_secrets_are_erased(database: Database) -> None:
    principal = await connected(database)
    await database.transact(store.rotate, rotation(principal, 2))
    assert await sealed_versions(database) == [(1, 2)]
    await database.transact(store.reconnect, reconnection(principal))
    assert await sealed_versions(database) == [(2, 1)]
    await database.transact(store.disconnect, Disconnection(principal.id, "acme", "main", 2, "test"))
    assert await sealed_versions(database) == []


SEALED = Statement(
    "test.sealed_tokens",
    lambda dialect: sa.select(token_version.c.generation, token_version.c.version).where(
        token_version.c.sealed.is_not(None)
    ),
)


async def sealed_versions(database: Database) -> list[tuple[int, int]]:
    return [(row[0], row[1]) for row in await database.read(lambda: fetch(SEALED))]


async def test_another_scope_looks_like_a_missing_principal(database: Database) -> None:
    principal = await connected(database)
    foreign = [
        await database.transact(store.rotate, rotation(principal, 2, org="other")),
        await database.transact(store.disconnect, Disconnection(principal.id, "other", "main", 1, "")),
        await database.transact(store.disconnect, Disconnection("prn_absent", "acme", "main", 1, "")),
    ]
    assert all(isinstance(result, MissingOrDenied) for result in foreign)
    assert len({str(result) for result in foreign}) == 1
    assert await current(database, principal) == 1


async def test_unstorable_texts_are_refused(database: Database) -> None:
    with pytest.raises(Invalid, match="name"):
        await database.transact(store.connect, connection(name="x" * 129))


async def test_tokens_under_other_keys_are_found(database: Database) -> None:
    principal = await connected(database)
    assert await database.read(store.tokens_under_other_keys, VAULT.key_id) == []
    (found,) = await database.read(store.tokens_under_other_keys, "another")
    assert found.principal_id == principal.id


@pytest.fixture
async def postgresql(fresh_postgres: str) -> AsyncIterator[Database]:
    await create_on_postgresql(fresh_postgres)
    opened = open_database(fresh_postgres)
    yield opened
    await opened.close()


def end_by_reconnect(principal: Principal) -> tuple[Any, Any]:
    return store.reconnect, reconnection(principal)


def end_by_disconnect(principal: Principal) -> tuple[Any, Any]:
    return store.disconnect, Disconnection(principal.id, "acme", "main", 1, "test")


@pytest.mark.parametrize("ending", [end_by_reconnect, end_by_disconnect])
async def test_d2_a_generation_ends_only_after_the_effects_that_share_its_fence(
    postgresql: Database, ending: Callable[[Principal], tuple[Any, Any]]
) -> None:
    principal = await connected(postgresql)
    operation, wanted = ending(principal)
    effect: asyncpg.Connection[Any] = await asyncpg.connect(postgresql.url)
    watch: asyncpg.Connection[Any] = await asyncpg.connect(postgresql.url)
    async with effect.transaction():
        await effect.execute(
            "SELECT pg_advisory_xact_lock_shared($1)", lock_number(store.lock_name(principal.id))
        )
        ended = asyncio.create_task(postgresql.transact(operation, wanted))
        async with asyncio.timeout(10):
            while not await watch.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                assert not ended.done()
        assert await watch.fetchval("SELECT current_generation FROM principal") == 1
    assert isinstance(await ended, Principal)
    await effect.close()
    await watch.close()


LOCKS = sa.table("pg_locks", sa.column("mode"), sa.column("locktype"), sa.column("pid"), sa.column("objid"))
HELD = Statement(
    "test.held_locks",
    lambda dialect: sa.select(LOCKS.c.mode).where(
        LOCKS.c.locktype == "advisory", LOCKS.c.pid == sa.func.pg_backend_pid()
    ),
)


async def test_s3_the_fence_is_a_shared_named_lock_taken_before_the_read(postgresql: Database) -> None:
    principal = await connected(postgresql)

    def fenced() -> Txn[tuple[list[str], dict[str, int | None]]]:
        calls = store.fence([principal.id])
        lock = next(calls)
        assert isinstance(lock, LockNames)
        yield lock
        held = yield from fetch(HELD)
        generations = yield from calls
        return [row[0] for row in held], generations

    assert await postgresql.transact(fenced) == (["ShareLock"], {principal.id: 1})
