"""What the suite tells a worker process, and what that answers: one line of JSON each way."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from doonce.conformance.skew import Skew
from doonce.wire import AcceptRequest, RejectRequest


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a process works: the scratch place, which it checks before anything else, and the scope of one case.

    `kill_at` is the named point at which it kills itself, `skew` what it believes about the time.
    """

    url: str
    home: str
    name: str
    guard: str
    key: str
    origin: str
    org: str
    installation: str
    capability: str
    kill_at: str = ""
    skew: Skew | None = None


class ClaimJob(msgspec.Struct, frozen=True, kw_only=True, tag="claim"):
    """Claim until all these items are taken, or, with `settle`, have succeeded."""

    place: Place
    owner: str
    items: tuple[str, ...]
    rows_max: int
    lease_us: int
    settle: bool = False


class AdmitJob(msgspec.Struct, frozen=True, kw_only=True, tag="admit"):
    """Accept, or reject, each of these keys, one after another."""

    place: Place
    accept: tuple[AcceptRequest, ...] = ()
    reject: tuple[RejectRequest, ...] = ()


class EngineJob(msgspec.Struct, frozen=True, kw_only=True, tag="engine"):
    """Run effects as the service does, until told to drain."""

    place: Place
    concurrency: int = 4
    lease_us: int = 2_000_000


Job: TypeAlias = ClaimJob | AdmitJob | EngineJob


class Took(msgspec.Struct, frozen=True, kw_only=True):
    """One claim: when it was made, and until when the item was surely still held. Microseconds of the database."""

    item: str
    token: str
    claimed_at: int
    held_until: int
    expiries: int


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """One admission: what the key is from now on, and whose receipt says so."""

    key: str
    state: str
    receipt_id: str
    command_id: str | None


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a job did. `metrics` is the process's whole exposition."""

    took: tuple[Took, ...] = ()
    answered: tuple[Answered, ...] = ()
    metrics: str = ""
