"""The side file keeps each fact by itself."""

import fcntl
import os
from pathlib import Path

import pytest

from doonce.db import sidefile


def test_facts_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "doonce.db"
    with sidefile.locked(path) as side:
        assert sidefile.remembered_time(side) == 0
        assert sidefile.remembered_identity(side) == ""
        assert sidefile.noted_older(side) == 0
        sidefile.remember_identity(side, "a" * 32)
        sidefile.remember_time(side, 1_700_000_000_000_000)
        sidefile.note_if_older(side, 1_600_000_000_000_000)
        sidefile.remember_time(side, 1_800_000_000_000_000)
        assert sidefile.remembered_time(side) == 1_800_000_000_000_000
        assert sidefile.remembered_identity(side) == "a" * 32
        assert sidefile.noted_older(side) == 1_700_000_000_000_000
        sidefile.remember_identity(side, "b" * 65)
        assert sidefile.remembered_identity(side) == "b" * 65
        sidefile.forget_older(side)
        assert sidefile.noted_older(side) == 0
        assert sidefile.remembered_time(side) == 1_800_000_000_000_000
    assert sidefile.side_file(path).stat().st_mode & 0o777 == 0o600


def test_a_database_that_is_not_behind_leaves_no_note(tmp_path: Path) -> None:
    with sidefile.locked(tmp_path / "doonce.db") as side:
        sidefile.note_if_older(side, 0)
        sidefile.remember_time(side, 100)
        sidefile.note_if_older(side, 100)
        sidefile.note_if_older(side, 101)
        assert sidefile.noted_older(side) == 0
        sidefile.note_if_older(side, 99)
        assert sidefile.noted_older(side) == 100
        sidefile.remember_time(side, 200)
        sidefile.note_if_older(side, 99)
        assert sidefile.noted_older(side) == 100


def test_s4_who_holds_the_side_file_holds_it_alone(tmp_path: Path) -> None:
    """As a migration does, beside flushes of other processes."""
    path = tmp_path / "doonce.db"
    with sidefile.locked(path):
        other = sidefile.open_side_file(path)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)


def test_a_garbled_side_file_remembers_nothing(tmp_path: Path) -> None:
    path = tmp_path / "doonce.db"
    sidefile.side_file(path).write_bytes(b"\xff" * 200)
    with sidefile.locked(path) as side:
        assert sidefile.remembered_time(side) == 0
        assert sidefile.noted_older(side) == 0
        assert sidefile.remembered_identity(side) not in ("", "a")
