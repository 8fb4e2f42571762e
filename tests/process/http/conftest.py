"""One simulator process for the tests of this folder, made fresh before each."""

from collections.abc import AsyncIterator, Iterator

import pytest
from simulators.launch import Simulator, running

from doonce.http import PRIVATE_ALLOWED, Client, EgressPolicy


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
async def client(simulator: Simulator) -> AsyncIterator[Client]:
    policy = EgressPolicy(
        origins=frozenset({simulator.url}), http_allowed=True, private_networks=PRIVATE_ALLOWED
    )
    client = Client(policy)
    yield client
    await client.close()
