"""SIGKILL around every commit between an event and its object: handed over once, whole, in its object's order."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest
from simulators.launch import Simulator
from tests.process.effects.processes import Process
from tests.process.effects.settings import Armed
from tests.process.effects.waiting import until
from tests.process.kill.boundaries import (
    CALLS,
    IN_FLIGHT,
    READER_OPERATIONS,
    RECEIVER_OPERATIONS,
    WORKER_OPERATIONS,
    sides,
)
from tests.process.kill.people import CONTACTS, People, opened

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]
POINTS = (*CALLS, IN_FLIGHT, *(side for name in (*READER_OPERATIONS, "settle") for side in sides(name)))


def test_killed_at_each_point_while_objects_are_read(
    database_url: str, simulator: Simulator, tmp_path: Path, kill_seed: int
) -> None:
    """One process dies at each point, mid-stream; the provider tells what it has no success for to the next one."""
    rng = random.Random(f"hydrating {kill_seed}")  # a seed is to be repeated
    points = list(POINTS)
    rng.shuffle(points)
    with opened(database_url, tmp_path, simulator) as people:
        following = people.spawn()
        for point in points:
            doomed, following = following, people.spawn()
            if point == IN_FLIGHT:
                kill_in_flight(people, doomed, rng)
            else:
                kill_at(people, doomed, point, rng, hit=1 if kill_seed == 0 else rng.randint(1, 3))
        url = people.serve(following)
        people.tell_rest(url, following)
        until(people.is_quiet, "the end of all work", seconds=90)
        following.stop()
        people.check()
        named = {*WORKER_OPERATIONS, *RECEIVER_OPERATIONS, *READER_OPERATIONS}
        known = {side for name in named for side in sides(name)} | set(CALLS)
        assert set(POINTS) - {IN_FLIGHT} <= people.points() <= known, "nothing else durable happens here"


def kill_at(people: People, doomed: Process, point: str, rng: random.Random, *, hit: int) -> None:
    """Let a process die at a visit of a point. Only a later visit than the first may never come."""
    url = people.serve(doomed, Armed(point, "kill", hit=hit))
    people.tell(url, doomed, rng)
    until(lambda: doomed.is_dead() or (hit > 1 and people.is_quiet()), f"visit {hit} of {point}")
    if not doomed.is_dead():
        doomed.signal(signal.SIGKILL)
    doomed.wait_killed()


def kill_in_flight(people: People, doomed: Process, rng: random.Random) -> None:
    """Kill a process once its request is at the provider, which never answers."""
    contact = rng.choice(CONTACTS)
    path = f"/crm/v3/objects/contacts/{contact}"
    people.simulator.faults({"fault": "stall", "method": "GET", "path": path})
    arrived = len(people.reads())
    url = people.serve(doomed)
    people.tell(url, doomed, rng)
    until(
        lambda: any(one["fault"] == "stall" for one in people.reads()[arrived:]), "the arrival of the request"
    )
    doomed.signal(signal.SIGKILL)
    doomed.wait_killed()
