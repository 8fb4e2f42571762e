"""What a test tells a worker process, as one line of JSON."""

from __future__ import annotations

import msgspec

from doonce.base.secrets import Secret
from doonce.principals.vault import KeyRing

INBOX = "app"
"""The name under which the binding of these tests knows the application's inbox."""


class Armed(msgspec.Struct, frozen=True):
    """A named point at which the process is to kill, stop or block itself; `flag` is written just before."""

    name: str
    action: str
    hit: int = 1
    flag: str | None = None


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker process works. Leases are short, since tests wait them out."""

    url: str
    key: str
    origin: str
    inbox_origin: str
    inbox_credential: str
    inbox_target: str = "/inbox"
    families: tuple[str, ...] = ("effect", "reconcile", "completion")
    armed: tuple[Armed, ...] = ()
    watch: str | None = None
    concurrency: int = 4
    lease_us: int = 2_000_000
    margin_us: int = 500_000
    expiries_max: int = 50
    poll_seconds: float = 0.05
    sweep_seconds: float = 0.2
    stop_seconds: float = 30.0
    kept_us: int = 604_800_000_000
    """How long ended work stays with what works. It is looked for as often as there are sweeps."""
    dies_of: str | None = None
    """The contact whose call kills the process, as a fault in native code would."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One line for the accepting process: requests to accept, or to reject, each as the wire has it."""

    accept: list[msgspec.Raw] = []
    reject: list[msgspec.Raw] = []


def key_ring(key: str) -> KeyRing:
    """The ring that every process of one test shares."""
    return KeyRing("test", {"test": Secret(bytes.fromhex(key))})
