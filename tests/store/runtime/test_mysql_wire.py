"""What only the MySQL wire does to a transaction: old snapshots, gaps, rollbacks and commits that nobody asked for."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest
from sqlalchemy import create_engine, make_url
from tests.store.runtime.applications import (
    PLAIN,
    Application,
    application,
    database,
    mariadb_options,
    prepare,
)
from tests.store.runtime.authority import Authority
from tests.store.runtime.relays import emit, run_once, status

from doonce.base.errors import Conflict
from doonce.runtime import inbox, outbox, schema
from doonce.runtime.connections import advance, runner
from doonce.runtime.relay_claim import _FINDS, Claimed, HeadPolicy, claim
from doonce.wire import CompletionOutcome, EventNotice, HandoffScope, ReceiptState, seal_event

DEADLOCK = 1213
pytestmark = pytest.mark.mariadb
SNAPSHOT = "SELECT count(*) FROM things"
EVENT: EventNotice = seal_event(
    event_id="evt_1",
    pack="shop",
    type="order.paid",
    org="acme",
    installation="main",
    capability="shop.events",
    webhook="batch",
    receipt_id="ing_1",
    recorded_at_us=7,
    content=b"{}",
    object=None,
)


@pytest.fixture(params=["pymysql", "sqlalchemy"])
def maria(request: pytest.FixtureRequest, mariadb_address: str) -> Iterator[Application]:
    with application("mariadb", request.param, mariadb_address) as made:
        prepare(made)
        yield made


@pytest.fixture
def mariadb_address(tmp_path: Path) -> Iterator[str]:
    with database("mariadb", tmp_path) as address:
        yield address


@contextmanager
def waiting(maria: Application, *tasks: Callable[[Any], Any]) -> Iterator[list[Future[Any]]]:
    """Each task in a transaction of its own, on a thread of its own."""

    def run(task: Callable[[Any], Any]) -> Any:
        with maria.transaction() as connection:
            return task(connection)

    with ThreadPoolExecutor(len(tasks)) as threads:
        yield [threads.submit(run, task) for task in tasks]


# ------------------------------------------------------------------------------------------------ old snapshots


def test_once_is_decided_by_the_row_and_not_by_a_snapshot(maria: Application) -> None:
    with maria.transaction() as connection:
        maria.execute(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        maria.execute(connection, SNAPSHOT)
        with maria.transaction() as other:
            assert inbox.once(other, "job-1")
        assert maria.execute(connection, "SELECT count(*) FROM doonce_inbox")[0][0] == 0, "no old snapshot"
        assert not inbox.once(connection, "job-1")


async def test_a_notice_that_was_applied_after_the_snapshot_is_a_duplicate(
    maria: Application, scope: HandoffScope, authority: Authority
) -> None:
    emit(maria, scope)
    await run_once(maria, authority)
    notice = authority.complete(authority.accepted_order[0], CompletionOutcome.ACCEPTED)
    projected: list[str] = []

    def project(_connection: Any, notice: Any) -> None:
        projected.append(notice.command_id)

    with maria.transaction() as connection:
        maria.execute(connection, SNAPSHOT)
        with maria.transaction() as other:
            first = inbox.apply(other, notice, project)
        second = inbox.apply(connection, notice, project)
    assert (first.state, second.state) == (ReceiptState.APPLIED, ReceiptState.DUPLICATE)
    assert first.receipt_id == second.receipt_id
    assert len(projected) == 1


async def test_a_note_that_was_kept_after_the_snapshot_is_never_kept_again(
    maria: Application, scope: HandoffScope, authority: Authority
) -> None:
    """The row does not say which notes it has seen; the entry does, once it is written."""
    emit(maria, scope)
    await run_once(maria, authority)
    notice = authority.complete(authority.accepted_order[0], CompletionOutcome.UNKNOWN)

    def late(connection: Any) -> None:
        maria.execute(connection, SNAPSHOT)
        with maria.transaction() as other:
            assert inbox.apply(other, notice, never).state is ReceiptState.NOTED
        inbox.apply(connection, notice, never)

    with maria.transaction() as connection, pytest.raises(Conflict, match="over, or began before"):
        late(connection)
    with maria.transaction() as connection:
        assert inbox.apply(connection, notice, never).state is ReceiptState.DUPLICATE


# --------------------------------------------------------------------------------------------------- exactness


def test_identities_are_compared_byte_for_byte(maria: Application, scope: HandoffScope) -> None:
    """Every collation that MariaDB and MySQL share takes the second for the first."""
    names = ["job", "job ", "Job", "jöb", "jo\u0308b"]
    with maria.transaction() as connection:
        assert [inbox.once(connection, name) for name in names] == [True] * len(names)
    with maria.transaction() as connection:
        assert [inbox.once(connection, name) for name in names] == [False] * len(names)
        made = [
            outbox.emit(connection, scope=scope, operation="o", payload={}, local_ref=name, key=name)
            for name in names
        ]
    assert len(set(made)) == len(names)
    assert [row[0] for row in maria.rows("SELECT local_ref FROM doonce_outbox ORDER BY local_ref")] == sorted(
        names, key=str.encode
    )


def test_a_connection_of_another_character_set_keeps_the_bytes(
    mariadb_address: str, scope: HandoffScope
) -> None:
    with application("mariadb", "pymysql", mariadb_address) as maria:
        prepare(maria)
        options = mariadb_options(mariadb_address)
        with closing(pymysql.connect(**options, charset="latin1")) as connection:
            first = outbox.emit(
                connection, scope=scope, operation="o", payload={"名": "Zoë €"}, local_ref="Zoë 名", key="k €"
            )
            connection.commit()
        assert (
            emit(maria, scope, operation="o", payload={"名": "Zoë €"}, local_ref="Zoë 名", key="k €") == first
        )
        assert maria.rows("SELECT local_ref, payload FROM doonce_outbox") == [
            ("Zoë 名", '{"名":"Zoë €"}'.encode())
        ]


def test_times_do_not_depend_on_the_sessions_zone(mariadb_address: str, scope: HandoffScope) -> None:
    with application("mariadb", "pymysql", mariadb_address) as maria:
        prepare(maria)
        with maria.transaction() as connection:
            maria.execute(connection, "SET SESSION time_zone = '+11:00'")
            outbox.emit(connection, scope=scope, operation="o", payload={}, local_ref="1")
        ((emitted_at_us,),) = maria.rows("SELECT emitted_at_us FROM doonce_outbox")
    assert abs(emitted_at_us / 1e6 - time.time()) < 600


# -------------------------------------------------------------------------------- rollbacks that nobody asked for


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_deadlock_that_a_handler_swallows_is_found_out(maria: Application, goes_on: bool) -> None:
    """The server rolled everything back, the dedupe row as well; the connection would commit what came after."""
    with maria.transaction() as connection:
        for number in range(1, 400):
            maria.execute(connection, "INSERT INTO things (id, title) VALUES (?, 'old')", number)
    holds, waits = threading.Event(), threading.Event()

    def heavy(connection: Any) -> None:
        maria.execute(connection, "UPDATE things SET title = 'heavy' WHERE id > 1")
        holds.set()
        waits.wait(30)
        maria.execute(connection, "UPDATE things SET title = 'heavy' WHERE id = 1")

    def handler(connection: Any, _event: Any) -> None:
        maria.execute(connection, "UPDATE things SET title = 'light' WHERE id = 1")
        holds.wait(30)
        waits.set()
        until_somebody_waits(maria)
        with pytest.raises(Exception, match=str(DEADLOCK)):
            maria.execute(connection, "UPDATE things SET title = 'light' WHERE id = 2")
        if goes_on:
            maria.execute(connection, "INSERT INTO things (id, title) VALUES (1000, 'torn')")

    with waiting(maria, heavy) as (other,):
        with pytest.raises(Conflict, match="is over"), maria.transaction() as connection:
            inbox.take(connection, EVENT, handler)
        other.result(30)
    assert maria.count("doonce_inbox") == 0
    assert maria.rows("SELECT count(*) FROM things WHERE title <> 'heavy'") == [(0,)]


def until_somebody_waits(maria: Application) -> None:
    """Return once another transaction of this database waits for a lock."""
    asked = (
        "SELECT count(*) FROM information_schema.innodb_trx AS waiter JOIN information_schema.processlist AS p"
        " ON p.id = waiter.trx_mysql_thread_id WHERE p.db = DATABASE() AND waiter.trx_state = 'LOCK WAIT'"
    )
    end = time.monotonic() + 30
    while maria.rows(asked) == [(0,)]:
        assert time.monotonic() < end, "nobody waits"
        time.sleep(0.15)  # the server shows the same picture again to who looks more than ten times a second


@pytest.mark.parametrize("ending", ["COMMIT", "CREATE TABLE sudden (id INTEGER)", "ROLLBACK"])
async def test_a_projection_that_ends_the_transaction_is_found_out(
    maria: Application, scope: HandoffScope, authority: Authority, ending: str
) -> None:
    outbox_id = emit(maria, scope)
    await run_once(maria, authority)
    notice = authority.complete(authority.accepted_order[0], CompletionOutcome.ACCEPTED)

    def project(connection: Any, _notice: Any) -> None:
        maria.execute(connection, ending)

    with pytest.raises(Conflict, match="is over"), maria.transaction() as connection:
        inbox.apply(connection, notice, project)
    assert status(maria, outbox_id).state is outbox.OutboxState.ACCEPTED
    assert maria.count("doonce_inbox") == 0


# ---------------------------------------------------------------------------------------------------- side by side


async def test_two_notices_at_once_are_no_deadlock(
    maria: Application, scope: HandoffScope, authority: Authority
) -> None:
    """Neither locks the gap in which the other's entry goes."""
    for number in range(2):
        emit(maria, scope, local_ref=str(number))
    await run_once(maria, authority)
    inside = threading.Barrier(2)

    def project(_connection: Any, _notice: Any) -> None:
        inside.wait(30)

    def applying(key: str) -> Callable[[Any], Any]:
        notice = authority.complete(key, CompletionOutcome.ACCEPTED)
        return lambda connection: inbox.apply(connection, notice, project)

    with waiting(maria, *map(applying, authority.accepted_order)) as both:
        states = [one.result(60).state for one in both]
    assert states == [ReceiptState.APPLIED] * 2


def claimed_in(connection: Any, token: str, rows_max: int) -> list[Claimed]:
    claiming = claim(token, rows_max=rows_max, lease_us=60_000_000, policy=HeadPolicy.BLOCK)
    return advance(runner(connection), claiming)


def test_relays_at_once_claim_different_rows_and_one_of_a_lane(
    maria: Application, scope: HandoffScope
) -> None:
    for number in range(6):
        emit(maria, scope, local_ref=str(number), source_lane=f"lane{number % 3}")
    with maria.transaction() as first, maria.transaction() as second:
        maria.execute(second, "SET SESSION innodb_lock_wait_timeout = 1")
        ones, others = claimed_in(first, "t1", 2), claimed_in(second, "t2", 2)
    refs = [one.intent.local_ref for one in (*ones, *others)]
    assert (len(ones), len(others)) == (2, 1)
    assert sorted(refs) == ["0", "1", "2"], "the first of each lane, and nothing twice"
    with maria.transaction() as third:
        assert claimed_in(third, "t3", 10) == [], "nothing of a lane goes past what is in flight"


def test_a_claim_and_an_emission_do_not_wait_for_each_other(maria: Application, scope: HandoffScope) -> None:
    emit(maria, scope)
    with maria.transaction() as claiming, maria.transaction() as emitting:
        for connection in (claiming, emitting):
            maria.execute(connection, "SET SESSION innodb_lock_wait_timeout = 1")
        outbox.emit(emitting, scope=scope, operation="o", payload={}, local_ref="1", source_lane="a")
        assert len(claimed_in(claiming, "t1", 10)) == 1
        outbox.emit(emitting, scope=scope, operation="o", payload={}, local_ref="1", source_lane="a")


def test_a_row_that_was_leased_after_the_search_is_not_leased_again(
    maria: Application, scope: HandoffScope
) -> None:
    """The search is of an old snapshot; the lock looks at the row as it is."""
    emit(maria, scope)
    with maria.transaction() as connection:
        maria.execute(connection, SNAPSHOT)
        with maria.transaction() as other:
            assert len(claimed_in(other, "t1", 10)) == 1
        assert claimed_in(connection, "t2", 10) == []


# -------------------------------------------------------------------------------------------- open transactions


def test_pymysql_in_autocommit_mode_after_an_explicit_begin(
    mariadb_address: str, scope: HandoffScope
) -> None:
    with application("mariadb", "pymysql", mariadb_address) as maria:
        prepare(maria)
        with closing(pymysql.connect(**mariadb_options(mariadb_address), autocommit=True)) as connection:
            with pytest.raises(Conflict, match="autocommit"):
                outbox.emit(connection, scope=scope, operation="o", payload={}, local_ref="1")
            connection.begin()
            outbox.emit(connection, scope=scope, operation="o", payload={}, local_ref="2")
            connection.commit()
            with pytest.raises(Conflict, match="autocommit"):
                outbox.emit(connection, scope=scope, operation="o", payload={}, local_ref="3")
        assert maria.rows("SELECT local_ref FROM doonce_outbox") == [("2",)]


def is_mariadb(address: str) -> bool:
    """Whether that is what answers: the tests may have been led to MySQL (`make mysql`)."""
    engine = create_engine(address, connect_args=PLAIN)
    with engine.connect() as connection:
        version = str(connection.exec_driver_sql("SELECT version()").scalar_one())
    engine.dispose()
    return "MariaDB" in version


def test_sqlalchemys_dialect_of_mariadbs_own_name(mariadb_address: str, scope: HandoffScope) -> None:
    if not is_mariadb(mariadb_address):
        pytest.skip("SQLAlchemy refuses that dialect on MySQL, which is not MariaDB")
    url = make_url(mariadb_address).set(drivername="mariadb+pymysql")
    engine = create_engine(url, connect_args=PLAIN)
    with engine.begin() as connection:
        schema.create(connection)
        schema.verify(connection)
    with engine.begin() as connection:
        made = outbox.emit(connection, scope=scope, operation="o", payload={}, local_ref="1", source_lane="a")
        outbox.emit(connection, scope=scope, operation="o", payload={}, local_ref="2", source_lane="a")
    with engine.begin() as connection:
        assert [one.intent.outbox_id for one in claimed_in(connection, "t1", 10)] == [made]
        definition = connection.exec_driver_sql("SHOW CREATE TABLE doonce_outbox").one()[1]
    engine.dispose()
    assert "ENGINE=InnoDB" in definition
    assert "`outbox_id` varbinary(128)" in definition
    finding = _FINDS[HeadPolicy.BLOCK].build("mysql")
    assert str(finding.compile(dialect=engine.dialect)).count("FORCE INDEX") == 2  # type: ignore[attr-defined]


def never(*_arguments: Any) -> Any:
    raise AssertionError("nothing must be projected")
