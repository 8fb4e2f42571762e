"""What an operator is shown: facts and moments, never a payload, a body or a secret. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, TypeAlias

import msgspec

from doonce.app.operate.gap_model import GapView
from doonce.app.operate.shown import Shown
from doonce.catalog.model import Outcome, Verdict
from doonce.commands.model import CommandState, EndedAs, derive_state
from doonce.effects.model import AttemptKind
from doonce.ownership.model import Family
from doonce.work.model import TERMINAL, State

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(Shown, frozen=True, kw_only=True):
    """One durable step: when (microseconds UTC of the database), of what, what happened."""

    at_us: int
    id: str
    event: str
    detail: str = ""
    who: str = ""


class Timeline(Shown, frozen=True, kw_only=True):
    """The story of one thing: what it is, where it stands, and every durable step, oldest first."""

    asked: str
    kind: str
    id: str
    state: str
    facts: dict[str, str]
    moments: tuple[Moment, ...]


class CommandView(Shown, frozen=True, kw_only=True):
    """Where one command stands; `final` says that nothing else can follow. `result` is what the provider proved."""

    command_id: str
    key: str
    operation: str
    state: CommandState
    final: bool
    reason: str
    attempt_id: str | None
    result: msgspec.Raw


class ReplayView(Shown, frozen=True, kw_only=True):
    """What took the place of a dead work item, and the command, event, receipt or catch-up that it is about."""

    work_id: str
    replay_of: str
    family: str
    command_id: str = ""
    event_id: str = ""
    receipt_id: str = ""
    catch_up_id: str = ""


class WorkView(Shown, frozen=True, kw_only=True):
    """A work item, and the command, event, receipt or catch-up that it is about."""

    work_id: str
    family: str
    command_id: str = ""
    event_id: str = ""
    receipt_id: str = ""
    catch_up_id: str = ""


class BodyView(Shown, frozen=True, kw_only=True):
    """The raw body of one delivery, byte for byte; JSON has it in base64."""

    receipt_id: str
    digest: str
    raw: bytes


class FamilyStatus(Shown, frozen=True, kw_only=True):
    """One work family. `waiting` is counted up to a bound; `oldest_due_us` is how long the oldest has been due.

    `newer`: how many of them need the engine of a later release, up to the same bound; no worker of this one runs them.
    """

    family: str
    owner: str
    epoch: int
    ownership: str
    waiting: int
    bounded: bool
    newer: int
    oldest_due_us: int


class Unresolved(Shown, frozen=True, kw_only=True):
    """An attempt whose outcome nobody knows, and what its lane waits for."""

    attempt_id: str
    command_id: str
    operation: str
    since_us: int
    reason: str
    needs_operator: bool
    lane: str | None


class TurnedAway(Shown, frozen=True, kw_only=True):
    """Deliveries that got no receipt, for one reason, since the first one there was."""

    reason: str
    count: int
    last_at_us: int


class DeliveryStatus(Shown, frozen=True, kw_only=True):
    """How receiving stands. `received` and `events` are of the last day; `bounded`: one of the counts is a bound.

    `quarantined` are other bodies under a known delivery id, of any time; `newest_quarantined` names some of them.
    """

    received: int
    events: int
    quarantined: int
    newest_quarantined: tuple[str, ...]
    bounded: bool
    turned_away: tuple[TurnedAway, ...]


class RetentionStatus(Shown, frozen=True, kw_only=True):
    """How the moving of ended work into history stands, seen over the whole deployment.

    `moved`: since ever. `overdue_us`: how long ago the oldest item ended that the last whole walk had to leave although
    its time was over; 0 when there was none. `walked_us`: how long ago that walk ended; None before the first one.
    """

    enabled: bool
    moved: int
    overdue_us: int
    walked_us: int | None


class Pruned(Shown, frozen=True, kw_only=True):
    """What a walk over the work saw: rows, how many went by family, and why the others stay where they are."""

    looked: int
    moved: dict[str, int]
    stays: dict[str, int]
    dry_run: bool


class Status(Shown, frozen=True, kw_only=True):
    """How a deployment stands. `unknown` has the oldest ones, up to a bound; `unknown_more`: there are more."""

    database: str
    dispatch: str
    now_us: int
    families: tuple[FamilyStatus, ...]
    unknown: tuple[Unresolved, ...]
    unknown_more: bool
    deliveries: DeliveryStatus
    gaps: tuple[GapView, ...]
    retention: RetentionStatus


class Decision(str, Enum):
    """What an operator says about an attempt whose outcome nobody knows."""

    HAPPENED = "happened"
    NOT_HAPPENED = "not-happened"
    RESEND = "resend"
    SUPERSEDED = "superseded"


def when(at_us: int | None) -> str:
    """A time of the database in RFC 3339, UTC, or "-"."""
    if at_us is None:
        return "-"
    return (EPOCH + timedelta(microseconds=at_us)).isoformat(timespec="microseconds").replace("+00:00", "Z")


Row: TypeAlias = Mapping[str, Any]
"""One row by its column names."""


@dataclass(frozen=True, slots=True)
class Story:
    """The rows of one command."""

    handoff: Row | None
    command: Row | None
    end: Row | None
    conflicts: Sequence[Row]
    items: Sequence[Row]
    attempts: Sequence[Row]
    evidence: Sequence[Row]
    dispositions: Sequence[Row]


def standing(story: Story) -> tuple[CommandState, str | None, str]:
    """Where the story's command stands, by which attempt, and why (derived, never stored)."""
    end = story.end
    if end is not None:
        return CommandState(EndedAs(end["ended_as"]).value), end["attempt_id"], end["reason"]
    unknown = unresolved_attempt(story)
    work = [row for row in story.items if row["family"] == Family.EFFECT.value]
    live = [row for row in work if State(row["state"]) not in TERMINAL]
    state = derive_state(
        ended_as=None, unresolved=unknown is not None, work_state=live[-1]["state"] if live else None
    )
    if unknown is not None:
        return state, unknown["id"], unknown["reason"]
    newest = [row for row in story.attempts if row["kind"] == AttemptKind.EFFECT.value]
    reason = (work[-1]["summary"] or "") if work else ""
    return state, newest[-1]["id"] if newest else None, reason


def unresolved_attempt(story: Story) -> Row | None:
    """The attempt that a command waits for because nobody knows its outcome, if there is one."""
    decided = {row["attempt_id"]: row for row in story.dispositions}
    asked = {row["subject_id"] for row in story.items if row["family"] == Family.RECONCILE.value}
    for attempt in reversed(story.attempts):
        if attempt["id"] not in asked:
            continue
        verdict = decided.get(attempt["id"])
        if verdict is None or waits_for_operator(verdict["verdict"], verdict["successor_item_id"]):
            return attempt
    return None


def waits_for_operator(verdict: str, successor: str | None) -> bool:
    """Whether a disposition leaves its command to an operator: no effect, and nobody may resend by itself."""
    return verdict == Verdict.NO_EFFECT_PROVEN.value and successor is None


# --- moments ------------------------------------------------------------------------------------------------------


def moments_of(story: Story) -> tuple[Moment, ...]:
    """Every durable step of a story, oldest first; ties keep the order in which one transaction wrote them."""
    found = [*_admission(story)]
    for item in story.items:
        found += work_moments(item)
    for attempt in story.attempts:
        found += attempt_moments(attempt)
    found += [
        Moment(
            at_us=row["recorded_at"],
            id=row["attempt_id"],
            event=f"late evidence: {row['kind']}",
            detail=row["reason"],
        )
        for row in story.evidence
    ]
    found += [
        Moment(
            at_us=row["recorded_at"],
            id=row["attempt_id"],
            event=f"verdict: {row['verdict']}",
            detail=row["reason"],
            who=row["decided_by"],
        )
        for row in story.dispositions
    ]
    if story.end is not None:
        end = story.end
        found.append(
            Moment(
                at_us=end["recorded_at"],
                id=end["command_id"],
                event=f"command {end['ended_as']}",
                detail=end["reason"],
            )
        )
    return tuple(sorted(found, key=lambda moment: moment.at_us))


def _admission(story: Story) -> Iterable[Moment]:
    handoff = story.handoff
    if handoff is not None:
        accepted = handoff["command_id"] is not None
        yield Moment(
            at_us=handoff["recorded_at"],
            id=handoff["command_id"] or handoff["receipt_id"],
            event="accepted" if accepted else "handoff rejected",
            detail=handoff["reason"] or f"receipt {handoff['receipt_id']}",
        )
    for row in story.conflicts:
        yield Moment(
            at_us=row["recorded_at"],
            id=row["outbox_id"],
            event="quarantined",
            detail=f"another {row['mismatch']}",
        )


def work_moments(item: Row) -> Iterable[Moment]:
    """The durable steps of one work item."""
    family, item_id = item["family"], item["id"]
    yield Moment(at_us=item["created_at"], id=item_id, event=f"{family} work created", detail=_lineage(item))
    state = State(item["state"])
    if state is State.PROCESSING:
        detail = f"lease until {when(item['lease_until'])}"
        yield Moment(
            at_us=item["updated_at"],
            id=item_id,
            event=f"{family} work processing",
            detail=detail,
            who=item["lease_owner"] or "",
        )
    elif state is State.RETRY:
        detail = f"again at {when(item['run_after'])}: {item['summary'] or ''}"
        yield Moment(at_us=item["updated_at"], id=item_id, event=f"{family} work waiting", detail=detail)
    elif item["finished_at"] is not None:
        detail = ": ".join(part for part in (item["failure_class"], item["summary"]) if part)
        yield Moment(
            at_us=item["finished_at"],
            id=item_id,
            event=f"{family} work {state.value}",
            detail=detail,
            who=item["lease_owner"] or "",
        )


def _lineage(item: Row) -> str:
    return f"follows {item['predecessor']}" if item["predecessor"] is not None else ""


ATTEMPTS = {
    AttemptKind.EFFECT: "attempt",
    AttemptKind.PROBE: "probe",
    AttemptKind.HYDRATION: "read",
    AttemptKind.PAGE: "page",
}
"""What each kind of attempt is called where its steps are shown."""


def attempt_moments(attempt: Row) -> Iterable[Moment]:
    """The durable steps of one attempt."""
    name = ATTEMPTS[AttemptKind(attempt["kind"])]
    attempt_id = attempt["id"]
    yield Moment(
        at_us=attempt["prepared_at"], id=attempt_id, event=f"{name} prepared", detail=attempt["operation"]
    )
    if attempt["dispatched_at"] is not None:
        yield Moment(
            at_us=attempt["dispatched_at"],
            id=attempt_id,
            event=f"{name} dispatched",
            detail="before the first byte",
        )
    if attempt["ended_at"] is not None:
        status = f"status {attempt['status']}; " if attempt["status"] is not None else ""
        detail = (
            attempt["reason"] if attempt["reason"].startswith("status") else f"{status}{attempt['reason']}"
        )
        outcome = Outcome(attempt["outcome"]).value
        yield Moment(at_us=attempt["ended_at"], id=attempt_id, event=f"{name} {outcome}", detail=detail)


def facts_of(story: Story) -> dict[str, str]:
    """What a command was accepted as; no payload, no body, no secret."""
    facts: dict[str, str] = {}
    handoff, command = story.handoff, story.command
    if handoff is not None:
        facts |= {
            "scope": f"{handoff['org']} / {handoff['installation']}",
            "capability": handoff["capability"],
            "binding": handoff["binding_digest"],
            "outbox": handoff["outbox_id"],
            "receipt": handoff["receipt_id"],
            "payload": handoff["payload_digest"],
        }
    if command is not None:
        facts |= {
            "operation": command["operation"],
            "record": command["local_ref"],
            "call": f"{command['method']} {command['request_origin']}",
            "principal": f"{command['principal_id']} generation {command['generation']}",
        }
        if command["link_id"] is not None:
            facts["link"] = f"{command['link_id']} version {command['link_version']}"
    return facts
