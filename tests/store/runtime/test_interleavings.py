"""Any order of emissions, relay steps, deaths, lost answers, withdrawals, notices and their repetitions.

The authority in `authority.py` is the oracle of the service's contract; this machine checks that the
application's side never believes anything that the oracle does not say, and in the end believes all of it.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.store.runtime.applications import application, database, prepare
from tests.store.runtime.authority import Authority
from tests.store.runtime.relays import (
    ABORT,
    FORGET,
    SCOPE,
    Died,
    Transactions,
    drain,
    later,
    run_once,
    states,
)

from doonce.runtime import inbox, outbox
from doonce.runtime.handoffs import EmbeddedHandoffs
from doonce.wire import (
    AcceptRequest,
    AdmissionState,
    CompletionNotice,
    CompletionOutcome,
    RejectRequest,
)

STORE_FAULTS = st.sampled_from(["", "", "", ABORT, FORGET])
CALL_FAULTS = st.lists(st.sampled_from(["", "", "down", "lost"]), max_size=3)
PICK = st.integers(min_value=0, max_value=10_000)


class Interleavings(RuleBasedStateMachine):
    """One application, one oracle."""

    engine = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self.open = ExitStack()
        folder = Path(self.open.enter_context(tempfile.TemporaryDirectory()))
        address = self.open.enter_context(database(self.engine, folder))
        self.app = self.open.enter_context(application(self.engine, "sqlalchemy", address))
        prepare(self.app)
        with self.app.transaction() as connection:
            self.app.execute(
                connection, "CREATE TABLE projections (outbox_id VARCHAR(64), outcome VARCHAR(16))"
            )
        self.authority = Authority()
        self.outbox_ids: list[outbox.OutboxId] = []
        self.notices: list[CompletionNotice] = []

    def teardown(self) -> None:
        try:
            self.settle()
        finally:
            self.open.close()

    # ------------------------------------------------------------------------------------- what may happen

    @rule(
        lane=st.sampled_from([None, "a", "b"]),
        key=st.sampled_from([None, None, "k1", "k2"]),
        dies=STORE_FAULTS,
    )
    def emit(self, lane: str | None, key: str | None, dies: str) -> None:
        begin = Transactions(self.app.transaction, dies)
        outbox_id: outbox.OutboxId | None = None
        try:
            with begin() as connection:
                outbox_id = outbox.emit(
                    connection,
                    scope=SCOPE,
                    operation="person.update",
                    payload={"key": key or ""},
                    local_ref="42",
                    key=key,
                    source_lane=None if key else lane,
                )
        except Died:
            if dies == ABORT:
                return
        assert outbox_id is not None
        if outbox_id not in self.outbox_ids:
            self.outbox_ids.append(outbox_id)

    @rule(claim=STORE_FAULTS, record=STORE_FAULTS, calls=CALL_FAULTS)
    def relay(self, claim: str, record: str, calls: list[str]) -> None:
        self.authority.faults = list(calls)
        with suppress(Died):
            asyncio.run(run_once(self.app, self.authority, claim, record))
        self.authority.faults = []

    @rule(record=STORE_FAULTS, calls=CALL_FAULTS, before=st.booleans())
    def slow_relay_overtaken(self, record: str, calls: list[str], before: bool) -> None:
        """A relay sits between claim and record until its lease is over and another one has run."""

        async def overtake() -> None:
            later(self.app)
            self.authority.faults = list(calls)
            await run_once(self.app, self.authority)
            self.authority.faults = []

        async def accept(requests: Sequence[AcceptRequest]) -> Any:
            if before:
                await overtake()
            answers = await self.authority.accept(requests)
            if not before:
                await overtake()
            return answers

        async def reject(request: RejectRequest) -> Any:
            answer = await self.authority.reject(request)
            await overtake()
            return answer

        with suppress(Died):
            asyncio.run(run_once(self.app, EmbeddedHandoffs(accept, reject), "", record))

    @rule()
    def time_passes(self) -> None:
        later(self.app)

    @precondition(lambda self: self.outbox_ids)
    @rule(pick=PICK, dies=STORE_FAULTS)
    def withdraw(self, pick: int, dies: str) -> None:
        outbox_id = self.outbox_ids[pick % len(self.outbox_ids)]
        try:
            with Transactions(self.app.transaction, dies)() as connection:
                answer = outbox.withdraw(connection, outbox_id)
        except Died:
            return
        admission = self.authority.admissions.get(self.key(outbox_id))
        if answer is outbox.Withdrawal.WITHDRAWN:
            assert admission is not None
            assert admission.state is AdmissionState.HANDOFF_REJECTED
        if answer is outbox.Withdrawal.TOO_LATE:
            assert admission is not None
            assert admission.state is AdmissionState.COMMAND_ACCEPTED

    @precondition(lambda self: self.authority.accepted_order)
    @rule(pick=PICK, outcome=st.sampled_from(CompletionOutcome))
    def service_completes(self, pick: int, outcome: CompletionOutcome) -> None:
        order = self.authority.accepted_order
        self.notices.append(self.authority.complete(order[pick % len(order)], outcome))

    @precondition(lambda self: self.notices)
    @rule(pick=PICK, dies=STORE_FAULTS)
    def deliver(self, pick: int, dies: str) -> None:
        self.apply(self.notices[pick % len(self.notices)], dies)

    # -------------------------------------------------------------------------------------- what must hold

    @invariant()
    def every_belief_is_the_oracles(self) -> None:
        rows = self.app.rows(
            "SELECT outbox_id, handoff_key, state, command_id, receipt_id FROM doonce_outbox"
        )
        assert {row[0] for row in rows} == set(self.outbox_ids)
        for _outbox_id, key, state, command_id, receipt_id in rows:
            admission = self.authority.admissions.get(key)
            if state in ("accepted", "completed"):
                assert admission is not None
                assert admission.state is AdmissionState.COMMAND_ACCEPTED
                assert command_id == admission.command_id
            if state == "rejected":
                assert admission is not None
                assert admission.state is AdmissionState.HANDOFF_REJECTED
            if receipt_id is not None:
                assert admission is not None
                assert receipt_id == admission.receipt_id
            assert state != "refused"

    @invariant()
    def an_end_is_projected_exactly_once(self) -> None:
        projected = self.app.rows("SELECT outbox_id, outcome FROM projections ORDER BY outbox_id")
        ended = self.app.rows(
            "SELECT outbox_id, outcome FROM doonce_outbox WHERE state = 'completed' ORDER BY outbox_id"
        )
        assert projected == ended

    @invariant()
    def a_lane_is_accepted_in_commit_order(self) -> None:
        lanes: dict[str, list[int]] = {}
        facts = (
            "SELECT handoff_key, source_lane, lane_position FROM doonce_outbox WHERE source_lane IS NOT NULL"
        )
        positions = {key: (lane, position) for key, lane, position in self.app.rows(facts)}
        for key in self.authority.accepted_order:
            if key in positions:
                lane, position = positions[key]
                lanes.setdefault(lane, []).append(position)
        assert all(order == sorted(order) for order in lanes.values())

    def settle(self) -> None:
        """When the faults stop, everything comes to the end that the oracle names."""
        while self.app.rows("SELECT 1 FROM doonce_outbox WHERE state = 'pending'"):
            later(self.app)
            asyncio.run(drain(self.app, self.authority))
        for key in self.authority.accepted_order:
            self.apply(self.authority.complete(key, CompletionOutcome.ACCEPTED), "")
        for outbox_id, state in zip(self.outbox_ids, states(self.app, self.outbox_ids), strict=True):
            admission = self.authority.admissions[self.key(outbox_id)]
            accepted = admission.state is AdmissionState.COMMAND_ACCEPTED
            assert state == ("completed" if accepted else "rejected")
        self.every_belief_is_the_oracles()
        self.an_end_is_projected_exactly_once()
        self.a_lane_is_accepted_in_commit_order()

    # --------------------------------------------------------------------------------------------- helpers

    def apply(self, notice: CompletionNotice, dies: str) -> None:
        try:
            with Transactions(self.app.transaction, dies)() as connection:
                inbox.apply(connection, notice, self.project)
        except Died:
            pass

    def project(self, connection: Any, notice: CompletionNotice) -> None:
        sql = "INSERT INTO projections (outbox_id, outcome) VALUES (?, ?)"
        self.app.execute(connection, sql, notice.outbox_id, notice.outcome.value)

    def key(self, outbox_id: str) -> str:
        ((key,),) = self.app.rows("SELECT handoff_key FROM doonce_outbox WHERE outbox_id = ?", outbox_id)
        return str(key)


class InterleavingsOnPostgresql(Interleavings):
    engine = "postgresql"


class InterleavingsOnMariadb(Interleavings):
    engine = "mariadb"


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "machine,examples",
    [(Interleavings, 25), (InterleavingsOnPostgresql, 5), (InterleavingsOnMariadb, 5)],
)
def test_every_interleaving_agrees_with_the_oracle(machine: type[Interleavings], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
