"""The application itself: each function is one transaction of its own database."""

import json
from typing import Any, Final

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    create_engine,
    event,
    insert,
    select,
    update,
)

from doonce.base.errors import MissingOrDenied
from doonce.runtime import outbox, schema
from doonce.wire import CompletionNotice, CompletionOutcome, HandoffScope

metadata: Final = MetaData()

leads: Final = Table(
    "leads",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False),
    Column("title", String(200), nullable=False),
    Column("sync_status", String(20), nullable=False),
    Column("synced_title", String(200)),
    Column("remote_id", String(512)),
    Column("remote_version", String(200)),
)

changes: Final = Table(
    "changes",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("outbox_id", String(128), nullable=False, unique=True),
    Column("lead_id", ForeignKey("leads.id"), nullable=False),
    Column("title", String(200), nullable=False),
    Column("outcome", String(20), nullable=False),
)

WAITING: Final = "waiting"


def open_database(url: str) -> Engine:
    """Connect, and create what is missing."""
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":

        @event.listens_for(engine, "connect")
        def _connected(connection: Any, _record: Any) -> None:
            # Readers and the one writer do not wait for each other.
            connection.execute("PRAGMA journal_mode=WAL").close()

    with engine.begin() as connection:
        schema.create(connection)
        metadata.create_all(connection)
    return engine


def add_lead(engine: Engine, lead_id: int, name: str, title: str = "") -> None:
    """Add a lead; one that is there already stays as it is."""
    with engine.begin() as connection:
        if connection.execute(select(leads.c.id).where(leads.c.id == lead_id)).first() is None:
            new = {"id": lead_id, "name": name, "title": title, "sync_status": "new"}
            connection.execute(insert(leads), new)


def change_title(
    engine: Engine, lead_id: int, title: str, *, scope: HandoffScope, operation: str
) -> outbox.OutboxId:
    """Change the title, and hand the change over: one transaction, so it is both or neither."""
    with engine.begin() as connection:
        changed = update(leads).where(leads.c.id == lead_id).values(title=title, sync_status=WAITING)
        if connection.execute(changed).rowcount == 0:
            raise MissingOrDenied(f"there is no lead {lead_id}")
        outbox_id = outbox.emit(
            connection,
            scope=scope,
            operation=operation,
            payload={"title": title},
            local_ref=str(lead_id),
            # Two changes of one lead arrive in the order in which they were made.
            source_lane=f"lead/{lead_id}",
        )
        entry = {"outbox_id": outbox_id, "lead_id": lead_id, "title": title, "outcome": WAITING}
        connection.execute(insert(changes), entry)
    return outbox_id


def withdraw(engine: Engine, outbox_id: str) -> outbox.Withdrawal:
    """Ask that a change is not handed over after all."""
    with engine.begin() as connection:
        return outbox.withdraw(connection, outbox_id)


def project(connection: Connection, notice: CompletionNotice) -> None:
    """What the end of a command means here; runs once, in the transaction of its receipt."""
    lead_id = _record(connection, notice)
    if notice.outcome is CompletionOutcome.ACCEPTED:
        result = json.loads(bytes(notice.result))
        title = select(changes.c.title).where(changes.c.outbox_id == notice.outbox_id).scalar_subquery()
        facts = {
            "synced_title": title,
            "remote_id": result.get("remote_id"),
            "remote_version": result.get("etag") or result.get("updated_at"),
        }
        connection.execute(update(leads).where(leads.c.id == lead_id).values(facts))


def note(connection: Connection, notice: CompletionNotice) -> None:
    """Nobody knows yet: the lead says so until the end is known."""
    _record(connection, notice)


def show(engine: Engine) -> list[dict[str, Any]]:
    """Every lead with its changes, and what the outbox knows of each."""
    with engine.begin() as connection:
        found = []
        for lead in connection.execute(select(leads).order_by(leads.c.id)).mappings():
            own = select(changes).where(changes.c.lead_id == lead["id"]).order_by(changes.c.number)
            rows = []
            for change in connection.execute(own).mappings().all():
                status = outbox.status(connection, change["outbox_id"])
                rows.append(
                    {
                        "outbox_id": status.outbox_id,
                        "title": change["title"],
                        "outcome": change["outcome"],
                        "state": status.state.value,
                        "command_id": status.command_id,
                        "receipt_id": status.receipt_id,
                        "error": status.error_class,
                    }
                )
            found.append({**lead, "changes": rows})
    return found


def _record(connection: Connection, notice: CompletionNotice) -> int:
    """Write the outcome to its change, and to its lead if that change is still the latest one."""
    told = update(changes).where(changes.c.outbox_id == notice.outbox_id)
    connection.execute(told.values(outcome=notice.outcome.value))
    mine = select(changes.c.lead_id).where(changes.c.outbox_id == notice.outbox_id)
    lead_id: int = connection.execute(mine).scalar_one()
    latest = select(changes.c.outbox_id).where(changes.c.lead_id == lead_id)
    newest = connection.execute(latest.order_by(changes.c.number.desc()).limit(1)).scalar_one()
    if newest == notice.outbox_id:
        status = update(leads).where(leads.c.id == lead_id)
        connection.execute(status.values(sync_status=notice.outcome.value))
    return lead_id
