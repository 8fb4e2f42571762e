"""No durable commit is forgotten: the points that die in these tests are all that there are."""

from __future__ import annotations

import ast
import itertools
import random
import signal
from collections.abc import Iterator

import msgspec
import pytest
from tests.process.effects.deployment import Deployment, Wanted
from tests.process.effects.processes import ROOT
from tests.process.effects.settings import Task
from tests.process.effects.waiting import until
from tests.process.kill.boundaries import (
    ACCEPT_OPERATIONS,
    CALLS,
    CATCH_UP_OPERATIONS,
    LOOKS,
    OPERATOR_OPERATIONS,
    PLUMBING,
    READER_OPERATIONS,
    RECEIVER_OPERATIONS,
    WORKER_OPERATIONS,
    Needs,
    sides,
)
from tests.process.kill.rounds import Rounds
from tests.process.kill.test_paused import QUIET

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
SOURCES = ROOT / "src" / "doonce"


def test_a_recorded_run_reaches_exactly_the_declared_points(deployment: Deployment) -> None:
    rounds = Rounds(deployment, random.Random(1))  # a seed is to be repeated
    rounds.patch(rounds.contact())  # alone, so that the sleeper is inside no transaction of another one
    sleeper = deployment.worker(armed=(deployment.armed("call.answered", "stop"),), **QUIET)
    until(sleeper.is_stopped, "the pause")
    asleep = held_by(deployment)
    rounds.accept(Needs.UNKNOWN)
    rounds.accept(Needs.SLOW)
    accept_and_reject(deployment)
    rescuer = deployment.worker()
    until(lambda: not held_by(deployment) & asleep, "the takeover")
    sleeper.signal(signal.SIGCONT)
    until(lambda: "append_evidence.after_commit" in deployment.points(), "late evidence")
    deployment.wait_ended(decide=itertools.repeat(True))
    for worker in (sleeper, rescuer):
        worker.stop()
    setup = {side for name in OPERATOR_OPERATIONS | LOOKS for side in sides(name)}
    expected = {side for name in (*WORKER_OPERATIONS, *ACCEPT_OPERATIONS) for side in sides(name)}
    assert deployment.points() - setup == expected | set(CALLS)


def held_by(deployment: Deployment) -> set[tuple[str, str]]:
    """Which item is under which claim."""
    items = deployment.journal.items("effect")
    return {(item.id, item.lease_token) for item in items if item.state == "processing"}


def accept_and_reject(deployment: Deployment) -> None:
    """One handoff that is accepted, and one that is rejected."""
    accepted, rejected = (
        deployment.request(Wanted(name, "contact.put", None, {"title": name, "uid": name}))
        for name in ("taken", "withdrawn")
    )
    task = Task(
        accept=[msgspec.Raw(msgspec.json.encode(accepted))],
        reject=[msgspec.Raw(msgspec.json.encode(deployment.rejection(rejected)))],
    )
    acceptor = deployment.spawn("acceptor")
    acceptor.begin(deployment.settings())
    acceptor.tell(msgspec.json.encode(task))
    answers = msgspec.json.decode(acceptor.hear())
    assert [answer["state"] for answer in answers] == ["COMMAND_ACCEPTED", "HANDOFF_REJECTED"]


def test_every_call_site_of_a_transaction_is_declared() -> None:
    """Also those that no recorded run would come by. Conformance cases are tests, with kills of their own."""
    modules = [path for path in SOURCES.rglob("*.py") if "conformance" not in path.parts]
    found = {name for path in modules for name in operations_in(ast.parse(path.read_text()))}
    killed = {
        *WORKER_OPERATIONS,
        *ACCEPT_OPERATIONS,
        *RECEIVER_OPERATIONS,
        *READER_OPERATIONS,
        *CATCH_UP_OPERATIONS,
    }
    declared = {*killed, *OPERATOR_OPERATIONS, *LOOKS}
    assert found - PLUMBING <= declared, "say in boundaries.py who dies in it, or who asks again"
    assert killed <= found


def operations_in(tree: ast.Module) -> Iterator[str]:
    """The operations that are given to `transact`, to a committer, or to a family's worker."""
    position = {"transact": 0, "Committer": 1, "FamilyWork": 2}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (at := position.get(name_of(node.func))) is not None:
            yield name_of(node.args[at])


def name_of(node: ast.expr) -> str:
    """The last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else "?"
