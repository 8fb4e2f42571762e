"""What a dead or unknown head does to its source lane (PROTOCOL L3), and what an operator can do about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from simulators.launch import Simulator
from tests.process.effects.deployment import Accepted, Deployment, Wanted, deployed
from tests.process.effects.waiting import until
from tests.process.effects.witness import Witness, check

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


def lane(deployment: Deployment, operation: str) -> tuple[Accepted, Accepted]:
    """Two commands of one lane, on two contacts."""
    deployment.contacts("1001", "1002")
    (head,) = deployment.accept(Wanted("head", operation, "1001", {"title": "head"}, "lane"))
    (next_one,) = deployment.accept(Wanted("next", operation, "1002", {"title": "next"}, "lane"))
    return head, next_one


def undone(deployment: Deployment) -> None:
    """The head's request is lost without an effect."""
    deployment.simulator.faults(
        {"fault": "reset_after_body", "method": "PATCH", "path": "/crm/v3/objects/contacts/1001"}
    )


def test_l3_an_unknown_head_blocks_until_somebody_decides(deployment: Deployment) -> None:
    undone(deployment)
    head, behind = lane(deployment, "contact.patch")
    worker = deployment.worker()
    (waiting,) = until(deployment.undecided, "the verdict of the probe")
    (item,) = deployment.journal.items("effect", behind.id)
    assert (item.state, item.claims) == ("pending", 0)
    assert Witness(deployment).arrivals[behind.id] == []
    deployment.decide(waiting.attempt_id, resend=True)
    deployment.wait_ended()
    worker.stop()
    seen = Witness(deployment).arrivals
    assert [len(seen[head.id]), len(seen[behind.id])] == [2, 1]
    assert seen[head.id][-1]["seq"] < seen[behind.id][0]["seq"]
    check(deployment)


def test_l3_a_head_that_the_operator_lets_end_makes_way(deployment: Deployment) -> None:
    undone(deployment)
    head, behind = lane(deployment, "contact.patch")
    worker = deployment.worker()
    (waiting,) = until(deployment.undecided, "the verdict of the probe")
    deployment.decide(waiting.attempt_id, resend=False)
    deployment.wait_ended()
    worker.stop()
    ends = deployment.journal.ends()
    assert (ends[head.id].ended_as, ends[behind.id].ended_as) == ("dead", "accepted")
    check(deployment)


def test_l3_a_lane_that_passes_does_not_wait_for_an_unknown_head(deployment: Deployment) -> None:
    undone(deployment)
    head, behind = lane(deployment, "contact.nudge")
    worker = deployment.worker(families=("effect", "completion"))
    until(lambda: behind.id in deployment.journal.ends(), "the end of the one behind")
    assert head.id not in deployment.journal.ends()
    others = deployment.worker()
    deployment.wait_ended(decide=iter([True]))
    for process in (worker, others):
        process.stop()
    check(deployment)


@pytest.fixture
def refusing(database_url: str, simulator: Simulator, tmp_path: Path) -> Iterator[Deployment]:
    with deployed(database_url, simulator, tmp_path, wants_rejected_result=False) as made:
        yield made


@pytest.mark.parametrize("operation, passes", [("contact.patch", False), ("contact.nudge", True)])
def test_l3_a_dead_head_blocks_or_passes(refusing: Deployment, operation: str, passes: bool) -> None:
    refusing.simulator.faults({"fault": "status", "status": 422, "method": "PATCH"})
    head, behind = lane(refusing, operation)
    worker = refusing.worker()
    until(lambda: head.id in refusing.journal.ends(), "the end of the head")
    assert refusing.journal.items("effect", head.id)[0].state == "dead"
    if passes:
        until(lambda: behind.id in refusing.journal.ends(), "the end of the one behind")
    else:
        until(lambda: refusing.journal.items("completion", head.id)[0].finished_at, "the head's completion")
        assert refusing.journal.items("effect", behind.id)[0].state == "pending"
    worker.stop()
    assert len(Witness(refusing).arrivals[behind.id]) == (1 if passes else 0)
