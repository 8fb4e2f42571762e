"""What a process proves before it works, and keeps proving while it does (DESIGN rule 12, PROTOCOL S1, S2).

The schema is this release's; the database keeps what it commits; it is the database whose commits were relied
on. The first two refuse the start. A doubt about the third closes dispatch until an operator's declaration, and
everything else goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import structlog

from doonce.app.engine import Engine
from doonce.app.opening import key_file, key_ring, sqlite_file
from doonce.app.settings import Settings
from doonce.app.web.readiness import Readiness
from doonce.base.digests import digest_bytes
from doonce.base.errors import DoonceError, Unavailable
from doonce.base.ids import new_token
from doonce.db import migrate as migration
from doonce.db import verify
from doonce.db.clock_mark import ClockMark
from doonce.db.durability import Durability
from doonce.db.faults import DatabaseFault
from doonce.db.incarnation import Declaration
from doonce.db.migrate import MigrationReport, migrate
from doonce.ingress import secrets
from doonce.ownership import store as ownership
from doonce.principals import store as principals
from doonce.trust import (
    tables as _trust_tables,
)  # every owner's tables have to be known before a schema is compared
from doonce.work.claimers import older_claimers

__all__ = [
    "Watch",
    "declare_incarnation",
    "look_at_dispatch",
    "migrate_database",
    "migrate_if_allowed",
    "prove",
    "prove_keys",
    "prove_schema",
]

log: Final = structlog.get_logger("doonce.proof")
TABLES: Final = _trust_tables.credential.metadata


def release_digest() -> str:
    """What this release is, as ownership records it."""
    try:
        released = version("doonce")
    except PackageNotFoundError:
        released = "from source"
    return digest_bytes(f"doonce {released}".encode())


async def migrate_database(settings: Settings, *, after: bool = False) -> MigrationReport:
    """Bring the database to what this release needs; families without an owner become this deployment's.

    `after` is an operator's word that no process of an older release is left: what those needed goes too. It is refused
    (`Unavailable`) while one is seen at work.
    """
    operation_id = new_token()
    return await migrate(
        settings.database,
        install=lambda: ownership.install(settings.deployment, release_digest(), operation_id),
        older=older_claimers if after else None,
    )


async def migrate_if_allowed(settings: Settings, allowed: bool | None) -> None:
    """Migrate where that was asked for, and a SQLite file by itself: nobody else is using an older release of it."""
    if allowed or (allowed is None and sqlite_file(settings.database) is not None):
        await migrate_database(settings)


async def prove_schema(url: str) -> None:
    """Raise `Unavailable`, which names the differences and what to do, unless the schema is this release's."""
    await verify.require(url)


async def prove_keys(engine: Engine, settings: Settings) -> None:
    """Raise `Unavailable` when a secret is sealed with a key that this process lacks."""
    ring = await asyncio.to_thread(key_ring, settings)
    tokens = await engine.database.read(principals.tokens_under_other_keys, ring.current)
    webhooks = await engine.database.read(secrets.keys_in_use)
    lacking = sorted(({token.key_id for token in tokens} | webhooks) - set(ring.keys))
    if lacking:
        raise Unavailable(
            f"the key file {key_file(settings)} lacks the keys {', '.join(lacking)}, which seal secrets here",
            hint="copy the key file of the host that connected them, and name it as key_file",
        )


class Watch:
    """Keeps the proof true, and readiness with it."""

    def __init__(self, engine: Engine, durability: Durability, mark: ClockMark) -> None:
        self._engine = engine
        self._durability = durability
        self._mark = mark

    async def look(self, readiness: Readiness) -> None:
        """Look once: is the database there, is it the one, may this release work on it, and whose are the families.

        On a schema that was taken from under this release nothing more is claimed, for good. Ends what frozen processes
        hold, too, and notes the time. What cannot be reached closes nothing: no mark can commit there either.
        """
        try:
            await self._durability.check()
            await self._durability.end_frozen()
            await self._mark.keep()
            outgrown_by = await self._engine.database.read(migration.outgrown_by)
            owners = await self._engine.database.read(ownership.read_all)
        except (DoonceError, DatabaseFault) as error:
            readiness.blocked("database", str(error))
            return
        readiness.clear("database")
        if outgrown_by is not None:
            cause = f"step {outgrown_by} took away what this release needs: start the release that migrated"
            readiness.blocked("schema", cause)
            self._engine.begin_drain()
        gate = self._durability.gate
        if gate.open:
            readiness.clear("dispatch")
        else:
            readiness.blocked("dispatch", gate.reason)
        deployment = self._engine.settings.deployment
        foreign = sorted(owner.family for owner in owners if not owner.admits(deployment))
        if foreign or not owners:
            readiness.blocked("ownership", f"{deployment} does not own: {', '.join(foreign) or 'any family'}")
        else:
            readiness.clear("ownership")

    async def run(self, readiness: Readiness) -> None:
        """Look for ever, and log each change of what is lacking."""
        told = readiness.causes()
        while True:
            await self.look(readiness)
            causes = readiness.causes()
            if causes.keys() != told.keys():
                if causes:
                    log.warning("not ready", **causes)
                else:
                    log.info("ready again")
            told = causes
            await asyncio.sleep(self._durability.settings.check_every_seconds)


async def prove(engine: Engine, settings: Settings) -> Watch:
    """Prove the schema, the durability, the clock and the incarnation, before anything is claimed.

    Raises `Unavailable` for the first three, and for secrets that could not be opened. A doubtful incarnation closes
    the engine's dispatch, and is logged.
    """
    await prove_schema(engine.database.url)
    await prove_keys(engine, settings)
    durability = Durability(engine.database, settings.durability)
    await durability.check()
    mark = ClockMark(engine.database)
    await mark.prove()
    engine.gate = durability.gate
    if not durability.gate.open:
        log.warning("dispatch is closed", reason=durability.gate.reason)
    return Watch(engine, durability, mark)


async def look_at_dispatch(engine: Engine, settings: Settings) -> None:
    """Let the engine's gate say what a process would say that started now; for commands that start nothing."""
    durability = Durability(engine.database, settings.durability)
    engine.gate = durability.gate
    with contextlib.suppress(Unavailable):  # the gate has the reason
        await durability.check()
    doubt = await ClockMark(engine.database).doubt()
    if doubt and durability.gate.open:
        durability.gate.set(doubt)


async def declare_incarnation(
    engine: Engine, settings: Settings, declaration: Declaration, who: str, reason: str
) -> dict[str, str]:
    """Accept the database as it is now, on an operator's word (PROTOCOL S2); what was recorded."""
    durability = Durability(engine.database, settings.durability)
    accepted = await durability.declare(declaration, who, reason)
    return {
        "incarnation": accepted.id,
        "declared": accepted.declaration.value,
        "by": accepted.operator,
        "reason": accepted.reason,
    }
