"""The application's side in three tables, for the application's own database and its own migrations.

`metadata` holds nothing else: an application adds it to its Alembic `target_metadata`, or calls
`doonce.runtime.schema.create`. The types are those that SQLite, PostgreSQL and the MySQL family all keep
exactly: bounded text compared byte for byte, 64-bit integers, raw bytes. Times are microseconds UTC.
"""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    column,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

from doonce.base.limits import LIMITS
from doonce.runtime.model import OPEN, OutboxState, Wish

DIGEST_CHARS: Final = len("sha256:") + 64
STATE_CHARS: Final = 16

metadata: Final = MetaData()


def text(chars_max: int) -> TypeEngine[str]:
    """A bounded text that is compared byte for byte; MySQL's default would fold case and trailing spaces."""
    return String(chars_max).with_variant(
        mysql.VARCHAR(chars_max, collation="utf8mb4_bin"), "mysql", "mariadb"
    )


def _key() -> TypeEngine[str]:
    # A unique index of InnoDB ends at 3072 bytes; the five fields at their bounds and their framing need 640.
    return String(LIMITS.key_bytes_max).with_variant(
        mysql.VARCHAR(768, collation="utf8mb4_bin"), "mysql", "mariadb"
    )


def _bytes() -> TypeEngine[bytes]:
    return LargeBinary().with_variant(mysql.MEDIUMBLOB(), "mysql", "mariadb")


def _one_of(name: str, *values: OutboxState | Wish) -> CheckConstraint:
    allowed = column(name).in_([value.value for value in values])
    return CheckConstraint(allowed, name="doonce_outbox_" + name)


def _column(
    name: str, kind: TypeEngine[Any], *, null: bool = False, default: str | None = None
) -> Column[Any]:
    return Column(name, kind, nullable=null, server_default=default)


outbox: Final = Table(
    "doonce_outbox",
    metadata,
    # What `emit` pins, never changed afterwards (PROTOCOL F1).
    Column("outbox_id", text(LIMITS.name_bytes_max), primary_key=True),
    _column("handoff_key", _key()),
    _column("org", text(LIMITS.org_bytes_max)),
    _column("installation", text(LIMITS.installation_bytes_max)),
    _column("capability", text(LIMITS.capability_bytes_max)),
    _column("binding_digest", text(DIGEST_CHARS)),
    _column("binding_generation", BigInteger()),
    _column("operation", text(LIMITS.name_bytes_max)),
    _column("local_ref", text(LIMITS.local_ref_bytes_max)),
    _column("link", text(LIMITS.name_bytes_max), null=True),
    _column("payload", _bytes()),
    _column("payload_digest", text(DIGEST_CHARS)),
    _column("source_lane", text(LIMITS.lane_bytes_max), null=True),
    _column("lane_position", BigInteger(), null=True),
    _column("emitted_at_us", BigInteger()),
    # The relay's.
    _column("state", text(STATE_CHARS)),
    _column("wish", text(STATE_CHARS)),
    _column("tries", BigInteger(), default="0"),
    _column("due_at_us", BigInteger()),
    _column("lease_token", text(64), null=True),
    _column("lease_until_us", BigInteger(), default="0"),
    _column("error_class", text(32), null=True),
    _column("error_message", text(LIMITS.reason_bytes_max), null=True),
    # The admission's durable receipt.
    _column("command_id", text(LIMITS.name_bytes_max), null=True),
    _column("receipt_id", text(LIMITS.name_bytes_max), null=True),
    _column("admission_reason", text(LIMITS.reason_bytes_max), null=True),
    _column("admitted_at_us", BigInteger(), null=True),
    # The inbox's. `notices` counts every notice that looked at the row: changing it is how the row is locked.
    _column("notices", BigInteger(), default="0"),
    _column("outcome", text(STATE_CHARS), null=True),
    _column("terminal_digest", text(DIGEST_CHARS), null=True),
    _column("ended_at_us", BigInteger(), null=True),
    UniqueConstraint("handoff_key", name="doonce_outbox_key"),
    _one_of("state", *OutboxState),
    _one_of("wish", *Wish),
)

_c = outbox.c

# Partial indexes, on rows that are still to be handed over: neither the search for due rows nor the question
# "is an earlier row of this lane open?" ever walks through history.
_PENDING: Final = _c.state == OutboxState.PENDING.value
_OPEN: Final = _c.state.in_([state.value for state in OPEN])
_LEASED: Final = _c.lease_token.is_not(None)

Index(
    "doonce_outbox_due",
    _c.due_at_us,
    _c.outbox_id,
    sqlite_where=_PENDING,
    postgresql_where=_PENDING,
)
Index(
    "doonce_outbox_lane_open",
    _c.org,
    _c.installation,
    _c.source_lane,
    _c.lane_position,
    sqlite_where=_OPEN,
    postgresql_where=_OPEN,
)
Index("doonce_outbox_lease", _c.lease_token, sqlite_where=_LEASED, postgresql_where=_LEASED)

lanes: Final = Table(
    "doonce_outbox_lane",
    metadata,
    Column("org", text(LIMITS.org_bytes_max), primary_key=True),
    Column("installation", text(LIMITS.installation_bytes_max), primary_key=True),
    Column("source_lane", text(LIMITS.lane_bytes_max), primary_key=True),
    _column("tail", BigInteger()),
)

inbox: Final = Table(
    "doonce_inbox",
    metadata,
    Column("kind", text(STATE_CHARS), primary_key=True),
    Column("inbox_id", text(LIMITS.local_key_bytes_max), primary_key=True),
    _column("receipt_id", text(LIMITS.name_bytes_max)),
    _column("command_id", text(LIMITS.name_bytes_max), null=True),
    _column("outcome", text(STATE_CHARS), null=True),
    _column("recorded_at_us", BigInteger()),
)
