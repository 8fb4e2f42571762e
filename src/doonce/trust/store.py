"""Transactions over bearer credentials. A token is never here: only its SHA-256, which its 256 random bits protect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
import sqlalchemy as sa

from doonce.base.errors import MissingOrDenied
from doonce.db.schema import IDENTITY, MICROSECONDS
from doonce.db.statement import Statement
from doonce.db.transaction import Row, Txn, clock, fetch, insert_many
from doonce.trust.tables import credential

COLUMNS = tuple(column.name for column in credential.c)


class CredentialState(str, Enum):
    """Whether a credential proves anything. Revoked is for ever."""

    ACTIVE = "active"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential as an operator sees it."""

    id: str
    org: str
    installation: str
    capabilities: frozenset[str]
    state: CredentialState
    note: str
    created_at: int
    revoked_at: int | None


@dataclass(frozen=True, slots=True)
class NewCredential:
    """A credential to issue. Its id and token are made before the transaction (PROTOCOL T1)."""

    hash: str
    id: str
    org: str
    installation: str
    capabilities: frozenset[str]
    note: str


def _revoke() -> sa.Update:
    return (
        sa.update(credential)
        .where(
            credential.c.id == sa.bindparam("the_id", type_=IDENTITY),
            credential.c.state == CredentialState.ACTIVE.value,
        )
        .values(state=CredentialState.REVOKED.value, revoked_at=sa.bindparam("now_us", type_=MICROSECONDS))
    )


BY_HASH = Statement(
    "trust.by_hash",
    lambda dialect: sa.select(credential).where(
        credential.c.hash == sa.bindparam("the_hash", type_=IDENTITY)
    ),
)
LOCK_BY_ID = Statement(
    "trust.lock_by_id",
    lambda dialect: (
        sa.select(credential)
        .where(credential.c.id == sa.bindparam("the_id", type_=IDENTITY))
        .with_for_update()
    ),
)
READ_ALL = Statement(
    "trust.read_all", lambda dialect: sa.select(credential).order_by(credential.c.created_at, credential.c.id)
)
REVOKE = Statement("trust.revoke", lambda dialect: _revoke())


def issue(new: NewCredential) -> Txn[Credential]:
    """Store a credential; a rerun finds it stored already."""
    now_us = yield from clock()
    row = (
        new.hash, new.id, new.org, new.installation, _encode(new.capabilities), CredentialState.ACTIVE.value,
        new.note, now_us, None,
    )  # fmt: skip
    yield from insert_many(credential, COLUMNS, [row], skip_conflicts=True)
    rows = yield from fetch(LOCK_BY_ID, the_id=new.id)
    return read_credential(rows[0])


def revoke(credential_id: str) -> Txn[Credential | MissingOrDenied]:
    """End a credential for ever; repeatable. `MissingOrDenied`, as a value, for an id that there is not."""
    rows = yield from fetch(LOCK_BY_ID, the_id=credential_id)
    if not rows:
        return MissingOrDenied("there is no such credential", hint="`doonce credential list` has all of them")
    yield from fetch(REVOKE, the_id=credential_id, now_us=(yield from clock()))
    rows = yield from fetch(LOCK_BY_ID, the_id=credential_id)
    return read_credential(rows[0])


def by_hash(hash_of_token: str) -> Txn[tuple[str, Credential] | None]:
    """The stored hash and the credential of a token's hash, whatever its state."""
    rows = yield from fetch(BY_HASH, the_hash=hash_of_token)
    return (rows[0]["hash"], read_credential(rows[0])) if rows else None


def read_all() -> Txn[list[Credential]]:
    """Every credential, oldest first."""
    rows = yield from fetch(READ_ALL)
    return [read_credential(row) for row in rows]


def read_credential(row: Row) -> Credential:
    """The credential of a whole row."""
    return Credential(
        id=row["id"],
        org=row["org"],
        installation=row["installation"],
        capabilities=frozenset(msgspec.json.decode(row["capabilities"], type=list[str])),
        state=CredentialState(row["state"]),
        note=row["note"],
        created_at=row["created_at"],
        revoked_at=row["revoked_at"],
    )


def _encode(capabilities: Iterable[str]) -> Any:
    return msgspec.json.encode(sorted(capabilities)).decode()
