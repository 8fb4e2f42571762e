"""The database goes away while calls are under way, and comes back: nothing is done twice, nothing is lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest
from tests.process.effects.deployment import Deployment, Wanted
from tests.process.effects.proxy import Proxy, proxied
from tests.process.effects.waiting import until
from tests.process.effects.witness import check

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]


@pytest.fixture(
    params=[
        pytest.param("fresh_postgres", marks=pytest.mark.postgresql, id="postgresql"),
        pytest.param("fresh_mariadb", marks=pytest.mark.mariadb, id="mariadb"),
    ]
)
def database_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def proxy(database_url: str) -> Iterator[Proxy]:
    parts = urlsplit(database_url)
    with proxied(parts.hostname or "127.0.0.1", parts.port or 5432) as made:
        yield made


def behind(proxy: Proxy, url: str) -> str:
    """The same database, through the proxy."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    return urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{proxy.port}"))


def begin(deployment: Deployment, count: int) -> None:
    contacts = [f"1{number:03}" for number in range(count)]
    deployment.contacts(*contacts)
    deployment.simulator.faults(
        {"fault": "slow_drip", "method": "PATCH", "path": "/crm", "times": count, "delay_ms": 1}
    )
    deployment.accept(
        *(Wanted(contact, "contact.patch", contact, {"title": contact}) for contact in contacts)
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("outages", [1, 3])
def test_an_outage_in_the_middle_of_calls(deployment: Deployment, proxy: Proxy, outages: int) -> None:
    begin(deployment, 48)
    worker = deployment.worker(url=behind(proxy, deployment.url), lease_us=4_000_000, concurrency=8)
    for number in range(outages):
        wanted = 4 + 8 * number
        until(lambda wanted=wanted: deployment.simulator.stats()["requests"] >= wanted, "calls")
        heard = worker.complaints()
        proxy.cut()
        until(lambda heard=heard: worker.complaints() > heard, "a call whose outcome cannot be stored")
        proxy.restore()
    deployment.wait_ended(decide=itertools.repeat(True), seconds=180)
    assert not worker.is_dead(), "an outage is no reason to die"
    worker.stop()
    check(deployment)


@pytest.mark.timeout(300)
def test_an_outage_longer_than_the_leases(deployment: Deployment, proxy: Proxy) -> None:
    begin(deployment, 16)
    worker = deployment.worker(url=behind(proxy, deployment.url), concurrency=16)
    until(lambda: deployment.simulator.stats()["requests"] >= 8, "calls in flight")
    proxy.cut()
    other = deployment.worker()
    deployment.wait_ended(decide=itertools.repeat(True), seconds=180)
    proxy.restore()
    worker.stop()
    other.stop()
    check(deployment)
