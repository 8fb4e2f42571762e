"""`python -m examples.demo.race accept|reject URL CREDENTIAL PLAN`: one of two processes that race for the same keys.

Prints a line when it is ready, starts at a line on standard input, and ends with what it was told, as JSON.
"""

import asyncio
import random
import sys
from pathlib import Path
from typing import Final

import msgspec

from doonce.base.secrets import Secret
from doonce.runtime.http_port import HttpHandoffs
from doonce.wire import AcceptRequest, AcceptResults, Admission, Refused, RejectRequest, encode

AT_ONCE: Final = 8
APART_SECONDS: Final = 0.01
"""Each call starts up to so much later than its turn, so that neither side wins by being the shorter call."""


class Raced(msgspec.Struct):
    """One key of the plan."""

    key: str
    title: str
    request: AcceptRequest


class Plan(msgspec.Struct):
    """What both race for."""

    keys: list[Raced]


async def race(role: str, url: str, credential: Path, plan: Path) -> AcceptResults:
    """Ask about every key, a few at once, in the plan's order."""
    todo = msgspec.json.decode(plan.read_bytes(), type=Plan).keys
    turn = asyncio.Semaphore(AT_ONCE)
    async with HttpHandoffs(url, Secret(credential.read_text().strip())) as port:

        async def one(request: AcceptRequest) -> Admission | Refused:
            async with turn:
                await asyncio.sleep(random.uniform(0, APART_SECONDS))  # noqa: S311 (spreads calls)
                if role == "accept":
                    return (await port.accept([request]))[0]
                rejection = RejectRequest(
                    key=request.key,
                    scope=request.scope,
                    payload_digest=request.payload_digest,
                    outbox_id=request.outbox_id,
                )
                return await port.reject(rejection)

        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        results = await asyncio.gather(*(one(raced.request) for raced in todo))
    return AcceptResults(results=tuple(results))


if __name__ == "__main__":
    told = asyncio.run(race(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])))
    sys.stdout.buffer.write(encode(told))
