"""`scripts/galera.sh run python -m benchmarks.galera [ROUNDS]`: workers at one node of a cluster, and at three.

No-op items a second and the rollbacks on the way, for one worker, three at one node, and one at each of three nodes; of
one organization with a backlog, and of many. Each is measured on a fresh database of the cluster that
DOONCE_TEST_GALERA names, in rounds of changing order. Compare ratios of one run. It is no part of `make bench`.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

import uvloop

from benchmarks.doonce_noop import make_filled
from benchmarks.doonce_workers import Told, Worked, worked
from benchmarks.plan import AT_ONCE
from benchmarks.server import fresh_mariadb_databases, on_mariadb

JOBS = 6_000
ROUNDS = 3
ORGANIZATIONS = {"one organization": 1, "forty organizations": 40}
WORKERS = {"one worker": (0,), "three at one node": (0, 0, 0), "three at three nodes": (0, 1, 2)}
"""The node of each worker."""
REFUSED = (
    "SELECT SUM(variable_value) FROM information_schema.global_status"
    " WHERE variable_name IN ('wsrep_local_cert_failures', 'wsrep_local_bf_aborts')"
)


def main() -> None:
    """Measure, tell each value, and the medians at the end."""
    nodes = os.environ["DOONCE_TEST_GALERA"].split()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    cases = [(load, spread) for load in ORGANIZATIONS for spread in WORKERS]
    found: dict[tuple[str, str], list[Worked]] = {case: [] for case in cases}
    for number in range(rounds):
        for case in cases[::-1] if number % 2 else cases:
            done, refused = measured(nodes, *case)
            found[case].append(done)
            print(
                f"round {number + 1}: {', '.join(case)}: {done.per_s:,.0f} items/s,"
                f" {done.rolled_back} rollbacks, {refused} by the cluster",
                flush=True,
            )
    for case, runs in found.items():
        per_s = statistics.median(run.per_s for run in runs)
        rolled_back = statistics.median(run.rolled_back for run in runs)
        print(f"median: {', '.join(case)}: {per_s:,.0f} items/s, {rolled_back:.0f} rollbacks")


def measured(nodes: Sequence[str], load: str, spread: str) -> tuple[Worked, int]:
    """One value: what the workers say, and how many transactions the cluster has refused meanwhile."""
    organizations = ORGANIZATIONS[load]
    with fresh_mariadb_databases(nodes[0], 1) as (url,):
        uvloop.run(make_filled(url, JOBS, organizations))
        name = urlsplit(url).path
        places = [urlunsplit(urlsplit(nodes[node])._replace(path=name)) for node in WORKERS[spread]]
        told = [Told(database=place, concurrency=AT_ONCE, organizations=organizations) for place in places]
        before = refused_by(nodes)
        done = uvloop.run(worked(told, JOBS))
        return done, refused_by(nodes) - before


def refused_by(nodes: Sequence[str]) -> int:
    """How many transactions were rolled back at certification, or for one that came from another node."""
    return sum(int(float(on_mariadb(node, REFUSED)[0][0])) for node in nodes)


if __name__ == "__main__":
    main()
