"""Work families and the fact that one deployment, in one epoch, may run them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Family(str, Enum):
    """The kinds of work that exist. Each has one owner at a time."""

    EFFECT = "effect"
    RECONCILE = "reconcile"
    COMPLETION = "completion"
    EVENT = "event"
    HYDRATE = "hydrate"
    HANDLER = "handler"
    PUSH = "push"
    CATCH_UP = "catch_up"


class OwnershipState(str, Enum):
    """Whether the owner of a family may claim and act."""

    ACTIVE = "active"
    DRAINING = "draining"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class Ownership:
    """The ownership row of one family. An epoch is burned when it ends and never used again."""

    family: str
    deployment: str
    release_digest: str
    epoch: int
    operation_id: str
    state: OwnershipState

    def admits(self, deployment: str) -> bool:
        """Whether this deployment may claim new work of the family."""
        return self.state is OwnershipState.ACTIVE and self.deployment == deployment

    def lets_finish(self, deployment: str, epoch: int) -> bool:
        """Whether work claimed by this deployment in that epoch may still take its next step."""
        return (
            self.state in (OwnershipState.ACTIVE, OwnershipState.DRAINING)
            and self.deployment == deployment
            and self.epoch == epoch
        )
