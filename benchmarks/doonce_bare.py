"""The outbound client alone: the same requests, from memory, with a gate that always consents and nothing journaled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import uvloop

from benchmarks.case import Setting, Values
from benchmarks.clocking import cpu_us
from benchmarks.doonce_world import OPERATION, PAYLOAD, make_view
from benchmarks.workload import CREDENTIAL, check_arrivals, make_contacts
from doonce.base.secrets import Secret
from doonce.catalog.auth import secret_headers
from doonce.catalog.render import render
from doonce.http import PRIVATE_ALLOWED, Client, EgressPolicy, Go, Replied, Request, boottime_ns

BUDGET_NS = 15_000_000_000


def run(setting: Setting) -> Values:
    """Send them all, so many at a time."""
    jobs: int = setting.options["jobs"]
    contacts = make_contacts(setting.control_url, jobs)
    view = make_view(setting.simulator_url)
    requests: list[Request] = []
    for contact in contacts:
        frozen = render(view, OPERATION, PAYLOAD, remote_id=contact, command_id=f"cmd_{contact}").request
        requests.append(Request(frozen.method, frozen.origin, frozen.target, frozen.headers, frozen.body))
    secrets = dict(secret_headers(view.auth, Secret(CREDENTIAL)))
    values = uvloop.run(_run(setting, requests, secrets))
    check_arrivals(setting.control_url, jobs)
    return values


async def _consent() -> Go:
    now_ns = boottime_ns()
    return Go(now_ns + BUDGET_NS, now_ns + BUDGET_NS)


async def _run(setting: Setting, requests: list[Request], secrets: dict[str, Secret]) -> Values:
    policy = EgressPolicy(
        origins=frozenset({setting.simulator_url}), http_allowed=True, private_networks=PRIVATE_ALLOWED
    )
    client = Client(policy)
    pending = iter(requests)

    async def lane(pending: Iterator[Request]) -> None:
        for request in pending:
            sent = await client.send(
                request, secret_headers=secrets, gate=_consent, declared_origins=(request.origin,)
            )
            assert isinstance(sent, Replied)
            assert sent.status == 200

    began_us, began_s = cpu_us(), time.perf_counter()
    await asyncio.gather(*(lane(pending) for _ in range(setting.options["concurrency"])))
    took_s = time.perf_counter() - began_s
    used_us = cpu_us() - began_us
    await client.close()
    return {"per_s": len(requests) / took_s, "cpu_us": used_us / len(requests)}
