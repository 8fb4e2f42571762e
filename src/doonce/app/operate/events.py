"""The story of an event: where it came from, and what became of handing it to the application. No content of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from doonce.app.operate.model import Moment, Timeline, attempt_moments, when, work_moments
from doonce.app.operate.store import (
    ATTEMPTS_BY_SUBJECT,
    by,
    items_of,
    rows_of,
    scoped_rows,
    subject_of,
)
from doonce.db.transaction import Txn
from doonce.effects.tables import effect_attempt
from doonce.events.tables import event, event_object
from doonce.ownership.model import Family
from doonce.work.model import Scope, State

EVENTS = by(event, "id", "id")
EVENTS_IN_SCOPE = by(event, "id", "id", scoped=True)
OBJECTS = by(event_object, "event_id", "event_id")

STATES: dict[State, str] = {
    State.PENDING: "waiting",
    State.PROCESSING: "being handed over",
    State.RETRY: "waiting",
    State.SUCCEEDED: "handed over",
    State.SKIPPED: "skipped",
    State.DEAD: "dead",
    State.CANCELLED: "cancelled",
}
READING: Final = {
    State.PROCESSING: "its object is being read",
    State.DEAD: "dead: its object could not be read",
}
"""What is said of an event that has not got as far as to be handed over, where that differs."""

NOBODY = "handed to nobody"
"""Its binding, as it was published when the delivery came, has no such type in `handle`."""


Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class EventStory:
    """The rows of one event: itself, its work and its reads in the order in which they were made, what was read."""

    event: Mapping[str, Any]
    work: Rows
    reads: Rows
    objects: Rows


def event_stories(asked: str, scope: Scope | None) -> Txn[list[EventStory]]:
    """The event that an id names, itself or by its work or a read, within a scope; none for what is not there."""
    event_id = yield from subject_of(asked)
    if not event_id.startswith("evt_"):
        return []
    events = yield from scoped_rows(event, EVENTS, EVENTS_IN_SCOPE, [event_id], scope)
    return [(yield from _story(events[0]))] if events else []


def _story(row: Mapping[str, Any]) -> Txn[EventStory]:
    return EventStory(
        event=row,
        work=(yield from items_of([row["id"]])),
        reads=(yield from rows_of(effect_attempt, ATTEMPTS_BY_SUBJECT, [row["id"]])),
        objects=(yield from rows_of(event_object, OBJECTS, [row["id"]])),
    )


def event_timeline(asked: str, story: EventStory) -> Timeline:
    """What an operator is shown of it."""
    row = story.event
    moments = [
        Moment(
            at_us=row["derived_at"], id=row["id"], event="event derived", detail=f"from {row['receipt_id']}"
        )
    ]
    for item in story.work:
        moments += work_moments(item)
    for attempt in story.reads:
        moments += attempt_moments(attempt)
    facts = {
        "type": row["type"],
        "scope": f"{row['org']} / {row['installation']}",
        "capability": row["capability"],
        "webhook": row["webhook"],
        "receipt": row["receipt_id"],
        "position": str(row["position"]),
        "binding": row["view_digest"],
    }
    if story.objects:
        facts["object"] = _object(story.objects[0])
    return Timeline(
        asked=asked,
        kind="event",
        id=row["id"],
        state=_state(story),
        facts=facts,
        moments=tuple(sorted(moments, key=lambda moment: moment.at_us)),
    )


def _state(story: EventStory) -> str:
    if not story.work:
        return NOBODY
    newest = story.work[-1]
    state = State(newest["state"])
    return READING.get(state, STATES[state]) if newest["family"] == Family.HYDRATE.value else STATES[state]


def _object(read: Mapping[str, Any]) -> str:
    said = "was not there" if read["sealed"] is None else "was read whole"
    return f"{said}, at {when(read['read_at'])} by {read['attempt_id']}"
