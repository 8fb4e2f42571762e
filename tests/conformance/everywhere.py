"""The conformance suite on every engine, and on a cluster while its nodes come to harm: `make conformance-all`.

Prints one table, what the failed cases saw, and ends with 1 if any failed. The faults are `scripts/galera.sh`'s.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pymysql
import sqlalchemy as sa

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "galera.sh"
RUN_SECONDS = 600
BEGIN_SECONDS = 5.0  # then the suite has its scratch place, and its workers are at work
LOST = "SHOW STATUS WHERE variable_name IN ('wsrep_local_cert_failures', 'wsrep_local_bf_aborts')"


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the third node, again and again: it is struck, left so, healed, and left in peace."""

    name: str
    strike: str
    heal: str
    struck_seconds: float
    healed_seconds: float
    breaks_network: bool = False
    """Whether it cannot happen to nodes that are on loopback, as those of `scripts/galera.sh` are without root."""


FAULTS = (
    Fault("a node is slow", "freeze", "thaw", 1.0, 2.0),
    Fault("a node restarts", "stop", "start", 1.0, 5.0),
    Fault("a node is killed", "kill", "start", 5.0, 5.0),
    Fault("a node is cut off", "cut", "mend", 5.0, 8.0),  # the cut itself lasts until it is noticed
    Fault("a node's link is narrow", "narrow", "mend", 3.0, 3.0, breaks_network=True),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One run of the suite."""

    engine: str
    what: str
    passed: int
    failed: int
    seconds: float
    struck: int
    lost: int
    seen: tuple[str, ...]


def lost_at(urls: list[str]) -> int:
    """How many transactions these nodes have rolled back because another node's came first."""
    lost = 0
    for url in urls:
        at = sa.make_url(url)
        with (
            pymysql.connect(
                host=at.host, port=at.port or 3306, user=at.username, password=at.password or ""
            ) as node,
            node.cursor() as cursor,
        ):
            cursor.execute(LOST)
            lost += sum(int(value) for _, value in cursor.fetchall())
    return lost


def faults() -> tuple[list[Fault], list[Fault]]:
    """Those that can happen to this cluster, and those that cannot."""
    asked = subprocess.run([str(SCRIPT), "network"], check=True, capture_output=True, text=True, timeout=60)
    on_loopback = asked.stdout.strip() == "loopback"
    left_out = [fault for fault in FAULTS if fault.breaks_network and on_loopback]
    return [fault for fault in FAULTS if fault not in left_out], left_out


def strike(command: str) -> None:
    """Do something to the third node."""
    subprocess.run([str(SCRIPT), command, "3"], check=True, capture_output=True, timeout=180)


def striking(fault: Fault, over: threading.Event) -> int:
    """Strike and heal until it is over, and leave the node healed; how often."""
    times = 0
    over.wait(BEGIN_SECONDS)
    while not over.is_set():
        strike(fault.strike)
        times += 1
        over.wait(fault.struck_seconds)
        strike(fault.heal)
        over.wait(fault.healed_seconds)
    return times


def run(
    engine: str, what: str, urls: list[str], during: Callable[[threading.Event], int] | None = None
) -> Line:
    """One run of the suite, with whatever happens meanwhile."""
    over = threading.Event()
    times = [0]
    stuck: list[str] = []

    def happen() -> None:
        try:
            times[0] = during(over) if during is not None else 0
        except subprocess.SubprocessError as error:
            stuck.append(f"the fault did not happen, or was not healed: {error}")

    thread = threading.Thread(target=happen)
    before = lost_at(urls) if engine == "Galera" else 0
    began = time.monotonic()
    thread.start()
    others = [part for url in urls[1:] for part in ("--also", url)]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "doonce.app.cli", "conformance", urls[0], *others, "--json"],
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
    finally:
        over.set()
        thread.join()
    seconds = time.monotonic() - began
    lost = lost_at(urls) - before if engine == "Galera" else 0
    if not done.stdout:
        return Line(engine, what, 0, 1, seconds, times[0], lost, (done.stderr[-600:].strip(), *stuck))
    report = json.loads(done.stdout)
    seen = tuple(f"{case['id']}: {case['seen']}" for case in report["cases"] if case["status"] == "failed")
    failed = report["failed"] + len(stuck)
    return Line(engine, what, report["passed"], failed, seconds, times[0], lost, (*seen, *stuck))


def lines(possible: list[Fault]) -> list[Line]:
    """Every run, each told of when it is done."""
    nodes = os.environ["DOONCE_TEST_GALERA"].split()
    done: list[Line] = []

    def say(line: Line) -> None:
        done.append(line)
        verdict = "FAILED" if line.failed else "passed"
        print(
            f"{line.engine:11} {line.what:28} {verdict}  {line.seconds:6.1f} s", flush=True, file=sys.stderr
        )

    with tempfile.TemporaryDirectory() as folder:
        say(run("SQLite", "", [f"sqlite:///{folder}/conformance.db"]))
    say(run("PostgreSQL", "", [os.environ["DOONCE_TEST_POSTGRES"]]))
    say(run("MariaDB", "", [os.environ["DOONCE_TEST_MARIADB"]]))
    say(run("Galera", "workers on three nodes", nodes))
    for fault in possible:
        say(run("Galera", fault.name, nodes[:2], lambda over, fault=fault: striking(fault, over)))  # type: ignore[misc]
    return done


def main() -> int:
    """All of it."""
    possible, left_out = faults()
    found = lines(possible)
    print(
        f"\n{'engine':11} {'meanwhile':28} {'times':>5} {'passed':>6} {'failed':>6} {'rolled back':>11} {'seconds':>8}"
    )
    for line in found:
        print(
            f"{line.engine:11} {line.what:28} {line.struck or '':>5} {line.passed:>6} {line.failed:>6} "
            f"{line.lost or '':>11} {line.seconds:>8.1f}"
        )
    for fault in left_out:
        print(f"Galera      {fault.name:28} not run: the nodes are on loopback, without a network to break")
    for line in found:
        for seen in line.seen:
            print(f"\n{line.engine} {line.what}: {seen}")
    return 1 if any(line.failed for line in found) else 0


if __name__ == "__main__":
    sys.exit(main())
