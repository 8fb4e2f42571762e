"""Items and claims for pure tests."""

from typing import Any

from doonce.work.model import Claimed, Item, Scope, State

ITEM: dict[str, Any] = {
    "id": "wrk_a", "family": "effect", "scope": Scope("acme", "main"), "subject_kind": "command",
    "subject_id": "cmd_a", "view_digest": "sha256:v", "capability_version": 1, "source_lane": None,
    "source_position": None, "target_lane": None, "target_position": None, "state": State.PENDING, "run_after": 0,
    "attempts": 0, "claims": 0, "failures": 0, "first_failed_at": None, "deferrals": 0, "first_deferred_at": None,
    "expiries": 0, "alone": False, "lease_owner": None, "lease_token": None, "lease_until": 0, "ownership_epoch": 0,
    "cancel_requested": False, "predecessor": None,
}  # fmt: skip


def item_of(**fields: Any) -> Item:
    return Item(**{**ITEM, **fields})


def claim_of(item: Item) -> Claimed:
    return Claimed(item, item.lease_token or "", item.ownership_epoch, item.lease_until, poison=False)
