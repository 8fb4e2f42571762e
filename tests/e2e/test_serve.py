"""A process of the service from outside: it is ready, it drains, it stops, and it says why it cannot start."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.e2e.conftest import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.process]

START_SECONDS = 60.0
STOP_SECONDS = 30.0


class Service:
    """`doonce …` as a process of its own."""

    def __init__(self, folder: Path, *tokens: str, **environment: str) -> None:
        self.log = folder / "service.log"
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "doonce.app.cli", *tokens],
                cwd=folder,
                env={key: value for key, value in os.environ.items() if not key.startswith("DOONCE_")}
                | {"PYTHONPATH": str(ROOT / "src")}
                | environment,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip()

    def get(self, path: str) -> tuple[int, Any]:
        """One request; status and JSON."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    def until_ready(self, *, ready: bool) -> dict[str, str]:
        """Wait until readiness is so; the causes."""
        deadline = time.monotonic() + STOP_SECONDS
        while True:
            _, document = self.get("/readyz")
            if document["ready"] is ready:
                return dict(document["causes"])
            assert time.monotonic() < deadline, document
            time.sleep(0.05)

    def until_logged(self, text: str) -> None:
        """Wait until the log has this text."""
        deadline = time.monotonic() + STOP_SECONDS
        while text not in self.log.read_text():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def stopped(self) -> int:
        """Wait for the end; its status."""
        return self.process.wait(STOP_SECONDS)


@contextlib.contextmanager
def service(folder: Path, *tokens: str, **environment: str) -> Iterator[Service]:
    """A process that does not outlive its test."""
    started = Service(folder, *tokens, **environment)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()
        if started.process.stdout is not None:
            started.process.stdout.close()


def test_up_needs_nothing_and_stops_on_one_signal(tmp_path: Path) -> None:
    with service(tmp_path, "up", "--port", "0") as up:
        assert up.url.startswith("http://127.0.0.1:"), up.log.read_text()
        assert up.get("/livez") == (200, {"live": True})
        up.until_ready(ready=True)
        assert (tmp_path / "doonce.db").exists()
        assert (tmp_path / "doonce.db.keys").stat().st_mode & 0o077 == 0
        up.process.send_signal(signal.SIGTERM)
        assert up.stopped() == 0
    for word in ("ready", "draining", "stopped"):
        assert word in up.log.read_text()
    assert "Traceback" not in up.log.read_text()


def test_roles_share_a_database(tmp_path: Path) -> None:
    with service(tmp_path, "up", "--port", "0") as up:
        up.until_ready(ready=True)
        with service(tmp_path, "serve", "--role", "worker", "--port", "0") as worker:
            worker.until_ready(ready=True)
            assert worker.get("/v1/status")[0] == 404
            assert up.get("/v1/status")[0] == 401


def test_it_is_not_ready_while_another_deployment_owns_the_work(tmp_path: Path) -> None:
    with service(tmp_path, "up", "--port", "0") as up:
        up.until_ready(ready=True)
        with service(tmp_path, "serve", "--port", "0", DOONCE_DEPLOYMENT="green") as green:
            causes = green.until_ready(ready=False)
            assert "green does not own" in causes["ownership"]


def test_a_restored_copy_closes_dispatch_until_somebody_declares(tmp_path: Path) -> None:
    with service(tmp_path, "up", "--port", "0") as up:
        up.until_ready(ready=True)
        up.process.send_signal(signal.SIGTERM)
        up.stopped()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("doonce.db", "doonce.db.keys"):
        (elsewhere / name).write_bytes((tmp_path / name).read_bytes())
    (elsewhere / "doonce.db.keys").chmod(0o600)
    short = {"DOONCE_DURABILITY__CHECK_EVERY_SECONDS": "0.2"}
    with service(elsewhere, "up", "--port", "0", **short) as up:
        causes = up.until_ready(ready=False)
        assert "doonce declare" in causes["dispatch"]
        assert up.get("/livez")[0] == 200
        with service(elsewhere, "declare", "lossless", "--reason", "a drill") as declare:
            assert declare.stopped() == 0
        up.until_ready(ready=True)


@pytest.mark.parametrize(
    "tokens, status, says",
    [
        (["serve", "--database", "sqlite:///never.db"], 5, "there is no database at"),
        (["up", "--database", "sqlite:////nowhere/doonce.db"], 5, "cannot be reached"),
        (["up", "--port", "99999"], 2, "listen.port must be"),
        (["serve", "--database", "postgresql://doonce@127.0.0.1:1/x"], 5, "cannot be reached"),
        (["serve", "--role", "cleaner"], 2, "cleaner"),
    ],
)
def test_a_start_that_cannot_work_says_why(tmp_path: Path, tokens: list[str], status: int, says: str) -> None:
    with service(tmp_path, *tokens) as failed:
        assert failed.url == ""
        assert failed.stopped() == status
    said = failed.log.read_text()
    assert says in said
    assert "Traceback" not in said


def test_a_port_in_use_says_so(tmp_path: Path) -> None:
    with service(tmp_path, "up", "--port", "0") as up:
        port = up.url.rpartition(":")[2]
        with service(tmp_path, "up", "--port", port) as second:
            assert second.stopped() == 5
        assert f"cannot listen on 127.0.0.1:{port}" in second.log.read_text()


def test_a_wrong_schema_refuses_the_start(tmp_path: Path) -> None:
    with service(tmp_path, "migrate") as migrated:
        assert migrated.stopped() == 0
    engine = sa.create_engine(f"sqlite:///{tmp_path}/doonce.db")
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE disposition"))
    engine.dispose()
    with service(tmp_path, "up", "--port", "0") as failed:
        assert failed.stopped() == 5
    assert "table disposition should be there, but is missing" in failed.log.read_text()


def test_a_second_signal_stops_hard(tmp_path: Path) -> None:
    """A graceful stop that waits for a request under way is ended by the second signal, at once."""
    with service(tmp_path, "up", "--port", "0", DOONCE_STOP_SECONDS="600") as up:
        up.until_ready(ready=True)
        issued = service(tmp_path, "credential", "issue", "acme", "main", "people.write", "--json")
        with issued as credential:
            token = json.loads(credential.url)["token"]
        host, port = up.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(
                b"POST /v1/handoffs/accept HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Authorization: Bearer " + token.encode() + b"\r\nContent-Length: 10\r\n\r\n"
            )
            up.process.send_signal(signal.SIGTERM)
            up.until_logged("draining")
            assert up.process.poll() is None
            up.process.send_signal(signal.SIGTERM)
            assert up.stopped() == 1
        assert "stopped hard" in up.log.read_text()
