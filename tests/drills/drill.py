"""One drill: a deployment whose service is a real process, and a ledger at the provider that nobody here writes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulators.launch import Simulator
from tests.drills.stands import Stand
from tests.e2e.conftest import ROOT
from tests.e2e.test_serve import Service, service
from tests.process.effects.deployment import Accepted, Deployment, Wanted, deployed
from tests.process.effects.settings import key_ring
from tests.process.effects.waiting import until

from doonce.principals.vault import save_key_ring

COMMAND_S = 30.0
CONTACTS = 12
QUIET_S = 1.0
"""How long nothing may reach the provider while dispatch is closed: many of the service's looks for work."""
CONFIGURATION = """
database = "{url}"
key_file = "keys.toml"
sweep_seconds = 0.3
[egress]
plain_http = true
private_networks = ["all"]
undeclared_origins = true
[effects]
poll_seconds = 0.05
[reconciles]
poll_seconds = 0.05
[reconcile]
again_us = 100000
again_cap_us = 500000
[durability]
check_every_seconds = 0.3
"""


@dataclass(slots=True)
class Drill:
    """A stand, the deployment on it, and its one service process at a time."""

    stand: Stand
    deployment: Deployment
    folder: Path
    contacts: list[str]

    # -- commands ------------------------------------------------------------------------------------------------

    def accept(self, count: int) -> list[Accepted]:
        """Accept commands, each for a contact of its own: so the ledger counts by contact, whatever was lost."""
        contacts = [self.contacts.pop(0) for _ in range(count)]
        return self.deployment.accept(
            *(
                Wanted(f"k{contact}", "contact.patch", contact, {"title": f"title {contact}"})
                for contact in contacts
            )
        )

    def sends(self) -> Counter[str]:
        """How often each contact was written, by the provider's ledger."""
        return Counter(
            entry["target"].partition("?")[0].rpartition("/")[2]
            for entry in self.deployment.simulator.ledger()
            if entry["method"] == "PATCH"
        )

    def sent(self, commands: list[Accepted]) -> list[int]:
        """How often each of these reached the provider."""
        counts = self.sends()
        return [counts[one.wanted.contact or ""] for one in commands]

    def wait_sent(self, commands: list[Accepted]) -> None:
        """Wait until each was sent once and its end is stored."""
        until(
            lambda: self.sent(commands) == [1] * len(commands) and self.ended(commands),
            f"one call of each command\n{self.deployment.story()}",
            seconds=COMMAND_S,
        )

    def wait_ended(self, commands: list[Accepted]) -> None:
        """Wait until each has ended as accepted, however that became known."""
        until(
            lambda: self.ended(commands),
            f"the end of what had arrived\n{self.deployment.story()}",
            seconds=COMMAND_S,
        )

    def ended(self, commands: list[Accepted]) -> bool:
        """Whether each of these has ended as accepted."""
        ends = self.deployment.journal.ends()
        return all(one.id in ends and ends[one.id].ended_as == "accepted" for one in commands)

    def nothing_is_sent(self) -> None:
        """Nothing reaches the provider for a while, neither a write nor a question, and nothing is claimed for it.

        A claim that was under way when dispatch was closed may still commit: it prepares calls, and makes none.
        """
        requests = self.deployment.simulator.stats()["requests"]
        time.sleep(QUIET_S)
        attempts = self.attempts()
        time.sleep(QUIET_S)
        assert self.deployment.simulator.stats()["requests"] == requests
        assert self.attempts() == attempts

    def attempts(self) -> int:
        """How many calls were ever prepared: each is, within its claim."""
        return len(self.deployment.journal.attempts())

    def part(self) -> None:
        """From now on nothing that is committed comes into the copy."""
        self.stand.part()
        self.deployment.journal.close()

    def fall(self) -> None:
        """The copy takes the original's place; nothing of the test has the original open."""
        self.deployment.journal.close()
        self.stand.fall()
        self.deployment.journal.close()

    # -- the operator --------------------------------------------------------------------------------------------

    def ask(self, *tokens: str) -> Any:
        """What a command of the operator's prints."""
        done = subprocess.run(
            [sys.executable, "-m", "doonce.app.cli", *tokens, "--json"],
            cwd=self.folder,
            env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @contextmanager
    def serving(self) -> Iterator[Service]:
        """The service, as it is started on a machine of the deployment."""
        with service(self.folder, "serve", "--port", "0") as started:
            assert started.url, started.log.read_text()
            yield started

    def closed(self, running: Service) -> str:
        """Wait until dispatch is closed; the reason, which readiness and `doonce status` tell alike."""

        def reason() -> str:
            document = running.get("/readyz")[1]
            return str(document["causes"].get("dispatch", ""))

        found = until(reason, f"a closed dispatch\n{running.log.read_text()[-2000:]}", seconds=COMMAND_S)
        assert self.stand.cause in found, found
        assert "doonce declare lossless|lossy" in found
        return found


@contextmanager
def drilling(stand: Stand, simulator: Simulator, folder: Path, *, settings: str = "") -> Iterator[Drill]:
    """A deployment on the stand; its processes do not outlive the block."""
    with deployed(stand.url, simulator, folder, completion={"mode": "pull"}) as deployment:
        save_key_ring(folder / "keys.toml", key_ring(deployment.key))
        (folder / "doonce.toml").write_text(CONFIGURATION.format(url=stand.url) + settings)
        contacts = deployment.contacts(*(str(501 + number) for number in range(CONTACTS)))
        yield Drill(stand, deployment, folder, contacts)
