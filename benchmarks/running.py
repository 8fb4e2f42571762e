"""Carrying a measurement out: fresh databases, a fresh simulator, and each step in a process of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from simulators.launch import running as running_simulator

from benchmarks.case import Measurement, Setting, Values
from benchmarks.server import fresh_databases, fresh_mariadb_databases

ROOT = Path(__file__).resolve().parents[1]
STEPS = ("prepare", "run")


class FailedError(Exception):
    """A measurement did not give its values; the text says why."""


def measure(measurement: Measurement, servers: Mapping[str, str]) -> Values:
    """The values of one run; raises `FailedError`. `servers`: the URL of each engine's server."""
    with _setting(measurement, servers) as setting:
        values: Values = {}
        for step in STEPS:
            values = _step(measurement, step, setting)
    missing = [name for name in measurement.gives if not values.get(name)]
    if missing:
        raise FailedError(f"{measurement.name} gave no {', '.join(missing)}")
    return values


@contextlib.contextmanager
def _setting(measurement: Measurement, servers: Mapping[str, str]) -> Iterator[Setting]:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="doonce-bench-"))
        databases: list[str] = []
        if measurement.engine == "postgresql":
            databases = stack.enter_context(fresh_databases(servers["postgresql"], measurement.databases))
        elif measurement.engine == "mariadb":
            databases = stack.enter_context(
                fresh_mariadb_databases(servers["mariadb"], measurement.databases)
            )
        elif measurement.engine == "sqlite":
            databases = [f"sqlite:///{folder}/bench.db"]
        url = control_url = ""
        if measurement.simulator:
            ledger = Path(folder) / "ledger.jsonl"
            simulator = stack.enter_context(running_simulator("simulators.hubspot", ledger))
            url, control_url = simulator.url, simulator.control_url
        yield Setting(
            databases=databases,
            folder=folder,
            simulator_url=url,
            control_url=control_url,
            options=measurement.options,
        )


def _step(measurement: Measurement, step: str, setting: Setting) -> Values:
    command = [sys.executable, "-m", "benchmarks.child", measurement.module, step]
    began_s = time.monotonic()
    try:
        done = subprocess.run(
            command,
            check=False,
            input=msgspec.json.encode(setting),
            capture_output=True,
            cwd=ROOT,
            timeout=measurement.seconds_max,
        )
    except subprocess.TimeoutExpired as error:
        took_s = time.monotonic() - began_s
        raise FailedError(f"{measurement.name}: {step} was not done after {took_s:.0f} s") from error
    if done.returncode:
        raise FailedError(f"{measurement.name}: {step} failed\n{done.stderr.decode()[-3000:]}")
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Values)
