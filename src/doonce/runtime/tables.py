"""The application's side in three tables, for the application's own database and its own migrations.

`metadata` holds nothing else: an application adds it to its Alembic `target_metadata`, or calls
`doonce.runtime.schema.create`. The types are those that SQLite, PostgreSQL and the MySQL family all keep
exactly: bounded text compared byte for byte, 64-bit integers, raw bytes. Times are microseconds UTC.

On the MySQL wire an identity is bytes: every collation that MariaDB and MySQL share ignores spaces at the end.
What people read, and the words of states, are texts there.
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

_INNODB: Final[dict[str, Any]] = {
    f"{dialect}_{option}": value
    for dialect in ("mysql", "mariadb")
    for option, value in (("engine", "InnoDB"), ("charset", "utf8mb4"))
}
"""Other storage engines have no transactions. SQLAlchemy has two names for the one wire."""


def exact(bytes_max: int) -> TypeEngine[str]:
    """An identity: compared byte for byte, and at most 1,024 bytes, a third of what an index of InnoDB takes."""
    return String(bytes_max).with_variant(mysql.VARBINARY(bytes_max), "mysql", "mariadb")


def text(chars_max: int) -> TypeEngine[str]:
    """A bounded text that nothing is found by: a state, or what people read."""
    kept = mysql.VARCHAR(chars_max, charset="utf8mb4", collation="utf8mb4_bin")
    return String(chars_max).with_variant(kept, "mysql", "mariadb")


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
    Column("outbox_id", exact(LIMITS.name_bytes_max), primary_key=True),
    _column("handoff_key", exact(LIMITS.key_bytes_max)),
    _column("org", exact(LIMITS.org_bytes_max)),
    _column("installation", exact(LIMITS.installation_bytes_max)),
    _column("capability", exact(LIMITS.capability_bytes_max)),
    _column("binding_digest", exact(DIGEST_CHARS)),
    _column("binding_generation", BigInteger()),
    _column("operation", exact(LIMITS.name_bytes_max)),
    _column("local_ref", exact(LIMITS.local_ref_bytes_max)),
    _column("link", exact(LIMITS.name_bytes_max), null=True),
    _column("payload", _bytes()),
    _column("payload_digest", exact(DIGEST_CHARS)),
    _column("source_lane", exact(LIMITS.lane_bytes_max), null=True),
    _column("lane_position", BigInteger(), null=True),
    _column("emitted_at_us", BigInteger()),
    # The relay's.
    _column("state", text(STATE_CHARS)),
    _column("wish", text(STATE_CHARS)),
    _column("tries", BigInteger(), default="0"),
    _column("due_at_us", BigInteger()),
    _column("lease_token", exact(64), null=True),
    _column("lease_until_us", BigInteger(), default="0"),
    _column("error_class", text(32), null=True),
    _column("error_message", text(LIMITS.reason_bytes_max), null=True),
    # The admission's durable receipt.
    _column("command_id", exact(LIMITS.name_bytes_max), null=True),
    _column("receipt_id", exact(LIMITS.name_bytes_max), null=True),
    _column("admission_reason", text(LIMITS.reason_bytes_max), null=True),
    _column("admitted_at_us", BigInteger(), null=True),
    # The inbox's. `notices` counts every notice that looked at the row: changing it is how the row is locked.
    _column("notices", BigInteger(), default="0"),
    _column("outcome", text(STATE_CHARS), null=True),
    _column("terminal_digest", exact(DIGEST_CHARS), null=True),
    _column("ended_at_us", BigInteger(), null=True),
    UniqueConstraint("handoff_key", name="doonce_outbox_key"),
    _one_of("state", *OutboxState),
    _one_of("wish", *Wish),
    **_INNODB,
)

_c = outbox.c

# On rows that are still to be handed over: neither the search for due rows nor the question "is an earlier row of
# this lane open?" ever walks through history. Where an index cannot be partial, the state in it does the same.
_PENDING: Final = _c.state == OutboxState.PENDING.value
_OPEN: Final = _c.state.in_([state.value for state in OPEN])
_LEASED: Final = _c.lease_token.is_not(None)

Index(
    "doonce_outbox_due",
    _c.state,
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
    _c.state,
    _c.lane_position,
    sqlite_where=_OPEN,
    postgresql_where=_OPEN,
)
Index("doonce_outbox_lease", _c.lease_token, sqlite_where=_LEASED, postgresql_where=_LEASED)

lanes: Final = Table(
    "doonce_outbox_lane",
    metadata,
    Column("org", exact(LIMITS.org_bytes_max), primary_key=True),
    Column("installation", exact(LIMITS.installation_bytes_max), primary_key=True),
    Column("source_lane", exact(LIMITS.lane_bytes_max), primary_key=True),
    _column("tail", BigInteger()),
    **_INNODB,
)

inbox: Final = Table(
    "doonce_inbox",
    metadata,
    Column("kind", text(STATE_CHARS), primary_key=True),
    Column("inbox_id", exact(LIMITS.local_key_bytes_max), primary_key=True),
    _column("receipt_id", exact(LIMITS.name_bytes_max)),
    _column("command_id", exact(LIMITS.name_bytes_max), null=True),
    _column("outcome", text(STATE_CHARS), null=True),
    _column("recorded_at_us", BigInteger()),
    **_INNODB,
)
