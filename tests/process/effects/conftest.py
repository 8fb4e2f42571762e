"""One simulator process for the tests of this folder, made fresh before each; a deployment on each engine."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql
from simulators.launch import Simulator, running
from tests.process.effects.deployment import Deployment, deployed

from doonce.base.ids import new_token


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


@pytest.fixture(scope="module")
def module_postgres(postgres_url: str, made_databases: list[str]) -> str:
    """The URL of a new, empty PostgreSQL database for the tests of one module."""
    database = f"test_{new_token()}"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        text = "CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"
        server.execute(sql.SQL(text).format(sql.Identifier(database)))
    made_databases.append(database)
    return urlunsplit(urlsplit(postgres_url)._replace(path=f"/{database}"))
