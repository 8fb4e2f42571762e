"""External calls that happen once, or say that nobody knows.

    from doonce import Doonce

`Doonce` is the whole service inside an application; `doonce.runtime` is an application's side of a service elsewhere,
and needs nothing of it: what is named here is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from doonce.app.embedded import Doonce, Installation, Outcome
    from doonce.base.errors import DoonceError
    from doonce.runtime.events import Event

_HOMES = {
    "Doonce": "doonce.app.embedded",
    "Installation": "doonce.app.embedded",
    "Outcome": "doonce.app.embedded",
    "DoonceError": "doonce.base.errors",
    "Event": "doonce.runtime.events",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'doonce' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


__all__ = ["Doonce", "DoonceError", "Event", "Installation", "Outcome"]
