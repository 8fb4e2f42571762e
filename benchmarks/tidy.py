"""What autovacuum does on a queue that has run for a while, done before the clock starts."""

from __future__ import annotations

import asyncpg


async def settle_down(url: str) -> None:
    """Vacuum and analyze. Nothing to do on SQLite."""
    if not url.startswith("postgresql"):
        return
    connection = await asyncpg.connect(url)
    await connection.execute("VACUUM ANALYZE")
    await connection.close()
