"""PROTOCOL C1 from outside: the clock of a real server jumps while the service works, or its successor has another one.

The server runs under libfaketime, which reads from a file how far it is ahead. After a jump nothing is claimed for the
hold; then work goes on, and nothing was sent twice.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from simulators.launch import Simulator
from tests.drills.drill import drilling
from tests.drills.mariadb import mariadb
from tests.drills.postgresql import postgres
from tests.drills.stands import JumpingClock, PromotedStandby
from tests.e2e.test_serve import service
from tests.process.effects.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

HOLD_S = 4.0
FOR_GOOD_S = 86_400.0
SERVERS = {"postgresql": postgres, "mariadb": mariadb}


def settings(hold_s: float) -> str:
    return f"""
[retry]
clock_tolerance_us = 1000000
clock_hold_us = {int(hold_s * 1_000_000)}
"""


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that the servers' own users can reach."""
    with tempfile.TemporaryDirectory(prefix="doonce-drill-") as made:
        folder = Path(made)
        folder.chmod(0o711)
        yield folder


@pytest.mark.parametrize("engine, ahead", [("postgresql", "+1h"), ("postgresql", "-1h"), ("mariadb", "+1h")])
def test_c1_a_jump_of_the_servers_clock_stops_claims_for_the_hold_and_no_longer(
    simulator: Simulator, tmp_path: Path, engine: str, ahead: str
) -> None:
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder())
        stand = JumpingClock(stack.enter_context(SERVERS[engine](folder / "server", "+0")))
        drill = stack.enter_context(drilling(stand, simulator, tmp_path, settings=settings(HOLD_S)))
        before = drill.accept(2)
        running = stack.enter_context(drill.serving())
        drill.wait_sent(before)
        drill.deployment.simulator.faults(
            {"fault": "slow_drip", "method": "PATCH", "path": "/crm", "times": 1, "delay_ms": 2}
        )
        in_flight = drill.accept(1)
        until(lambda: drill.sent(in_flight) == [1], "a call in flight")
        jumped_s = time.monotonic()
        stand.jump(ahead)
        after = drill.accept(3)
        drill.nothing_is_sent()
        drill.wait_sent(after)
        assert time.monotonic() - jumped_s >= HOLD_S
        drill.wait_ended(in_flight)
        until(lambda: running.get("/readyz")[1]["ready"], "a ready service")
        everything = [*before, *in_flight, *after]
        assert drill.sent(everything) == [1] * len(everything)


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
def test_c1_a_clock_that_was_set_back_while_nobody_ran_is_refused_at_the_start(
    simulator: Simulator, tmp_path: Path, engine: str
) -> None:
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder())
        stand = JumpingClock(stack.enter_context(SERVERS[engine](folder / "server", "+2h")))
        drill = stack.enter_context(drilling(stand, simulator, tmp_path, settings=settings(HOLD_S)))
        before = drill.accept(2)
        with drill.serving():
            drill.wait_sent(before)
        stand.jump("+0")
        after = drill.accept(2)
        with service(tmp_path, "serve", "--port", "0") as refused:
            assert refused.stopped() != 0
            told = refused.log.read_text()
        assert "the database's clock says" in told
        assert "doonce declare clock" in told
        assert "Traceback" not in told
        assert "the database's clock says" in drill.ask("status")["dispatch"]
        assert drill.sent(after) == [0, 0]
        assert drill.ask("declare", "clock", "--reason", "it was ahead")["declared"] == "clock"
        assert drill.ask("status")["dispatch"] == "open"
        with drill.serving():
            drill.wait_sent(after)
        assert drill.sent([*before, *after]) == [1] * 4


def test_c1_a_successor_with_another_clock_is_a_jump_as_well(simulator: Simulator, tmp_path: Path) -> None:
    """For whoever knew the first clock: a process that comes later compares with nothing, and works at once."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder())
        stand = PromotedStandby(folder, stack, ahead="+10m")
        drill = stack.enter_context(drilling(stand, simulator, tmp_path, settings=settings(FOR_GOOD_S)))
        before = drill.accept(2)
        with drill.serving() as running:
            drill.wait_sent(before)
            drill.part()
            drill.fall()
            drill.closed(running)
            after = drill.accept(3)
            assert drill.ask("declare", "lossless", "--reason", "a drill")["declared"] == "lossless"
            running.until_ready(ready=True)
            drill.nothing_is_sent()
        with drill.serving():
            drill.wait_sent(after)
        everything = [*before, *after]
        assert drill.sent(everything) == [1] * len(everything)
