"""What a measurement is: a module with an optional `prepare` and a `run`, each carried out in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

Values = dict[str, float]
Options = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the plan.

    `module` is in this package. `options` reach `prepare(setting)` and `run(setting)` beside the addresses. `gives`:
    the names of the values, without which a run counts as failed. `databases`: how many fresh ones it gets.
    `engine`: "postgresql", "mariadb", "sqlite", or "" for a measurement without a database. `seconds_max`: how long
    each of its steps may take.
    """

    name: str
    module: str
    gives: tuple[str, ...]
    options: Options = field(default_factory=dict)
    engine: str = "postgresql"
    databases: int = 1
    simulator: bool = False
    seconds_max: int = 300


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What a measurement's process is told: where things are, and the measurement's own options."""

    databases: list[str]
    folder: str
    simulator_url: str = ""
    control_url: str = ""
    options: Options = {}

    @property
    def database(self) -> str:
        """The only database."""
        (url,) = self.databases
        return url
