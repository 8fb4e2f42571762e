"""Each test has an application with a fresh database of its own, on each engine, through each library."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.runtime.applications import (
    Application,
    application,
    applications,
    database,
    prepare,
)
from tests.store.runtime.authority import Authority
from tests.store.runtime.relays import SCOPE

from doonce.wire import HandoffScope

ENGINES = ("sqlite", "postgresql", "mariadb")
EVERY_LIBRARY = [(engine, library) for engine in ENGINES for library in applications(engine)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`app` is every library on every engine; `plain` is SQLAlchemy on every engine."""
    if "app" in metafunc.fixturenames:
        metafunc.parametrize(
            "app", EVERY_LIBRARY, indirect=True, ids=["-".join(pair) for pair in EVERY_LIBRARY]
        )
    if "plain" in metafunc.fixturenames:
        pairs = [(engine, "sqlalchemy") for engine in ENGINES]
        metafunc.parametrize("plain", pairs, indirect=True, ids=list(ENGINES))


@pytest.fixture
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Application]:
    engine, library = request.param
    with database(engine, tmp_path) as address, application(engine, library, address) as made:
        prepare(made)
        yield made


@pytest.fixture
def plain(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Application]:
    engine, library = request.param
    with database(engine, tmp_path) as address, application(engine, library, address) as made:
        prepare(made)
        yield made


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def scope() -> HandoffScope:
    return SCOPE
