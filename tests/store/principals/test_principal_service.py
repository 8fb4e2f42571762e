"""The secret of one call: cached briefly, never of another generation, and rewrapped without a new one."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from doonce.base.errors import Conflict, MissingOrDenied, Stale, Unavailable
from doonce.base.secrets import Secret
from doonce.db.database import Database
from doonce.principals.model import Principal
from doonce.principals.service import Principals
from doonce.principals.vault import KeyRing, Vault

SECOND_NS = 1_000_000_000


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.ns = 5 * SECOND_NS

    def __call__(self) -> int:
        return self.ns


class Reads:
    """Counts what is read of a database."""

    def __init__(self, database: Database) -> None:
        self.count = 0
        self._read = database.read
        database.read = self  # type: ignore[method-assign]  # the test looks over the database's shoulder

    async def __call__(self, operation: Callable[..., Any], *args: Any) -> Any:
        self.count += 1
        return await self._read(operation, *args)


RING = KeyRing.generate()


def principals(database: Database, clock: Clock | None = None, ring: KeyRing = RING) -> Principals:
    return Principals(database, Vault(ring), now_ns=clock or Clock())


async def connect(service: Principals, name: str = "crm", secret: str = "first") -> Principal:
    return await service.connect(
        org="acme", installation="main", pack="pack", name=name, secret=Secret(secret)
    )


async def test_the_secret_of_the_current_generation_is_given(database: Database) -> None:
    service = principals(database)
    principal = await connect(service)
    assert (await service.secret(principal.id, 1)).reveal() == "first"
    assert await service.find("acme", "main", "crm") == principal
    with pytest.raises(MissingOrDenied):
        await service.find("other", "main", "crm")
    with pytest.raises(Conflict):
        await connect(service)


async def test_the_id_of_a_name_is_read_once(database: Database) -> None:
    service = principals(database)
    with pytest.raises(MissingOrDenied):
        await service.id_of("acme", "main", "crm")
    principal = await connect(service)
    reads = Reads(database)
    for _ in range(3):
        assert await service.id_of("acme", "main", "crm") == principal.id
    assert reads.count == 1


async def test_many_calls_read_once_an_interval(database: Database) -> None:
    clock = Clock()
    service = principals(database, clock)
    principal = await connect(service)
    reads = Reads(database)
    await asyncio.gather(*[service.secret(principal.id, 1) for _ in range(20)])
    await service.secret(principal.id, 1)
    assert reads.count == 1
    clock.ns += SECOND_NS - 1
    await service.secret(principal.id, 1)
    assert reads.count == 1
    clock.ns += 1
    await service.secret(principal.id, 1)
    assert reads.count == 2


async def test_a_rotation_here_is_seen_at_once_and_elsewhere_within_the_interval(database: Database) -> None:
    clock = Clock()
    service, elsewhere = principals(database, clock), principals(database)
    principal = await connect(service)
    await service.secret(principal.id, 1)
    assert await service.rotate(principal, Secret("second")) == 2
    assert (await service.secret(principal.id, 1)).reveal() == "second"
    assert await elsewhere.rotate(principal, Secret("third")) == 3
    clock.ns += SECOND_NS
    assert (await service.secret(principal.id, 1)).reveal() == "third"


async def test_a_generation_that_is_not_current_gets_no_secret(database: Database) -> None:
    clock = Clock()
    service, elsewhere = principals(database, clock), principals(database)
    principal = await connect(service)
    await service.secret(principal.id, 1)
    again = await elsewhere.reconnect(principal, Secret("other account"), reason="test")
    assert (await service.secret(principal.id, 2)).reveal() == "other account"
    with pytest.raises(Stale) as stale:
        await service.secret(principal.id, 1)
    assert stale.value.axis == "generation"
    await elsewhere.disconnect(again, reason="test")
    clock.ns += SECOND_NS
    for generation in (1, 2, 3):
        with pytest.raises(Stale):
            await service.secret(principal.id, generation)
    with pytest.raises(Stale):
        await service.secret("prn_absent", 1)


async def test_a_read_that_began_before_a_rotation_does_not_bring_the_old_secret_back(
    database: Database,
) -> None:
    service = principals(database)
    principal = await connect(service)
    read, began, held = database.read, asyncio.Event(), asyncio.Event()

    async def slow_read(operation: Any, *args: Any) -> Any:
        result = await read(operation, *args)
        began.set()
        await held.wait()
        return result

    database.read = slow_read  # type: ignore[method-assign]  # holds the answer back
    early = asyncio.create_task(service.secret(principal.id, 1))
    await began.wait()
    await rotate_elsewhere(database, read, principal)
    service.forget(principal.id)
    held.set()
    assert (await early).reveal() in ("first", "second")
    assert (await service.secret(principal.id, 1)).reveal() == "second"


async def rotate_elsewhere(database: Database, read: Any, principal: Principal) -> None:
    slow, database.read = database.read, read  # type: ignore[method-assign]  # the rival is not held back
    await principals(database).rotate(principal, Secret("second"))
    database.read = slow  # type: ignore[method-assign]  # held again


async def test_concurrent_rotations_all_happen_in_some_order(database: Database) -> None:
    service = principals(database)
    principal = await connect(service)
    versions = await asyncio.gather(*[service.rotate(principal, Secret(f"r{at}")) for at in range(4)])
    assert sorted(versions) == [2, 3, 4, 5]


async def test_a_rewrap_moves_every_secret_to_the_new_key_within_its_generation(database: Database) -> None:
    old = principals(database)
    kept = [await connect(old, name, f"secret of {name}") for name in ("a", "b")]
    gone = await connect(old, "gone")
    await old.disconnect(gone, reason="test")
    ring = RING.with_new_key()
    assert await principals(database, ring=ring).rewrap() == 2
    assert await principals(database, ring=ring).rewrap() == 0
    alone = principals(database, ring=KeyRing(ring.current, {ring.current: ring.keys[ring.current]}))
    for principal in kept:
        secret = await alone.secret(principal.id, principal.generation)
        assert secret.reveal() == f"secret of {principal.name}"


async def test_a_ring_without_the_key_says_which_is_missing(database: Database) -> None:
    principal = await connect(principals(database))
    stranger = principals(database, ring=KeyRing.generate())
    for _ in range(2):
        with pytest.raises(Unavailable, match=RING.current):
            await stranger.secret(principal.id, 1)
    with pytest.raises(Unavailable, match=RING.current):
        await stranger.rewrap()
