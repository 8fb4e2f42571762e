"""SIGSTOP until long after the lease, and SIGCONT: what a process that slept does, and what it still knows."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from tests.process.effects.deployment import Accepted, Deployment, Wanted
from tests.process.effects.processes import Process, now_us
from tests.process.effects.waiting import until
from tests.process.effects.witness import Witness, check
from tests.process.kill.boundaries import sides

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

QUIET = {"families": ("effect",), "poll_seconds": 30.0, "sweep_seconds": 30.0}
"""A sleeper does one thing only: on SQLite one that is stopped inside any transaction stops everybody."""

PATCH = Wanted("paused", "contact.patch", "1001", {"title": "paused"}, "lane")


def paused_at(deployment: Deployment, *points: str) -> tuple[Accepted, Process]:
    """One accepted command, and the worker that sleeps over it at the first point, and is killed at any other."""
    deployment.contacts("1001")
    (one,) = deployment.accept(PATCH)
    point, *others = points
    armed = (deployment.armed(point, "stop"), *(deployment.armed(other) for other in others))
    sleeper = deployment.worker(armed=armed, **QUIET)
    until(sleeper.is_stopped, f"the pause at {point}")
    return one, sleeper


def attempts(deployment: Deployment, one: Accepted) -> list[Any]:
    return list(deployment.journal.attempts(one.id))


def first_ended(deployment: Deployment, one: Accepted) -> Any:
    """The first attempt, once somebody has settled it."""
    return next((attempt for attempt in attempts(deployment, one)[:1] if attempt.outcome is not None), None)


def wake(process: Process) -> None:
    process.signal(signal.SIGCONT)


def evidence(deployment: Deployment) -> list[Any]:
    return list(deployment.journal.evidence())


def close_out(deployment: Deployment, *workers: Process, decide: bool | None = None) -> None:
    """All ends, every worker stops, and the witness agrees."""
    deployment.wait_ended(decide=None if decide is None else iter(lambda: decide, None))
    for worker in workers:
        worker.stop()
    check(deployment)


def test_d3_between_mark_and_first_byte_it_sends_nothing_and_says_so(deployment: Deployment) -> None:
    one, sleeper = paused_at(deployment, "call.marked")
    rescuer = deployment.worker(families=("effect",))
    ended = until(lambda: first_ended(deployment, one), "the takeover")
    assert (ended.state, ended.outcome) == ("ended", "OUTCOME_UNKNOWN")
    wake(sleeper)
    (seen,) = until(lambda: evidence(deployment), "the sleeper's evidence")
    assert (seen.kind, seen.attempt_id, seen.outcome) == ("closed_unsent", ended.id, None)
    assert Witness(deployment).arrivals[one.id] == []
    reconciler = deployment.worker(families=("reconcile", "completion"))
    close_out(deployment, sleeper, rescuer, reconciler)
    verdict = deployment.journal.dispositions()[ended.id]
    assert (verdict.verdict, verdict.evidence_version) == ("no_effect_proven", 1)
    assert verdict.reason.startswith("the sender closed unsent")
    assert [attempt.outcome for attempt in attempts(deployment, one)] == ["OUTCOME_UNKNOWN", "ACCEPTED"]
    assert len(Witness(deployment).arrivals[one.id]) == 1


def test_d3_woken_after_the_verdict_it_still_sends_nothing(deployment: Deployment) -> None:
    one, sleeper = paused_at(deployment, "call.marked")
    rescuer = deployment.worker()
    until(deployment.undecided, "the verdict of the probe")
    wake(sleeper)
    until(lambda: evidence(deployment), "the sleeper's evidence")
    assert Witness(deployment).arrivals[one.id] == []
    close_out(deployment, sleeper, rescuer, decide=True)
    assert len(Witness(deployment).arrivals[one.id]) == 1


def test_h4_an_answer_that_was_slept_over_is_evidence_and_settles_the_attempt(deployment: Deployment) -> None:
    one, sleeper = paused_at(deployment, "call.answered")
    rescuer = deployment.worker(families=("effect",))
    ended = until(lambda: first_ended(deployment, one), "the takeover")
    assert ended.outcome == "OUTCOME_UNKNOWN"
    wake(sleeper)
    (seen,) = until(lambda: evidence(deployment), "the sleeper's evidence")
    assert (seen.kind, seen.outcome) == ("answered", "ACCEPTED")
    reconciler = deployment.worker(families=("reconcile", "completion"))
    close_out(deployment, sleeper, rescuer, reconciler)
    verdict = deployment.journal.dispositions()[ended.id]
    assert (verdict.verdict, verdict.names_attempt) == ("effect_proven", 1)
    assert verdict.reason.startswith("the answer came late")
    assert Witness(deployment).probes[one.id] == [], "late evidence needs no probe"


def test_h4_a_refusal_that_was_slept_over_ends_the_command_rejected(deployment: Deployment) -> None:
    deployment.simulator.faults({"fault": "status", "status": 422, "method": "PATCH"})
    one, sleeper = paused_at(deployment, "call.answered")
    rescuer = deployment.worker(families=("effect",))
    until(lambda: first_ended(deployment, one), "the takeover")
    wake(sleeper)
    until(lambda: evidence(deployment), "the sleeper's evidence")
    reconciler = deployment.worker(families=("reconcile", "completion"))
    close_out(deployment, sleeper, rescuer, reconciler)
    assert deployment.journal.ends()[one.id].ended_as == "rejected"


def test_evidence_before_the_takeover_settles_the_attempt_with_no_unknown(deployment: Deployment) -> None:
    one, sleeper = paused_at(deployment, "call.answered")
    (item,) = deployment.journal.items("effect", one.id)
    until(lambda: lease_over(deployment, item), "the end of the lease")
    wake(sleeper)
    until(lambda: evidence(deployment), "the sleeper's evidence")
    close_out(deployment, sleeper, deployment.worker())
    assert [attempt.outcome for attempt in attempts(deployment, one)] == ["ACCEPTED"]


def lease_over(deployment: Deployment, item: Any) -> bool:
    (now,) = deployment.journal.items("effect", item.subject_id)
    return now_us() > now.lease_until + 100_000


@pytest.mark.parametrize("point", ["claim_and_prepare.after_commit", "call.connected"])
def test_d2_before_the_mark_it_has_lost_its_claim_and_sends_nothing(
    deployment: Deployment, point: str
) -> None:
    one, sleeper = paused_at(deployment, point)
    rescuer = deployment.worker()
    until(lambda: one.id in deployment.journal.ends(), "the end by the one who took over")
    wake(sleeper)
    close_out(deployment, sleeper, rescuer)
    assert [attempt.outcome for attempt in attempts(deployment, one)] == [
        "RETRYABLE_PRE_DISPATCH",
        "ACCEPTED",
    ]
    assert evidence(deployment) == []


@pytest.mark.parametrize("point", [*sides("mark"), *sides("finish")])
def test_in_and_behind_the_commits_around_the_call(deployment: Deployment, point: str) -> None:
    """A sleeper inside its transaction keeps its locks for as long as the engine lets it; nothing is done twice."""
    one, sleeper = paused_at(deployment, point)
    rescuer = deployment.worker()
    (item,) = deployment.journal.items("effect", one.id)
    until(lambda: lease_over(deployment, item), "the end of the lease")
    if not (point.endswith("before_commit") and deployment.url.startswith("sqlite")):
        until(lambda: first_ended(deployment, one), "the end of the attempt")
    wake(sleeper)
    close_out(deployment, sleeper, rescuer, decide=True)
    assert len(Witness(deployment).arrivals[one.id]) == 1


def test_a_paused_probe_proves_nothing_and_another_looks(deployment: Deployment) -> None:
    deployment.simulator.faults({"fault": "commit_reset", "method": "PATCH"})
    deployment.contacts("1001")
    (one,) = deployment.accept(PATCH)
    first = deployment.worker(**QUIET)
    until(lambda: first_ended(deployment, one), "the unknown outcome")
    first.stop()
    armed = deployment.armed("call.answered", "stop")
    sleeper = deployment.worker(armed=(armed,), **QUIET | {"families": ("reconcile",)})
    until(sleeper.is_stopped, "the pause after the probe's answer")
    rescuer = deployment.worker(families=("reconcile", "completion"))
    until(lambda: one.id in deployment.journal.ends(), "the verdict of another probe")
    wake(sleeper)
    close_out(deployment, sleeper, rescuer)
    assert deployment.journal.ends()[one.id].ended_as == "accepted"


@pytest.mark.parametrize("point", sides("append_evidence"))
def test_killed_while_it_stores_late_evidence(deployment: Deployment, point: str, kill_seed: int) -> None:
    one, doomed = paused_at(deployment, "call.answered", point)
    rescuer = deployment.worker(families=("effect",))
    until(lambda: first_ended(deployment, one), "the takeover")
    wake(doomed)
    doomed.wait_killed()
    assert len(evidence(deployment)) == (1 if point.endswith("after_commit") else 0)
    reconciler = deployment.worker(families=("reconcile", "completion"))
    close_out(deployment, rescuer, reconciler, decide=True)
    assert deployment.journal.ends()[one.id].ended_as == "accepted"
