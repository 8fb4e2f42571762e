"""A catch-up: reading from the provider what a gap may have lost. What it knows, and when it has read enough. Pure.

| pass     | event                                | then                                                             |
|----------|--------------------------------------|------------------------------------------------------------------|
| none     | its work is claimed                  | one begins: the gap's losses are noted, the window is fixed      |
| one      | a page is stored, there is a next    | the cursor moves to it                                           |
| one      | the last page is stored              | its window is covered; then                                      |
|          | no loss since, and all of it covered | the gap is closed                                                |
|          | otherwise                            | another pass, for what came since: no loss is ever left out      |

A pass is one window, read page by page. It ends at the time at which it began, so it never waits for losses to stop;
what is lost while it runs makes the next one necessary.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from doonce.base.digests import digest_bytes
from doonce.base.keys import frame
from doonce.base.records import Record
from doonce.catalog.windows import Window
from doonce.ingress.gaps import Gap
from doonce.ingress.receipts import RouteKey, Sealed

AGAIN_US_MIN: Final = 1_000_000
"""Between two passes at least: losses that go on do not make a provider be read without a pause."""

CLOSED_BY: Final = "reconciliation"


class CatchUp(Record, frozen=True):
    """A catch-up as its row has it; the work item whose subject is `page_id` says where it stands.

    `covered_since` to `covered_until` is what passes that have ended have read, for losses from the first of these on.
    `since_at`, `until_at`, `losses` and `from_at` are of the pass under way, None between two. `pages`, `items` and
    `events` count all that was read, and the events that were new.
    """

    id: str
    route: RouteKey
    sequence: int
    view_digest: str
    asked_by: str | None
    asked_why: str | None
    covered_since: int | None
    covered_until: int | None
    passes: int
    from_at: int | None
    since_at: int | None
    until_at: int | None
    losses: int | None
    page_id: str
    page_number: int
    page_cursor: str | None
    pages: int
    items: int
    events: int

    @property
    def window(self) -> Window | None:
        """What the pass under way reads."""
        if self.since_at is None or self.until_at is None:
            return None
        return Window(self.since_at, self.until_at)


class Overlap(Record, frozen=True):
    """How much wider than the losses the provider is read."""

    before_us: int
    after_us: int


class NewPage(Record, frozen=True):
    """A page to store. `fault` is why no events can be made of it, None where they can."""

    id: str
    attempt_id: str
    items: int
    fault: str | None
    body_digest: str
    body_bytes: int
    sealed: Sealed


class Close(Record, frozen=True):
    """All of the gap has been read since its last loss."""

    reason: str


class Again(Record, frozen=True):
    """Another pass is needed, after so long."""

    delay_us: int
    reason: str


def begin(catch_up: CatchUp, gap: Gap, overlap: Overlap, now_us: int) -> CatchUp:
    """The catch-up with a pass under way over what is not covered yet; with one under way it stays as it is.

    A loss that was counted late, and is older than all that was covered, makes the pass read from there.
    """
    if catch_up.window is not None:
        return catch_up
    since, until = catch_up.covered_since, catch_up.covered_until
    goes_on = since is not None and until is not None and gap.opened_at >= since
    from_at = since if goes_on and since is not None else gap.opened_at
    basis = until if goes_on and until is not None else gap.opened_at
    return replace(
        catch_up,
        passes=catch_up.passes + 1,
        from_at=from_at,
        since_at=max(0, basis - overlap.before_us),
        until_at=min(now_us, gap.last_at + overlap.after_us),
        losses=gap.losses,
        page_number=1,
        page_cursor=None,
    )


def turned(catch_up: CatchUp, page: NewPage, new_events: int) -> CatchUp:
    """The catch-up with a page stored."""
    return replace(
        catch_up,
        pages=catch_up.pages + 1,
        items=catch_up.items + page.items,
        events=catch_up.events + new_events,
    )


def covered(catch_up: CatchUp) -> CatchUp:
    """The catch-up with the pass under way at its end."""
    return replace(
        catch_up,
        covered_since=catch_up.from_at,
        covered_until=catch_up.until_at,
        from_at=None,
        since_at=None,
        until_at=None,
        losses=None,
        page_number=0,
        page_cursor=None,
    )


def judge(catch_up: CatchUp, gap: Gap, overlap: Overlap, now_us: int) -> Close | Again:
    """What the end of a pass means to its gap, as it stands under its lock (PROTOCOL I4).

    Closed only when the gap counts the losses that it had when the pass began, and the window reached past the last.
    """
    target = gap.last_at + overlap.after_us
    read_until = catch_up.until_at or 0
    if gap.losses == catch_up.losses and gap.opened_at >= (catch_up.from_at or 0) and read_until >= target:
        pages = "1 page" if catch_up.pages == 1 else f"{catch_up.pages} pages"
        items = "1 item" if catch_up.items == 1 else f"{catch_up.items} items"
        return Close(f"{pages}, {items}, {catch_up.events} new")
    reason = (
        "the provider may still add to the time that was read"
        if gap.losses == catch_up.losses
        else "more was lost meanwhile"
    )
    return Again(max(AGAIN_US_MIN, target - now_us), reason)


def page_place(page_id: str) -> str:
    """What a page's body is sealed for."""
    return frame("ingress_page", page_id)


def cursor_digest(cursor: str | None) -> str:
    """A cursor as a page keeps it: enough to know it again, and nothing of it."""
    return "" if cursor is None else digest_bytes(cursor.encode())
