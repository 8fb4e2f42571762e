"""The deployments of the process tests, for those that kill."""

from tests.process.effects.conftest import deployment, simulator, simulator_process

__all__ = ["deployment", "simulator", "simulator_process"]
