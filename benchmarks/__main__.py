"""`python -m benchmarks [NAME…]`: measure everything, or only these measurements, and write `var/bench.json`.

Without servers named by DOONCE_TEST_POSTGRES and, where it is measured, DOONCE_TEST_MARIADB it starts its own, in a
temporary folder, and stops them at the end.
QUICK=1 makes it a short run that shows whether it works, not how fast. Exit status 1 when a measurement failed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from benchmarks import results
from benchmarks.case import Measurement
from benchmarks.plan import FULL, QUICK, measurements, once
from benchmarks.results import Runs
from benchmarks.running import ROOT, FailedError, measure
from benchmarks.server import NotDurableError, durability, mariadb_durability

RESULT = ROOT / "var" / "bench.json"
SERVERS = {"postgresql": "DOONCE_TEST_POSTGRES", "mariadb": "DOONCE_TEST_MARIADB"}
SCRIPTS = {"postgresql": "postgres.sh", "mariadb": "mariadb.sh"}
PROOFS = {"postgresql": durability, "mariadb": mariadb_durability}


def main() -> int:
    """Run the plan, round by round."""
    size = QUICK if os.environ.get("QUICK", "0") not in ("", "0") else FULL
    rounds = [(number, turned(measurements(size), number)) for number in range(size.rounds)]
    rounds.append((0, once(size)))
    named = sys.argv[1:]
    chosen = [
        (number, [step for step in steps if not named or step.name in named]) for number, steps in rounds
    ]
    unknown = set(named) - {step.name for _, steps in chosen for step in steps}
    if unknown:
        print(f"no measurement is named {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    start_missing({"postgresql"} | {step.engine for _, steps in chosen for step in steps})
    servers = {engine: os.environ[name] for engine, name in SERVERS.items() if os.environ.get(name)}
    try:
        facts = {engine: PROOFS[engine](url) for engine, url in servers.items()}
    except NotDurableError as error:
        print(error, file=sys.stderr)
        return 1
    began_s = time.monotonic()
    runs: Runs = {}
    failed = False
    for number, steps in chosen:
        for measurement in steps:
            failed |= not one(measurement, number, servers, runs)
    values = results.figures(runs)
    found = results.conditions(size, facts, runs, began_s)
    results.write(RESULT, values, found)
    results.show(values, found)
    print(f"written to {Path(RESULT).relative_to(ROOT)}")
    return int(failed)


def start_missing(engines: set[str]) -> None:
    """Begin anew under the script that starts the first of these engines' servers that nobody has named."""
    for engine in sorted(engines & SERVERS.keys()):
        if not os.environ.get(SERVERS[engine]):
            script = str(ROOT / "scripts" / SCRIPTS[engine])
            os.execv(script, [script, "run", sys.executable, "-m", "benchmarks", *sys.argv[1:]])


def turned(plan: list[Measurement], number: int) -> list[Measurement]:
    """Every second round backwards: a machine that gets slower or faster all the time favours nobody."""
    return plan[::-1] if number % 2 else plan


def one(measurement: Measurement, number: int, servers: dict[str, str], runs: Runs) -> bool:
    """Measure once, say so, keep the values; whether it worked."""
    began_s = time.monotonic()
    print(f"round {number + 1}: {measurement.name} … ", end="", flush=True)
    try:
        values = measure(measurement, servers)
    except FailedError as error:
        print(f"failed\n{error}", flush=True)
        return False
    runs.setdefault(measurement.name, []).append(values)
    shown = ", ".join(f"{name} {value:,.1f}" for name, value in values.items())
    print(f"{shown} ({time.monotonic() - began_s:.0f} s)", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
