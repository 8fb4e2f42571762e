"""The story of a delivery: its receipt, its work, its events, and what differs where one was quarantined. No body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from doonce.app.operate.model import Moment, Timeline, when, work_moments
from doonce.app.operate.store import by, items_by_id, items_of, rows_of, scoped_rows
from doonce.base.errors import Conflict, MissingOrDenied
from doonce.db.transaction import Txn
from doonce.events.tables import event
from doonce.ingress import bodies
from doonce.ingress.tables import ingress_identity, ingress_quarantine, ingress_receipt
from doonce.work import store as work
from doonce.work.model import Scope, State

RECEIPTS = by(ingress_receipt, "id", "id")
RECEIPTS_IN_SCOPE = by(ingress_receipt, "id", "id", scoped=True)
QUARANTINED = by(ingress_quarantine, "receipt_id", "receipt_id")
QUARANTINED_IN_SCOPE = by(ingress_quarantine, "receipt_id", "receipt_id", scoped=True)
QUARANTINED_BY_IDENTITY = by(ingress_quarantine, "identity", "received_at", "receipt_id")
IDENTITIES = by(ingress_identity, "identity", "identity")
EVENTS_BY_RECEIPT = by(event, "receipt_id", "position")

STATES: Final[dict[State, str]] = {
    State.PENDING: "waiting",
    State.PROCESSING: "being read",
    State.RETRY: "waiting",
    State.SUCCEEDED: "events derived",
    State.SKIPPED: "skipped",
    State.DEAD: "dead",
    State.CANCELLED: "cancelled",
}

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ReceiptStory:
    """The rows of one delivery. `first` is the receipt that a quarantined one differs from."""

    receipt: Mapping[str, Any]
    first: Mapping[str, Any] | None
    items: Rows
    events: Rows
    quarantined: Rows


def receipt_stories(asked: str, scope: Scope | None) -> Txn[list[ReceiptStory]]:
    """The delivery that an id names, itself or by its work, within a scope; none for what is not there."""
    receipt_id = asked
    if asked.startswith("wrk_"):
        items = yield from items_by_id([asked])
        receipt_id = items[0]["subject_id"] if items else ""
    if not receipt_id.startswith("ing_"):
        return []
    receipts = yield from scoped_rows(ingress_receipt, RECEIPTS, RECEIPTS_IN_SCOPE, [receipt_id], scope)
    if receipts:
        return [(yield from _taken(receipts[0]))]
    odd = yield from scoped_rows(ingress_quarantine, QUARANTINED, QUARANTINED_IN_SCOPE, [receipt_id], scope)
    return [(yield from _odd(odd[0]))] if odd else []


def _taken(receipt: Mapping[str, Any]) -> Txn[ReceiptStory]:
    return ReceiptStory(
        receipt=receipt,
        first=None,
        items=(yield from items_of([receipt["id"]])),
        events=(yield from rows_of(event, EVENTS_BY_RECEIPT, [receipt["id"]])),
        quarantined=(yield from rows_of(ingress_quarantine, QUARANTINED_BY_IDENTITY, [receipt["identity"]])),
    )


def _odd(row: Mapping[str, Any]) -> Txn[ReceiptStory]:
    known = yield from rows_of(ingress_identity, IDENTITIES, [row["identity"]])
    first = yield from rows_of(ingress_receipt, RECEIPTS, [one["receipt_id"] for one in known])
    return ReceiptStory(row, first[0] if first else None, (), (), ())


def receipt_timeline(asked: str, story: ReceiptStory) -> Timeline:
    """What an operator is shown of it."""
    row, first = story.receipt, story.first
    facts = {
        "scope": f"{row['org']} / {row['installation']}",
        "capability": row["capability"],
        "webhook": row["webhook"],
        "identity": row["identity"],
        "secret": row["secret_id"],
        "signed at": when(row["signed_at"]),
        "digest": row["body_digest"],
        "body": _body(row),
    }
    if first is None:
        facts["binding"] = row["view_digest"]
        state = STATES[State(story.items[-1]["state"])] if story.items else "received"
        receipt_id = row["id"]
    else:
        facts |= {"first": first["id"], "its digest": first["body_digest"], "its body": _body(first)}
        state, receipt_id = "quarantined", row["receipt_id"]
    return Timeline(
        asked=asked,
        kind="receipt",
        id=receipt_id,
        state=state,
        facts=facts,
        moments=tuple(sorted(_moments(story, receipt_id), key=lambda moment: moment.at_us)),
    )


def _body(row: Mapping[str, Any]) -> str:
    return f"{row['body_bytes']} bytes{'' if row['sealed'] is not None else ', erased'}"


def _moments(story: ReceiptStory, receipt_id: str) -> Iterable[Moment]:
    row, first = story.receipt, story.first
    if first is not None:
        yield Moment(at_us=first["received_at"], id=first["id"], event="first delivery received")
        detail = f"the same delivery id with another body: {row['body_digest']}"
        yield Moment(at_us=row["received_at"], id=receipt_id, event="delivery quarantined", detail=detail)
        return
    yield Moment(at_us=row["received_at"], id=receipt_id, event="delivery received")
    for one in story.events:
        yield Moment(at_us=one["derived_at"], id=one["id"], event="event derived", detail=one["type"])
    for item in story.items:
        yield from work_moments(item)
    for odd in story.quarantined:
        yield Moment(
            at_us=odd["received_at"],
            id=odd["receipt_id"],
            event="delivery quarantined",
            detail=f"the same delivery id with another body: {odd['body_digest']}",
        )


def work_to_replay(asked: str, story: ReceiptStory) -> Mapping[str, Any] | None:
    """The work that an id means: itself, or the newest of a receipt, or the last dead one before its successor."""
    if asked.startswith("wrk_"):
        return next((item for item in story.items if item["id"] == asked), None)
    dead = [item for item in story.items if item["state"] == State.DEAD.value]
    return (dead or story.items)[-1] if story.items else None


def replay(receipt_id: str, row: work.Replay) -> Txn[str]:
    """Derive once more from a receipt whose derivation died, as a new item that names the old one (PROTOCOL W6).

    The events' identities make that harmless: those that are there stay (I2). Raises `Conflict` when the body's time is
    over, and whatever `work.replay` does.
    """
    kept = yield from bodies.lock([receipt_id])
    if receipt_id not in kept:
        raise MissingOrDenied("there is no such receipt")
    if not kept[receipt_id]:
        raise Conflict(
            "the body of this receipt is erased, so nothing can be derived from it any more",
            hint="ask the provider for what it told; its identity stays known here",
        )
    return (yield from work.replay(row))
