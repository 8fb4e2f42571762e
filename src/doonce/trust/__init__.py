"""Who is asking, proven; and the only way to a work scope (PROTOCOL F6)."""

from doonce.trust.identity import (
    Claims,
    Identity,
    InstallationConfig,
    Verifier,
    WorkScope,
    embedded,
)

__all__ = ["Claims", "Identity", "InstallationConfig", "Verifier", "WorkScope", "embedded"]
