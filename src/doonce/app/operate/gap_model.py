"""What an operator is shown of gaps, and of how far each has been read."""

from __future__ import annotations

from doonce.app.operate.shown import Shown
from doonce.ingress.gaps import Cause


class CatchUpView(Shown, frozen=True, kw_only=True):
    """How far a gap has been read: `state` is that of its newest page's work, `reason` what is said of it."""

    catch_up_id: str
    work_id: str
    state: str
    reason: str
    dead: bool
    pages: int
    items: int
    events: int


class GapView(Shown, frozen=True, kw_only=True):
    """Time in which deliveries of one route may have been lost for good (PROTOCOL I4)."""

    org: str
    installation: str
    capability: str
    webhook: str
    sequence: int
    losses: int
    opened_at_us: int
    last_at_us: int
    closed_at_us: int | None = None
    closed_by: str | None = None
    reason: str | None = None
    cause: str = Cause.LOSS.value
    asked_by: str | None = None
    asked_why: str | None = None
    catch_up: CatchUpView | None = None

    @property
    def needs_operator(self) -> bool:
        """Whether it stays open until somebody does something: nothing reads it, or what did is dead."""
        return self.closed_at_us is None and (self.catch_up is None or self.catch_up.dead)


class Gaps(Shown, frozen=True, kw_only=True):
    """Open gaps, the oldest first, up to a bound."""

    gaps: tuple[GapView, ...]
