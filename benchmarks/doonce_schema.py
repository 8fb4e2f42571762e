"""doonce's own tables on a fresh database, and an owner for each family, the benchmark's among them."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import sqlalchemy as sa

from doonce.db.schema import metadata
from doonce.db.transaction import Txn, clock, insert_many
from doonce.ownership.store import COLUMNS
from doonce.ownership.tables import work_ownership

DEPLOYMENT = "bench"
OWNERS = ("commands", "effects", "links", "ownership", "principals", "work")


def make_tables(url: str) -> None:
    """Every owner's tables."""
    for owner in OWNERS:
        importlib.import_module(f"doonce.{owner}.tables")
    plain = url.replace("postgresql://", "postgresql+psycopg://")
    engine = sa.create_engine(plain)
    metadata.create_all(engine)
    engine.dispose()


def own(families: Sequence[str]) -> Txn[None]:
    """Let the benchmark's deployment work these families."""
    now_us = yield from clock()
    rows = [(family, DEPLOYMENT, "sha256:bench", 1, "op_bench", "active", now_us) for family in families]
    yield from insert_many(work_ownership, COLUMNS, rows, skip_conflicts=True)
