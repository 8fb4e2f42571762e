"""Transactions over principals. Whoever ends or begins a generation holds its named lock alone (PROTOCOL S3, T4).

A pinned generation is checked by `fence`, which shares that lock: a transfer of the principal waits for the effects
under way, and no effect starts in a generation that has ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from doonce.base.errors import Conflict, MissingOrDenied, Stale
from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, clock, fetch, insert_many, lock_exclusive, lock_shared
from doonce.principals.model import (
    Connect,
    Disconnection,
    GenerationState,
    Identity,
    Principal,
    PrincipalName,
    PrincipalState,
    Reconnect,
    Rotation,
    Token,
    generation_stale,
)
from doonce.principals.tables import binding_generation, principal, token_version

PRINCIPAL_COLUMNS = tuple(column.name for column in principal.c)
GENERATION_COLUMNS = tuple(column.name for column in binding_generation.c)
TOKEN_COLUMNS = tuple(column.name for column in token_version.c)
READ_COLUMNS = ("id", "org", "installation", "pack", "name", "current_generation", "state")


def _select() -> sa.Select[Any]:
    return sa.select(*[principal.c[name] for name in READ_COLUMNS])


def _by_id(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return (
        _select()
        .where(principal.c.id.in_(sa.select(ids.c.id).select_from(ids.source)))
        .order_by(principal.c.id)
    )


def _by_name(dialect: Dialect) -> sa.Select[Any]:
    names = dialect.batch("names", org=IDENTITY, installation=IDENTITY, called=IDENTITY)
    matches = sa.and_(
        principal.c.org == names.c.org,
        principal.c.installation == names.c.installation,
        principal.c.name == names.c.called,
    )
    return _select().join(names.source, matches).order_by(principal.c.id)


def _tokens(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return _current_tokens().where(
        token_version.c.principal_id.in_(sa.select(ids.c.id).select_from(ids.source))
    )


def _current_tokens() -> sa.Select[Any]:
    columns = ("principal_id", "generation", "version", "sealed", "key_id")
    return (
        sa.select(*[token_version.c[name] for name in columns])
        .join(
            principal,
            sa.and_(
                principal.c.id == token_version.c.principal_id,
                principal.c.current_generation == token_version.c.generation,
                principal.c.state == PrincipalState.CONNECTED.value,
            ),
        )
        .where(token_version.c.sealed.is_not(None))
    )


def _one(table: sa.Table, *names: str) -> list[sa.ColumnElement[bool]]:
    return [table.c[name] == sa.bindparam(f"the_{name}", type_=table.c[name].type) for name in names]


def _set_principal(dialect: Dialect) -> sa.Update:
    return (
        sa.update(principal)
        .where(*_one(principal, "id"))
        .values(
            current_generation=sa.bindparam("new_generation", type_=COUNT),
            state=sa.bindparam("new_state", type_=IDENTITY),
            updated_at=sa.bindparam("now_us", type_=MICROSECONDS),
        )
    )


def _end_generation(dialect: Dialect) -> sa.Update:
    return (
        sa.update(binding_generation)
        .where(
            *_one(binding_generation, "principal_id", "generation"),
            binding_generation.c.state == GenerationState.CURRENT.value,
        )
        .values(
            state=GenerationState.ENDED.value,
            ended_at=sa.bindparam("now_us", type_=MICROSECONDS),
            reason=sa.bindparam("why", type_=IDENTITY),
        )
    )


def _erase_tokens(dialect: Dialect) -> sa.Update:
    newest = sa.and_(
        token_version.c.generation == sa.bindparam("but_generation", type_=COUNT),
        token_version.c.version == sa.bindparam("but_version", type_=COUNT),
    )
    return (
        sa.update(token_version)
        .where(*_one(token_version, "principal_id"), token_version.c.sealed.is_not(None), sa.not_(newest))
        .values(sealed=sa.null())
    )


GET = Statement("principals.get", _by_id)
LOCK = Statement("principals.lock", lambda dialect: _by_id(dialect).with_for_update())
BY_NAME = Statement("principals.by_name", _by_name)
LOCK_BY_NAME = Statement(
    "principals.lock_by_name", lambda dialect: _by_name(dialect).with_for_update(of=principal)
)
GENERATION = Statement(
    "principals.generation",
    lambda dialect: sa.select(binding_generation).where(
        *_one(binding_generation, "principal_id", "generation")
    ),
)
TOKENS = Statement("principals.tokens", _tokens)
TOKENS_UNDER_OTHER_KEYS = Statement(
    "principals.tokens_under_other_keys",
    lambda dialect: (
        _current_tokens()
        .where(token_version.c.key_id != sa.bindparam("key", type_=IDENTITY))
        .order_by(token_version.c.principal_id)
    ),
)
SET_PRINCIPAL = Statement("principals.set", _set_principal)
END_GENERATION = Statement("principals.end_generation", _end_generation)
ERASE_TOKENS = Statement("principals.erase_tokens", _erase_tokens)


def lock_name(principal_id: str) -> str:
    """The named lock that fences a principal's generations."""
    return f"generation:{principal_id}"


def fence(pins: Iterable[str]) -> Txn[dict[str, int | None]]:
    """The current generation of each principal, held against a change until this transaction ends (PROTOCOL D2, S3).

    None for a principal that is disconnected or unknown: whatever is pinned to it fails closed. After ownership, before
    links and everything else, in the lock order (T4).
    """
    wanted = sorted(set(pins))
    yield from lock_shared(map(lock_name, wanted))
    return (yield from current(wanted))


def current(pins: Iterable[str]) -> Txn[dict[str, int | None]]:
    """The same for a transaction that shares their locks already (`lock_name`)."""
    wanted = sorted(set(pins))
    if not wanted:
        return {}
    found = yield from get(wanted)
    return {
        principal_id: found[principal_id].current if principal_id in found else None
        for principal_id in wanted
    }


def get(ids: Iterable[str]) -> Txn[dict[str, Principal]]:
    """Principals by id. Locks nothing."""
    rows = yield from fetch(GET, ids=[(principal_id,) for principal_id in sorted(set(ids))])
    return {row[0]: read_principal(row) for row in rows}


def by_name(names: Iterable[PrincipalName]) -> Txn[dict[PrincipalName, Principal]]:
    """Principals by (org, installation, name). A name's id never changes; its generation does, so fence it."""
    rows = yield from fetch(BY_NAME, names=sorted(set(names)))
    return {(row[1], row[2], row[4]): read_principal(row) for row in rows}


def began(principal_id: str, generation: int) -> Txn[int]:
    """When a generation began, which never changes; 0 for one that is not there."""
    rows = yield from fetch(GENERATION, the_principal_id=principal_id, the_generation=generation)
    return int(rows[0]["created_at"]) if rows else 0


def tokens(ids: Iterable[str]) -> Txn[dict[str, Token]]:
    """The newest token of each connected principal."""
    rows = yield from fetch(TOKENS, ids=[(principal_id,) for principal_id in sorted(set(ids))])
    return {row[0]: _token(row) for row in rows}


def tokens_under_other_keys(key_id: str) -> Txn[list[Token]]:
    """The tokens that a rewrap to `key_id` still has to do."""
    rows = yield from fetch(TOKENS_UNDER_OTHER_KEYS, key=key_id)
    return [_token(row) for row in rows]


def read_principal(row: Row) -> Principal:
    """The principal of a row that has `READ_COLUMNS`."""
    return Principal(
        id=row[0],
        org=row[1],
        installation=row[2],
        pack=row[3],
        name=row[4],
        generation=row[5],
        state=PrincipalState(row[6]),
    )


def _token(row: Row) -> Token:
    return Token(row[0], row[1], row[2], bytes(row[3]), row[4])


def connect(wanted: Connect) -> Txn[Principal | Conflict]:
    """Make a principal with generation 1, once; `Conflict`, as a value, when its name is another principal's.

    The principal's id is the nonce: a rerun after an unknown commit finds itself (PROTOCOL T5, T7).
    """
    wanted.check()
    yield from lock_exclusive([lock_name(wanted.principal_id)])
    now_us = yield from clock()
    row = (
        wanted.principal_id, wanted.org, wanted.installation, wanted.pack, wanted.name, 1,
        PrincipalState.CONNECTED.value, now_us, now_us,
    )  # fmt: skip
    yield from insert_many(principal, PRINCIPAL_COLUMNS, [row], skip_conflicts=True)
    rows = yield from fetch(LOCK_BY_NAME, names=[(wanted.org, wanted.installation, wanted.name)])
    stored = read_principal(rows[0])
    if stored.id != wanted.principal_id:
        return Conflict(
            f"there is a principal named {wanted.name} already", hint="rotate its secret, or reconnect it"
        )
    generation = _generation_row(stored.id, 1, wanted.generation_id, wanted.identity, now_us)
    yield from insert_many(binding_generation, GENERATION_COLUMNS, [generation], skip_conflicts=True)
    yield from insert_many(
        token_version, TOKEN_COLUMNS, [_token_row(wanted.token, now_us)], skip_conflicts=True
    )
    return stored


def reconnect(wanted: Reconnect) -> Txn[Principal | MissingOrDenied | Stale]:
    """End the newest generation and begin the next one with another token.

    As values: `MissingOrDenied` outside the scope, `Stale` (axis generation) when `after` is not the newest. Work
    pinned to an ended generation fails closed from this commit on.
    """
    wanted.identity.check()
    yield from lock_exclusive([lock_name(wanted.principal_id)])
    stored = yield from _lock(wanted.principal_id, wanted.org, wanted.installation)
    if stored is None:
        return MissingOrDenied("there is no such principal")
    generation = wanted.after + 1
    if stored.generation == generation and (yield from _is_generation(stored, wanted.generation_id)):
        return stored
    if stored.generation != wanted.after:
        return generation_stale(wanted.after, stored.current)
    now_us = yield from clock()
    yield from _end(stored, wanted.reason, now_us)
    yield from insert_many(
        binding_generation,
        GENERATION_COLUMNS,
        [_generation_row(stored.id, generation, wanted.generation_id, wanted.identity, now_us)],
    )
    yield from _replace_token(wanted.token, now_us)
    return (yield from _set(stored, generation, PrincipalState.CONNECTED, now_us))


def rotate(wanted: Rotation) -> Txn[int | MissingOrDenied | Stale]:
    """Write the next token version of the current generation and erase the ones before; returns the version.

    As values: `MissingOrDenied` outside the scope, `Stale` with axis generation when the generation has ended, and with
    axis token_version when another version came first.
    """
    token = wanted.token
    stored = yield from _lock(token.principal_id, wanted.org, wanted.installation)
    if stored is None:
        return MissingOrDenied("there is no such principal")
    if stored.current != token.generation:
        return generation_stale(token.generation, stored.current)
    newest = (yield from tokens([token.principal_id])).get(token.principal_id)
    if newest == token:
        return token.version
    if newest is None or newest.version + 1 != token.version:
        return Stale("another token version came first", axis="token_version")
    yield from _replace_token(token, (yield from clock()))
    return token.version


def disconnect(wanted: Disconnection) -> Txn[Principal | MissingOrDenied | Stale]:
    """End the current generation and erase its secret; everything pinned to it fails closed. Repeatable."""
    yield from lock_exclusive([lock_name(wanted.principal_id)])
    stored = yield from _lock(wanted.principal_id, wanted.org, wanted.installation)
    if stored is None:
        return MissingOrDenied("there is no such principal")
    if stored.generation != wanted.generation:
        return generation_stale(wanted.generation, stored.current)
    if stored.current is None:
        return stored
    now_us = yield from clock()
    yield from _end(stored, wanted.reason, now_us)
    yield from fetch(ERASE_TOKENS, the_principal_id=stored.id, but_generation=0, but_version=0)
    return (yield from _set(stored, stored.generation, PrincipalState.DISCONNECTED, now_us))


def _lock(principal_id: str, org: str, installation: str) -> Txn[Principal | None]:
    rows = yield from fetch(LOCK, ids=[(principal_id,)])
    stored = read_principal(rows[0]) if rows else None
    return stored if stored is not None and (stored.org, stored.installation) == (org, installation) else None


def _is_generation(stored: Principal, generation_id: str) -> Txn[bool]:
    rows = yield from fetch(GENERATION, the_principal_id=stored.id, the_generation=stored.generation)
    return bool(rows) and rows[0]["id"] == generation_id


def _end(stored: Principal, reason: str, now_us: int) -> Txn[None]:
    yield from fetch(
        END_GENERATION,
        the_principal_id=stored.id,
        the_generation=stored.generation,
        why=reason,
        now_us=now_us,
    )


def _replace_token(token: Token, now_us: int) -> Txn[None]:
    yield from insert_many(token_version, TOKEN_COLUMNS, [_token_row(token, now_us)])
    yield from fetch(
        ERASE_TOKENS,
        the_principal_id=token.principal_id,
        but_generation=token.generation,
        but_version=token.version,
    )


def _set(stored: Principal, generation: int, state: PrincipalState, now_us: int) -> Txn[Principal]:
    yield from fetch(
        SET_PRINCIPAL,
        the_id=stored.id,
        new_generation=generation,
        new_state=state.value,
        now_us=now_us,
    )
    return Principal(stored.id, stored.org, stored.installation, stored.pack, stored.name, generation, state)


def _generation_row(
    principal_id: str, generation: int, generation_id: str, identity: Identity, now_us: int
) -> tuple[Any, ...]:
    return (
        principal_id, generation, generation_id, GenerationState.CURRENT.value, identity.remote_subject,
        identity.remote_tenant, now_us, None, None,
    )  # fmt: skip


def _token_row(token: Token, now_us: int) -> tuple[Any, ...]:
    return token.principal_id, token.generation, token.version, token.sealed, token.key_id, now_us
