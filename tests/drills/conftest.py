"""The provider of the drills: one simulator, as if new for each."""

from tests.process.effects.conftest import simulator, simulator_process

__all__ = ["simulator", "simulator_process"]
