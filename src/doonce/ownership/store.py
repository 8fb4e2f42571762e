"""Transactions over ownership."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from doonce.db.schema import IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, clock, fetch, insert_many, lock_exclusive, lock_shared
from doonce.ownership.model import Family, Ownership, OwnershipState
from doonce.ownership.tables import work_ownership

COLUMNS = tuple(column.name for column in work_ownership.c)


def _read(dialect: Dialect) -> sa.Select[tuple[object, ...]]:
    families = dialect.batch("families", family=IDENTITY)
    return sa.select(work_ownership).join(families.source, families.c.family == work_ownership.c.family)


READ = Statement("ownership.read", _read)
READ_ALL = Statement("ownership.read_all", lambda dialect: sa.select(work_ownership))


def lock_names(families: Iterable[str]) -> list[str]:
    """The named locks that fence these families."""
    return [f"ownership:{family}" for family in families]


def fence(families: Iterable[str], then: Iterable[str] = ()) -> Txn[dict[str, Ownership]]:
    """The owners of these families, held against a transfer until this transaction ends (PROTOCOL S3, D2).

    First in every transaction that claims or acts: ownership comes first in the lock order (T4). `then` are named locks
    that come next, shared in the same trip.
    """
    wanted = sorted(set(families))
    yield from lock_shared(lock_names(wanted), then)
    rows = yield from fetch(READ, families=[(family,) for family in wanted])
    return {row["family"]: _ownership(row) for row in rows}


def _ownership(row: object) -> Ownership:
    values = dict(zip(COLUMNS, row, strict=True))  # type: ignore[call-overload]  # rows of both drivers are iterable
    return Ownership(
        family=values["family"],
        deployment=values["deployment"],
        release_digest=values["release_digest"],
        epoch=values["epoch"],
        operation_id=values["operation_id"],
        state=OwnershipState(values["state"]),
    )


def read_all() -> Txn[list[Ownership]]:
    """Every family's owner."""
    rows = yield from fetch(READ_ALL)
    return [_ownership(row) for row in rows]


def install(deployment: str, release_digest: str, operation_id: str) -> Txn[list[Ownership]]:
    """Give every family that has no owner yet to `deployment`, in epoch 1. Existing owners are left alone."""
    families = [family.value for family in Family]
    yield from lock_exclusive(lock_names(families))
    now_us = yield from clock()
    yield from insert_many(
        work_ownership,
        COLUMNS,
        [
            (family, deployment, release_digest, 1, operation_id, OwnershipState.ACTIVE.value, now_us)
            for family in families
        ],
        skip_conflicts=True,
    )
    return (yield from read_all())
