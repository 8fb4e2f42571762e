"""Two relays that record the same rows lock them in one order (PROTOCOL T4)."""

from contextlib import suppress

from doonce.base.errors import ErrorClass
from doonce.runtime.model import OutboxId, TryAgain, Wish
from doonce.runtime.outbox_store import Intent
from doonce.runtime.relay_claim import Claimed
from doonce.runtime.relay_store import Outcome, record

DIGEST = "sha256:" + "a" * 64


def outcome(outbox_id: str) -> Outcome:
    intent = Intent(
        outbox_id=OutboxId(outbox_id),
        handoff_key=outbox_id,
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
        source_lane=None,
    )
    return Outcome(Claimed(intent, Wish.ACCEPT, 0), TryAgain(ErrorClass.UNAVAILABLE, "no"), 1)


def test_rows_are_recorded_in_the_order_of_their_ids() -> None:
    recording = record("t", [outcome("b"), outcome("c"), outcome("a")])
    order = []
    with suppress(StopIteration):
        step = next(recording)
        while True:
            order.append(step.values["id"])
            step = recording.send(())

    assert list(dict.fromkeys(order)) == ["a", "b", "c"]
