"""One simulator process for the tests of this folder, made fresh before each; a deployment on each engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from simulators.launch import Simulator, running
from tests.process.effects.deployment import Deployment, deployed


@pytest.fixture(scope="session")
def simulator_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    ledger = tmp_path_factory.mktemp("simulator") / "ledger.jsonl"
    with running("simulators.hubspot", ledger) as simulator:
        yield simulator


@pytest.fixture
def simulator(simulator_process: Simulator) -> Simulator:
    simulator_process.reset()
    return simulator_process


@pytest.fixture
def deployment(database_url: str, simulator: Simulator, tmp_path: Path) -> Iterator[Deployment]:
    with deployed(database_url, simulator, tmp_path) as made:
        yield made
