"""Cancelling a command: its waiting work, and its end, in one transaction (PROTOCOL W5, K1)."""

from __future__ import annotations

from doonce.commands import store as commands
from doonce.commands.model import EndedAs, NewEnd
from doonce.db.transaction import Txn, clock, fetch
from doonce.effects.attempts import attempts_of
from doonce.effects.store import first_dispatched_at
from doonce.ownership import store as ownership
from doonce.ownership.model import Family
from doonce.work import lanes as lane_store
from doonce.work import settle
from doonce.work import store as work
from doonce.work.model import TERMINAL, WAITING
from doonce.work.settle import Cancelled

Refusal = tuple[str]


def cancel(command_id: str, summary: str) -> Txn[Refusal | None]:
    """Cancel what waits, or ask what runs; the reason when the outcome decides instead. Repeatable.

    A command that may have had its effect is not cancelled: waiting work that follows an unproven call, and an
    attempt that nobody knows the outcome of, end by what is found out.
    """
    yield from ownership.fence([Family.EFFECT.value])
    found = yield from fetch(settle.FOR_SUBJECT, subject_id=command_id, family=Family.EFFECT.value)
    plain = yield from fetch(work.PLAIN_ITEMS, ids=[(row[0],) for row in found])
    before = [work.read_item(row) for row in plain]
    lanes = {name for item in before for name in (item.source_lane, item.target_lane) if name is not None}
    held = yield from lane_store.lock(lanes)
    items = yield from work.lock_items(item.id for item in before)
    known = yield from commands.load([command_id])
    ends = yield from commands.load_ends([command_id])
    attempts = (yield from attempts_of([command_id]))[command_id]
    now_us = yield from clock()
    ended = ends.get(command_id)
    if ended is not None:
        return (
            None
            if ended.ended_as is EndedAs.CANCELLED
            else (f"the command has ended as {ended.ended_as.value}",)
        )
    live = {item_id: item for item_id, item in items.items() if item.state not in TERMINAL}
    if not live:
        return ("nobody knows the command's outcome yet, and that cannot be cancelled",)
    if any(item.state in WAITING for item in live.values()) and first_dispatched_at(attempts) is not None:
        return ("an earlier call of the command may have had its effect; its outcome decides",)
    cancelled = yield from settle.cancel(live, held, now_us, summary)
    yield from lane_store.save(held.values())
    if Cancelled.CANCELLED in cancelled.values():
        yield from commands.end([NewEnd(known[command_id], EndedAs.CANCELLED, None, "{}", summary)], now_us)
    return None
