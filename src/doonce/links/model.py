"""RemoteLink: its states, what moves it, and what makes two links contradict each other. Pure.

| from              | event   | to        |
|-------------------|---------|-----------|
| active            | SUSPEND | suspended |
| suspended         | RESUME  | active    |
| active, suspended | RETIRE  | retired   |

Each transition raises the version. A retired link never comes back and never changes its remote id: binding a local
record to another remote one retires the link and adopts a new one, so that work which pinned the old id fails closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from doonce.base.digests import digest_document
from doonce.base.limits import LIMITS, check_text


class LinkState(str, Enum):
    """Whether work may use a link."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    RETIRED = "retired"


class LinkEvent(str, Enum):
    """What may happen to a link after its adoption."""

    SUSPEND = "suspend"
    RESUME = "resume"
    RETIRE = "retire"


TRANSITIONS: dict[tuple[LinkState, LinkEvent], LinkState] = {
    (LinkState.ACTIVE, LinkEvent.SUSPEND): LinkState.SUSPENDED,
    (LinkState.SUSPENDED, LinkEvent.RESUME): LinkState.ACTIVE,
    (LinkState.ACTIVE, LinkEvent.RETIRE): LinkState.RETIRED,
    (LinkState.SUSPENDED, LinkEvent.RETIRE): LinkState.RETIRED,
}

RESULTS: dict[LinkEvent, LinkState] = {event: state for (_, event), state in TRANSITIONS.items()}
"""Each event has one result, whatever it started from."""

LinkKey: TypeAlias = tuple[str, str, str, str]
"""(org, installation, kind, local_ref): at most one link that is not retired."""


RemoteKey: TypeAlias = tuple[str, str, str, str, str]
"""(org, installation, principal_id, kind, remote_id): at most one link that is not retired."""


@dataclass(frozen=True, slots=True)
class RemoteLink:
    """A link as its row has it. `authority` is the digest of what it stands for (`authority_of`)."""

    id: str
    org: str
    installation: str
    principal_id: str
    generation: int
    kind: str
    local_ref: str
    remote_id: str
    state: LinkState
    version: int
    authority: str

    @property
    def key(self) -> LinkKey:
        """What the application knows it by."""
        return self.org, self.installation, self.kind, self.local_ref

    @property
    def remote_key(self) -> RemoteKey:
        """What the provider's object is known by."""
        return self.org, self.installation, self.principal_id, self.kind, self.remote_id

    @property
    def current(self) -> bool:
        """Whether work may use it. Who pinned an id compares the version too, which covers the authority."""
        return self.state is LinkState.ACTIVE


@dataclass(frozen=True, slots=True)
class NewLink:
    """A link to adopt; the id is made by the caller, before the transaction, and is its nonce (PROTOCOL T1, T7)."""

    id: str
    org: str
    installation: str
    principal_id: str
    generation: int
    kind: str
    local_ref: str
    remote_id: str

    @property
    def key(self) -> LinkKey:
        """What the application knows it by."""
        return self.org, self.installation, self.kind, self.local_ref

    def check(self) -> None:
        """Raise `Invalid` for a text that is empty, over its bound or not storable byte for byte."""
        check_text("org", self.org, LIMITS.org_bytes_max)
        check_text("installation", self.installation, LIMITS.installation_bytes_max)
        check_text("kind", self.kind, LIMITS.name_bytes_max)
        check_text("local_ref", self.local_ref, LIMITS.local_ref_bytes_max)
        check_text("remote_id", self.remote_id, LIMITS.remote_id_bytes_max)


@dataclass(frozen=True, slots=True)
class LinkMove:
    """A transition to carry out within one scope; `version`, if given, is the one that the decision saw."""

    id: str
    org: str
    installation: str
    event: LinkEvent
    version: int | None = None


def authority_of(principal_id: str, generation: int, kind: str, remote_id: str) -> str:
    """The digest of what a link stands for: who acts, in which generation, on which remote object."""
    return digest_document(
        "link-authority",
        {"principal": principal_id, "generation": generation, "kind": kind, "remote_id": remote_id},
    )


class Adoption(str, Enum):
    """What an adoption means for the link that already has its local record."""

    SAME = "same"
    RENEWED = "renewed"
    CONTRADICTED = "contradicted"
    OUTDATED = "outdated"


def judge_adoption(existing: RemoteLink, wanted: NewLink) -> Adoption:
    """Compare by identity: the same remote object under the same principal is one link.

    A newer generation renews its authority; an older one is outdated and changes nothing. A suspended link stays
    suspended: only RESUME says that its cause is gone.
    """
    if (existing.principal_id, existing.remote_id) != (wanted.principal_id, wanted.remote_id):
        return Adoption.CONTRADICTED
    if wanted.generation == existing.generation:
        return Adoption.SAME
    return Adoption.RENEWED if wanted.generation > existing.generation else Adoption.OUTDATED


class Moved(str, Enum):
    """What became of a transition."""

    DONE = "done"
    REPEATED = "repeated"
    ILLEGAL = "illegal"
    CHANGED = "changed"


def judge_move(link: RemoteLink, move: LinkMove) -> Moved:
    """Whether a transition may be written, was written before (a rerun after an unknown commit), or is refused."""
    if link.state is RESULTS[move.event] and move.version in (None, link.version - 1, link.version):
        return Moved.REPEATED
    if move.version not in (None, link.version):
        return Moved.CHANGED
    return Moved.DONE if (link.state, move.event) in TRANSITIONS else Moved.ILLEGAL
