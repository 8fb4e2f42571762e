"""`python -m benchmarks.ingress_server durable|bare`: the service's HTTP side, receiving. Setting on stdin.

`bare` is the same server, route and verifier, and says yes without having stored anything. It prints its port, and ends
with its input.
"""

from __future__ import annotations

import asyncio
import socket
import sys

import msgspec
import uvloop

from benchmarks.case import Setting
from benchmarks.doonce_schema import DEPLOYMENT
from benchmarks.doonce_world import key_ring
from doonce.app.engine import Engine, EngineSettings
from doonce.app.serve import http_server
from doonce.app.settings import Role, Settings
from doonce.app.web.readiness import Readiness
from doonce.db.database import open_database
from doonce.http import EgressPolicy
from doonce.ingress.model import Delivery, Verified
from doonce.ingress.receipts import Fate, Receipt
from doonce.ingress.service import Ingress, OpenRoute
from doonce.principals.vault import Vault


class Forgetful(Ingress):
    """Believes, answers, and keeps nothing."""

    async def receive(self, route: OpenRoute, delivery: Delivery, verified: Verified) -> Receipt:
        """Say that it is kept."""
        return Receipt("ing_none", Fate.RECEIVED, 0)


def engine_of(setting: Setting) -> Engine:
    """An engine that calls nobody."""
    settings = EngineSettings(deployment=DEPLOYMENT)
    vault = Vault(key_ring(setting.folder))
    return Engine(open_database(setting.database), vault, EgressPolicy(), EgressPolicy(), {}, settings)


async def _serve(kind: str, setting: Setting) -> None:
    engine = engine_of(setting)
    if kind == "bare":
        engine.ingress.__class__ = Forgetful
    readiness = Readiness()
    readiness.clear("start")
    listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
    server = http_server(Settings(roles=(Role.INGRESS,)), engine, readiness)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    engine.start([])
    print(listener.getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.buffer.readline)
    server.should_exit = True
    await serving
    await engine.stop()


if __name__ == "__main__":
    first_line = sys.stdin.buffer.readline()
    uvloop.run(_serve(sys.argv[1], msgspec.json.decode(first_line, type=Setting)))
