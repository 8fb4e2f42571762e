"""Whether somebody will do what is accepted, and hear how it ended: asked before a command becomes durable."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from doonce.base.errors import Unavailable
from doonce.catalog.compile import BindingView
from doonce.catalog.model import CompletionMode
from doonce.db.clock import boottime_ns
from doonce.db.database import Database
from doonce.ownership import store as ownership
from doonce.ownership.model import Family, OwnershipState

FAMILIES: Final = (Family.EFFECT, Family.RECONCILE, Family.COMPLETION)
"""What a command becomes: its call, the question when nobody knows, and what its application is told."""
LOOK_AGAIN_NS: Final = 1_000_000_000
"""A good answer holds for a second, so that acceptance does not pay a question each time."""


class Closure:
    """Refuses what nobody would do, or whose end nobody would hear (producer closure).

    Ownership may change right after the answer: what was accepted then waits for the next owner, as it would anyway.
    """

    def __init__(self, database: Database, inboxes: Collection[str]) -> None:
        self._database = database
        self._inboxes = frozenset(inboxes)
        self._owned_until_ns = 0

    async def check(self, view: BindingView) -> None:
        """Raise `Unavailable`, which says who is missing: nothing was written, and the same request may come again."""
        completion = view.policies.completion
        if completion.mode is CompletionMode.PUSH and completion.url_name not in self._inboxes:
            raise Unavailable(
                f"nobody would hear how it ends: no inbox named {completion.url_name!r} is configured",
                hint=f"set inboxes.{completion.url_name} for every process, then accept again",
            )
        if boottime_ns() >= self._owned_until_ns:
            await self._check_owners()

    async def _check_owners(self) -> None:
        owners = {owner.family: owner for owner in await self._database.read(ownership.read_all)}
        for family in FAMILIES:
            owner = owners.get(family.value)
            if owner is None or owner.state is not OwnershipState.ACTIVE:
                state = "has no owner" if owner is None else f"is {owner.state.value}"
                raise Unavailable(
                    f"nobody would do it: the family {family.value!r} {state}",
                    hint="give the family an active owner, then accept again",
                )
        self._owned_until_ns = boottime_ns() + LOOK_AGAIN_NS
