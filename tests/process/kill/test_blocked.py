"""The loop of a worker stands still for longer than its lease, as in a call that never awaits; its threads live on.

Nobody renews its lease meanwhile, so another process goes on; what the first one still does when its loop runs again is
refused, or kept as evidence. Nothing is sent late (PROTOCOL C4, D2, D3).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process.effects.deployment import Accepted, Deployment
from tests.process.effects.points import BLOCK
from tests.process.effects.processes import Process
from tests.process.effects.waiting import until
from tests.process.effects.witness import Witness
from tests.process.kill.test_paused import PATCH, QUIET, attempts, close_out, evidence, first_ended

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


def blocked_at(deployment: Deployment, point: str) -> tuple[Accepted, Process, Path]:
    """One accepted command, the worker whose loop stands still over it, and the file that keeps it there."""
    deployment.contacts("1001")
    (one,) = deployment.accept(PATCH)
    armed = deployment.armed(point, BLOCK)
    assert armed.flag is not None
    flag = Path(armed.flag)
    worker = deployment.worker(armed=(armed,), **QUIET)
    until(flag.read_text, f"the loop's standing still at {point}")
    return one, worker, flag


@pytest.mark.parametrize("point", ["claim_and_prepare.after_commit", "call.connected"])
def test_d2_what_was_not_marked_in_time_is_refused_and_another_has_sent_it(
    deployment: Deployment, point: str
) -> None:
    one, blocked, flag = blocked_at(deployment, point)
    rescuer = deployment.worker()
    until(lambda: one.id in deployment.journal.ends(), "the end by the one who took over")
    assert len(Witness(deployment).arrivals[one.id]) == 1
    flag.unlink()
    close_out(deployment, blocked, rescuer)
    assert len(Witness(deployment).arrivals[one.id]) == 1
    first, second = attempts(deployment, one)
    assert (first.outcome, first.dispatched_at) == ("RETRYABLE_PRE_DISPATCH", None)
    assert second.outcome == "ACCEPTED"
    assert evidence(deployment) == []


def test_d3_what_was_marked_and_not_sent_in_time_is_never_sent(deployment: Deployment) -> None:
    one, blocked, flag = blocked_at(deployment, "call.marked")
    rescuer = deployment.worker(families=("effect",))
    ended = until(lambda: first_ended(deployment, one), "the takeover")
    assert ended.outcome == "OUTCOME_UNKNOWN"
    flag.unlink()
    (seen,) = until(lambda: evidence(deployment), "the evidence of the one whose loop stood still")
    assert (seen.kind, seen.attempt_id, seen.outcome) == ("closed_unsent", ended.id, None)
    assert Witness(deployment).arrivals[one.id] == []
    reconciler = deployment.worker(families=("reconcile", "completion"))
    close_out(deployment, blocked, rescuer, reconciler)
    assert [attempt.outcome for attempt in attempts(deployment, one)] == ["OUTCOME_UNKNOWN", "ACCEPTED"]
    assert len(Witness(deployment).arrivals[one.id]) == 1
