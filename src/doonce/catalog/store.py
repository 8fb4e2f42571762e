"""Transactions over published views. A publication is a fact that stays true, so proving one needs no lock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa

from doonce.base.keys import frame
from doonce.catalog.tables import binding_view, view_publication
from doonce.db.schema import IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, clock, fetch, insert_many, lock_exclusive

VIEW_COLUMNS = tuple(column.name for column in binding_view.c)
PUBLICATION_COLUMNS = tuple(column.name for column in view_publication.c)

ViewScope: TypeAlias = tuple[str, str, str]
"""(org, installation, capability)."""

PublishedAs: TypeAlias = tuple[str, str, str, str]
"""(org, installation, capability, digest)."""


@dataclass(frozen=True, slots=True)
class NewView:
    """A compiled view to publish for its scope."""

    digest: str
    document: bytes
    org: str
    installation: str
    capability: str
    pack_name: str
    pack_version: str

    @property
    def scope(self) -> ViewScope:
        """Whom the view is for."""
        return self.org, self.installation, self.capability


@dataclass(frozen=True, slots=True)
class Publication:
    """The newest publication of a scope; `first` tells whether this very call made it."""

    digest: str
    sequence: int
    published_at: int
    first: bool


def _latest(dialect: Dialect) -> sa.Select[Any]:
    scopes = dialect.batch("scopes", org=IDENTITY, installation=IDENTITY, capability=IDENTITY)
    publication = view_publication
    newest = (
        sa.select(sa.func.max(publication.c.sequence))
        .where(
            publication.c.org == scopes.c.org,
            publication.c.installation == scopes.c.installation,
            publication.c.capability == scopes.c.capability,
        )
        .correlate(scopes.source)
        .scalar_subquery()
    )
    return sa.select(publication).join(
        scopes.source,
        sa.and_(
            publication.c.org == scopes.c.org,
            publication.c.installation == scopes.c.installation,
            publication.c.capability == scopes.c.capability,
            publication.c.sequence == newest,
        ),
    )


def _published(dialect: Dialect) -> sa.Select[Any]:
    names = ("org", "installation", "capability", "digest")
    pairs = dialect.batch("pairs", **dict.fromkeys(names, IDENTITY))
    return (
        sa.select(*[view_publication.c[name] for name in names])
        .join(pairs.source, sa.and_(*[view_publication.c[name] == pairs.c[name] for name in names]))
        .distinct()
    )


LATEST = Statement("catalog.latest", _latest)
PUBLISHED = Statement("catalog.published", _published)
LOAD = Statement(
    "catalog.load",
    lambda dialect: sa.select(binding_view.c.document).where(
        binding_view.c.digest == sa.bindparam("address", type_=IDENTITY)
    ),
)
SCOPES = Statement(
    "catalog.scopes",
    lambda dialect: (
        sa.select(view_publication.c.org, view_publication.c.installation, view_publication.c.capability)
        .distinct()
        .order_by(view_publication.c.org, view_publication.c.installation, view_publication.c.capability)
    ),
)
INSTALLATIONS = Statement(
    "catalog.installations",
    lambda dialect: (
        sa.select(view_publication.c.org, view_publication.c.installation)
        .distinct()
        .order_by(view_publication.c.org, view_publication.c.installation)
    ),
)


def publish(views: Sequence[NewView]) -> Txn[list[Publication]]:
    """Make each view the newest of its scope; one that is the newest already stays as it is (PROTOCOL T5).

    All or none, one view a scope. The sequence is drawn under the scope's named lock. Views published before stay
    published: work that pinned one is not touched.
    """
    yield from lock_exclusive(frame("publish", *view.scope) for view in views)
    now_us = yield from clock()
    yield from insert_many(
        binding_view,
        VIEW_COLUMNS,
        [
            (view.digest, view.document, *view.scope, view.pack_name, view.pack_version, now_us)
            for view in sorted(views, key=lambda view: view.digest)
        ],
        skip_conflicts=True,
    )
    newest = yield from latest(view.scope for view in views)
    results: list[Publication] = []
    rows: list[tuple[Any, ...]] = []
    for view in views:
        before = newest.get(view.scope)
        if before is not None and before.digest == view.digest:
            results.append(before)
            continue
        sequence = before.sequence + 1 if before is not None else 1
        rows.append((*view.scope, sequence, view.digest, now_us))
        results.append(Publication(view.digest, sequence, now_us, first=True))
    yield from insert_many(view_publication, PUBLICATION_COLUMNS, rows)
    return results


def latest(scopes: Iterable[ViewScope]) -> Txn[dict[ViewScope, Publication]]:
    """The newest publication of each scope: for emitters and operators, never for a row that pinned one."""
    rows = yield from fetch(LATEST, scopes=sorted(set(scopes)))
    return {
        (row["org"], row["installation"], row["capability"]): Publication(
            row["digest"], row["sequence"], row["published_at"], first=False
        )
        for row in rows
    }


def published(pairs: Iterable[PublishedAs]) -> Txn[set[PublishedAs]]:
    """Those (org, installation, capability, digest) that name a view published for that scope (PROTOCOL F1).

    It need not be the newest.
    """
    wanted = sorted(set(pairs))
    if not wanted:
        return set()
    rows = yield from fetch(PUBLISHED, pairs=wanted)
    return {(row[0], row[1], row[2], row[3]) for row in rows}


def load(digest: str) -> Txn[bytes | None]:
    """The document of a view, or None."""
    rows = yield from fetch(LOAD, address=digest)
    return bytes(rows[0][0]) if rows else None


def all_latest() -> Txn[list[str]]:
    """The digest of the newest view of every scope, each once."""
    scopes = [(row[0], row[1], row[2]) for row in (yield from fetch(SCOPES))]
    newest = yield from latest(scopes)
    return sorted({publication.digest for publication in newest.values()})


def installations() -> Txn[list[tuple[str, str]]]:
    """Every (org, installation) for which a view was published."""
    rows = yield from fetch(INSTALLATIONS)
    return [(row[0], row[1]) for row in rows]
