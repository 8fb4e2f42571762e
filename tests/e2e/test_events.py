"""Events across processes: the service and the application both die in between, and each event has its effect once."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import ROOT, deployment
from tests.e2e.test_serve import Service, service
from tests.process.effects.waiting import until
from tests.store.ingress.routes import BINDING, CAPABILITY, INSTALLATION, ORG, PACK, key, signed

from doonce.base.secrets import Secret

pytestmark = [pytest.mark.e2e, pytest.mark.process]

CREDENTIAL = "the application's"
DEATHS = 3
WAIT_SECONDS = 60.0


class Application:
    """The application's process, started again whenever it has died."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            self.port = int(free.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    def keep_running(self) -> None:
        """Start it unless it runs."""
        if self._process is None or self._process.poll() is not None:
            where = (str(self.folder), str(self.port), CREDENTIAL, str(DEATHS))
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.event_application", *where],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            )

    def effects(self) -> list[tuple[str, str, int]]:
        """Each effect in the order in which it was committed: its event, its object, its number there."""
        file = self.folder / "application.db"
        if not file.exists():
            return []
        with closing(sqlite3.connect(file, timeout=30)) as connection:
            try:
                return connection.execute("SELECT event, object, number FROM effect ORDER BY seen").fetchall()
            except sqlite3.OperationalError:  # it has not made its table yet
                return []

    def kill(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def application(folder: Path) -> Iterator[Application]:
    """An application that does not outlive its test."""
    folder.mkdir()
    made = Application(folder)
    try:
        yield made
    finally:
        made.kill()


async def published(url: str, folder: Path) -> None:
    """A database whose one binding pushes events to the inbox `crm`."""
    (folder / "shop").mkdir()
    (folder / "shop" / "pack.toml").write_bytes(PACK)
    routes = {"batch": {"handle": ["*"], "push": "crm"}, "once": {"accepts_loss": "a test"}}
    async with deployment(url, folder) as app:
        await app.installation(
            ORG, INSTALLATION, pack=folder / "shop", binding=BINDING | {"webhooks": routes}
        )
        await app.engine.ingress.add_secret(key("batch"), Secret("s"), alone=True)


def settings(url: str, folder: Path, port: int) -> dict[str, str]:
    """The service's environment: it tries again soon, and what a crash leaves is taken up soon."""
    soon = {f"{family}__{name}": value for family in ("EVENTS", "PUSHES") for name, value in (
        ("POLL_SECONDS", "0.1"), ("LEASE_US", "2000000"),
    )}  # fmt: skip
    given = {
        "DATABASE": url,
        "KEY_FILE": str(folder / "keys.toml"),
        "INBOXES__CRM__URL": f"http://127.0.0.1:{port}/doonce/events",
        "INBOXES__CRM__CREDENTIAL": CREDENTIAL,
        "HANDLER__POLICY__BASE_US": "50000",
        "HANDLER__POLICY__CAP_US": "200000",
    }
    return {f"DOONCE_{name}": value for name, value in (given | soon).items()}


def deliver(up: Service, name: str, *events: dict[str, Any]) -> None:
    body = json.dumps({"events": [{"type": "made"} | event for event in events]}).encode()
    asked = urllib.request.Request(
        f"{up.url}/in/{ORG}/{INSTALLATION}/{CAPABILITY}/batch",
        body,
        {"Shop-Signature": signed(body), "Shop-Delivery": name},
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        assert answer.status == 202


def made(number: int) -> list[dict[str, Any]]:
    """The same step of three objects."""
    return [{"id": f"{which}/{number}", "object": which, "number": number} for which in (1, 2, 3)]


def until_effects(app: Application, count: int) -> list[tuple[str, str, int]]:
    """Wait for so many effects, and start the application again whenever it has died."""

    def enough() -> list[tuple[str, str, int]] | None:
        app.keep_running()
        found = app.effects()
        return found if len(found) >= count else None

    return until(enough, f"{count} effects", seconds=WAIT_SECONDS)


async def test_each_event_has_its_effect_once_though_both_sides_are_killed(
    database_url: str, tmp_path: Path
) -> None:
    await published(database_url, tmp_path)
    with application(tmp_path / "application") as app:
        environment = settings(database_url, tmp_path, app.port)
        with service(tmp_path, "serve", "--port", "0", **environment) as up:
            up.until_ready(ready=True)
            for number in range(4):
                deliver(up, f"a{number}", *made(number))
            until_effects(app, 3)
            up.process.send_signal(signal.SIGKILL)
            up.process.wait()
        with service(tmp_path, "serve", "--port", "0", **environment) as up:
            up.until_ready(ready=True)
            for number in range(3, 6):  # a redelivery under another name among them
                deliver(up, f"b{number}", *made(number))
            until_effects(app, 18)
            up.process.send_signal(signal.SIGTERM)
            assert up.stopped() == 0
    assert len(list((tmp_path / "application").glob("death-*"))) == DEATHS
    effects = app.effects()
    assert len({event for event, _, _ in effects}) == len(effects) == 18
    for which in ("1", "2", "3"):
        assert [number for _, about, number in effects if about == which] == [0, 1, 2, 3, 4, 5]
