"""Two releases of a made-up product over doonce's own schema: their steps, their tables, and how each works.

N takes jobs that have a kind. N+1 gives each job a priority and has no kinds. `halves/` has the steps: a half before,
with which both work, and a half after, with which N cannot.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.store.db.notes import statement
from tests.store.db.owners import import_tables

from doonce.base.ids import new_token
from doonce.db import migrate, steps, verify
from doonce.db.database import Database
from doonce.db.schema import COUNT, IDENTITY, TEXT, metadata
from doonce.db.transaction import Txn, fetch, insert_many

import_tables()
REAL = steps.MIGRATIONS
REAL_HEAD = steps.head()
FOLDER = Path(__file__).with_name("halves")
N, BEFORE, AFTER, LATER = "9001", "9002", "9003", "9004"


class Tables:
    """What is asked of metadata: the real tables, and a release's own one."""

    def __init__(self, *columns: Any) -> None:
        own = sa.MetaData(naming_convention=metadata.naming_convention)
        first = sa.Column("id", IDENTITY, primary_key=True), sa.Column("state", IDENTITY, nullable=False)
        self.job = sa.Table("job", own, *first, *columns)
        self.sorted_tables = [*metadata.sorted_tables, self.job]
        self.tables = {table.name: table for table in self.sorted_tables}


def _newer_columns() -> list[Any]:
    return [
        sa.Column("priority", COUNT, nullable=False),
        sa.Column("claims", COUNT, nullable=False, server_default="0"),
        sa.Index("job_next", "state", "id"),
        sa.Index("job_priority", "priority", "id", unique=True),
    ]


@dataclass(frozen=True, slots=True)
class Release:
    """A release: the newest step that it has, and its tables."""

    knows: str
    tables: Tables

    @contextmanager
    def installed(self, folder: Path) -> Iterator[None]:
        """This process is one of that release."""
        made = folder / f"release_{new_token()}"
        shutil.copytree(REAL, made, ignore=shutil.ignore_patterns("__pycache__"))
        for step in FOLDER.glob("v*.py"):
            if step.name[1:5] <= self.knows:
                text = step.read_text().replace('"HEAD"', repr(REAL_HEAD))
                (made / "versions" / step.name).write_text(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(steps, "MIGRATIONS", made)
            patch.setattr(verify, "metadata", self.tables)
            patch.setattr(migrate, "metadata", self.tables)
            yield


OLD = Release(N, Tables(sa.Column("kind", IDENTITY, nullable=False), sa.Index("job_state", "state")))
NEW = Release(AFTER, Tables(*_newer_columns()))
NEWEST = Release(LATER, Tables(*_newer_columns(), sa.Column("note", TEXT)))

OLD_JOB, NEW_JOB = OLD.tables.job, NEW.tables.job


def _next(job: sa.Table, column: str) -> Any:
    found = sa.select(job.c.id, job.c[column]).where(job.c.state == "waiting")
    return lambda dialect: found.order_by(job.c.id).limit(1).with_for_update()


def _take(job: sa.Table) -> Any:
    this = sa.and_(job.c.id == sa.bindparam("job", type_=IDENTITY), job.c.state == "waiting")
    return lambda dialect: sa.update(job).where(this).values(state="done")


OLD_NEXT, NEW_NEXT = (
    statement("job.old", _next(OLD_JOB, "kind")),
    statement("job.new", _next(NEW_JOB, "priority")),
)
OLD_TAKE, NEW_TAKE = statement("job.old_take", _take(OLD_JOB)), statement("job.new_take", _take(NEW_JOB))


def _work(given: str, newer: bool) -> Txn[str | None]:
    """Add a job and take the next one, whoever added it."""
    if newer:
        yield from insert_many(NEW_JOB, ("id", "state", "priority"), [(given, "waiting", 1)])
    else:
        yield from insert_many(OLD_JOB, ("id", "state", "kind"), [(given, "waiting", "plain")])
    rows = yield from fetch(NEW_NEXT if newer else OLD_NEXT)
    if not rows:
        return None
    assert newer or rows[0]["kind"] == "plain"
    yield from fetch(NEW_TAKE if newer else OLD_TAKE, job=rows[0]["id"])
    return str(rows[0]["id"])


def job_id(release: str) -> str:
    """The older a job, the sooner it is taken: so each release meets the other's."""
    return f"{time.monotonic_ns():020d}_{new_token()}_{release}"


def _give(ids: list[str]) -> Txn[None]:
    rows = [(job, "waiting", "plain") for job in ids]
    yield from insert_many(OLD_JOB, ("id", "state", "kind"), rows, skip_conflicts=True)


@dataclass(slots=True)
class JobWorker:
    """A process that works as its release does, until it is told to stop."""

    database: Database
    newer: bool
    given: list[str] = field(default_factory=list)
    took: list[str] = field(default_factory=list)
    stopping: bool = False

    async def once(self) -> None:
        """One transaction, as every process runs them: again after a rollback."""
        job = job_id("new" if self.newer else "old")
        took = await self.database.transact(_work, job, self.newer)
        self.given.append(job)
        if took is not None:
            self.took.append(took)

    async def pile_up(self, jobs: int) -> None:
        """Add jobs that nobody takes yet."""
        ids = [job_id("old") for _ in range(jobs)]
        await self.database.transact(_give, ids)
        self.given += ids

    async def run(self) -> None:
        """Work on."""
        while not self.stopping:
            await self.once()
