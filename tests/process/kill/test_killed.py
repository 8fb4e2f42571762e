"""SIGKILL at every point of a working process: then the provider's ledger, the inbox and the journal agree."""

from __future__ import annotations

import random
import signal
from typing import Any

import pytest
import sqlalchemy as sa
from tests.process.effects.deployment import Deployment
from tests.process.effects.processes import Process
from tests.process.effects.waiting import until
from tests.process.effects.witness import Witness, check
from tests.process.kill.boundaries import IN_FLIGHT, groups, needs
from tests.process.kill.rounds import CONTACTS, Rounds

from doonce.work.tables import work_item

MOVING: dict[str, Any] = {"kept_us": 1}
"""All these processes move ended work into history at once, under the feet of everybody who dies and takes over."""

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


@pytest.mark.parametrize("group", groups(), ids=lambda group: group[0])
def test_killed_at_each_point_then_worked_to_the_end(
    deployment: Deployment, group: tuple[str, ...], kill_seed: int
) -> None:
    """Each point kills one worker, and the next worker, which is to die elsewhere, takes over."""
    rng = random.Random(f"{group} {kill_seed}")  # a seed is to be repeated
    rounds = Rounds(deployment, rng)
    order = list(group)
    rng.shuffle(order)
    following = deployment.spawn()
    for point in order:
        doomed, following = following, deployment.spawn()
        rounds.accept(needs(point))
        if point == IN_FLIGHT:
            kill_in_flight(deployment, rounds, doomed)
        else:
            kill_at(deployment, doomed, point, hit=1 if kill_seed == 0 else rng.randint(1, 3))
    rescuer = deployment.worker(following, **MOVING)
    deployment.wait_ended(decide=iter(lambda: rng.random() < 0.7, None))
    until(lambda: not deployment.journal.rows(sa.select(work_item.c.id)), "the move of all that has ended")
    rescuer.stop()
    check(deployment)
    assert deployment.journal.moved()


def kill_at(deployment: Deployment, doomed: Process, point: str, *, hit: int) -> None:
    """Let a worker die at a visit of a point. Only a later visit than the first may never come."""
    armed = deployment.armed(point, hit=hit)
    deployment.worker(doomed, armed=(armed,), **MOVING)
    doomed.expect(b"ready")
    quiet = 0

    def over() -> bool:
        nonlocal quiet
        quiet = quiet + 1 if deployment.ended() or deployment.undecided() else 0
        return doomed.is_dead() or (hit > 1 and quiet > 20)

    until(over, f"visit {hit} of {point}\n")
    if doomed.is_dead():
        doomed.wait_killed()
    else:
        doomed.signal(signal.SIGKILL)


def kill_in_flight(deployment: Deployment, rounds: Rounds, doomed: Process) -> None:
    """Kill a worker once its request is at the provider, which does it and never answers."""
    contact = rounds.contact()
    deployment.simulator.faults({"fault": "stall", "method": "PATCH", "path": f"{CONTACTS}/{contact}"})
    one = rounds.patch(contact)
    deployment.worker(doomed, **MOVING)
    until(lambda: Witness(deployment).arrivals[one.id], "the arrival of the request")
    doomed.signal(signal.SIGKILL)
    doomed.wait_killed()
