"""What the database says, read from outside every process under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from doonce.commands.tables import command, command_end, handoff
from doonce.effects.tables import attempt_evidence, disposition, effect_attempt
from doonce.work.tables import work_item, work_item_history

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
        """Work items, oldest first, wherever they are: the working table is read first, then history."""
        found = {}
        for table in (work_item, work_item_history):
            columns = [
                table.c[one.name] if one.name in table.c else sa.null().label(one.name) for one in work_item.c
            ]
            query = sa.select(*columns)
            if family is not None:
                query = query.where(table.c.family == family)
            if subject_id is not None:
                query = query.where(table.c.subject_id == subject_id)
            found |= {row.id: row for row in self.rows(query)}
        return sorted(found.values(), key=lambda row: (row.created_at, row.id))

    def moved(self) -> set[str]:
        """The ids of the items that are history; none of them is in the working table as well."""
        there = {row.id for row in self.rows(sa.select(work_item_history.c.id))}
        assert not there & {row.id for row in self.rows(sa.select(work_item.c.id))}, (
            "an item is in two places"
        )
        return there

    def dispositions(self) -> dict[str, Any]:
        """The disposition of each attempt that has one."""
        return {row.attempt_id: row for row in self.rows(sa.select(disposition))}

    def evidence(self) -> Rows:
        """All late evidence, oldest first."""
        return self.rows(sa.select(attempt_evidence).order_by(attempt_evidence.c.recorded_at))
