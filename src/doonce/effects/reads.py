"""Reads without an effect: journaled before they are sent, under a live claim, as every call is (PROTOCOL D5).

A family that reads does this: claim → pins and request → `prepare_reads` → `Caller.make` → its own transaction, which
ends the attempt by `end_reads` with whatever follows from the answer. What a vanished claimant left open ends as
`VANISHED` in the next one's transaction, whether it was sent or not: a read is safe to repeat.
"""

from __future__ import annotations

from collections.abc import Sequence

from doonce.base.records import Record
from doonce.catalog.model import Outcome
from doonce.commands.model import Pins
from doonce.db.transaction import Txn, clock, fetch, insert_many
from doonce.effects.attempts import ATTEMPT_COLUMNS, attempt_row, attempts_of
from doonce.effects.finish import END, end_row
from doonce.effects.model import AttemptKind, Ending
from doonce.effects.tables import effect_attempt
from doonce.ownership import store as ownership
from doonce.work import store as work
from doonce.work.model import Claimed, live

VANISHED = Ending(
    Outcome.REPLAY_SAFE_RETRY, "the reader vanished; a read is safe to repeat", effect_free=True
)


class PrepareRead(Record, frozen=True):
    """A read to journal for a claimed item, whose subject it is about. `attempt_id` is made before the transaction."""

    claimed: Claimed
    deployment: str
    attempt_id: str
    kind: AttemptKind
    pins: Pins
    operation: str
    request_digest: str


def prepare_reads(rows: Sequence[PrepareRead]) -> Txn[list[bool]]:
    """Journal `prepared` reads, each under its live claim; False where that is stale, or an attempt is still open.

    A rerun after an unknown commit finds its own. A crash after the commit leaves an attempt that was not sent.
    """
    owners = yield from ownership.fence(row.claimed.item.family for row in rows)
    items = yield from work.lock_claimed(row.claimed for row in rows)
    past = yield from attempts_of(row.claimed.item.subject_id for row in rows)
    now_us = yield from clock()
    results: list[bool] = []
    new: list[tuple[object, ...]] = []
    for row in rows:
        owner, before = owners.get(row.claimed.item.family), past[row.claimed.item.subject_id]
        newest = before[-1] if before else None
        if (
            owner is None
            or not owner.lets_finish(row.deployment, row.claimed.epoch)
            or not live(items.get(row.claimed.item.id), row.claimed, now_us)
        ):
            results.append(False)
        elif newest is not None and newest.outcome is None:
            results.append(newest.id == row.attempt_id)
        else:
            results.append(True)
            new.append(
                attempt_row(
                    row.attempt_id, row.kind, len(before), row.claimed, row.pins, row.operation,
                    row.request_digest, now_us,
                )
            )  # fmt: skip
    yield from insert_many(effect_attempt, ATTEMPT_COLUMNS, new)
    return results


class EndedRead(Record, frozen=True):
    """How a read ended, as the holder of `token` says."""

    attempt_id: str
    token: str
    ending: Ending


def end_reads(rows: Sequence[EndedRead], now_us: int) -> Txn[None]:
    """End reads, within the transaction of what follows from them; one that has ended stays as it is.

    The caller has checked the claims, and has locked items and attempts before it read the clock (PROTOCOL T3, T4).
    """
    if rows:
        ends = [end_row(row.attempt_id, row.token, row.ending.outcome, row.ending) for row in rows]
        yield from fetch(END, ends=ends, now_us=now_us)
