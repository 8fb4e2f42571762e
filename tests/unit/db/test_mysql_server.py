"""S1, and what the statements need: which servers on the MySQL wire are worked with."""

import pytest

from doonce.db.mysql_server import judge_durability, refusal

SOUND = {
    "version": "10.11.18-MariaDB",
    "autocommit": "OFF",
    "tx_isolation": "READ-COMMITTED",
    "time_zone": "+00:00",
    "read_only": "OFF",
    "innodb_flush_log_at_trx_commit": "1",
    "innodb_doublewrite": "ON",
    "log_bin": "OFF",
    "sync_binlog": "0",
    "wsrep_on": "OFF",
    "max_allowed_packet": "16777216",
}
MYSQL = {
    "version": "8.4.3",
    "autocommit": "OFF",
    "transaction_isolation": "READ-COMMITTED",
    "time_zone": "+00:00",
    "super_read_only": "OFF",
    "innodb_flush_log_at_trx_commit": "1",
    "log_bin": "ON",
    "sync_binlog": "1",
}


@pytest.mark.parametrize(
    "variables",
    [
        SOUND,
        MYSQL,
        SOUND | {"version": "11.8.3-MariaDB-log"},
        SOUND | {"version": "10.6.0-MariaDB"},
        MYSQL | {"version": "8.0.11"},
        SOUND | {"wsrep_on": "ON"},
        SOUND | {"read_only": "0", "super_read_only": "0", "log_bin": "0"},
    ],
)
def test_a_sound_server_is_worked_with(variables: dict[str, str]) -> None:
    assert refusal(variables) == ("", "")
    assert judge_durability(variables, replicated=False) == []


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"version": "10.5.29-MariaDB"}, "too old"),
        ({"version": "5.7.44-log"}, "too old"),
        ({"version": "what"}, "too old"),
        ({"tx_isolation": "REPEATABLE-READ"}, "isolation"),
        ({"autocommit": "ON"}, "commits each statement"),
        ({"time_zone": "SYSTEM"}, "UTC"),
        ({"max_allowed_packet": "1048576"}, "max_allowed_packet"),
    ],
)
def test_a_server_or_session_that_cannot_serve_is_refused_with_a_mend(
    changes: dict[str, str], said: str
) -> None:
    why, mend = refusal(SOUND | changes)
    assert said in why
    assert mend


@pytest.mark.parametrize("name", ["tx_isolation", "autocommit", "time_zone"])
def test_what_a_session_does_not_say_is_not_taken_for_set(name: str) -> None:
    assert refusal({key: value for key, value in SOUND.items() if key != name})[0]


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"innodb_flush_log_at_trx_commit": "2"}, "innodb_flush_log_at_trx_commit"),
        ({"innodb_flush_log_at_trx_commit": "0"}, "innodb_flush_log_at_trx_commit"),
        ({"innodb_doublewrite": "OFF"}, "innodb_doublewrite"),
        ({"innodb_doublewrite": "DETECT_ONLY"}, "innodb_doublewrite"),
        ({"log_bin": "ON", "sync_binlog": "0"}, "sync_binlog"),
        ({"log_bin": "ON", "sync_binlog": "1000"}, "sync_binlog"),
        ({"log_bin": "1"}, "sync_binlog"),
        ({"read_only": "ON"}, "primary"),
        ({"super_read_only": "ON"}, "primary"),
    ],
)
def test_s1_a_setting_that_loses_commits_is_named(changes: dict[str, str], said: str) -> None:
    (fault,) = judge_durability(SOUND | changes, replicated=False)
    assert said in fault


def test_s1_a_promised_replica_is_one_that_commits_wait_for() -> None:
    assert len(judge_durability(SOUND, replicated=True)) == 1
    assert judge_durability(SOUND | {"wsrep_on": "ON"}, replicated=True) == [], (
        "each node has what is committed"
    )
    for name in ("rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled"):
        assert judge_durability(SOUND | {name: "ON"}, replicated=True) == []
