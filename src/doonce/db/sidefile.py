"""The file beside a SQLite database: it queues the writers, and is this host's memory of which database was here.

Fixed places, so that each fact is written by itself:

| bytes   | fact                                                                                     |
|---------|------------------------------------------------------------------------------------------|
| 0-20    | the newest time that was committed, microseconds, 20 digits                              |
| 21-86   | the incarnation that was pinned here, up to 65 characters, filled with blanks            |
| 87-107  | if a database was found here that is older than that time: the time, else blanks         |

Whoever writes holds the file's `flock`, as each flush does (PROTOCOL S4). A database behind the remembered time is a
copy from before (PROTOCOL S2): the note is made before its first write, and stays until an operator has declared.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from doonce.db.faults import Disconnected, SchemaFault

TIME_AT = 0
IDENTITY_AT = 21
IDENTITY_BYTES = 65
OLDER_AT = 87
NOT_ALLOWED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
LET_WRITE: Final = "let this user write the database's file and its folder"


def side_file(path: Path) -> Path:
    """The file beside the database at `path`."""
    return path.with_name(path.name + "-doonce")


def open_side_file(path: Path) -> int:
    """Open, or make, the side file of a database.

    Raises `SchemaFault`, with the mend, for a user who may not write here, and `Disconnected` for what may pass.
    """
    try:
        return os.open(side_file(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        said = f"cannot open {side_file(path)}: {error.strerror}"
        if error.errno in NOT_ALLOWED:
            raise SchemaFault(said, LET_WRITE) from error
        raise Disconnected(said) from error


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Hold the side file of a database alone, waiting in turn for every writer before."""
    side = open_side_file(path)
    try:
        fcntl.flock(side, fcntl.LOCK_EX)
        yield side
    finally:
        os.close(side)


def remember_time(side: int, now_us: int) -> None:
    """Note the newest committed time. Not flushed: after a power cut it may be behind the database, never ahead."""
    os.pwrite(side, b"%020d\n" % now_us, TIME_AT)


def remembered_time(side: int) -> int:
    """The newest committed time that this host knows of, or 0."""
    return _number(side, TIME_AT)


def remember_identity(side: int, identity: str) -> None:
    """Pin the incarnation that this host knows here, durably."""
    os.pwrite(side, identity.encode().ljust(IDENTITY_BYTES) + b"\n", IDENTITY_AT)
    os.fsync(side)


def remembered_identity(side: int) -> str:
    """The incarnation that was pinned here, or "" when this host has pinned none."""
    return os.pread(side, IDENTITY_BYTES, IDENTITY_AT).decode(errors="replace").strip(" \0\n")


def note_if_older(side: int, now_us: int) -> None:
    """Note durably that the database, whose clock stands at `now_us`, is older than what was committed here."""
    newest_us = remembered_time(side)
    if now_us < newest_us and not _number(side, OLDER_AT):
        os.pwrite(side, b"%020d\n" % newest_us, OLDER_AT)
        os.fsync(side)


def noted_older(side: int) -> int:
    """The time up to which this host had committed when an older copy was found here, or 0."""
    return _number(side, OLDER_AT)


def forget_older(side: int) -> None:
    """Take back the note, durably: an operator has declared what the older copy means."""
    os.pwrite(side, b" " * 20 + b"\n", OLDER_AT)
    os.fsync(side)


def _number(side: int, at: int) -> int:
    text = os.pread(side, 20, at)
    return int(text) if text.isdigit() else 0
