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
from doonce.wire import (
    AcceptRequest,
    AcceptResults,
    Admission,
    AdmissionState,
    Refused,
    RejectRequest,
    encode,
)

AT_ONCE: Final = 8
HANDICAP_SECONDS: Final = 0.004
"""Whoever won a key starts its next calls up to so much later, and whoever lost so much sooner: the race stays open
although one call is shorter than the other."""


class Raced(msgspec.Struct):
    """One key of the plan."""

    key: str
    title: str
    request: AcceptRequest


class Plan(msgspec.Struct):
    """What both race for."""

    keys: list[Raced]


async def race(role: str, url: str, credential: Secret, plan: Plan) -> AcceptResults:
    """Ask about every key, a few at once, in the plan's order."""
    turn = asyncio.Semaphore(AT_ONCE)
    mine = AdmissionState.COMMAND_ACCEPTED if role == "accept" else AdmissionState.HANDOFF_REJECTED
    handicap = 0.0
    async with HttpHandoffs(url, credential) as port:

        async def one(request: AcceptRequest) -> Admission | Refused:
            nonlocal handicap
            async with turn:
                await asyncio.sleep(random.uniform(0, handicap))  # noqa: S311 (spreads calls)
                answer = await ask(request)
                won = isinstance(answer, Admission) and answer.state is mine
                handicap = max(0.0, handicap + (HANDICAP_SECONDS if won else -HANDICAP_SECONDS))
                return answer

        async def ask(request: AcceptRequest) -> Admission | Refused:
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
        results = await asyncio.gather(*(one(raced.request) for raced in plan.keys))
    return AcceptResults(results=tuple(results))


if __name__ == "__main__":
    _, role, url, credential_file, plan_file = sys.argv
    credential = Secret(Path(credential_file).read_text().strip())
    plan = msgspec.json.decode(Path(plan_file).read_bytes(), type=Plan)
    told = asyncio.run(race(role, url, credential, plan))
    sys.stdout.buffer.write(encode(told))
