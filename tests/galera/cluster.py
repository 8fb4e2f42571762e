"""The cluster that tests do harm to: `scripts/galera.sh`, which started it, and nothing else."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "galera.sh"


async def do(command: str, node: int) -> None:
    """Kill, stop, start, freeze, thaw, cut or mend a node; returns when that is done."""
    done = await asyncio.to_thread(
        subprocess.run,
        [str(SCRIPT), command, str(node)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
