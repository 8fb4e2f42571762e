"""The active secrets of routes: several at a time, so that one can be replaced while the other still signs.

At rest they are sealed for their row, and erased when they end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from doonce.base.errors import Exhausted, MissingOrDenied
from doonce.base.keys import frame
from doonce.base.records import Record
from doonce.db.schema import BODY, IDENTITY, MICROSECONDS
from doonce.db.statement import Statement
from doonce.db.transaction import Row, Txn, clock, fetch, insert_many, lock_exclusive
from doonce.ingress.receipts import RouteKey, Sealed
from doonce.ingress.tables import webhook_secret
from doonce.ingress.verify import SECRETS_MAX

COLUMNS = tuple(column.name for column in webhook_secret.c)


class NewSecret(Record, frozen=True):
    """A secret to add. `alone` ends every other one of the route, in the same transaction."""

    id: str
    route: RouteKey
    sealed: Sealed
    alone: bool


class StoredSecret(Record, frozen=True):
    """An active secret of a route, still sealed."""

    id: str
    sealed: Sealed
    created_at: int


def _of_route() -> list[sa.ColumnElement[bool]]:
    names = ("org", "installation", "capability", "webhook")
    return [webhook_secret.c[name] == sa.bindparam(f"the_{name}", type_=IDENTITY) for name in names]


ACTIVE = Statement(
    "ingress.active_secrets",
    lambda dialect: (
        sa.select(webhook_secret)
        .where(*_of_route(), webhook_secret.c.ended_at.is_(None))
        .order_by(webhook_secret.c.created_at.desc(), webhook_secret.c.id.desc())
    ),
)
KEYS_IN_USE = Statement(
    "ingress.keys_in_use",
    lambda dialect: sa.select(webhook_secret.c.key_id).where(webhook_secret.c.ended_at.is_(None)).distinct(),
)
END = Statement(
    "ingress.end_secret",
    lambda dialect: (
        sa.update(webhook_secret)
        .where(
            *_of_route(),
            webhook_secret.c.id == sa.bindparam("the_id", type_=IDENTITY),
            webhook_secret.c.ended_at.is_(None),
        )
        .values(
            ended_at=sa.bindparam("now_us", type_=MICROSECONDS), sealed=sa.bindparam("nothing", type_=BODY)
        )
    ),
)


def place_of(secret_id: str) -> str:
    """What a secret is sealed for."""
    return frame("webhook_secret", secret_id)


def active(route: RouteKey) -> Txn[list[StoredSecret]]:
    """The active secrets of a route, newest first."""
    rows = yield from fetch(ACTIVE, **_named(route))
    return [_read(row) for row in rows]


def keys_in_use() -> Txn[frozenset[str]]:
    """The keys that seal active secrets: a process that receives needs each of them."""
    return frozenset(row[0] for row in (yield from fetch(KEYS_IN_USE)))


def add(new: NewSecret) -> Txn[list[StoredSecret] | Exhausted]:
    """Make a secret active; returns all that are active then. `Exhausted`, as a value, where they are too many.

    Repeatable: a rerun finds its own row.
    """
    yield from lock_exclusive([_lock(new.route)])
    now_us = yield from clock()
    known = yield from active(new.route)
    if new.alone:
        yield from _end(new.route, (secret.id for secret in known if secret.id != new.id), now_us)
    elif len([secret for secret in known if secret.id != new.id]) >= SECRETS_MAX:
        return Exhausted(
            f"the route has {SECRETS_MAX} active secrets", hint="end one with --alone, or by its id"
        )
    row = (new.id, *new.route.parts, new.sealed.raw, new.sealed.key_id, now_us, None)
    yield from insert_many(webhook_secret, COLUMNS, [row], skip_conflicts=True)
    return (yield from active(new.route))


def end(route: RouteKey, secret_id: str) -> Txn[list[StoredSecret] | MissingOrDenied]:
    """End a secret and erase it; `MissingOrDenied`, as a value, for one that is not active there."""
    yield from lock_exclusive([_lock(route)])
    now_us = yield from clock()
    known = yield from active(route)
    if secret_id not in {secret.id for secret in known}:
        return MissingOrDenied("the route has no such active secret")
    yield from _end(route, [secret_id], now_us)
    return [secret for secret in known if secret.id != secret_id]


def _end(route: RouteKey, ids: Iterable[str], now_us: int) -> Txn[None]:
    for secret_id in sorted(ids):
        yield from fetch(END, **_named(route), the_id=secret_id, now_us=now_us, nothing=None)


def _named(route: RouteKey) -> dict[str, Any]:
    names = ("the_org", "the_installation", "the_capability", "the_webhook")
    return dict(zip(names, route.parts, strict=True))


def _lock(route: RouteKey) -> str:
    return frame("webhook_secrets", *route.parts)


def _read(row: Row) -> StoredSecret:
    return StoredSecret(row["id"], Sealed(bytes(row["sealed"]), row["key_id"]), row["created_at"])
