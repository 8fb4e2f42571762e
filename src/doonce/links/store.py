"""Transactions over remote links. All take and return batches.

In the lock order (PROTOCOL T4, D2) links stand between the binding generation and quota: the caller has fenced the
generations that it names (`principals.store.fence`) and has not yet locked lanes or work items.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from doonce.base.errors import Conflict, MissingOrDenied, Stale
from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, certify, clock, fetch, insert_many
from doonce.links.model import (
    RESULTS,
    Adoption,
    LinkKey,
    LinkMove,
    LinkState,
    Moved,
    NewLink,
    RemoteKey,
    RemoteLink,
    authority_of,
    judge_adoption,
    judge_move,
)
from doonce.links.tables import remote_link

COLUMNS = tuple(column.name for column in remote_link.c)
READ_COLUMNS = (
    "id", "org", "installation", "principal_id", "generation", "kind", "local_ref", "remote_id", "state", "version",
    "authority",
)  # fmt: skip
LOCAL = ("org", "installation", "kind", "local_ref")
REMOTE = ("org", "installation", "principal_id", "kind", "remote_id")
LIVING = ""


def _select() -> sa.Select[Any]:
    return sa.select(*[remote_link.c[name] for name in READ_COLUMNS])


def _by_key(dialect: Dialect, names: tuple[str, ...]) -> sa.Select[Any]:
    keys = dialect.batch("keys", **dict.fromkeys(names, IDENTITY))
    matches = [remote_link.c[name] == keys.c[name] for name in names]
    return _select().join(keys.source, sa.and_(*matches)).where(remote_link.c.slot == LIVING)


def _by_id(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return (
        _select()
        .where(remote_link.c.id.in_(sa.select(ids.c.id).select_from(ids.source)))
        .order_by(remote_link.c.id)
    )


def _lock_by_key(dialect: Dialect, names: tuple[str, ...]) -> sa.Select[Any]:
    return _by_key(dialect, names).order_by(remote_link.c.id).with_for_update(of=remote_link)


def _renew(dialect: Dialect) -> sa.Update:
    links = dialect.batch("links", id=IDENTITY, generation=COUNT, authority=IDENTITY)
    return (
        sa.update(remote_link)
        .where(remote_link.c.id == links.c.id)
        .values(
            generation=links.c.generation,
            authority=links.c.authority,
            version=remote_link.c.version + 1,
            updated_at=sa.bindparam("now_us", type_=MICROSECONDS),
        )
    )


def _move(dialect: Dialect) -> sa.Update:
    links = dialect.batch("links", id=IDENTITY, version=COUNT, slot=IDENTITY, state=IDENTITY)
    return (
        sa.update(remote_link)
        .where(remote_link.c.id == links.c.id, remote_link.c.version == links.c.version)
        .values(
            slot=links.c.slot,
            state=links.c.state,
            version=remote_link.c.version + 1,
            updated_at=sa.bindparam("now_us", type_=MICROSECONDS),
        )
    )


FIND = Statement("links.find", lambda dialect: _by_key(dialect, LOCAL))
GET = Statement("links.get", _by_id)
SHARE = Statement("links.share", lambda dialect: _by_id(dialect).with_for_update(read=True))
LOCK = Statement("links.lock", lambda dialect: _by_id(dialect).with_for_update())
LOCK_LOCAL = Statement("links.lock_local", lambda dialect: _lock_by_key(dialect, LOCAL))
FIND_REMOTE = Statement("links.find_remote", lambda dialect: _by_key(dialect, REMOTE))
LOCK_REMOTE = Statement("links.lock_remote", lambda dialect: _lock_by_key(dialect, REMOTE))
RENEW = Statement("links.renew", _renew)
MOVE = Statement("links.move", _move)


def certified_name(link_id: str) -> str:
    """What whoever relies on a link, and whoever changes it, both certify (PROTOCOL S5)."""
    return f"link:{link_id}"


def read_link(row: Row) -> RemoteLink:
    """The link of a row that has `READ_COLUMNS`."""
    return RemoteLink(
        id=row[0],
        org=row[1],
        installation=row[2],
        principal_id=row[3],
        generation=row[4],
        kind=row[5],
        local_ref=row[6],
        remote_id=row[7],
        state=LinkState(row[8]),
        version=row[9],
        authority=row[10],
    )


def find(keys: Iterable[LinkKey]) -> Txn[dict[LinkKey, RemoteLink]]:
    """The living link of each (org, installation, kind, local_ref); a key without one is absent. Locks nothing."""
    wanted = sorted(set(keys))
    if not wanted:
        return {}
    rows = yield from fetch(FIND, keys=wanted)
    return {link.key: link for link in map(read_link, rows)}


def find_remote(keys: Iterable[RemoteKey]) -> Txn[dict[RemoteKey, RemoteLink]]:
    """The living link of each provider's object; one without is absent. Locks nothing."""
    return (yield from _of_remote(FIND_REMOTE, keys))


def lock_remote(keys: Iterable[RemoteKey]) -> Txn[dict[RemoteKey, RemoteLink]]:
    """The same, locked in order of their ids."""
    return (yield from _of_remote(LOCK_REMOTE, keys))


def _of_remote(statement: Statement, keys: Iterable[RemoteKey]) -> Txn[dict[RemoteKey, RemoteLink]]:
    wanted = sorted(set(keys))
    rows = (yield from fetch(statement, keys=wanted)) if wanted else []
    return {link.remote_key: link for link in map(read_link, rows)}


def get(ids: Iterable[str]) -> Txn[dict[str, RemoteLink]]:
    """Links by id, retired ones too. Locks nothing."""
    return (yield from _get(GET, ids))


def share(ids: Iterable[str]) -> Txn[dict[str, RemoteLink]]:
    """Links by id, held as they are until this transaction ends: what a dispatch mark rechecks (PROTOCOL D2)."""
    shared = yield from _get(SHARE, ids)
    yield from certify(certified_name(link_id) for link_id in shared)
    return shared


def _get(statement: Statement, ids: Iterable[str]) -> Txn[dict[str, RemoteLink]]:
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    rows = yield from fetch(statement, ids=[(link_id,) for link_id in wanted])
    return {row[0]: read_link(row) for row in rows}


def adopt(links: Sequence[NewLink]) -> Txn[list[RemoteLink | Conflict | Stale]]:
    """Make each link exist, once: the same identity again gives the same link, whoever made it (PROTOCOL T7).

    A newer generation of the same principal renews a link's authority and raises its version. Per row, as values:
    `Conflict` when the local record is linked to another remote one, or the remote id to another local record;
    `Stale` (axis generation) when the link was already renewed by a newer generation. Raises `Invalid` for a text that
    cannot be stored. The caller has fenced the generations that it names.
    """
    for link in links:
        link.check()
    if not links:
        return []
    now_us = yield from clock()
    ordered = sorted(links, key=lambda link: (link.key, link.id))
    yield from insert_many(
        remote_link, COLUMNS, [_new_row(link, now_us) for link in ordered], skip_conflicts=True
    )
    rows = yield from fetch(LOCK_LOCAL, keys=sorted({link.key for link in links}))
    held = {link.key: link for link in map(read_link, rows)}
    renewed: dict[str, NewLink] = {}
    for wanted in links:
        existing = held.get(wanted.key)
        if existing is not None and judge_adoption(existing, wanted) is Adoption.RENEWED:
            best = renewed.get(existing.id)
            if best is None or best.generation < wanted.generation:
                renewed[existing.id] = wanted
    if renewed:
        news = [(link_id, link.generation, _authority(link)) for link_id, link in sorted(renewed.items())]
        yield from certify(certified_name(link_id) for link_id in renewed)
        yield from fetch(RENEW, links=news, now_us=now_us)
        rows = yield from fetch(LOCK_LOCAL, keys=sorted(held))
        held = {link.key: link for link in map(read_link, rows)}
    missing = [link for link in links if link.key not in held]
    taken = yield from _lock_remote(missing)
    return [_adopted(link, held.get(link.key), taken) for link in links]


def hold(links: Sequence[NewLink]) -> Txn[None]:
    """Lock every living link that adopting these may meet, for who has to lock other things before it adopts."""
    if links:
        yield from fetch(LOCK_LOCAL, keys=sorted({link.key for link in links}))
        yield from _lock_remote(links)


def _lock_remote(links: Sequence[NewLink]) -> Txn[set[tuple[str, ...]]]:
    if not links:
        return set()
    rows = yield from fetch(LOCK_REMOTE, keys=sorted({_remote_key(link) for link in links}))
    return {_remote_key(read_link(row)) for row in rows}


def _adopted(
    wanted: NewLink, existing: RemoteLink | None, taken: set[tuple[str, ...]]
) -> RemoteLink | Conflict | Stale:
    if existing is None:
        if _remote_key(wanted) in taken:
            return Conflict(
                "the remote record is linked to another local record", hint="retire that link first"
            )
        return Conflict("the link was changed at the same time", hint="try again")
    verdict = judge_adoption(existing, wanted)
    if verdict is Adoption.CONTRADICTED:
        return Conflict("the local record is linked to another remote record", hint="retire that link first")
    if verdict is Adoption.OUTDATED:
        return Stale(
            f"the link is in generation {existing.generation}, newer than {wanted.generation}",
            axis="generation",
        )
    return existing


def _remote_key(link: NewLink | RemoteLink) -> tuple[str, ...]:
    return link.org, link.installation, link.principal_id, link.kind, link.remote_id


def _authority(link: NewLink) -> str:
    return authority_of(link.principal_id, link.generation, link.kind, link.remote_id)


def _new_row(link: NewLink, now_us: int) -> tuple[Any, ...]:
    return (
        link.id, link.org, link.installation, link.principal_id, link.generation, link.kind, link.local_ref,
        link.remote_id, LIVING, LinkState.ACTIVE.value, 1, _authority(link), now_us, now_us,
    )  # fmt: skip


def move(moves: Sequence[LinkMove]) -> Txn[list[RemoteLink | MissingOrDenied | Conflict]]:
    """Suspend, resume or retire links, each within its scope; one move a link. Repeating a move changes nothing.

    Per row, as values: `MissingOrDenied` for an id that is not in the scope, `Conflict` for a transition that the
    link's state does not have or a version that is no longer the link's.
    """
    held = yield from _get(LOCK, [move.id for move in moves])
    results: list[RemoteLink | MissingOrDenied | Conflict] = []
    written: list[tuple[Any, ...]] = []
    for wanted in moves:
        link = held.get(wanted.id)
        if link is None or (link.org, link.installation) != (wanted.org, wanted.installation):
            results.append(MissingOrDenied("there is no such link"))
            continue
        verdict = judge_move(link, wanted)
        if verdict is Moved.DONE:
            state = RESULTS[wanted.event]
            slot = link.id if state is LinkState.RETIRED else LIVING
            written.append((link.id, link.version, slot, state.value))
        results.append(_moved(link, wanted, verdict))
    if written:
        yield from certify(certified_name(row[0]) for row in written)
        now_us = yield from clock()
        yield from fetch(MOVE, links=sorted(written), now_us=now_us)
        held = yield from _get(LOCK, [row[0] for row in written])
        results = [
            held.get(result.id, result) if isinstance(result, RemoteLink) else result for result in results
        ]
    return results


def _moved(link: RemoteLink, wanted: LinkMove, verdict: Moved) -> RemoteLink | Conflict:
    if verdict is Moved.ILLEGAL:
        return Conflict(f"a link that is {link.state.value} cannot {wanted.event.value}")
    if verdict is Moved.CHANGED:
        return Conflict(f"the link is at version {link.version}, not {wanted.version}", hint="read it again")
    return link
