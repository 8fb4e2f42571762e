"""A worker process of the suite, told what to do by messages.

The first message is its job. It checks the scratch place, says that it is ready, and begins at the next message; at
its end it says what it did. When the channel closes before that, the suite is gone, and it dies at once.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Final

import msgspec

from doonce.app import logs
from doonce.app.settings import LogFormat
from doonce.base.ids import new_token
from doonce.conformance import skew
from doonce.conformance.engines import engine_of, open_scratch, scratch_of
from doonce.conformance.jobs import AdmitJob, Answered, ClaimJob, EngineJob, Job, JobResult, Took
from doonce.conformance.scratch import DEPLOYMENT
from doonce.db.database import Database
from doonce.db.transaction import Txn, clock, fetch
from doonce.ownership.model import Family
from doonce.trust import InstallationConfig, embedded
from doonce.wire import Admission, Refused
from doonce.work import settle, store
from doonce.work.model import TERMINAL, Claimed, Event, Item, Scope, Settlement, State

PAUSE_SECONDS: Final = 0.005
READY: Final = b"ready"
GO: Final = b"go"
DRAIN: Final = b"drain"
DRAINING: Final = b"draining"


def read_items(ids: Sequence[str]) -> Txn[list[Item]]:
    """The items as they are, for looking only."""
    rows = yield from fetch(store.PLAIN_ITEMS, ids=[(item_id,) for item_id in ids])
    return [store.read_item(row) for row in rows]


async def claim(job: ClaimJob) -> JobResult:
    """Claim, and settle where that is asked for, until there is nothing left to take."""
    database = open_scratch(job.place.url, job.place.kill_at)
    took: list[Took] = []
    try:
        while not await _done(database, job):
            claims = await database.transact(store.claim, _request(job))
            held_until = await database.transact(clock) if claims else 0
            took += [_took(claimed, job.lease_us, held_until) for claimed in claims]
            if claims and job.settle:
                ends = [Settlement(claimed, Event.SUCCEED) for claimed in claims]
                await database.transact(settle.settle, ends, DEPLOYMENT)
            elif not claims:
                await asyncio.sleep(PAUSE_SECONDS)
    finally:
        await database.close()
    return JobResult(took=tuple(took))


async def _done(database: Database, job: ClaimJob) -> bool:
    over = TERMINAL if job.settle else TERMINAL | {State.PROCESSING}
    return all(item.state in over for item in await database.read(read_items, job.items))


def _request(job: ClaimJob) -> store.ClaimRequest:
    return store.ClaimRequest(
        family=Family.EFFECT.value,
        scopes=(Scope(job.place.org, job.place.installation),),
        deployment=DEPLOYMENT,
        owner=job.owner,
        token=new_token(),
        rows_max=job.rows_max,
        lease_us=job.lease_us,
        expiries_max=5,
    )


def _took(claimed: Claimed, lease_us: int, held_until: int) -> Took:
    return Took(
        item=claimed.item.id,
        token=claimed.token,
        claimed_at=claimed.lease_until - lease_us,
        held_until=held_until,
        expiries=claimed.item.expiries,
    )


async def admit(job: AdmitJob) -> JobResult:
    """Ask for one admission after the other, each in a transaction of its own."""
    place = job.place
    engine = engine_of(place, open_scratch(place.url, place.kill_at))
    identity = embedded(InstallationConfig(place.org, place.installation, frozenset({place.capability})))
    try:
        answers: list[Admission | Refused] = []
        for accept in job.accept:
            answers += await engine.acceptor.accept(identity, [accept])
        for reject in job.reject:
            answers.append(await engine.acceptor.reject(identity, reject))
    finally:
        await engine.stop()
    return JobResult(answered=tuple(_answered(answer) for answer in answers))


def _answered(answer: Admission | Refused) -> Answered:
    if isinstance(answer, Refused):
        return Answered(key=answer.key, state=answer.error_class, receipt_id="", command_id=None)
    return Answered(
        key=answer.key, state=answer.state.value, receipt_id=answer.receipt_id, command_id=answer.command_id
    )


async def run_engine(job: EngineJob, suite: Connection) -> JobResult:
    """Work effects until the next message, then drain."""
    place = job.place
    database = open_scratch(place.url, place.kill_at)
    engine = engine_of(place, database, concurrency=job.concurrency, lease_us=job.lease_us)
    engine.start([Family.EFFECT, Family.RECONCILE, Family.COMPLETION])
    await next_message(suite)
    engine.begin_drain()
    await engine.last_claims()
    suite.send_bytes(DRAINING)
    await engine.stop()
    return JobResult(metrics=engine.metrics.text().decode())


async def next_message(suite: Connection) -> bytes:
    """The next message; without one the suite is gone, and this process with it."""
    try:
        return await asyncio.to_thread(suite.recv_bytes)
    except EOFError:
        os._exit(1)


async def work(suite: Connection) -> None:
    """Prove that the place is a scratch place, wait for the signal, do the job, and say what was done."""
    job = msgspec.json.decode(await next_message(suite), type=Job)
    if job.place.skew is not None:
        skew.put_on(job.place.skew)
    await scratch_of(job.place).check()
    suite.send_bytes(READY)
    await next_message(suite)
    result: JobResult
    match job:
        case ClaimJob():
            result = await claim(job)
        case AdmitJob():
            result = await admit(job)
        case EngineJob():
            result = await run_engine(job, suite)
    suite.send_bytes(msgspec.json.encode(result))


def serve(suite: Connection, log: str) -> None:
    """Do one job; everything that this process says goes to the log."""
    sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(sink, sys.stderr.fileno())
    os.dup2(sink, 1)
    logs.configure(LogFormat.JSON)
    asyncio.run(work(suite))
