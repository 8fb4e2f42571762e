"""doonce's schema on a fresh database, with an owner for each family, the benchmark's among them."""

from __future__ import annotations

from collections.abc import Sequence

from doonce.db.database import Database
from doonce.db.migrate import migrate
from doonce.db.transaction import Txn, clock, insert_many
from doonce.ownership import store as ownership
from doonce.ownership.model import OwnershipState
from doonce.ownership.tables import work_ownership

DEPLOYMENT = "bench"
RELEASE, OPERATION = "sha256:bench", "op_bench"


async def make_tables(url: str) -> None:
    """What `doonce migrate` does."""
    await migrate(url, install=_install)


def _install() -> Txn[None]:
    yield from ownership.install(DEPLOYMENT, RELEASE, OPERATION)


async def own(database: Database, family: str) -> None:
    """Let the benchmark's deployment work a family that the product does not have."""
    await database.transact(_own, [family])


def _own(families: Sequence[str]) -> Txn[None]:
    now_us = yield from clock()
    rows = [
        (family, DEPLOYMENT, RELEASE, 1, OPERATION, OwnershipState.ACTIVE.value, now_us)
        for family in families
    ]
    yield from insert_many(work_ownership, ownership.COLUMNS, rows, skip_conflicts=True)
