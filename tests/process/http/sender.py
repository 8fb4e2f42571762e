"""A process that sends one large request: `python -m tests.process.http.sender ORIGIN BYTES ABORT_MS`."""

import asyncio
import sys

from doonce.http import PRIVATE_ALLOWED, Client, EgressPolicy, Go, Request, boottime_ns


async def _send(origin: str, body_bytes: int, abort_ms: int) -> None:
    policy = EgressPolicy(origins=frozenset({origin}), http_allowed=True, private_networks=PRIVATE_ALLOWED)
    client = Client(policy)

    async def gate() -> Go:
        now_ns = boottime_ns()
        return Go(send_by_ns=now_ns + 1_000_000_000, abort_at_ns=now_ns + abort_ms * 1_000_000)

    request = Request("PUT", origin, "/", (), bytes(body_bytes))
    sent = await client.send(request, secret_headers={}, gate=gate)
    print(type(sent).__name__, flush=True)


if __name__ == "__main__":
    asyncio.run(_send(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
