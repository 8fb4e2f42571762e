"""Stopping a worker: drained it finishes what it holds; stopped hard it leaves that to its leases."""

from __future__ import annotations

import pytest
from tests.process.effects.deployment import Accepted, Deployment, Wanted
from tests.process.effects.waiting import until
from tests.process.effects.witness import Witness, check

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


def slow_calls(deployment: Deployment, fault: str, **more: int) -> list[Accepted]:
    contacts = [f"1{number:03}" for number in range(6)]
    deployment.contacts(*contacts)
    deployment.simulator.faults({"fault": fault, "method": "PATCH", "times": 6, **more})
    return deployment.accept(
        *(Wanted(contact, "contact.patch", contact, {"title": contact}) for contact in contacts)
    )


def test_a_drain_finishes_what_runs_and_claims_nothing_more(deployment: Deployment) -> None:
    slow_calls(deployment, "slow_drip", delay_ms=1)
    worker = deployment.worker(concurrency=3)
    until(lambda: deployment.simulator.stats()["requests"] >= 3, "three calls in flight")
    worker.tell(b"drain")
    worker.expect(b"draining")
    worker.stop()
    started = [attempt for attempt in deployment.journal.attempts() if attempt.kind == "effect"]
    assert {attempt.outcome for attempt in started} == {"ACCEPTED"}
    untouched = [item for item in deployment.journal.items("effect") if item.state == "pending"]
    assert len(untouched) == 6 - len(started) > 0
    assert all(item.claims == 0 for item in untouched)
    deployment.worker()
    deployment.wait_ended()
    check(deployment)
    assert {attempt.outcome for attempt in deployment.journal.attempts()} == {"ACCEPTED"}


def test_a_hard_stop_leaves_what_runs_to_its_leases(deployment: Deployment) -> None:
    accepted = slow_calls(deployment, "stall")
    worker = deployment.worker(concurrency=6, stop_seconds=0.1)
    until(lambda: deployment.simulator.stats()["requests"] == 6, "every call in flight")
    worker.stop()
    open_attempts = [attempt for attempt in deployment.journal.attempts() if attempt.outcome is None]
    assert len(open_attempts) == 6, "nothing was said of what nobody knows"
    assert deployment.journal.evidence() == []
    deployment.worker()
    deployment.wait_ended()
    outcomes = {attempt.outcome for attempt in deployment.journal.attempts() if attempt.kind == "effect"}
    assert outcomes == {"OUTCOME_UNKNOWN"}, "and each was proven by a probe"
    assert all(len(Witness(deployment).arrivals[one.id]) == 1 for one in accepted)
    check(deployment)
