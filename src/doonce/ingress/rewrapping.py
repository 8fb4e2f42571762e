"""Sealing what is at rest with another key, row by row, so that the old key can be taken out of the ring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from doonce.base.records import Record
from doonce.db.database import Database
from doonce.db.schema import BODY, COUNT, IDENTITY
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch
from doonce.ingress.receipts import Sealed
from doonce.principals.vault import Vault

PAGE_ROWS: Final = 50
"""Sealed values read and replaced at once: fifty of the largest bodies are some fifty megabytes."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """Sealed values of one table with `sealed`, `key_id` and a unique name; `place` is what each is sealed for."""

    read: Statement
    replace: Statement
    place: Callable[[str], str]


class Page(Record, frozen=True):
    """Values that another key than `key_id` seals, after the row `after`."""

    shelf: Shelf
    after: str
    key_id: str


class Rewrapped(Record, frozen=True):
    """A value sealed anew; it replaces exactly the seal that was read."""

    name: str
    old_key_id: str
    sealed: Sealed


def shelf(table: sa.Table, name: str, place: Callable[[str], str]) -> Shelf:
    """The shelf of a table, for the folder that owns it."""
    column = table.c[name]

    def read(_: object) -> sa.Select[Any]:
        return (
            sa.select(column.label("name"), table.c.sealed, table.c.key_id)
            .where(
                column > sa.bindparam("after", type_=IDENTITY),
                table.c.key_id != sa.bindparam("current", type_=IDENTITY),
                table.c.sealed.is_not(None),
            )
            .order_by(column)
            .limit(sa.bindparam("rows", type_=COUNT))
        )

    def replace(_: object) -> sa.Update:
        return (
            sa.update(table)
            .where(
                column == sa.bindparam("the_name", type_=IDENTITY),
                table.c.key_id == sa.bindparam("the_key", type_=IDENTITY),
                table.c.sealed.is_not(None),
            )
            .values(
                sealed=sa.bindparam("new_sealed", type_=BODY), key_id=sa.bindparam("new_key", type_=IDENTITY)
            )
        )

    return Shelf(
        Statement(f"rewrap.{table.name}_page", read),
        Statement(f"rewrap.{table.name}_replace", replace),
        place,
    )


async def rewrap(database: Database, vault: Vault, of: Shelf) -> int:
    """Seal every value of a shelf with the ring's current key; returns how many.

    Can be stopped and run again at any point: each row is replaced whole, or not yet. What is erased meanwhile stays
    erased. Raises `Unavailable` for a value that the ring does not open; those before it are done.
    """
    done, after = 0, ""
    while True:
        found = await database.read(page, Page(of, after, vault.key_id))
        if not found:
            return done
        fresh: list[Rewrapped] = []
        for name, old in found:
            place = of.place(name)
            raw, key_id = vault.seal_bytes(place, vault.open_bytes(place, old.raw, old.key_id))
            fresh.append(Rewrapped(name, old.key_id, Sealed(raw, key_id)))
        await database.transact(replace, of, fresh)
        done, after = done + len(fresh), found[-1][0]


def page(asked: Page) -> Txn[list[tuple[str, Sealed]]]:
    """What another key seals, by name, a bounded page of it."""
    rows = yield from fetch(asked.shelf.read, after=asked.after, current=asked.key_id, rows=PAGE_ROWS)
    return [(row["name"], Sealed(bytes(row["sealed"]), row["key_id"])) for row in rows]


def replace(of: Shelf, fresh: Sequence[Rewrapped]) -> Txn[None]:
    """Replace exactly the seals that were read; what is erased or sealed anew meanwhile is left as it is."""
    for one in fresh:
        yield from fetch(
            of.replace,
            the_name=one.name,
            the_key=one.old_key_id,
            new_sealed=one.sealed.raw,
            new_key=one.sealed.key_id,
        )
