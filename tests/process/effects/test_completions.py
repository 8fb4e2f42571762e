"""Completions end to end (PROTOCOL K1, K2): every ended command tells the application once, and is believed late."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from simulators.launch import Simulator
from tests.process.effects.deployment import Accepted, Deployment, Wanted, deployed
from tests.process.effects.inbox import Misbehaviour
from tests.process.effects.waiting import until
from tests.process.effects.witness import check

from doonce.wire.codec import decode, encode
from doonce.wire.completions import CompletionReceipt

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


def patch(deployment: Deployment, contact: str = "1001") -> Accepted:
    deployment.contacts(contact)
    (one,) = deployment.accept(Wanted(f"c{contact}", "contact.patch", contact, {"title": "new"}))
    return one


def altered(answer: bytes, **changes: Any) -> bytes:
    receipt = decode(answer, CompletionReceipt, bytes_max=10_000)
    return encode(msgspec.structs.replace(receipt, **changes))


MISBEHAVIOUR: dict[str, Misbehaviour] = {
    "an error": lambda notice, answer: (500, answer),
    "a refusal": lambda notice, answer: (403, answer),
    "an accepted without a receipt": lambda notice, answer: (202, answer),
    "nothing": lambda notice, answer: (200, b""),
    "no JSON": lambda notice, answer: (200, b"thank you"),
    "half a receipt": lambda notice, answer: (200, answer[: len(answer) // 2]),
    "an unknown field": lambda notice, answer: (200, answer[:-1] + b',"more":1}'),
    "another command": lambda notice, answer: (200, altered(answer, command_id="cmd_" + "0" * 32)),
    "another notice": lambda notice, answer: (200, altered(answer, notice_digest="sha256:" + "0" * 64)),
    "a receipt over its bound": lambda notice, answer: (200, answer + b" " * 20_000),
}


@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_k1_it_succeeds_only_when_the_whole_receipt_validates(deployment: Deployment, name: str) -> None:
    deployment.inbox.misbehave = MISBEHAVIOUR[name]
    one = patch(deployment)
    worker = deployment.worker()
    until(lambda: len(deployment.inbox.of(one.id)) >= 2, "a second push")
    (item,) = deployment.journal.items("completion", one.id)
    assert item.finished_at is None
    deployment.inbox.misbehave = None
    deployment.wait_ended()
    worker.stop()
    check(deployment)


def test_k1_an_unknown_outcome_is_noted_before_its_end_and_is_not_the_end(deployment: Deployment) -> None:
    deployment.simulator.faults({"fault": "commit_reset", "method": "PATCH"})
    one = patch(deployment)
    effects = deployment.worker(families=("effect", "completion"))
    (noted,) = until(lambda: deployment.inbox.of(one.id), "the notice")
    assert (noted.outcome.value, noted.terminal, noted.attempt_id is not None) == ("unknown", False, True)
    assert one.id not in deployment.journal.ends()
    reconciler = deployment.worker(families=("reconcile",))
    deployment.wait_ended()
    for worker in (effects, reconciler):
        worker.stop()
    assert [notice.outcome.value for notice in deployment.inbox.of(one.id)] == ["unknown", "accepted"]
    check(deployment)


def test_k1_a_notice_that_comes_after_the_end_is_not_told(deployment: Deployment) -> None:
    deployment.simulator.faults({"fault": "commit_reset", "method": "PATCH"})
    one = patch(deployment)
    worker = deployment.worker(families=("effect", "reconcile"))
    until(lambda: one.id in deployment.journal.ends(), "the end")
    teller = deployment.worker(families=("completion",))
    deployment.wait_ended()
    for process in (worker, teller):
        process.stop()
    assert [notice.outcome.value for notice in deployment.inbox.of(one.id)] == ["accepted"]
    states = {item.subject_kind: item.state for item in deployment.journal.items("completion")}
    assert states == {"attempt": "skipped", "command": "succeeded"}


def test_k1_a_killed_push_is_repeated_and_received_once(deployment: Deployment) -> None:
    one = patch(deployment)
    doomed = deployment.worker(armed=(deployment.armed("settle.before_commit"),))
    doomed.wait_killed()
    worker = deployment.worker()
    deployment.wait_ended()
    worker.stop()
    said = deployment.inbox.of(one.id)
    assert len(said) == 2
    assert said[0] == said[1]
    check(deployment)


@pytest.fixture(params=[True, False], ids=["wants the answer", "does not"])
def wants(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def choosy(database_url: str, simulator: Simulator, tmp_path: Path, wants: bool) -> Iterator[Deployment]:
    with deployed(database_url, simulator, tmp_path, wants_rejected_result=wants) as made:
        yield made


def test_k2_a_rejection_ends_the_item_as_the_binding_wants_it(choosy: Deployment, wants: bool) -> None:
    choosy.simulator.faults({"fault": "status", "status": 422, "method": "PATCH"})
    one = patch(choosy)
    worker = choosy.worker()
    choosy.wait_ended()
    worker.stop()
    (item,) = choosy.journal.items("effect", one.id)
    assert (item.state, item.failure_class) == ("succeeded" if wants else "dead", "rejected")
    (notice,) = choosy.inbox.of(one.id)
    assert (notice.outcome.value, msgspec.json.decode(notice.result)["status"]) == ("rejected", 422)
    check(choosy)
