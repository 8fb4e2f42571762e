"""Whole objects through a real service: it is killed in between, and the application's own database has each once."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from simulators.launch import Simulator
from tests.e2e.conftest import PACK, ROOT, TOKEN, deployment
from tests.e2e.hydrating import ROUTE, SECRET, binding, deliver, event, reads
from tests.e2e.test_serve import service
from tests.process.effects.waiting import until
from tests.process.kill.people import CREDENTIAL, application

from doonce.base.secrets import Secret
from doonce.runtime.asgi import EVENTS_PATH

pytestmark = [pytest.mark.e2e, pytest.mark.process]
CONTACTS = ("701", "702")


async def published(url: str, folder: Path, simulator: Simulator) -> None:
    """A database whose binding has whole contacts read, and pushes to the inbox `crm`."""
    async with deployment(url, folder) as app:
        given = binding(simulator.url, push="crm")
        await app.installation("acme", "main", pack=PACK, binding=given, secret=TOKEN)
        await app.engine.ingress.add_secret(ROUTE, Secret(SECRET), alone=True)


def settings(url: str, folder: Path, origin: str) -> dict[str, str]:
    """The service's environment: it may call the simulator, and what a crash leaves is taken up soon."""
    given = {
        "DATABASE": url,
        "KEY_FILE": str(folder / "keys.toml"),
        "INBOXES__CRM__URL": f"{origin}{EVENTS_PATH}",
        "INBOXES__CRM__CREDENTIAL": CREDENTIAL,
        "EGRESS__PLAIN_HTTP": "true",
        "EGRESS__UNDECLARED_ORIGINS": "true",
        "EGRESS__PRIVATE_NETWORKS": "all",
        "DISPATCH__MARGIN_US": "1000000",
    }
    for family in ("EVENTS", "HYDRATIONS", "PUSHES"):
        given |= {f"{family}__POLL_SECONDS": "0.1", f"{family}__LEASE_US": "2000000"}
    for policy in ("HYDRATION", "HANDLER"):
        given |= {f"{policy}__POLICY__BASE_US": "50000", f"{policy}__POLICY__CAP_US": "200000"}
    return {f"DOONCE_{name}": value for name, value in given.items()}


def doonce(folder: Path, environment: dict[str, str], *tokens: str) -> Any:
    """What the command line prints, as JSON."""
    ran = subprocess.run(
        [sys.executable, "-m", "doonce.app.cli", *tokens, "--json"],
        cwd=folder,
        env={"PATH": "/usr/bin", "PYTHONPATH": str(ROOT / "src")} | environment,
        capture_output=True,
        timeout=60,
        check=True,
    )
    return json.loads(ran.stdout)


def test_each_event_is_pushed_once_with_the_whole_object_though_the_service_is_killed(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    simulator.seed(
        *({"id": name, "properties": {"lifecyclestage": "customer", "city": name}} for name in CONTACTS)
    )
    asyncio.run(published(database_url, tmp_path, simulator))
    folder = tmp_path / "application"
    folder.mkdir()
    with application(folder) as app:
        environment = settings(database_url, tmp_path, app.origin)
        with service(tmp_path, "serve", "--port", "0", **environment) as up:
            up.until_ready(ready=True)
            simulator.faults({"fault": "stall", "method": "GET", "path": "/crm/v3/objects/contacts/701"})
            deliver(up.url, *(event(contact) for contact in CONTACTS * 2))
            until(lambda: reads(simulator.ledger(), "701"), "the read that is never answered")
            until(
                lambda: len([one for one in app.effects() if one.contact == "702"]) == 2, "the other object"
            )
            up.process.send_signal(signal.SIGKILL)
            up.process.wait()
        assert not [one for one in app.effects() if one.contact == "701"]
        with service(tmp_path, "serve", "--port", "0", **environment) as up:
            up.until_ready(ready=True)
            effects = until(
                lambda: found if len(found := app.effects()) == 4 else None, "every event", seconds=60
            )
            (timeline,) = doonce(tmp_path, environment, "show", effects[-1].event)["timelines"]
            status = doonce(tmp_path, environment, "status")
            up.process.send_signal(signal.SIGTERM)
            assert up.stopped() == 0
    assert len({one.event for one in effects}) == 4
    for contact in CONTACTS:
        mine = [one for one in effects if one.contact == contact]
        assert [one.number for one in mine] == sorted(one.number for one in mine)
        assert [(one.stage, one.town) for one in mine] == [("customer", contact)] * 2
        assert all(one.read_at for one in mine)
    assert {one["method"] for one in simulator.ledger()} == {"GET"}
    assert len(reads(simulator.ledger(), "701")) == 3, "the one that was killed in flight, and one an event"
    assert timeline["state"] == "handed over"
    assert timeline["facts"]["object"].startswith("was read whole, at ")
    assert "read ACCEPTED" in [moment["event"] for moment in timeline["moments"]]
    assert "hydrate" in [family["family"] for family in status["families"]]
