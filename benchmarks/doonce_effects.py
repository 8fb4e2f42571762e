"""doonce: whole effects, accepted beforehand: claim, attempt, mark, call, outcome, end, completion item.

Two clocks stop: when the last outcome is durable (its commit also creates the completion item), and when the last
completion item has been worked off too. Afterwards the tables and the simulator's ledger must agree that each effect
happened once.
"""

from __future__ import annotations

import asyncio
import time

import sqlalchemy as sa
import uvloop

from benchmarks.case import Setting, Values
from benchmarks.clocking import cpu_us, rss_mb
from benchmarks.doonce_schema import make_tables
from benchmarks.doonce_world import identity, make_engine, make_view, make_world, request_for
from benchmarks.tidy import settle_down
from benchmarks.workload import check_arrivals, make_contacts
from doonce.app.engine import Engine
from doonce.app.metrics import Metrics
from doonce.commands.tables import command_end
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch
from doonce.wire.handoffs import Refused
from doonce.work.tables import work_item

ACCEPTS_AT_ONCE = 500
RUN_SECONDS_MAX = 240

ENDS = Statement(
    "bench.ends", lambda _: sa.select(sa.func.count()).where(command_end.c.ended_as == "accepted")
)
ITEMS = Statement("bench.items", lambda _: sa.select(sa.func.count()).where(work_item.c.state == "succeeded"))


class StopWatch(Metrics):
    """The engine's own metrics, which also note when the last effect and the last completion had ended."""

    def __init__(self, expected: int) -> None:
        super().__init__()
        self.expected = expected
        self.outcomes = 0
        self.completions = 0
        self.outcomes_s = 0.0
        self.completions_s = 0.0
        self.done = asyncio.Event()

    def ended(self, operation: str, outcome: str) -> None:
        """An outcome is durable."""
        super().ended(operation, outcome)
        self.outcomes += 1
        self.outcomes_s = time.perf_counter()

    def flushed(self, operation: str, rows: int) -> None:
        """A commit of settlements: with nothing to hand back, those of completions."""
        super().flushed(operation, rows)
        if operation == "settle":
            self.completions += rows
            self.completions_s = time.perf_counter()
            if self.completions >= self.expected:
                self.done.set()


def prepare(setting: Setting) -> None:
    """Make the world and accept every command."""
    uvloop.run(_prepare(setting))


async def _prepare(setting: Setting) -> None:
    contacts = make_contacts(setting.control_url, setting.options["jobs"])
    await make_tables(setting.database)
    engine = make_engine(setting, Metrics(), 1)
    view = make_view(setting.simulator_url)
    await make_world(engine, view, contacts)
    for start in range(0, len(contacts), ACCEPTS_AT_ONCE):
        requests = [request_for(view, contact) for contact in contacts[start : start + ACCEPTS_AT_ONCE]]
        answers = await engine.acceptor.accept(identity(), requests)
        refused = [answer for answer in answers if isinstance(answer, Refused)]
        assert not refused, refused[0]
    await engine.stop()
    await settle_down(setting.database)


def run(setting: Setting) -> Values:
    """Work them off."""
    values = uvloop.run(_run(setting))
    check_arrivals(setting.control_url, setting.options["jobs"])
    return values


async def _run(setting: Setting) -> Values:
    jobs: int = setting.options["jobs"]
    watch = StopWatch(jobs)
    engine = make_engine(setting, watch, setting.options["concurrency"])
    began_us, began_s = cpu_us(), time.perf_counter()
    engine.start()
    async with asyncio.timeout(RUN_SECONDS_MAX):
        await watch.done.wait()
    used_us, rss = cpu_us() - began_us, rss_mb()
    await _check(engine, watch, jobs)
    await engine.stop()
    return {
        "per_s": jobs / (watch.outcomes_s - began_s),
        "completed_per_s": jobs / (max(watch.outcomes_s, watch.completions_s) - began_s),
        "cpu_us": used_us / jobs,
        "rss_mb": rss,
    }


async def _check(engine: Engine, watch: StopWatch, jobs: int) -> None:
    ends, items = await engine.database.read(_facts)
    if not (ends == watch.outcomes == watch.completions == jobs and items == 2 * jobs):
        raise AssertionError(
            f"of {jobs} effects {ends} ended accepted, {items} work items succeeded,"
            f" {watch.outcomes} outcomes and {watch.completions} completions were reported"
        )


def _facts() -> Txn[tuple[int, int]]:
    ends = yield from fetch(ENDS)
    items = yield from fetch(ITEMS)
    return ends[0][0], items[0][0]
