"""Tables of the catalog: views by their address, and the log of their publication. Rows of both never change."""

from __future__ import annotations

import sqlalchemy as sa

from doonce.db.schema import BODY, COUNT, IDENTITY, MICROSECONDS, metadata

binding_view = sa.Table(
    "binding_view",
    metadata,
    sa.Column("digest", IDENTITY, primary_key=True),
    sa.Column("document", BODY, nullable=False),
    sa.Column("org", IDENTITY, nullable=False),
    sa.Column("installation", IDENTITY, nullable=False),
    sa.Column("capability", IDENTITY, nullable=False),
    sa.Column("pack_name", IDENTITY, nullable=False),
    sa.Column("pack_version", IDENTITY, nullable=False),
    sa.Column("created_at", MICROSECONDS, nullable=False),
)

view_publication = sa.Table(
    "view_publication",
    metadata,
    sa.Column("org", IDENTITY, primary_key=True),
    sa.Column("installation", IDENTITY, primary_key=True),
    sa.Column("capability", IDENTITY, primary_key=True),
    sa.Column("sequence", COUNT, primary_key=True, autoincrement=False),
    sa.Column("digest", IDENTITY, nullable=False),
    sa.Column("published_at", MICROSECONDS, nullable=False),
    sa.Index("view_publication_digest", "org", "installation", "capability", "digest"),
)
"""Publishing an older view again appends a row: the newest sequence of a scope is what emitters pin from then on."""
