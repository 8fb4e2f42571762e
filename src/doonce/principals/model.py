"""Principal, binding generation, token version: what moves each, and what a stale caller is told. Pure.

| from         | event      | to           | generation                     | token version             |
|--------------|------------|--------------|--------------------------------|---------------------------|
| -            | CONNECT    | connected    | 1                              | 1                         |
| connected    | RECONNECT  | connected    | the next one; the old is ended | 1 of the new generation   |
| disconnected | RECONNECT  | connected    | the next one                   | 1 of the new generation   |
| connected    | ROTATE     | connected    | the same                       | the next one              |
| connected    | DISCONNECT | disconnected | ended                          | none                      |

A generation is never current again once it has ended, so work pinned to it fails closed for ever (authority section 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from doonce.base.errors import Stale
from doonce.base.limits import LIMITS, check_text


class PrincipalState(str, Enum):
    """Whether a principal has a current generation."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"


class GenerationState(str, Enum):
    """Whether work pinned to a generation may go on."""

    CURRENT = "current"
    ENDED = "ended"


PrincipalName: TypeAlias = tuple[str, str, str]
"""(org, installation, name): unique, and never given to another principal."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A principal as its row has it; `generation` is the newest one, current only while connected."""

    id: str
    org: str
    installation: str
    pack: str
    name: str
    generation: int
    state: PrincipalState

    @property
    def current(self) -> int | None:
        """The generation that work may be pinned to, or None."""
        return self.generation if self.state is PrincipalState.CONNECTED else None


@dataclass(frozen=True, slots=True)
class Token:
    """One sealed version of a principal's secret, and the place that its seal is bound to."""

    principal_id: str
    generation: int
    version: int
    sealed: bytes
    key_id: str


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom the provider knows the principal as; a change of either needs a new generation. Both may be empty."""

    remote_subject: str = ""
    remote_tenant: str = ""

    def check(self) -> None:
        """Raise `Invalid` for a text that cannot be stored."""
        for name, value in (("remote_subject", self.remote_subject), ("remote_tenant", self.remote_tenant)):
            check_text(name, value, LIMITS.remote_id_bytes_max, empty_allowed=True)


@dataclass(frozen=True, slots=True)
class Connect:
    """A new principal with its first generation and token. Ids are made before the transaction (PROTOCOL T1)."""

    principal_id: str
    generation_id: str
    org: str
    installation: str
    pack: str
    name: str
    identity: Identity
    token: Token

    def check(self) -> None:
        """Raise `Invalid` for a text that is empty, over its bound or not storable byte for byte."""
        check_text("org", self.org, LIMITS.org_bytes_max)
        check_text("installation", self.installation, LIMITS.installation_bytes_max)
        check_text("pack", self.pack, LIMITS.name_bytes_max)
        check_text("name", self.name, LIMITS.name_bytes_max)
        self.identity.check()


@dataclass(frozen=True, slots=True)
class Reconnect:
    """A new generation for a principal whose newest one is `after`; `generation_id` tells a rerun from a rival."""

    principal_id: str
    org: str
    installation: str
    after: int
    generation_id: str
    identity: Identity
    token: Token
    reason: str


@dataclass(frozen=True, slots=True)
class Rotation:
    """The next token version within the current generation: a new secret, or the same under another key."""

    org: str
    installation: str
    token: Token


@dataclass(frozen=True, slots=True)
class Disconnection:
    """The end of a principal's current generation, without another one."""

    principal_id: str
    org: str
    installation: str
    generation: int
    reason: str


def generation_stale(wanted: int, current: int | None) -> Stale:
    """What a caller hears that is pinned to a generation which is not current."""
    if current is None:
        return Stale(f"generation {wanted} has ended; the principal is disconnected", axis="generation")
    return Stale(f"generation {wanted} is not current; {current} is", axis="generation")
