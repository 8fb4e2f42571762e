"""The story of a catch-up: which gap, how far it has come, every page with its read. No page's content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from doonce.app.operate.gaps import CATCH_UPS, STATES
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
from doonce.ingress.tables import ingress_catch_up, ingress_page
from doonce.work.model import Scope, State

IN_SCOPE = by(ingress_catch_up, "id", "id", scoped=True)

BY_PAGE = by(ingress_catch_up, "page_id", "id")
PAGES = by(ingress_page, "catch_up_id", "pass", "number")
PAGES_BY_ID = by(ingress_page, "id", "id")

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class CatchUpStory:
    """The rows of one catch-up, its first pages where it has many."""

    catch_up: Mapping[str, Any]
    pages: Rows
    items: Rows
    attempts: Rows


def catch_up_stories(asked: str, scope: Scope | None) -> Txn[list[CatchUpStory]]:
    """The catch-up that an id names, itself, by a page, or by a page's work or read, within a scope."""
    wanted = yield from subject_of(asked)
    if wanted.startswith("pag_"):
        stored = yield from rows_of(ingress_page, PAGES_BY_ID, [wanted])
        awaited = yield from rows_of(ingress_catch_up, BY_PAGE, [wanted])
        ids = [row["catch_up_id"] for row in stored] + [row["id"] for row in awaited]
        wanted = ids[0] if ids else ""
    if not wanted.startswith("ctu_"):
        return []
    rows = yield from scoped_rows(ingress_catch_up, CATCH_UPS, IN_SCOPE, [wanted], scope)
    return [(yield from _story(rows[0]))] if rows else []


def _story(row: Mapping[str, Any]) -> Txn[CatchUpStory]:
    pages = yield from rows_of(ingress_page, PAGES, [row["id"]])
    ids = sorted({page["id"] for page in pages} | {row["page_id"]})
    return CatchUpStory(
        catch_up=row,
        pages=pages,
        items=(yield from items_of(ids)),
        attempts=(yield from rows_of(effect_attempt, ATTEMPTS_BY_SUBJECT, ids)),
    )


def has_read(work_id: str, story: CatchUpStory) -> bool:
    """Whether the page of a work item is stored, whatever became of it."""
    stored = {page["id"] for page in story.pages}
    return any(item["id"] == work_id and item["subject_id"] in stored for item in story.items)


def catch_up_timeline(asked: str, story: CatchUpStory) -> Timeline:
    """What an operator is shown of it."""
    row = story.catch_up
    newest = [item for item in story.items if item["subject_id"] == row["page_id"]]
    facts = {
        "scope": f"{row['org']} / {row['installation']}",
        "capability": row["capability"],
        "webhook": row["webhook"],
        "gap": str(row["sequence"]),
        "binding": row["view_digest"],
        "pass": str(row["passes"]),
        "covered": f"{when(row['covered_since'])} to {when(row['covered_until'])}",
        "reading": f"{when(row['since_at'])} to {when(row['until_at'])}",
        "read": f"{row['pages']} pages, {row['items']} items, {row['events']} new events",
    }
    if row["asked_by"] is not None:
        facts["asked by"] = f"{row['asked_by']}: {row['asked_why'] or ''}"
    return Timeline(
        asked=asked,
        kind="catch-up",
        id=row["id"],
        state=STATES[State(newest[-1]["state"])] if newest else "waiting",
        facts=facts,
        moments=tuple(sorted(_moments(story), key=lambda moment: moment.at_us)),
    )


def _moments(story: CatchUpStory) -> Iterable[Moment]:
    row = story.catch_up
    yield Moment(
        at_us=row["created_at"],
        id=row["id"],
        event="catch-up began",
        detail=row["asked_why"] or "",
        who=row["asked_by"] or "",
    )
    for item in story.items:
        yield from work_moments(item)
    for attempt in story.attempts:
        yield from attempt_moments(attempt)
    for page in story.pages:
        told = (
            f"pass {page['pass']}, page {page['number']}: {page['items']} items, {page['events']} new events"
        )
        yield Moment(
            at_us=page["received_at"],
            id=page["id"],
            event="page stored" if page["fault"] is None else "page stored, dead",
            detail=told if page["fault"] is None else f"{told}; {page['fault']}",
        )
