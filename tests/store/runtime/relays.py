"""Relays whose transactions and calls fail where a test says, and time that passes without waiting."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tests.store.runtime.applications import Application

from doonce.runtime import outbox
from doonce.runtime.handoffs import Handoffs
from doonce.runtime.relay import Relay, RelayReport, RelaySettings
from doonce.wire import HandoffScope

ABORT = "abort"
"""The process dies before the commit."""

FORGET = "forget"
"""The process dies after the commit, before it knows of it."""


SCOPE = HandoffScope(
    org="acme",
    installation="main",
    capability="people.write",
    binding_digest="sha256:" + "a" * 64,
    binding_generation=3,
)
"""What the application acts for."""


class Died(Exception):
    """Stands for the death of the relay's process in the middle of a transaction."""


class Transactions:
    """Opens the application's transactions; `faults` are taken from the front, one a transaction."""

    def __init__(self, begin: Callable[[], AbstractContextManager[Any]], *faults: str) -> None:
        self._begin = begin
        self._faults = list(faults)

    @contextmanager
    def __call__(self) -> Iterator[Any]:
        fault = self._faults.pop(0) if self._faults else ""
        with self._begin() as connection:
            yield connection
            if fault == ABORT:
                raise Died
        if fault == FORGET:
            raise Died


PATIENT = RelaySettings(retry_base_us=60_000_000)
"""A machine under load must not outlast a delay within one step."""


def longest() -> float:
    """Draw the longest delay each time: a row that failed is not due again within the same test step."""
    return 0.999


async def run_once(
    app: Application, handoffs: Handoffs, *faults: str, settings: RelaySettings | None = None
) -> RelayReport:
    """One run of a relay of its own."""
    async with Relay(
        Transactions(app.transaction, *faults), handoffs, settings or PATIENT, draw=longest
    ) as relay:
        return await relay.run_once()


async def drain(app: Application, handoffs: Handoffs, *, settings: RelaySettings | None = None) -> None:
    """Run until nothing is due."""
    async with Relay(app.transaction, handoffs, settings or PATIENT, draw=longest) as relay:
        while (await relay.run_once()).claimed:
            pass


def later(app: Application) -> None:
    """Let every lease end and every delay pass."""
    with app.transaction() as connection:
        app.execute(connection, "UPDATE doonce_outbox SET lease_until_us = 0, due_at_us = 0")


def emit(app: Application, scope: HandoffScope, **changed: Any) -> outbox.OutboxId:
    """Emit in a transaction of its own."""
    intent = {"operation": "person.update", "payload": {"title": "CTO"}, "local_ref": "42", **changed}
    with app.transaction() as connection:
        return outbox.emit(connection, scope=scope, **intent)


def status(app: Application, outbox_id: str) -> outbox.OutboxStatus:
    with app.transaction() as connection:
        return outbox.status(connection, outbox_id)


def states(app: Application, outbox_ids: Sequence[str]) -> list[str]:
    return [status(app, one).state.value for one in outbox_ids]
