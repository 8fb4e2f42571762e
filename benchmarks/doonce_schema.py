"""doonce's own tables on a fresh database, and an owner for each family, the benchmark's among them."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import sqlalchemy as sa

from doonce.db.schema import clock as clock_table
from doonce.db.schema import metadata
from doonce.db.transaction import Txn, clock, insert_many
from doonce.ownership.store import COLUMNS
from doonce.ownership.tables import work_ownership

DEPLOYMENT = "bench"
OWNERS = ("catalog", "commands", "effects", "links", "ownership", "principals", "trust", "work")


def make_tables(url: str) -> None:
    """Every owner's tables."""
    for owner in OWNERS:
        importlib.import_module(f"doonce.{owner}.tables")
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(clock_table).values(id=1, now_us=0))
    engine.dispose()


def own(families: Sequence[str]) -> Txn[None]:
    """Let the benchmark's deployment work these families."""
    now_us = yield from clock()
    rows = [(family, DEPLOYMENT, "sha256:bench", 1, "op_bench", "active", now_us) for family in families]
    yield from insert_many(work_ownership, COLUMNS, rows, skip_conflicts=True)
