"""The example application in one process: it changes, relays, takes completions, and dies at one of its own commits.

The first line of its input is its settings; it says where its inbox is, and goes on until it is killed or told `stop`.
"""

from __future__ import annotations

import asyncio
import functools
import os
import random
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from examples.crm import leads, serve
from examples.crm.settings import load

from doonce.runtime.relay import RelaySettings
from doonce.runtime.tables import outbox
from doonce.wire import CompletionNotice

LEADS = 6
OPEN_MAX = 6
"""So many changes at once wait for the relay: what was made must also arrive while the process lives."""

COMMITS = {
    "INSERT INTO changes": "change",
    "lease_until_us = ": "claim",
    "lease_until_us=(": "claim",
    "admitted_at_us=": "record",
    "INSERT INTO doonce_inbox": "apply",
}
"""What a commit is of, by a statement that only such a transaction has."""

QUICK = {"call_timeout_us": 1_000_000, "lease_us": 3_000_000}
"""What a killed relay had claimed is soon taken over: those who wait for it are as patient as a lease is by default."""

projected = sa.Table("projected", sa.MetaData(), sa.Column("outbox_id", sa.String(128), nullable=False))
"""One row for each time that a projection has committed: nothing here would swallow a second one."""


class CrmSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where it works, what it does, and at which commit it dies."""

    config: str
    changes: bool = True
    dies_of: str = ""
    side: str = "before"
    hit: int = 1


class Dying:
    """Kills the process before or after the commit of the hit-th transaction of one kind."""

    def __init__(self, settings: CrmSettings) -> None:
        self._settings = settings
        self._here = threading.local()
        self._hits = 0

    def install(self, engine: sa.Engine) -> None:
        """Watch every statement and every commit of this engine."""
        commit = engine.dialect.do_commit

        def noticed(_connection: Any, _cursor: Any, text: str, *_rest: Any) -> None:
            found = [kind for words, kind in COMMITS.items() if words in text]
            if found:
                self._here.kind = found[0]

        def dying(connection: Any) -> None:
            kind = getattr(self._here, "kind", "")
            self._here.kind = ""
            settings = self._settings
            if kind and kind == settings.dies_of:
                self._hits += 1
            last = bool(kind) and kind == settings.dies_of and self._hits == settings.hit
            if last and settings.side == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            commit(connection)
            if last:
                os.kill(os.getpid(), signal.SIGKILL)

        sa.event.listen(engine, "before_cursor_execute", noticed)
        engine.dialect.do_commit = dying  # type: ignore[method-assign]  # the one place where all of them pass


def _project(connection: sa.Connection, notice: CompletionNotice) -> None:
    leads.project(connection, notice)
    connection.execute(projected.insert().values(outbox_id=notice.outbox_id))


def _change_on(engine: sa.Engine, settings: Any, ended: threading.Event) -> None:
    """Change one lead after the other, whenever few changes are on their way."""
    pending = sa.select(sa.func.count()).where(outbox.c.state == "pending")
    made = sa.select(sa.func.count()).select_from(leads.changes)
    while not ended.wait(0.005):
        with engine.begin() as connection:
            waiting, number = connection.scalar(pending), connection.scalar(made)
        if waiting is not None and number is not None and waiting < OPEN_MAX:
            lead = random.randint(1, LEADS)
            leads.change_title(engine, lead, f"t{number}", scope=settings.scope, operation=settings.operation)


async def _serve(told: CrmSettings) -> None:
    settings = load(Path(told.config))
    engine = leads.open_database(settings.database)
    projected.create(engine, checkfirst=True)
    for number in range(1, LEADS + 1):
        leads.add_lead(engine, number, f"lead {number}")
    Dying(told).install(engine)
    serve.open_database = lambda _url: engine  # type: ignore[attr-defined]
    serve.project = _project  # type: ignore[attr-defined]
    serve.RelaySettings = functools.partial(RelaySettings, **QUICK)  # type: ignore[attr-defined,misc]
    ended = threading.Event()
    changing = threading.Thread(target=_change_on, args=(engine, settings, ended), daemon=True)
    if told.changes:
        changing.start()
    serving = asyncio.create_task(serve.serve(settings))
    stopped = asyncio.create_task(asyncio.to_thread(sys.stdin.buffer.readline))
    await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
    ended.set()
    os._exit(1)


def main() -> None:
    """Be the application."""
    asyncio.run(_serve(msgspec.json.decode(sys.stdin.buffer.readline(), type=CrmSettings)))
