"""Which database this is: the incarnation that was pinned, and what an operator declared about each change of it.

A failover, or a copy put back, may lack the newest commits, a dispatch mark among them (PROTOCOL S2). On PostgreSQL an
incarnation is the system's identifier; the timeline, which a promotion or a recovery to a point in time moves on; the
number of the table of the pins, which a dump that is loaded makes anew; and, where this user may ask for it, the moment
when the data directory's own files were made, which a base backup that is put back makes anew. On SQLite it is a random
id, in the database and in the side file of each host that pinned it. The MySQL wire has neither timeline nor identifier
of the data: there it is the server's own number, which servers of one replication must not share, and the moment when
that server made the table of the pins, which a dump that is loaded makes anew, and on MariaDB, where it is the file's,
a copy of the data as well. A cluster of Galera has an identifier of its data, and its members stand for the timeline
(`db/galera.py`). TiDB says which cluster it is, and the number and moment of the table stand for the timeline
(`db/tidb.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import sqlalchemy as sa

from doonce.db import clock_mark, galera, tidb
from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS, TEXT, metadata
from doonce.db.statement import Dialect, DialectName, Statement
from doonce.db.transaction import Row, Txn, clock, fetch, insert_many, lock_exclusive

LOCK: Final = "incarnation"
SERVER_NUMBERS: Final = "SHOW GLOBAL VARIABLES WHERE variable_name IN ('server_id', 'server_uuid')"
"""MySQL has both; MariaDB the number alone, and a `server_uid` that depends on the network card."""
SERVER_NUMBERS_OR_TIDB: Final = SERVER_NUMBERS.replace("'server_id'", "'version', 'server_id'")

database_incarnation = sa.Table(
    "database_incarnation",
    metadata,
    sa.Column("sequence", COUNT, primary_key=True, autoincrement=False),
    sa.Column("id", IDENTITY, nullable=False, unique=True),
    sa.Column("identity", IDENTITY, nullable=False),
    sa.Column("timeline", IDENTITY, nullable=False),
    sa.Column("declaration", IDENTITY, nullable=False),
    sa.Column("operator", IDENTITY, nullable=False),
    sa.Column("reason", TEXT, nullable=False),
    sa.Column("declared_at", MICROSECONDS, nullable=False),
)
"""The incarnations that were accepted, append-only; the newest is pinned."""

COLUMNS: Final = tuple(column.name for column in database_incarnation.c)


class Declaration(str, Enum):
    """Why an incarnation is accepted. A cluster that goes on with other members is followed without anybody's word.

    With `CLOCK` the database stays the one that it was, and its clock is believed although it is behind what was seen.
    """

    FIRST = "first"
    FOLLOWED = "followed"
    CLOCK = "clock"
    LOSSLESS = "lossless"
    LOSSY = "lossy"


@dataclass(frozen=True, slots=True)
class Place:
    """What the engine itself says that it is."""

    identity: str
    timeline: str


@dataclass(frozen=True, slots=True)
class Incarnation:
    """An accepted incarnation. After a lossy one, what was not ended before `declared_at` starts as unknown."""

    sequence: int
    id: str
    place: Place
    declaration: Declaration
    operator: str
    reason: str
    declared_at: int


@dataclass(frozen=True, slots=True)
class NewIncarnation:
    """A declaration to append; its id is made before the transaction and tells a rerun from a rival (PROTOCOL T1)."""

    id: str
    declaration: Declaration
    operator: str
    reason: str


def _text(dialect: Dialect, sql: str) -> sa.Select[Any]:
    return sa.select(sa.literal_column(sql, IDENTITY).label("value"))


NEWEST = Statement(
    "incarnation.newest",
    lambda dialect: sa.select(database_incarnation).order_by(database_incarnation.c.sequence.desc()).limit(1),
)
LAST_LOSSY = Statement(
    "incarnation.last_lossy",
    lambda dialect: sa.select(sa.func.max(database_incarnation.c.declared_at)).where(
        database_incarnation.c.declaration == Declaration.LOSSY.value
    ),
)
MAY_READ = Statement(
    "incarnation.may_read",
    lambda dialect: sa.select(
        sa.literal_column("has_function_privilege('pg_control_system()', 'EXECUTE')", sa.Boolean()).label(
            "identifier"
        ),
        sa.literal_column("has_function_privilege('pg_stat_file(text)', 'EXECUTE')", sa.Boolean()).label(
            "files"
        ),
    ),
)
IDENTIFIER = Statement(
    "incarnation.identifier",
    lambda dialect: sa.select(sa.literal_column("'system:' || system_identifier", IDENTITY)).select_from(
        sa.func.pg_control_system().table_valued("system_identifier")
    ),
)
DATABASE_OID = Statement(
    "incarnation.database_oid",
    lambda dialect: _text(
        dialect, "(SELECT 'database:' || oid FROM pg_database WHERE datname = current_database())"
    ),
)
TIMELINE = Statement(
    "incarnation.timeline",
    lambda dialect: _text(
        dialect,
        "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || '/table:'"
        " || CAST('database_incarnation' AS regclass)::oid",
    ),
)
FILES_MADE_AT = Statement(
    "incarnation.files_made_at",
    lambda dialect: sa.select(
        sa.literal_column("'/files:' || extract(epoch FROM change)", IDENTITY).label("value")
    ).select_from(sa.func.pg_stat_file(sa.literal_column("'PG_VERSION'")).table_valued("change")),
)

SERVER = Statement(
    "incarnation.server",
    lambda dialect: sa.text(SERVER_NUMBERS_OR_TIDB if dialect.plain else SERVER_NUMBERS),
)
MADE_AT = Statement(
    "incarnation.made_at",
    lambda dialect: (
        sa.select(sa.column("create_time", sa.DateTime()))
        .select_from(sa.table("tables", schema="information_schema"))
        .where(
            sa.literal_column("table_schema = DATABASE()"),
            sa.literal_column("table_name = 'database_incarnation'"),
        )
    ),
)


def place(dialect: DialectName, pinned: Incarnation | None) -> Txn[Place]:
    """What the engine says that it is; on SQLite what the database itself has pinned, since nothing else is known.

    The timeline is the one of the write-ahead log: the control file's moves on only with the next checkpoint. Where
    this user may not read the system's identifier, the database's number stands for it; where not the files' times,
    they are left out.
    """
    if dialect is DialectName.SQLITE:
        return pinned.place if pinned is not None else Place("", "")
    if dialect is DialectName.MYSQL:
        return (yield from _place_on_mysql())
    identifier, files = (yield from fetch(MAY_READ))[0]
    identity = (yield from fetch(IDENTIFIER if identifier else DATABASE_OID))[0][0]
    timeline = (yield from fetch(TIMELINE))[0][0]
    made_at = (yield from fetch(FILES_MADE_AT))[0][0] if files else ""
    return Place(identity, timeline + made_at)


def _place_on_mysql() -> Txn[Place]:
    cluster = yield from galera.place()
    if cluster is not None:
        return Place(*cluster)
    numbers = {row[0].lower(): str(row[1]) for row in (yield from fetch(SERVER))}
    if tidb.is_tidb(numbers.get("version", "")):
        return Place(*(yield from tidb.place()))
    made_at = (yield from fetch(MADE_AT))[0][0]
    return Place(f"server:{numbers.get('server_uuid', '')}:{numbers['server_id']}", f"made:{made_at}")


def newest() -> Txn[Incarnation | None]:
    """The pinned incarnation."""
    rows = yield from fetch(NEWEST)
    return _incarnation(rows[0]) if rows else None


def last_lossy() -> Txn[int | None]:
    """When something was last declared lost, microseconds, or None.

    What was accepted before it and has not ended starts as unknown: a dispatch mark may be among what was lost.
    """
    rows = yield from fetch(LAST_LOSSY)
    found: int | None = rows[0][0]
    return found


def pin_first(dialect: DialectName, new_id: str) -> Txn[Incarnation]:
    """Pin what a fresh database is; one that has a pin keeps it."""
    pinned = yield from newest()
    if pinned is not None:
        return pinned
    first = NewIncarnation(new_id, Declaration.FIRST, "", "")
    return (yield from append(dialect, first))


def append(dialect: DialectName, new: NewIncarnation) -> Txn[Incarnation]:
    """Pin what the database is now, on an operator's word. A rerun after an unknown commit finds it appended."""
    yield from lock_exclusive([LOCK])
    pinned = yield from newest()
    if pinned is not None and pinned.id == new.id:
        return pinned
    if new.declaration is Declaration.CLOCK:
        yield from clock_mark.set_mark()
    if dialect is DialectName.SQLITE:  # also for a clock: copies from before it was set back look newer
        found = Place(new.id, "")
    elif new.declaration is Declaration.CLOCK and pinned is not None:
        found = pinned.place
    else:
        found = yield from place(dialect, pinned)
    return (yield from _append(pinned, new, found))


def _append(pinned: Incarnation | None, new: NewIncarnation, found: Place) -> Txn[Incarnation]:
    now_us = yield from clock()
    sequence = pinned.sequence + 1 if pinned is not None else 1
    row = (
        sequence, new.id, found.identity, found.timeline, new.declaration.value, new.operator, new.reason, now_us,
    )  # fmt: skip
    yield from insert_many(database_incarnation, COLUMNS, [row])
    return Incarnation(sequence, new.id, found, new.declaration, new.operator, new.reason, now_us)


def follow(dialect: DialectName, new_id: str) -> Txn[Incarnation | None]:
    """Pin the members that a cluster has now, if it is the pinned one and lost nothing; what is pinned then."""
    yield from lock_exclusive([LOCK])
    pinned = yield from newest()
    if pinned is None:
        return None
    found = yield from place(dialect, pinned)
    if not carried_on(pinned.place, found) or pinned.id == new_id:
        return pinned
    return (yield from _append(pinned, NewIncarnation(new_id, Declaration.FOLLOWED, "", ""), found))


def is_same(pinned: Place, found: Place) -> bool:
    """Whether all that both of them know is the same: a user may read more at one time than at another."""
    if found.identity != pinned.identity:
        return False
    if "/" not in found.timeline:
        return found.timeline == pinned.timeline
    known, seen = pinned.timeline.split("/"), found.timeline.split("/")
    return all(one == other for one, other in zip(known, seen, strict=False))


def carried_on(pinned: Place, found: Place) -> bool:
    """Whether it is what was pinned, and the pin has to follow: a cluster with other members that keeps all that it
    committed, or a database of which more is known by now.
    """
    if is_same(pinned, found):
        return found.timeline.count("/") > pinned.timeline.count("/")
    return (
        found.identity == pinned.identity
        and found.identity.startswith(galera.PREFIX)
        and found.timeline != pinned.timeline
        and galera.carries_on(pinned.timeline, found.timeline)
    )


def _incarnation(row: Row) -> Incarnation:
    return Incarnation(
        sequence=row["sequence"],
        id=row["id"],
        place=Place(row["identity"], row["timeline"]),
        declaration=Declaration(row["declaration"]),
        operator=row["operator"],
        reason=row["reason"],
        declared_at=row["declared_at"],
    )
