"""`python -m benchmarks [NAME…]`: measure everything, or only these measurements, and write `var/bench.json`.

Without a server named by DOONCE_TEST_POSTGRES it starts one of its own, in a temporary folder, and stops it at the end.
QUICK=1 makes it a short run that shows whether it works, not how fast. Exit status 1 when a measurement failed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from benchmarks import results
from benchmarks.case import Measurement
from benchmarks.plan import FULL, QUICK, backlog, measurements
from benchmarks.results import Runs
from benchmarks.running import ROOT, FailedError, measure
from benchmarks.server import NotDurableError, durability

RESULT = ROOT / "var" / "bench.json"


def main() -> int:
    """Run the plan, round by round."""
    server_url = os.environ.get("DOONCE_TEST_POSTGRES", "")
    if not server_url:
        script = str(ROOT / "scripts" / "postgres.sh")
        os.execv(script, [script, "run", sys.executable, "-m", "benchmarks", *sys.argv[1:]])
    size = QUICK if os.environ.get("QUICK", "0") not in ("", "0") else FULL
    try:
        server = durability(server_url)
    except NotDurableError as error:
        print(error, file=sys.stderr)
        return 1
    began_s = time.monotonic()
    plan = measurements(size)
    rounds = [(number, turned(plan, number)) for number in range(size.rounds)]
    rounds.append((0, [backlog(size)]))
    runs: Runs = {}
    failed = False
    for number, steps in rounds:
        for measurement in steps:
            if sys.argv[1:] and measurement.name not in sys.argv[1:]:
                continue
            failed |= not one(measurement, number, server_url, runs)
    values = results.figures(runs)
    facts = results.conditions(size, server, runs, began_s)
    results.write(RESULT, values, facts)
    results.show(values, facts)
    print(f"written to {Path(RESULT).relative_to(ROOT)}")
    return int(failed)


def turned(plan: list[Measurement], number: int) -> list[Measurement]:
    """Every second round backwards: a machine that gets slower or faster all the time favours nobody."""
    return plan[::-1] if number % 2 else plan


def one(measurement: Measurement, number: int, server_url: str, runs: Runs) -> bool:
    """Measure once, say so, keep the values; whether it worked."""
    began_s = time.monotonic()
    print(f"round {number + 1}: {measurement.name} … ", end="", flush=True)
    try:
        values = measure(measurement, server_url)
    except FailedError as error:
        print(f"failed\n{error}", flush=True)
        return False
    runs.setdefault(measurement.name, []).append(values)
    shown = ", ".join(f"{name} {value:,.1f}" for name, value in values.items())
    print(f"{shown} ({time.monotonic() - began_s:.0f} s)", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
