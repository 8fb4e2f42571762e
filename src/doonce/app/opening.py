"""From settings to an engine that may work: opened, migrated where that is allowed, proven."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import sqlalchemy as sa

from doonce.app.engine import Engine
from doonce.app.handlers import LocalHandlers
from doonce.app.settings import Settings
from doonce.db.database import Database, open_database
from doonce.db.points import Points
from doonce.principals.vault import KeyRing, Vault, ensure_key_ring

KEY_FILE: Final = "doonce.keys"


def open_from(settings: Settings) -> Database:
    """The database of these settings; nothing is connected yet."""
    database = open_database(
        settings.database,
        settings=settings.retry,
        postgresql=settings.postgresql,
        sqlite=settings.sqlite,
        mysql=settings.mysql,
    )
    database.points = Points(settings.armed_point(), rest=database.rest)
    return database


def open_engine(settings: Settings, local: LocalHandlers | None = None) -> Engine:
    """An engine over the database of these settings; nothing is connected or started yet.

    `local` are the handlers of the process that embeds it.
    """
    return Engine(
        open_from(settings),
        Vault(key_ring(settings)),
        settings.egress.policy(),
        settings.inbox_egress(),
        settings.open_inboxes(),
        settings.engine(),
        local=local,
    )


def key_ring(settings: Settings) -> KeyRing:
    """The keys that seal secrets at rest; a first start makes the file, for this user alone."""
    return ensure_key_ring(key_file(settings))


def key_file(settings: Settings) -> Path:
    """Where the keys are: as set, or beside a SQLite file, or in the working directory."""
    if settings.key_file is not None:
        return settings.key_file
    file = sqlite_file(settings.database)
    return Path(KEY_FILE) if file is None else file.with_name(f"{file.name}.keys")


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite database, None for a server's."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        return None
    return Path(parsed.database) if parsed.get_backend_name() == "sqlite" and parsed.database else None
