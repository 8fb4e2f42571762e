"""The result of a run: medians, figures, the conditions they hold under, as JSON and as a table."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.case import Values
from benchmarks.plan import FIGURES, Size

Runs = dict[str, list[Values]]
PACKAGES = ("aiohttp", "asyncpg", "dbos", "pgqueuer", "procrastinate", "psycopg", "uvloop")


def medians(runs: Runs) -> dict[str, Values]:
    """The median of each value over the rounds."""
    return {
        name: {value: statistics.median(run[value] for run in each) for value in each[0]}
        for name, each in runs.items()
    }


def figures(runs: Runs) -> dict[str, float]:
    """Every figure whose measurements have run."""
    found = medians(runs)
    values: dict[str, float] = {}
    for figure in FIGURES:
        try:
            values[figure.name] = round(figure.value(found), 3)
        except KeyError:
            continue
    return values


def conditions(size: Size, servers: dict[str, dict[str, str]], runs: Runs, began_s: float) -> dict[str, Any]:
    """What the figures hold under, and how far the rounds lay apart."""
    spread = {
        f"{name}.{value}": [round(run[value], 3) for run in each]
        for name, each in runs.items()
        for value in each[0]
    }
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "took_seconds": round(time.monotonic() - began_s),
        "cores": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "machine": platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        **servers,
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "size": msgspec.to_builtins(size),
        "rounds": spread,
    }


def write(path: Path, values: dict[str, float], facts: dict[str, Any]) -> None:
    """Flat names to numbers, and one object with the conditions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode({**values, "conditions": facts}), indent=2)
    path.write_bytes(text + b"\n")


def show(values: dict[str, float], facts: dict[str, Any]) -> None:
    """The table."""
    table = Table(
        title=f"medians of {facts['size']['rounds']}, one PostgreSQL {facts['postgresql']['server_version']}"
    )
    for column in ("figure", "is", "value", "target", "reached"):
        table.add_column(column, justify="right" if column in ("value", "target") else "left")
    for figure in FIGURES:
        if figure.name not in values:
            table.add_row(figure.name, figure.meaning, "not measured", figure.target(), "")
            continue
        value = values[figure.name]
        reached = {True: "yes", False: "[bold red]no[/]", None: ""}[figure.reached(value)]
        table.add_row(figure.name, figure.meaning, f"{value:,.2f}", figure.target(), reached)
    console = Console()
    console.print(table)
    console.print(
        f"load average {facts['load_average'][0]} on {facts['cores']} cores; took {facts['took_seconds']} s"
    )
