"""The application's side of a handoff: only a durable receipt ends a withdrawn row (authority §6.1, PROTOCOL F3)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from doonce.base.errors import Unavailable
from doonce.conformance.cases.case import Case
from doonce.conformance.cases.handoffs import facts
from doonce.conformance.model import Broken, expect_equal
from doonce.conformance.stage import OPERATION, Stage, Tenant
from doonce.runtime import outbox, schema
from doonce.runtime.model import OutboxState
from doonce.runtime.relay import Relay, RelaySettings
from doonce.wire import AcceptRequest, Admission, Refused, RejectRequest

AT_ONCE: Final = RelaySettings(retry_base_us=1, retry_cap_us=1)


class LossyHandoffs:
    """The service as an application sees it whose network fails: requests, or only their answers, are lost."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant
        self.requests_arrive = False
        self.answers_arrive = False

    async def accept(self, requests: Sequence[AcceptRequest]) -> Sequence[Admission | Refused]:
        """Hand over, as far as the network lets it."""
        self._pass(self.requests_arrive)
        answers = await self._tenant.engine.acceptor.accept(self._tenant.identity, requests)
        self._pass(self.answers_arrive)
        return answers

    async def reject(self, request: RejectRequest) -> Admission | Refused:
        """Withdraw, as far as the network lets it."""
        self._pass(self.requests_arrive)
        answer = await self._tenant.engine.acceptor.reject(self._tenant.identity, request)
        self._pass(self.answers_arrive)
        return answer

    @staticmethod
    def _pass(arrives: bool) -> None:
        if not arrives:
            raise Unavailable("the network of this case lost it")


@contextmanager
def application() -> Iterator[sa.Engine]:
    """An application's own database, with its outbox."""
    with tempfile.TemporaryDirectory(prefix="doonce-conformance-") as folder:
        engine = sa.create_engine(f"sqlite:///{Path(folder) / 'application.db'}", poolclass=NullPool)
        with engine.begin() as connection:
            schema.create(connection)
        yield engine
        engine.dispose()


async def no_receipt(stage: Stage) -> None:
    tenant = await stage.tenant()
    network = LossyHandoffs(tenant)
    with application() as app:
        async with Relay(app.begin, network, AT_ONCE) as relay:
            withdrawn, key = _emitted(app, tenant, "k1")
            _withdraw(app, withdrawn)
            await relay.run_once()
            expect_equal(await facts(stage, key), (0, 0, 0), "the facts of a key that nobody asked about")
            expect_equal(
                _standing(app, withdrawn), (OutboxState.PENDING, None), "a row without command and receipt"
            )
            network.requests_arrive = True
            await relay.run_once()
            expect_equal(
                await facts(stage, key), (1, 0, 0), "the facts after a rejection whose answer was lost"
            )
            expect_equal(
                _standing(app, withdrawn), (OutboxState.PENDING, None), "a row whose receipt was lost"
            )
            network.answers_arrive = True
            await relay.run_once()
            receipt = await tenant.reject(tenant.request("k1"))
            expect_equal(
                _standing(app, withdrawn), (OutboxState.REJECTED, receipt.receipt_id), "a rejected row"
            )
            await _absent_until_late(stage, tenant, app, relay, network)


async def _absent_until_late(
    stage: Stage, tenant: Tenant, app: sa.Engine, relay: Relay, network: LossyHandoffs
) -> None:
    """A command that was not there when the withdrawal was asked for arrives first after all: it counts."""
    late, key = _emitted(app, tenant, "k2")
    _withdraw(app, late)
    expect_equal(await facts(stage, key), (0, 0, 0), "the facts of a key that is still on its way")
    delivered = await tenant.engine.acceptor.accept_one(tenant.identity, tenant.request("k2"))
    await relay.run_once()
    expect_equal(
        _standing(app, late), (OutboxState.ACCEPTED, delivered.receipt_id), "a row accepted after all"
    )


def _emitted(app: sa.Engine, tenant: Tenant, name: str) -> tuple[str, str]:
    """An outbox row exactly as the tenant's request of that name; its id and key."""
    request = tenant.request(name)
    with app.begin() as connection:
        outbox.emit(
            connection,
            scope=request.scope,
            operation=OPERATION,
            payload=request.payload,
            local_ref=request.local_ref,
            key=name,
            outbox_id=request.outbox_id,
        )
    return request.outbox_id, request.key


def _withdraw(app: sa.Engine, outbox_id: str) -> None:
    with app.begin() as connection:
        if outbox.withdraw(connection, outbox_id) is not outbox.Withdrawal.ASKED:
            raise Broken("a row that was never handed over could not be asked to be withdrawn")


def _standing(app: sa.Engine, outbox_id: str) -> tuple[OutboxState, str | None]:
    with app.begin() as connection:
        found = outbox.status(connection, outbox_id)
    return found.state, found.receipt_id


CASES: Final = (
    Case(
        "no-receipt",
        "A command that is not there is no rejection; only a receipt ends a withdrawal",
        no_receipt,
        paced=False,
    ),
)
