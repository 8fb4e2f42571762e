"""What the database says, read from outside every process under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from doonce.commands.tables import command, command_end, handoff
from doonce.effects.tables import attempt_evidence, disposition, effect_attempt
from doonce.work.tables import work_item

Rows = Sequence[Any]


def sync_url(url: str) -> str:
    """The URL of a test's database for an application of SQLAlchemy's, without asyncio."""
    drivers = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "sqlite": "sqlite"}
    parsed = sa.make_url(url)
    return parsed.set(drivername=drivers[parsed.drivername]).render_as_string(hide_password=False)


def sync_engine(url: str) -> sa.Engine:
    """A plain engine of its own on a test's database."""
    return sa.create_engine(sync_url(url), isolation_level="AUTOCOMMIT")


class Journal:
    """Reads whole tables; the tests' databases are small."""

    def __init__(self, url: str) -> None:
        self._engine = sync_engine(url)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def rows(self, query: sa.Select[Any]) -> Rows:
        """The rows of one query."""
        with self._engine.connect() as connection:
            return connection.execute(query).all()

    def commands(self) -> Rows:
        """Every command, oldest first."""
        return self.rows(sa.select(command).order_by(command.c.accepted_at, command.c.id))

    def ends(self) -> dict[str, Any]:
        """The end of each command that has one."""
        return {row.command_id: row for row in self.rows(sa.select(command_end))}

    def handoffs(self) -> dict[str, Any]:
        """Each admission by its key."""
        return {row.key: row for row in self.rows(sa.select(handoff))}

    def attempts(self, subject_id: str | None = None) -> Rows:
        """The attempts of everything, or of one subject, oldest first."""
        query = sa.select(effect_attempt).order_by(effect_attempt.c.prepared_at, effect_attempt.c.id)
        if subject_id is not None:
            query = query.where(effect_attempt.c.subject_id == subject_id)
        return self.rows(query)

    def items(self, family: str | None = None, subject_id: str | None = None) -> Rows:
        """Work items, oldest first."""
        query = sa.select(work_item).order_by(work_item.c.created_at, work_item.c.id)
        if family is not None:
            query = query.where(work_item.c.family == family)
        if subject_id is not None:
            query = query.where(work_item.c.subject_id == subject_id)
        return self.rows(query)

    def dispositions(self) -> dict[str, Any]:
        """The disposition of each attempt that has one."""
        return {row.attempt_id: row for row in self.rows(sa.select(disposition))}

    def evidence(self) -> Rows:
        """All late evidence, oldest first."""
        return self.rows(sa.select(attempt_evidence).order_by(attempt_evidence.c.recorded_at))
