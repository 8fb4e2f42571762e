"""Several processes claim from one database: each item has one winner."""

import asyncio
import os
import sys
from collections import Counter

from tests.store.work.kernel import HERE, SCOPE, Kernel

CLAIMER = """
import asyncio, sys
from doonce.base.ids import new_token
from doonce.db.database import open_database
from doonce.work import settle, store
from doonce.work.model import Event, Scope, Settled, Settlement

async def main(url, owner):
    database = open_database(url)
    print("ready", flush=True)
    sys.stdin.readline()
    while True:
        request = store.ClaimRequest(
            "effect", (Scope("acme", "main"),), "here", owner, new_token(), 5, 60_000_000, 3
        )
        claims = await database.transact(store.claim, request)
        if not claims:
            break
        settled = await database.transact(settle.settle, [Settlement(c, Event.SUCCEED) for c in claims], "here")
        assert set(settled) == {Settled.DONE}
        print(" ".join(c.item.id for c in claims), flush=True)
    await database.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_one_winner_among_several_processes(kernel: Kernel) -> None:
    assert (HERE, SCOPE.org) == ("here", "acme")
    items = [kernel.new(target_lane=f"t{number}") for number in range(90)]
    await kernel.insert(*items)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    children = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", CLAIMER, kernel.url, f"prc_{number}",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment,
        )
        for number in range(3)
    ]  # fmt: skip
    async with asyncio.timeout(60):
        for child in children:
            assert child.stdout is not None
            assert await child.stdout.readline() == b"ready\n"
        outputs = await asyncio.gather(*[child.communicate(b"go\n") for child in children])
    assert [child.returncode for child in children] == [0, 0, 0]
    taken = Counter(name for output, _ in outputs for name in output.decode().split())
    assert taken == Counter({item.id: 1 for item in items})
