"""The story of an event: where it came from, and what became of handing it to the application. No content of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doonce.app.operate.model import Moment, Timeline, work_moments
from doonce.app.operate.store import by, items_by_id, items_of, scoped_rows
from doonce.db.transaction import Txn
from doonce.events.tables import event
from doonce.work.model import Scope, State

EVENTS = by(event, "id", "id")
EVENTS_IN_SCOPE = by(event, "id", "id", scoped=True)

STATES: dict[State, str] = {
    State.PENDING: "waiting",
    State.PROCESSING: "being handed over",
    State.RETRY: "waiting",
    State.SUCCEEDED: "handed over",
    State.SKIPPED: "skipped",
    State.DEAD: "dead",
    State.CANCELLED: "cancelled",
}
NOBODY = "handed to nobody"
"""Its binding, as it was published when the delivery came, has no such type in `handle`."""

EventStory = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]
"""An event's row, and its work in the order in which it was made."""


def event_stories(asked: str, scope: Scope | None) -> Txn[list[EventStory]]:
    """The event that an id names, itself or by its work, within a scope; none for what is not there."""
    event_id = asked
    if asked.startswith("wrk_"):
        items = yield from items_by_id([asked])
        event_id = items[0]["subject_id"] if items else ""
    if not event_id.startswith("evt_"):
        return []
    events = yield from scoped_rows(event, EVENTS, EVENTS_IN_SCOPE, [event_id], scope)
    told: list[EventStory] = []
    for row in events:
        work = yield from items_of([row["id"]])
        told.append((row, work))
    return told


def event_timeline(asked: str, story: EventStory) -> Timeline:
    """What an operator is shown of it."""
    row, work = story
    moments = [
        Moment(
            at_us=row["derived_at"], id=row["id"], event="event derived", detail=f"from {row['receipt_id']}"
        )
    ]
    for item in work:
        moments += work_moments(item)
    return Timeline(
        asked=asked,
        kind="event",
        id=row["id"],
        state=STATES[State(work[-1]["state"])] if work else NOBODY,
        facts={
            "type": row["type"],
            "scope": f"{row['org']} / {row['installation']}",
            "capability": row["capability"],
            "webhook": row["webhook"],
            "receipt": row["receipt_id"],
            "position": str(row["position"]),
            "binding": row["view_digest"],
        },
        moments=tuple(sorted(moments, key=lambda moment: moment.at_us)),
    )
