"""TiDB by its documentation: what is refused, what its errors prove, and that nothing it lacks is said to it."""

from collections.abc import Container, Sequence
from typing import Any

import pytest
import sqlalchemy as sa
from asyncmy.errors import OperationalError
from tests.store.db.snapshot_sql import import_everything

from doonce.db import mysql_plain, tidb
from doonce.db.faults import Contended, DatabaseFault, Disconnected, RefusedData, RolledBack, SchemaFault
from doonce.db.incarnation import Place
from doonce.db.incarnation import place as place_of
from doonce.db.mysql_connection import MysqlRow, PooledConnection
from doonce.db.mysql_faults import classify, is_rollback_at_commit
from doonce.db.mysql_server import judge_durability, refusal
from doonce.db.mysql_session import MysqlSettings, configure
from doonce.db.statement import Compiled, Dialect, DialectName, Rows, Statement
from doonce.db.transaction import Fetch, Txn

SOUND = {
    "version": "8.0.11-TiDB-v8.5.6",
    "autocommit": "OFF",
    "tx_isolation": "READ-COMMITTED",
    "time_zone": "+00:00",
    "read_only": "OFF",
    "max_allowed_packet": "67108864",
    "tidb_txn_mode": "pessimistic",
    "tidb_constraint_check_in_place_pessimistic": "ON",
    "tidb_guarantee_linearizability": "ON",
    "tidb_low_resolution_tso": "OFF",
    "tidb_read_staleness": "0",
    "tidb_sysdate_is_now": "OFF",
    "tidb_super_read_only": "OFF",
    "tidb_restricted_read_only": "OFF",
    "datadir": "10.0.0.7:2379",
}


@pytest.mark.parametrize("version", ["v8.5.6", "v8.5.7", "v9.0.0", "v8.10.0-serverless", "v9.0.0-beta.1"])
def test_a_sound_tidb_is_worked_with(version: str) -> None:
    said = SOUND | {"version": f"8.0.11-TiDB-{version}"}
    assert refusal(said) == ("", "")
    assert judge_durability(said, replicated=True) == []


def test_a_tidb_may_say_one_and_nought_for_on_and_off() -> None:
    said = SOUND | {
        name: {"ON": "1", "OFF": "0"}[value]
        for name, value in SOUND.items()
        if value in ("ON", "OFF") and name != "autocommit"
    }
    assert refusal(said) == ("", "")
    assert judge_durability(said, replicated=True) == []


@pytest.mark.parametrize("version", ["5.7.25-TiDB-v6.1.0", "8.0.11-TiDB-v8.5.5", "8.0.11-TiDB", "TiDB-v8"])
def test_an_older_tidb_is_refused_with_a_mend(version: str) -> None:
    why, mend = refusal(SOUND | {"version": version})
    assert "too old" in why
    assert "8.5.6" in mend


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"tidb_txn_mode": "optimistic"}, "tidb_txn_mode"),
        ({"tidb_txn_mode": ""}, "tidb_txn_mode"),
        ({"tidb_constraint_check_in_place_pessimistic": "OFF"}, "tidb_constraint_check_in_place_pessimistic"),
        ({"tidb_guarantee_linearizability": "OFF"}, "tidb_guarantee_linearizability"),
        ({"tidb_low_resolution_tso": "ON"}, "tidb_low_resolution_tso"),
        ({"tidb_read_staleness": "-5"}, "tidb_read_staleness"),
        ({"tidb_sysdate_is_now": "ON"}, "tidb_sysdate_is_now"),
        ({"tx_isolation": "REPEATABLE-READ"}, "isolation"),
        ({"autocommit": "ON"}, "commits each statement"),
    ],
)
def test_a_session_that_breaks_the_protocol_is_refused(changes: dict[str, str], said: str) -> None:
    why, mend = refusal(SOUND | changes)
    assert said in why
    assert mend


def test_a_variable_that_the_server_does_not_know_is_not_taken_for_set() -> None:
    for name in tidb.DEMANDED:
        assert "absent" in refusal({key: value for key, value in SOUND.items() if key != name})[0]


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"tidb_super_read_only": "ON"}, "nothing can be written"),
        ({"tidb_restricted_read_only": "ON"}, "nothing can be written"),
        ({"read_only": "ON"}, "nothing can be written"),
        ({"super_read_only": "ON"}, "nothing can be written"),
        ({"datadir": "/tmp/tidb"}, "not in TiKV"),
    ],
)
def test_s1_a_tidb_that_keeps_nothing_is_named(changes: dict[str, str], said: str) -> None:
    (fault,) = judge_durability(SOUND | changes, replicated=False)
    assert said in fault


def test_s1_what_innodb_would_need_means_nothing_to_tidb() -> None:
    noops = {"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0", "log_bin": "ON"}
    assert judge_durability(SOUND | noops, replicated=False) == []


@pytest.mark.parametrize(
    "code, proven",
    [(8002, True), (8022, True), (8028, True), (9007, True)]
    + [
        (code, False)
        for code in (1105, 1205, 1213, 1317, 8005, 8027, 8147, 8229, 9001, 9002, 9004, 9005, 2013)
    ],
)
def test_t6_only_what_is_documented_as_rolled_back_is_that_at_commit(code: int, proven: bool) -> None:
    error = OperationalError(code, "")
    assert is_rollback_at_commit(error, of_cluster=True, of_tidb=True) is proven


def test_t6_an_error_of_tidb_is_no_proof_elsewhere() -> None:
    for code in (8002, 8022, 8028, 9007):
        assert not is_rollback_at_commit(OperationalError(code, ""), of_cluster=False)


@pytest.mark.parametrize(
    "code, fault",
    [
        (1205, Contended), (3572, Contended), (1213, RolledBack), (8002, RolledBack), (8022, RolledBack),
        (8028, RolledBack), (9007, RolledBack), (8147, RolledBack), (1105, RolledBack), (8004, RefusedData),
        (8025, RefusedData), (1062, RefusedData), (8027, Disconnected), (8120, Disconnected), (9001, Disconnected),
        (9002, Disconnected), (9003, Disconnected), (9004, Disconnected), (9005, Disconnected),
    ],
)  # fmt: skip
def test_t6_an_error_before_commit_is_a_proven_rollback(code: int, fault: type[DatabaseFault]) -> None:
    assert type(classify(OperationalError(code, ""))) is fault


def test_s2_a_cluster_is_its_id_and_the_table_that_it_made() -> None:
    answers: dict[str, list[tuple[Any, ...]]] = {
        "galera.is_node": [],
        "incarnation.server": [("version", "8.0.11-TiDB-v8.5.6"), ("server_id", "0")],
        "tidb.cluster": [("7434",)],
        "tidb.made": [("2026-01-02 03:04:05", 112)],
    }
    assert answered(place_of(DialectName.MYSQL, None), answers) == Place(
        "tidb:7434", "made:2026-01-02 03:04:05 table:112"
    )


def answered(asked: Txn[Any], answers: dict[str, list[tuple[Any, ...]]]) -> Any:
    """What a transaction makes of these answers."""
    rows: Any = None
    while True:
        try:
            call = asked.send(rows)
        except StopIteration as stop:
            return stop.value
        assert isinstance(call, Fetch)
        rows = answers[call.statement.name]


def test_no_statement_says_what_tidb_lacks() -> None:
    import_everything()
    for name, statement in Statement.registry.items():
        text = statement.mysql_plain.text
        for lacking in ("JSON_TABLE", "SKIP LOCKED", "FOR SHARE", "LOCK IN SHARE MODE", "LATERAL"):
            assert lacking not in text, name


@pytest.mark.parametrize(
    "rows, size", [(0, 1), (1, 1), (2, 2), (3, 4), (5, 8), (255, 256), (256, 256), (257, 512), (1000, 1024)]
)
def test_a_batch_is_rounded_up_to_few_sizes(rows: int, size: int) -> None:
    assert mysql_plain.size_of(rows) == size


def test_a_batch_is_written_out_and_its_spare_rows_are_switched_off() -> None:
    name = "test.unit_plain_rows"
    made = Statement(name, lambda dialect: sa.select(dialect.batch("rows", a=sa.BigInteger()).c.a))
    try:
        text, arguments = mysql_plain.spelled(made, {"rows": [(1,), (2,), (None,)]})
    finally:
        del Statement.registry[name]
    assert text.count("SELECT CAST(? AS SIGNED) AS a FROM DUAL WHERE ?") == 4
    assert text.count("UNION ALL") == 3
    assert arguments == [1, 1, 2, 1, None, 1, None, 0]


def test_what_no_statement_can_take_is_refused() -> None:
    compiled = Compiled(
        "ROWS[ ? : SELECT CAST(? AS SIGNED) AS a FROM DUAL WHERE ? ]", (Rows("rows", (0,), 1),)
    )
    with pytest.raises(RefusedData, match="too many"):
        mysql_plain.spell(compiled, {"rows": [(number,) for number in range(40_000)]})
    with pytest.raises(OverflowError):
        mysql_plain.spell(compiled, {"rows": [(2**63,)]})


def test_only_the_plain_form_draws_what_it_may_take() -> None:
    rows = sa.select(sa.table("t", sa.column("due"))).order_by(sa.column("due"))
    count = sa.bindparam("rows", type_=sa.BigInteger())
    locked = Dialect(DialectName.MYSQL).some_free(rows, count, by=("due",))
    drawn = Dialect(DialectName.MYSQL, plain=True).some_free(rows, count, by=("due",))
    assert "rand()" not in str(locked)
    assert "rand()" in str(drawn)


class TidbServer(PooledConnection):
    """A connection that is answered as TiDB's documentation says, and that notes what it was told."""

    def __init__(self, variables: dict[str, str], clusters: list[str] | Exception) -> None:
        super().__init__(None, 3)
        self.variables = variables
        self.clusters = clusters
        self.told: list[str] = []

    async def execute(self, text: str, arguments: Sequence[Any] = ()) -> None:
        self.told.append(text)

    async def fetch(
        self, text: str, arguments: Sequence[Any] = (), *, texts: Container[str] = ()
    ) -> list[MysqlRow]:
        self.told.append(text)
        if "mysql.tidb" not in text:
            return [MysqlRow(pair, {}) for pair in self.variables.items()]
        if isinstance(self.clusters, Exception):
            raise self.clusters
        return [MysqlRow((cluster,), {}) for cluster in self.clusters]


async def test_a_session_is_pessimistic_and_plain_and_looks_at_keys_at_once() -> None:
    server = TidbServer(SOUND, ["7434"])
    await configure(server, MysqlSettings(), SOUND["version"])
    await server.begin()
    await server.begin(readonly=True)
    assert (server.plain, server.certifies, server.of_tidb) == (True, True, True)
    assert server.told[-2:] == ["BEGIN PESSIMISTIC"] * 2
    assert tidb.SESSION in server.told
    asked = next(text for text in server.told if text.startswith("SHOW"))
    assert all(f"'{name}'" in asked for name in SOUND)


async def test_a_mariadb_session_is_told_nothing_of_tidb() -> None:
    said = SOUND | {"version": "10.11.18-MariaDB"}
    server = TidbServer(said, RuntimeError("it must not be asked"))
    await configure(server, MysqlSettings(), said["version"])
    await server.begin()
    assert (server.plain, server.certifies, server.of_tidb) == (False, False, False)
    assert server.told[-1] == "START TRANSACTION READ WRITE"
    assert not [text for text in server.told if "tidb" in text]


@pytest.mark.parametrize(
    "version, clusters, said, mend",
    [
        ("8.0.11-TiDB-v7.5.1", ["1"], "too old", "8.5.6"),
        (SOUND["version"], [], "which cluster", "upgrade"),
        (SOUND["version"], OperationalError(1142, "SELECT command denied"), "may not read", "GRANT SELECT"),
    ],
)
async def test_a_tidb_that_cannot_be_told_apart_from_its_copy_is_refused(
    version: str, clusters: list[str] | Exception, said: str, mend: str
) -> None:
    server = TidbServer(SOUND | {"version": version}, clusters)
    with pytest.raises(SchemaFault, match=said) as refused:
        await configure(server, MysqlSettings(), version)
    assert mend in refused.value.hint
    assert (tidb.SESSION in server.told) == (said != "too old"), (
        "an older one does not know what it would be told"
    )


async def test_a_tidb_that_breaks_off_while_it_is_asked_is_no_refused_user() -> None:
    lost = OperationalError(2013, "Lost connection to MySQL server during query")
    with pytest.raises(OperationalError, match="Lost connection"):
        await configure(TidbServer(SOUND, lost), MysqlSettings(), SOUND["version"])
