"""The call that a peer's job makes: one PATCH with aiohttp, the way its users write it, with nothing journaled."""

from __future__ import annotations

from typing import Any

import aiohttp

from benchmarks.workload import CREDENTIAL, TITLE, target_of


class Caller:
    """One session for a process, made on first use, on the event loop that uses it."""

    def __init__(self, url: str, connections: int) -> None:
        self._url = url
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def patch(self, contact: str) -> Any:
        """Set the contact's title; raises for any answer but success, as a job that is retried should."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                self._url,
                connector=aiohttp.TCPConnector(limit=self._connections),
                headers={"authorization": f"Bearer {CREDENTIAL}", "accept": "application/json"},
            )
        document = {"properties": {"jobtitle": TITLE}}
        async with self._session.patch(target_of(contact), json=document) as answer:
            answer.raise_for_status()
            return await answer.json()

    async def close(self) -> None:
        """Close its connections."""
        if self._session is not None:
            await self._session.close()
