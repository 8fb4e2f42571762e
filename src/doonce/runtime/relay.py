"""Handing the application's outbox over to the service, for ever the same bytes, until a durable answer.

    async with Relay(engine.begin, HttpHandoffs(url, credential)) as relay:
        await relay.run(stop)

Any number of relays may work on one database. A crash at any point loses nothing: a row whose answer was not
recorded is asked about again when its lease has ended, and the service gives the same receipt.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, TypeVar

import structlog

from doonce.base.errors import DoonceError, ErrorClass, Invalid
from doonce.base.ids import new_token
from doonce.base.limits import LIMITS
from doonce.runtime.connections import execute
from doonce.runtime.handoffs import Handoffs
from doonce.runtime.model import (
    TryAgain,
    Verdict,
    Wish,
    is_final,
    read_answer,
    read_refusal,
    retry_delay_us,
)
from doonce.runtime.relay_claim import Claimed, HeadPolicy, claim
from doonce.runtime.relay_store import Outcome, Recorded, record
from doonce.runtime.schema import verification
from doonce.runtime.statements import Transaction
from doonce.wire import AcceptRequest, HandoffScope, RejectRequest, fitted

T = TypeVar("T")

_US_PER_S: Final = 1_000_000
_log: Final = structlog.get_logger("doonce.relay")

OpenTransaction = Callable[[], AbstractContextManager[Any]]
"""Opens a transaction of the application's database, commits it on leaving, rolls it back on an exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaySettings:
    """How the relay paces itself; every default serves an application with one relay and a service nearby."""

    rows_max: int = 100
    """Rows of one run: one transaction to claim them, one to record their answers."""

    call_timeout_us: int = 20_000_000
    """How long the service is waited for in one run; unanswered rows are asked about again."""

    lease_us: int = 60_000_000
    """How long rows stay claimed by a relay that has died; at least twice the call's timeout."""

    idle_us: int = 500_000
    """The pause when nothing was due; `wake` ends it early."""

    retry_base_us: int = 500_000
    """The ceiling of the first delay after a failure; it doubles each time, with full jitter."""

    retry_cap_us: int = 300_000_000
    """The highest ceiling: a service that was down for days is asked again within five minutes."""

    rejections_at_once: int = 8
    """Withdrawals asked about at the same time; each is a call of its own."""

    refused_head: HeadPolicy = HeadPolicy.BLOCK
    """Whether a refused row holds up the later rows of its source lane until a person decides (L3)."""

    def __post_init__(self) -> None:
        if not 1 <= self.rows_max <= LIMITS.batch_rows_max:
            raise Invalid(f"rows_max must be from 1 to {LIMITS.batch_rows_max}")
        if min(self.call_timeout_us, self.idle_us, self.retry_base_us, self.rejections_at_once) < 1:
            raise Invalid("every time and count of the relay's settings must be positive")
        if self.lease_us < 2 * self.call_timeout_us:
            raise Invalid("lease_us must be at least twice call_timeout_us")
        if self.retry_cap_us < self.retry_base_us:
            raise Invalid("retry_cap_us must not be below retry_base_us")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayReport:
    """What one run did, in rows. `stale`: another relay or the inbox was first, and nothing was lost."""

    claimed: int = 0
    accepted: int = 0
    rejected: int = 0
    refused: int = 0
    retry: int = 0
    stale: int = 0
    contradicted: int = 0


class Relay:
    """Claims due rows, asks the service, records its durable answers.

    `open_transaction` is called in one thread of the relay's own, so thread-bound connections (sqlite3,
    Django) are safe; no transaction is open while the service is asked.
    """

    def __init__(
        self,
        open_transaction: OpenTransaction,
        handoffs: Handoffs,
        settings: RelaySettings | None = None,
        *,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._open_transaction = open_transaction
        self._handoffs = handoffs
        self._settings = settings or RelaySettings()
        self._draw = draw
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="doonce-relay")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()

    async def __aenter__(self) -> "Relay":
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for the transaction that is running, if one is, and end the relay's thread."""
        await asyncio.to_thread(self._thread.shutdown)

    def wake(self) -> None:
        """End an idle pause early; from any thread, a hint that may be lost."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    async def run(self, stop: asyncio.Event) -> None:
        """Hand rows over until `stop` is set; then finish the rows in hand and return.

        Raises `Invalid` when the application's tables are not there or not whole. No other failure ends it: a
        database that cannot be reached is tried again after a growing pause.
        """
        self._loop = asyncio.get_running_loop()
        failures, verified = 0, False
        while not stop.is_set():
            self._woken.clear()
            try:
                if not verified:
                    await self._store(verification)
                    verified = True
                report = await self.run_once()
            except Invalid:
                raise
            except Exception as failed:  # noqa: BLE001  # the loop is the last owner: a dead relay would be a silent one
                failures += 1
                _log.error("relay.run_failed", failure=type(failed).__name__, failures=failures)
                await self._pause(stop, self._delay_us(failures))
            else:
                failures = 0
                if report.claimed == 0:
                    await self._pause(stop, self._settings.idle_us)

    async def run_once(self) -> RelayReport:
        """Hand over what is due now, at most `rows_max` rows and one of each source lane, and report it.

        Raises what the application's database raises; rows that were claimed are due again when their
        lease ends.
        """
        token = new_token()
        settings = self._settings
        rows = await self._store(
            claim,
            token,
            rows_max=settings.rows_max,
            lease_us=settings.lease_us,
            policy=settings.refused_head,
        )
        if not rows:
            return RelayReport()
        verdicts = await self._ask(rows)
        outcomes = [
            Outcome(row, verdict, self._delay_us(row.tries))
            for row, verdict in zip(rows, verdicts, strict=True)
        ]
        recorded = Counter(one.value for one in await self._store(record, token, outcomes))
        if recorded[Recorded.CONTRADICTED]:
            _log.error("relay.contradicted", rows=recorded[Recorded.CONTRADICTED])
        return RelayReport(claimed=len(rows), **recorded)

    # ------------------------------------------------------------------------------------- asking the service

    async def _ask(self, rows: Sequence[Claimed]) -> list[Verdict]:
        """Return a verdict for every row; whatever has none at the deadline is asked again later."""
        verdicts: dict[str, Verdict] = {}
        width = asyncio.Semaphore(self._settings.rejections_at_once)
        accepts = [row for row in rows if row.wish is Wish.ACCEPT]
        withdrawals = [row for row in rows if row.wish is Wish.WITHDRAW]
        try:
            deadline = asyncio.timeout(self._settings.call_timeout_us / _US_PER_S)
            async with deadline, asyncio.TaskGroup() as tasks:
                for batch in _batches(accepts):
                    tasks.create_task(self._ask_accept(batch, verdicts))
                for row in withdrawals:
                    tasks.create_task(self._ask_reject(row, width, verdicts))
        except TimeoutError:
            _log.warning("relay.no_answer_in_time", rows=len(rows) - len(verdicts))
        unanswered = TryAgain(ErrorClass.DEADLINE, "the service did not answer in time")
        return [verdicts.get(row.intent.outbox_id, unanswered) for row in rows]

    async def _ask_accept(self, rows: Sequence[Claimed], verdicts: dict[str, Verdict]) -> None:
        """Ask about one batch; a batch that is refused as a whole is asked about row by row."""
        try:
            answers = await self._handoffs.accept([_accept_request(row) for row in rows])
        except Exception as failed:  # noqa: BLE001  # an embedded service may raise anything
            verdict = _read_failure(failed)
            if len(rows) > 1 and isinstance(failed, DoonceError) and is_final(failed.error_class):
                for row in rows:
                    await self._ask_accept([row], verdicts)
            else:
                verdicts.update((row.intent.outbox_id, verdict) for row in rows)
            return
        if len(answers) != len(rows):
            lost = TryAgain(ErrorClass.INTERNAL, "the service answered another number of requests")
            verdicts.update((row.intent.outbox_id, lost) for row in rows)
            return
        for row, answer in zip(rows, answers, strict=True):
            verdicts[row.intent.outbox_id] = read_answer(row.intent.handoff_key, answer)

    async def _ask_reject(self, row: Claimed, width: asyncio.Semaphore, verdicts: dict[str, Verdict]) -> None:
        async with width:
            try:
                answer = await self._handoffs.reject(_reject_request(row))
            except Exception as failed:  # noqa: BLE001  # as in `_ask_accept`
                verdicts[row.intent.outbox_id] = _read_failure(failed)
            else:
                verdicts[row.intent.outbox_id] = read_answer(row.intent.handoff_key, answer)

    # ------------------------------------------------------------------------------------------------ inside

    async def _store(self, transaction: Callable[..., Transaction[T]], *values: Any, **named: Any) -> T:
        """Run one transaction of ours in the relay's thread; its result leaves only after the commit."""

        def inside() -> T:
            with self._open_transaction() as connection:
                return execute(connection, transaction(*values, **named))

        return await asyncio.get_running_loop().run_in_executor(self._thread, inside)

    def _delay_us(self, tries: int) -> int:
        settings = self._settings
        return retry_delay_us(
            tries, base_us=settings.retry_base_us, cap_us=settings.retry_cap_us, draw=self._draw()
        )

    async def _pause(self, stop: asyncio.Event, pause_us: int) -> None:
        waits = {asyncio.ensure_future(stop.wait()), asyncio.ensure_future(self._woken.wait())}
        try:
            await asyncio.wait(waits, timeout=pause_us / _US_PER_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def _read_failure(failed: Exception) -> Verdict:
    if isinstance(failed, DoonceError):
        return read_refusal(failed.error_class, fitted(failed.message))
    _log.error("relay.port_failed", failure=type(failed).__name__)
    return TryAgain(ErrorClass.INTERNAL, f"asking the service failed: {type(failed).__name__}")


def _batches(rows: Sequence[Claimed]) -> Iterator[list[Claimed]]:
    """Cut `rows` so that no batch is over the bytes that one call may carry."""
    batch: list[Claimed] = []
    size = 0
    for row in rows:
        payload_bytes = len(row.intent.payload)
        if batch and size + payload_bytes > LIMITS.batch_bytes_max:
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += payload_bytes
    if batch:
        yield batch


def _scope(row: Claimed) -> HandoffScope:
    intent = row.intent
    return HandoffScope(
        org=intent.org,
        installation=intent.installation,
        capability=intent.capability,
        binding_digest=intent.binding_digest,
        binding_generation=intent.binding_generation,
    )


def _accept_request(row: Claimed) -> AcceptRequest:
    """The pinned row as it is; nothing is computed again (PROTOCOL F1)."""
    intent = row.intent
    return AcceptRequest(
        key=intent.handoff_key,
        scope=_scope(row),
        outbox_id=intent.outbox_id,
        operation=intent.operation,
        local_ref=intent.local_ref,
        link=intent.link,
        payload=intent.payload,
        payload_digest=intent.payload_digest,
        source_lane=intent.source_lane,
    )


def _reject_request(row: Claimed) -> RejectRequest:
    intent = row.intent
    return RejectRequest(
        key=intent.handoff_key,
        scope=_scope(row),
        payload_digest=intent.payload_digest,
        outbox_id=intent.outbox_id,
    )
