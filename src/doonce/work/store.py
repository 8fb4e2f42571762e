"""Transactions of the kernel: insert, claim, renew, replay, sweep; `settle` has how work ends. Most take batches.

Lock order within each: ownership, the claimer's own row, lanes, work items (PROTOCOL T4). The clock is read after the
locks (T3).
"""

from __future__ import annotations

from doonce.work.claim import ClaimRequest, RenewRequest, claim, renew, suspects_wait
from doonce.work.floors import Floors
from doonce.work.history import lock_anywhere, plain_anywhere
from doonce.work.insert import enqueue, insert, lane_policies
from doonce.work.items import PLAIN_ITEMS, lock_claimed, lock_items, made_at, read_item, topic
from doonce.work.looking import Look, Seen, look
from doonce.work.replay import Replay, replay
from doonce.work.sweep import sweep

__all__ = [
    "PLAIN_ITEMS",
    "ClaimRequest",
    "Floors",
    "Look",
    "RenewRequest",
    "Replay",
    "Seen",
    "claim",
    "enqueue",
    "insert",
    "lane_policies",
    "lock_anywhere",
    "lock_claimed",
    "lock_items",
    "look",
    "made_at",
    "plain_anywhere",
    "read_item",
    "renew",
    "replay",
    "suspects_wait",
    "sweep",
    "topic",
]
