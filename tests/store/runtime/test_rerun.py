"""Any transaction of ours may die after any statement and be run again from the start (PROTOCOL T1)."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.store.runtime.applications import Application
from tests.store.runtime.relays import Died

from doonce.base.errors import ErrorClass
from doonce.runtime import inbox_store, outbox_store, relay_claim, relay_store
from doonce.runtime.connections import Runner, advance, runner
from doonce.runtime.model import Accepted, OutboxId, RefusedForGood, Rejected, TryAgain, Verdict, Wish
from doonce.runtime.outbox_store import Intent
from doonce.runtime.relay_claim import Claimed, HeadPolicy
from doonce.runtime.relay_store import Outcome
from doonce.runtime.statements import Rows, Step, Transaction
from doonce.wire import CompletionNotice, CompletionOutcome, seal_notice

DIGEST = "sha256:" + "a" * 64

INTENT = Intent(
    outbox_id=OutboxId("obx_1"),
    handoff_key="k",
    org="acme",
    installation="main",
    capability="people.write",
    binding_digest=DIGEST,
    binding_generation=1,
    operation="person.update",
    local_ref="42",
    link=None,
    payload=b"{}",
    payload_digest=DIGEST,
    source_lane="a",
)
MINE = Claimed(INTENT, Wish.ACCEPT, 0)


def notice(outcome: CompletionOutcome) -> CompletionNotice:
    return seal_notice(
        command_id="cmd_1",
        key="k",
        outbox_id="obx_1",
        payload_digest=DIGEST,
        outcome=outcome,
        result=b"{}",
        attempt_id=None,
        recorded_at_us=1,
    )


def claim() -> Transaction[Any]:
    return relay_claim.claim("t", rows_max=5, lease_us=60_000_000, policy=HeadPolicy.BLOCK)


def record(verdict: Verdict) -> Transaction[Any]:
    return relay_store.record("t", [Outcome(MINE, verdict, delay_us=60_000_000)])


def apply(outcome: CompletionOutcome) -> Transaction[Any]:
    examined = yield from inbox_store.examine(notice(outcome))
    return (yield from inbox_store.settle(notice(outcome), "rcp_1", examined.notices))


def emitted() -> Transaction[Any]:
    return outbox_store.emit(INTENT)


Make = Callable[[], Transaction[Any]]
CASES: dict[str, tuple[list[Make], Make]] = {
    "emit": ([], emitted),
    "withdraw": ([emitted], lambda: outbox_store.withdraw(INTENT.outbox_id)),
    "claim": ([emitted], claim),
    "accepted": ([emitted, claim], lambda: record(Accepted("cmd_1", "hnd_1", "", 1))),
    "rejected": ([emitted, claim], lambda: record(Rejected("hnd_1", "", 1))),
    "refused": ([emitted, claim], lambda: record(RefusedForGood(ErrorClass.INVALID, "no"))),
    "retry": ([emitted, claim], lambda: record(TryAgain(ErrorClass.UNAVAILABLE, "no"))),
    "completed": ([emitted], lambda: apply(CompletionOutcome.ACCEPTED)),
    "noted": ([emitted], lambda: apply(CompletionOutcome.UNKNOWN)),
    "once": ([], lambda: inbox_store.once("job-1", "rcp_1")),
}


class DyingRunner:
    """Runs a number of steps and dies before the next one."""

    def __init__(self, inner: Runner, steps: int) -> None:
        self._inner = inner
        self.engine = inner.engine
        self.left = steps

    def run(self, step: Step) -> Rows:
        if self.left == 0:
            raise Died
        self.left -= 1
        return self._inner.run(step)


ENOUGH = 1_000


def contents(app: Application, connection: Any) -> list[Any]:
    """Everything stored but times, which are the database's own."""
    outbox = (
        "SELECT outbox_id, handoff_key, payload, state, wish, tries, lease_token, lease_until_us > 0,"
        " lane_position, command_id, receipt_id, notices, outcome, terminal_digest, error_class,"
        " due_at_us > emitted_at_us + 30000000, ended_at_us IS NULL FROM doonce_outbox"
    )
    facts = (
        outbox,
        "SELECT org, installation, source_lane, tail FROM doonce_outbox_lane",
        "SELECT kind, inbox_id, receipt_id, command_id, outcome FROM doonce_inbox",
    )
    return [[tuple(map(str, row)) for row in app.read(connection, sql)] for sql in facts]


@pytest.mark.parametrize("case", CASES)
def test_dying_after_any_statement_and_running_again(plain: Application, case: str) -> None:
    before, make = CASES[case]

    def run(steps: int, *, commit: bool) -> tuple[Any, list[Any], int]:
        with plain.transaction() as connection:
            dying = DyingRunner(runner(connection), steps)
            result = advance(dying, make())
            seen = (result, contents(plain, connection), steps - dying.left)
            if not commit:
                connection.rollback()
        return seen

    with plain.transaction() as connection:
        for one in before:
            advance(runner(connection), one())
        start = contents(plain, connection)
    undisturbed = run(ENOUGH, commit=False)

    for steps in range(undisturbed[2]):
        with pytest.raises(Died):
            run(steps, commit=True)
        with plain.transaction() as connection:
            assert contents(plain, connection) == start
    assert run(ENOUGH, commit=True) == undisturbed
    assert undisturbed[1] != start
