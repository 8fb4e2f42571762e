"""S1: which settings can be trusted with a commit."""

from typing import Any

import pytest

from doonce.db.durability import DispatchGate, judge_settings
from doonce.db.statement import DialectName

SOUND = {
    "in_recovery": False,
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "synchronous_standby_names": "",
    "transaction_read_only": "off",
}


def judged(replicated: bool = False, **changes: Any) -> list[str]:
    return judge_settings(DialectName.POSTGRESQL, [SOUND | changes], replicated=replicated)  # type: ignore[list-item]  # a mapping reads like a row


def test_s1_sound_settings_have_no_fault() -> None:
    assert judged() == []
    assert judged(synchronous_commit="remote_apply") == []
    assert judged(replicated=True, synchronous_standby_names="ANY 1 (a, b)") == []


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_s1_what_must_be_on_is_named_when_off(setting: str) -> None:
    (fault,) = judged(False, **{setting: "off"})
    assert setting in fault


def test_a_user_whose_transactions_only_read_is_a_fault() -> None:
    (fault,) = judged(transaction_read_only="on")
    assert "default_transaction_read_only" in fault


@pytest.mark.parametrize("value", ["off", "local", "remote_write", "unheard_of"])
def test_s1_a_weaker_synchronous_commit_is_a_fault(value: str) -> None:
    (fault,) = judged(synchronous_commit=value)
    assert value in fault


def test_s1_a_standby_is_a_fault_and_hides_the_rest() -> None:
    assert judged(in_recovery=True, fsync="off") == ["it is a standby: connect to the primary"]


@pytest.mark.parametrize("names", ["", "  "])
def test_s1_a_promised_replica_that_no_commit_waits_for_is_a_fault(names: str) -> None:
    (fault,) = judged(replicated=True, synchronous_standby_names=names)
    assert "synchronous_standby_names" in fault


@pytest.mark.parametrize(
    "journal,synchronous,faults",
    [("wal", 2, 0), ("wal", 3, 0), ("wal", 1, 1), ("delete", 2, 1), ("off", 0, 2)],
)
def test_s1_sqlite_writes_ahead_and_flushes_fully(journal: str, synchronous: int, faults: int) -> None:
    row: Any = {"journal_mode": journal, "synchronous": synchronous}
    assert len(judge_settings(DialectName.SQLITE, [row], replicated=False)) == faults


def test_a_gate_is_closed_until_a_check_opens_it() -> None:
    gate = DispatchGate()
    assert not gate.open
    assert gate.reason
    gate.set("")
    assert gate.open
    gate.set("a doubt")
    assert (gate.open, gate.reason) == (False, "a doubt")
