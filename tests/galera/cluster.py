"""The cluster that tests do harm to: `scripts/galera.sh`, which started it, and nothing else."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "galera.sh"


async def do(command: str, node: int, *, ahead: str = "") -> None:
    """Kill, stop, start, freeze, thaw, cut, narrow or mend a node; returns when that is done.

    A cut is done when the node tells its clients that it has lost its group.
    A node that is started may have a clock that is ahead of the host's, such as `+10m`.
    """
    done = await asyncio.to_thread(
        subprocess.run,
        [str(SCRIPT), command, str(node)],
        env=os.environ | {"DOONCE_GALERA_AHEAD": ahead},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
