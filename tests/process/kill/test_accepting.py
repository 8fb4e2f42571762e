"""SIGKILL around the commit of an acceptance and of a rejection: the relay asks again, and there is one story."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from tests.process.effects.deployment import Deployment, Wanted
from tests.process.effects.processes import Process
from tests.process.effects.settings import Task
from tests.process.effects.waiting import until
from tests.process.kill.boundaries import ACCEPT_OPERATIONS, sides

from doonce.wire.handoffs import AcceptRequest

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


def wanted(number: int) -> Wanted:
    return Wanted(f"c{number}", "contact.put", None, {"title": f"c{number}", "uid": f"u{number}"}, "lane")


def asking(deployment: Deployment, operation: str, requests: list[AcceptRequest]) -> bytes:
    """What the relay sends, the same bytes each time."""
    if operation == "accept":
        return msgspec.json.encode(Task(accept=[msgspec.Raw(msgspec.json.encode(one)) for one in requests]))
    rejections = [msgspec.json.encode(deployment.rejection(one)) for one in requests]
    return msgspec.json.encode(Task(reject=[msgspec.Raw(one) for one in rejections]))


def acceptor(deployment: Deployment, **changes: Any) -> Process:
    process = deployment.spawn("acceptor")
    process.begin(deployment.settings(**changes))
    return process


@pytest.mark.parametrize("point", [side for name in ACCEPT_OPERATIONS for side in sides(name)])
def test_killed_before_or_after_its_commit_then_asked_again(
    deployment: Deployment, point: str, kill_seed: int
) -> None:
    rng = random.Random(f"{point} {kill_seed}")  # a seed is to be repeated
    operation, _, moment = point.partition(".")
    requests = [deployment.request(wanted(number)) for number in range(rng.randint(1, 40))]
    task = asking(deployment, operation, requests)
    doomed = acceptor(deployment, armed=(deployment.armed(point),))
    doomed.tell(task)
    doomed.wait_killed()
    assert doomed.hear() == b"", "it died before it could answer"
    before = deployment.journal.handoffs()
    if moment == "before_commit":
        assert before == {}
    else:
        assert before, "the flush that it died after is durable; others may not have begun"
    relay = acceptor(deployment)
    relay.tell(task)
    first = msgspec.json.decode(relay.hear())
    relay.tell(task)
    assert msgspec.json.decode(relay.hear()) == first, "the same receipts, however often"
    stored = deployment.journal.handoffs()
    assert [stored[answer["key"]].receipt_id for answer in first] == [
        answer["receipt_id"] for answer in first
    ]
    assert all(stored[key] == row for key, row in before.items()), "what was committed stays as it was"
    commands = deployment.journal.commands()
    assert (
        len(commands)
        == len(deployment.journal.items("effect"))
        == (len(requests) if operation == "accept" else 0)
    )


def test_an_acceptance_and_a_rejection_race_for_a_key_while_processes_die(
    deployment: Deployment, kill_seed: int
) -> None:
    """Both sides ask until they have an answer; each key has one fact, and both are told the same."""
    rng = random.Random(kill_seed)  # a seed is to be repeated
    requests = [deployment.request(wanted(number)) for number in range(60)]
    tasks = {name: asking(deployment, name, requests) for name in ACCEPT_OPERATIONS}
    for _ in range(3):
        doomed = [
            acceptor(deployment, armed=(deployment.armed(rng.choice(sides(name)), hit=rng.randint(1, 2)),))
            for name in ACCEPT_OPERATIONS
        ]
        for process, name in zip(doomed, ACCEPT_OPERATIONS, strict=True):
            process.tell(tasks[name])
        for process in doomed:
            until(lambda process=process: process.is_dead() or process.hear(), "an answer or a death")
    answers = {}
    for name in ACCEPT_OPERATIONS:
        relay = acceptor(deployment)
        relay.tell(tasks[name])
        answers[name] = msgspec.json.decode(relay.hear())
    assert answers["accept"] == answers["reject"]
    accepted = [answer for answer in answers["accept"] if answer["state"] == "COMMAND_ACCEPTED"]
    assert {one.id for one in deployment.journal.commands()} == {answer["command_id"] for answer in accepted}
