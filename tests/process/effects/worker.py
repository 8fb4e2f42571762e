"""A worker process: `python -m tests.process.effects.worker`, told what to do on its standard input.

The first line is its settings. Then it works until `stop` (it drains, and says `stopped`), `drain`, or the end of the
input, at which it dies at once. It says `ready` when its workers run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import msgspec
import structlog
import uvloop
from msgspec.structs import replace
from tests.process.effects.points import TestPoints
from tests.process.effects.settings import INBOX, WorkerSettings, key_ring

from doonce.app.engine import Engine, EngineSettings
from doonce.app.retention import RetentionSettings
from doonce.base.secrets import Secret
from doonce.db.database import Database, open_database
from doonce.db.mysql import MysqlSettings
from doonce.db.postgresql import PostgresqlSettings
from doonce.effects.caller import Call, Caller, CallLog, DispatchSettings
from doonce.effects.completions import CompletionSettings
from doonce.effects.handing import HandlerSettings
from doonce.effects.hydrator import HydrationSettings
from doonce.effects.reconciler import ReconcileSettings
from doonce.effects.telling import Inbox
from doonce.http import PRIVATE_ALLOWED, EgressPolicy, Sent
from doonce.ingress.service import IngressSettings
from doonce.ownership.model import Family
from doonce.principals.vault import Vault
from doonce.work.model import RetryPolicy
from doonce.work.service import WorkerSettings as FamilySettings

SOON = RetryPolicy(base_us=50_000, cap_us=500_000)


def engine_of(settings: WorkerSettings, database: Database) -> Engine:
    """An engine as these tests want it: short leases, short pauses, the simulator and the inbox in reach."""
    family = FamilySettings(
        concurrency=settings.concurrency,
        lease_us=settings.lease_us,
        poll_seconds=settings.poll_seconds,
        expiries_max=settings.expiries_max,
        suspects_seconds=0.2,
    )
    return Engine(
        database,
        Vault(key_ring(settings.key)),
        _egress(settings.origin),
        _egress(settings.inbox_origin),
        {INBOX: Inbox(settings.inbox_origin, settings.inbox_target, Secret(settings.inbox_credential))},
        EngineSettings(
            effects=family,
            reconciles=family,
            completions=family,
            events=family,
            hydrations=family,
            pushes=family,
            catch_ups=family,
            ingress=IngressSettings(tally_seconds=0.05),
            dispatch=DispatchSettings(margin_us=settings.margin_us, evidence_pause_seconds=0.05),
            reconcile=ReconcileSettings(again_us=100_000, again_cap_us=500_000),
            completion=CompletionSettings(policy=SOON),
            hydration=HydrationSettings(policy=replace(SOON, tries_max=1_000, failures_max=1_000)),
            handler=HandlerSettings(policy=replace(SOON, failures_max=10_000)),
            retention=RetentionSettings(
                ended_kept_us=settings.kept_us,
                dead_kept_us=settings.kept_us,
                every_seconds=settings.sweep_seconds,
            ),
            sweep_seconds=settings.sweep_seconds,
            stop_seconds=settings.stop_seconds,
        ),
    )


def open_for_test(url: str) -> Database:
    """A database whose server soon ends the transaction of a process that was stopped inside it."""
    return open_database(
        url,
        postgresql=PostgresqlSettings(idle_in_transaction_timeout_ms=1_500),
        mysql=MysqlSettings(idle_in_transaction_timeout_seconds=2),
    )


def _egress(origin: str) -> EgressPolicy:
    return EgressPolicy(origins=frozenset({origin}), http_allowed=True, private_networks=PRIVATE_ALLOWED)


def _die_of(contact: str) -> None:
    make = Caller.make

    async def deadly(self: Caller, call: Call, secrets: dict[str, Secret], note: CallLog) -> Sent:
        if f"/{contact}?" in call.request.target:
            os.kill(os.getpid(), signal.SIGKILL)
        return await make(self, call, secrets, note)

    Caller.make = deadly  # type: ignore[method-assign]  # what a fault in native code would do


def _say(word: str) -> None:
    os.write(1, f"{word}\n".encode())


async def _work(settings: WorkerSettings) -> None:
    database = open_for_test(settings.url)
    TestPoints(settings.armed, settings.watch).install(database)
    engine = engine_of(settings, database)
    engine.start([Family(name) for name in settings.families])
    _say("ready")
    while line := (await asyncio.to_thread(sys.stdin.buffer.readline)).strip():
        if line == b"drain":
            engine.begin_drain()
            _say("draining")
        elif line == b"stop":
            await engine.stop()
            _say("stopped")
            return
    os._exit(1)


def main() -> None:
    """Work as the first line of the input says."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=WorkerSettings)
    if settings.dies_of is not None:
        _die_of(settings.dies_of)
    uvloop.run(_work(settings))


if __name__ == "__main__":
    main()
