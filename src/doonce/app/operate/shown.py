"""What the operators' side prints, or answers as JSON."""

from __future__ import annotations

import msgspec


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is printed, or answered as JSON."""
