"""Live and ready differ: a live process is not killed, a ready one gets traffic, and an unready one says why."""

from __future__ import annotations

import msgspec

from doonce.base.errors import Unavailable


class ReadyDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `/readyz`."""

    ready: bool
    causes: dict[str, str]


class Readiness:
    """Why this process is not ready, by who says so; no cause is readiness."""

    def __init__(self) -> None:
        self._causes: dict[str, str] = {"start": "starting"}

    def blocked(self, by: str, cause: str) -> None:
        """Not ready any more, because of this."""
        self._causes[by] = cause

    def clear(self, by: str) -> None:
        """This cause is gone."""
        self._causes.pop(by, None)

    def begin_drain(self) -> None:
        """Take no new work from now on."""
        self.blocked("drain", "draining")

    def check_admits(self) -> None:
        """Raise `Unavailable` once this process drains: another one takes the work."""
        if not self.admits():
            raise Unavailable("this process is stopping", hint="send the same request again")

    def admits(self) -> bool:
        """Whether this process takes new work."""
        return "drain" not in self._causes

    @property
    def ready(self) -> bool:
        """Whether there is no cause left."""
        return not self._causes

    def causes(self) -> dict[str, str]:
        """Why not, by who says so."""
        return dict(self._causes)

    def document(self) -> ReadyDocument:
        """What is shown."""
        return ReadyDocument(ready=self.ready, causes=self.causes())
