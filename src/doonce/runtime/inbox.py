"""Learning what became of a command, inside the application's own transaction (PROTOCOL K1, K3).

    with engine.begin() as connection:
        receipt = inbox.apply(connection, notice, project)

One operation locks the outbox row, checks the notice against it, runs the application's projection and writes
the receipt. There is no way to do one without the others.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

from doonce.base.ids import new_id
from doonce.base.limits import LIMITS, check_text
from doonce.runtime import inbox_store as store
from doonce.runtime.connections import advance, execute, execute_async, held, runner
from doonce.runtime.events import Event, event_of
from doonce.runtime.model import Note, Project
from doonce.wire import (
    CompletionNotice,
    CompletionReceipt,
    EventNotice,
    EventReceipt,
    EventState,
    verify_event,
    verify_notice,
)

AnyAsync = TypeVar("AnyAsync", bound=AsyncConnection | AsyncSession)

Projection = Callable[[Any, CompletionNotice], None]
"""Writes what a notice means for the application's records, with the connection that it is given."""

AsyncProjection = Callable[[Any, CompletionNotice], Awaitable[None]]
"""The same for SQLAlchemy's asyncio connections."""

EventHandler = Callable[[Any, Event], None]
"""Does what an event means, with the connection that it is given."""

AsyncEventHandler = Callable[[Any, Event], Awaitable[None]]
"""The same for SQLAlchemy's asyncio connections."""


def apply(
    connection: Any, notice: CompletionNotice, project: Projection, *, note: Projection | None = None
) -> CompletionReceipt:
    """Apply `notice` in the open transaction of `connection` and return its receipt.

    A terminal notice: `project(connection, notice)` runs exactly once for its command, in the transaction of
    the receipt (`applied`). A notice that ends nothing is kept (`noted`), after `note(connection, notice)` if
    one is given, and never stands in the way of the terminal one. An exact repetition gets the first receipt
    again (`duplicate`) and runs nothing. A notice may come before the relay has recorded the acceptance.

    Raises `Quarantined` (a digest, key, payload or command that does not match; a second, different end) and
    `MissingOrDenied` (no such row), with nothing applied; `Conflict` without an open transaction. Whatever
    `project` raises passes through: roll back, and the notice comes again. Two at once: the second waits for
    the row and then finds the first one's receipt.
    """
    verify_notice(notice)
    active = runner(connection)
    examined = advance(active, store.examine(notice))
    match examined.reading:
        case CompletionReceipt() as receipt:
            return receipt
        case Project():
            project(connection, notice)
        case Note():
            if note is not None:
                note(connection, notice)
    # The projection had the connection in its hands: is it still the transaction that `examine` locked the row in?
    return advance(held(connection), store.settle(notice, new_id("rcp"), examined.notices))


async def apply_async(
    connection: AnyAsync,
    notice: CompletionNotice,
    project: AsyncProjection,
    *,
    note: AsyncProjection | None = None,
) -> CompletionReceipt:
    """`apply` inside an open transaction of SQLAlchemy's asyncio, with awaited projections."""
    verify_notice(notice)
    examined = await execute_async(connection, store.examine(notice))
    match examined.reading:
        case CompletionReceipt() as receipt:
            return receipt
        case Project():
            await project(connection, notice)
        case Note():
            if note is not None:
                await note(connection, notice)
    settlement = store.settle(notice, new_id("rcp"), examined.notices)
    return await connection.run_sync(lambda inner: advance(held(inner), settlement))


def take(connection: Any, notice: EventNotice, handler: EventHandler) -> EventReceipt:
    """Run `handler(connection, event)` for the first transaction that commits with this event, and for no other.

    The dedupe row is written first, in the same transaction (PROTOCOL K3): a repetition gets the first receipt again
    (`duplicate`) and runs nothing, and two at once take turns. Raises `Quarantined` for a notice whose digest is not
    its content's, `Conflict` without an open transaction. What `handler` raises passes through: roll back, and the
    event comes again.
    """
    verify_event(notice)
    receipt_id = new_id("rcp")
    stored = execute(connection, store.first(store.EVENT, notice.event_id, receipt_id))
    if stored == receipt_id:
        handler(connection, event_of(notice))
        # The handler had the connection in its hands: is it still the transaction of the dedupe row?
        advance(held(connection), store.hold(store.EVENT, notice.event_id, receipt_id))
    return _receipt(notice, stored, applied=stored == receipt_id)


async def take_async(connection: AnyAsync, notice: EventNotice, handler: AsyncEventHandler) -> EventReceipt:
    """`take` inside an open transaction of SQLAlchemy's asyncio, with an awaited handler."""
    verify_event(notice)
    receipt_id = new_id("rcp")
    stored = await execute_async(connection, store.first(store.EVENT, notice.event_id, receipt_id))
    if stored == receipt_id:
        await handler(connection, event_of(notice))
        still = store.hold(store.EVENT, notice.event_id, receipt_id)
        await connection.run_sync(lambda inner: advance(held(inner), still))
    return _receipt(notice, stored, applied=stored == receipt_id)


def _receipt(notice: EventNotice, receipt_id: str, *, applied: bool) -> EventReceipt:
    return EventReceipt(
        event_id=notice.event_id,
        notice_digest=notice.digest,
        state=EventState.APPLIED if applied else EventState.DUPLICATE,
        receipt_id=receipt_id,
    )


def once(connection: Any, entry_id: str) -> bool:
    """Return True for the first transaction that commits with `entry_id`, False for every other.

    For a handler of the application's: it opens its transaction, asks here, makes its changes, commits. The
    dedupe row is written beside those changes and is rolled back with them. `entry_id` is at most 255 bytes,
    of the application's own choosing; one that is being used by an open transaction is waited for.
    """
    check_text("entry_id", entry_id, LIMITS.local_key_bytes_max)
    return execute(connection, store.once(entry_id, new_id("rcp")))


async def once_async(connection: AsyncConnection | AsyncSession, entry_id: str) -> bool:
    """`once` inside an open transaction of SQLAlchemy's asyncio."""
    check_text("entry_id", entry_id, LIMITS.local_key_bytes_max)
    return await execute_async(connection, store.once(entry_id, new_id("rcp")))
