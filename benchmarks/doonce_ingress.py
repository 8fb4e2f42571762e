"""doonce: signed deliveries made durable before they are answered, against the same server that keeps nothing.

Both servers run in processes of their own, on one database; the sender takes turns between them, so that a machine that
gets slower favours nobody. Afterwards the tables must hold one receipt and one work item for each delivery.
"""

from __future__ import annotations

import contextlib
import operator
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import sqlalchemy as sa
import uvloop

from benchmarks.case import Setting, Values
from benchmarks.clocking import percentile
from benchmarks.deliveries import PACK, ROUTE, SECRET, Sender, requests
from benchmarks.doonce_schema import make_tables
from benchmarks.ingress_server import engine_of
from benchmarks.tidy import settle_down
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import OriginPolicy, compile_view
from doonce.catalog.pack import read_pack
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch
from doonce.ingress.tables import ingress_receipt
from doonce.work.tables import work_item

WARM_UP = 500
TURNS = 20
HALF_LOAD_SECONDS = 3.0
BINDING = {
    "format": "doonce.binding/1", "org": ROUTE.org, "installation": ROUTE.installation,
    "capability": ROUTE.capability, "pack": "shop@1.0.0", "principal": "nobody", "operations": [],
    "webhooks": {ROUTE.webhook: {}},
}  # fmt: skip
RECEIPTS = Statement("bench.receipts", lambda _: sa.select(sa.func.count()).select_from(ingress_receipt))
ITEMS = Statement("bench.event_items", lambda _: sa.select(sa.func.count()).select_from(work_item))


def prepare(setting: Setting) -> None:
    """Publish a route with a secret."""
    uvloop.run(_prepare(setting))


async def _prepare(setting: Setting) -> None:
    await make_tables(setting.database)
    engine = engine_of(setting)
    view = compile_view(read_pack(PACK, {}), read_binding(BINDING), origins=OriginPolicy())
    await engine.views.publish([view])
    await engine.ingress.add_secret(ROUTE, Secret(SECRET), alone=False)
    await engine.stop()
    await settle_down(setting.database)


def run(setting: Setting) -> Values:
    """Measure, and look whether all of it is there."""
    with _server("durable", setting) as durable, _server("bare", setting) as bare:
        values, distinct = uvloop.run(_run(setting, (durable, bare)))
    uvloop.run(_check(setting, distinct))
    return values


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a process of its own."""

    port: int
    pid: int


@contextlib.contextmanager
def _server(kind: str, setting: Setting) -> Iterator[Server]:
    """A server, until the end."""
    command = [sys.executable, "-m", "benchmarks.ingress_server", kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(msgspec.json.encode(setting) + b"\n")
            process.stdin.flush()
            yield Server(int(process.stdout.readline()), process.pid)
            process.stdin.close()
            process.wait(30)
        finally:
            process.kill()


def cpu_us(pid: int) -> float:
    """CPU time that a process has used, microseconds, to ten thousand of them."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1e6


async def _run(setting: Setting, servers: tuple[Server, Server]) -> tuple[Values, int]:
    jobs, in_flight = setting.options["jobs"], setting.options["concurrency"]
    durable, bare = [await Sender.connected(server.port, in_flight) for server in servers]
    sent = requests(WARM_UP, "warm")
    await durable.send_all(sent)
    await bare.send_all(sent)
    durable_s: list[float] = []
    bare_s: list[float] = []
    before_us = [cpu_us(server.pid) for server in servers]
    for turn in range(TURNS):
        wanted = requests(jobs // TURNS, f"turn{turn}")
        sent += wanted
        bare_s.append(await bare.send_all(wanted))
        durable_s.append(await durable.send_all(wanted))
    used_us = [cpu_us(server.pid) - before for server, before in zip(servers, before_us, strict=True)]
    count = jobs // TURNS * TURNS
    half_per_s = count / sum(durable_s) / 2
    wanted = requests(int(half_per_s * HALF_LOAD_SECONDS), "half")
    sent += wanted
    took = await durable.send_at(wanted, half_per_s)
    durable.close()
    bare.close()
    values = {
        "per_s": count / sum(durable_s),
        "bare_per_s": count / sum(bare_s),
        "tax": statistics.median(map(operator.truediv, durable_s, bare_s)),
        "cpu_us": used_us[0] / count,
        "bare_cpu_us": used_us[1] / count,
        "half_p50_ms": percentile(took, 0.5) * 1e3,
        "half_p99_ms": percentile(took, 0.99) * 1e3,
    }
    return values, len(set(sent))


async def _check(setting: Setting, distinct: int) -> None:
    engine = engine_of(setting)
    receipts, items = await engine.database.read(_facts)
    await engine.stop()
    if not receipts == items == distinct:
        raise AssertionError(f"of {distinct} deliveries there are {receipts} receipts and {items} work items")


def _facts() -> Txn[tuple[int, int]]:
    receipts = yield from fetch(RECEIPTS)
    items = yield from fetch(ITEMS)
    return receipts[0][0], items[0][0]
