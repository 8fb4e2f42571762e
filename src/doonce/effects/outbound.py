"""The outbound clients of one process, made here because only effects may hold one (PROTOCOL D5).

One client calls providers, within what the published packs declare and the deployment allows. The other pushes
completions to the applications' own inboxes, whose addresses come from the deployment's settings alone.
"""

from __future__ import annotations

import asyncio

from doonce.http import PRIVATE_ALLOWED, Client, ClientSettings, EgressPolicy


class Outbound:
    """Both clients, opened and closed as one."""

    def __init__(self, providers: EgressPolicy, inboxes: EgressPolicy, settings: ClientSettings) -> None:
        self.providers = Client(providers, settings)
        self.inboxes = Client(inboxes, ClientSettings())

    async def close(self) -> None:
        """Close every connection; a call in flight ends as not answered."""
        await asyncio.gather(self.providers.close(), self.inboxes.close())


__all__ = ["PRIVATE_ALLOWED", "ClientSettings", "EgressPolicy", "Outbound"]
