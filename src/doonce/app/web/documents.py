"""The documents of the HTTP API that are its own: what operators ask, and what they are answered."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from doonce.app.operate.model import Decision, Timeline
from doonce.app.operate.shown import Shown
from doonce.base.limits import LIMITS, check_text

COUNT_MAX: Final = 2**53 - 1
"""The largest integer that every reader of JSON has exactly."""


class ResolveBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An operator's decision on an attempt that nobody knows the outcome of."""

    decision: Decision
    reason: str

    def __post_init__(self) -> None:
        check_text("reason", self.reason, LIMITS.reason_bytes_max)


class ReleaseBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a lane may go on past ended work."""

    reason: str

    def __post_init__(self) -> None:
        check_text("reason", self.reason, LIMITS.reason_bytes_max)


class CloseGapBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An operator's word that the losses of a gap of one route were looked into."""

    capability: str
    webhook: str
    sequence: Annotated[int, msgspec.Meta(ge=1, le=COUNT_MAX)]
    losses: Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)]
    reason: str

    def __post_init__(self) -> None:
        check_text("capability", self.capability, LIMITS.capability_bytes_max)
        check_text("webhook", self.webhook, LIMITS.name_bytes_max)
        check_text("reason", self.reason, LIMITS.reason_bytes_max)


class ReconcileGapBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be read for one route: an open gap by its number, or a time (until now by default)."""

    capability: str
    webhook: str
    reason: str
    sequence: Annotated[int, msgspec.Meta(ge=1, le=COUNT_MAX)] | None = None
    since_us: Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)] | None = None
    until_us: Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)] | None = None

    def __post_init__(self) -> None:
        check_text("capability", self.capability, LIMITS.capability_bytes_max)
        check_text("webhook", self.webhook, LIMITS.name_bytes_max)
        check_text("reason", self.reason, LIMITS.reason_bytes_max)


class PublishBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pack and a binding as the texts of their files; `secret` connects the binding's principal."""

    pack: str
    schemas: dict[str, str]
    binding: str
    secret: str | None = None


class Published(Shown, frozen=True, kw_only=True):
    """What emitters pin from now on."""

    org: str
    installation: str
    capability: str
    binding_digest: str
    binding_generation: int
    principal_id: str


class Timelines(Shown, frozen=True, kw_only=True):
    """The stories that an id names."""

    timelines: tuple[Timeline, ...]


class Live(Shown, frozen=True, kw_only=True):
    """The body of `/livez`."""

    live: bool = True
