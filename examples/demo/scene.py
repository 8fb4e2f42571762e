"""The deployment that every story plays in: the service, a provider's simulator, an application, a card server."""

import asyncio
import json
import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from examples.demo.stage import ROOT, Process, Stage, free_port, write_toml
from simulators.launch import Simulator

from doonce.app import installing
from doonce.app.cli.output import print_timeline
from doonce.app.config import load_settings
from doonce.app.engine import Engine
from doonce.app.installing import Installed
from doonce.app.opening import open_engine
from doonce.app.operate.model import CommandView, Timeline
from doonce.app.operate.service import Operator
from doonce.app.settings import Settings
from doonce.base.digests import digest_bytes
from doonce.base.ids import new_id
from doonce.base.keys import handoff_key
from doonce.base.secrets import Secret
from doonce.runtime.http_port import HttpHandoffs
from doonce.trust.service import BearerCredentials
from doonce.wire import AcceptRequest, Admission, HandoffScope, Refused

ORG: Final = "acme"
INSTALLATION: Final = "main"
PEOPLE: Final = "people.write"
RACE: Final = "people.race"
CARDS: Final = "cards.write"
TOKEN: Final = "demo-token"  # noqa: S105 (of a simulator)
SHORT_CLOCKS: Final = (
    (r'^call_budget = ".*"$', 'call_budget = "3s"'),
    (r'^send_window = ".*"$', 'send_window = "1s"'),
    (r'^settle_after = ".*"$', 'settle_after = "2s"'),
)
"""A demo has no minute to wait for a provider's slowest answer; everything else of the packs is as shipped."""


@dataclass
class Scene:
    """All that the stories need; `service` is the process that the application talks to, `other` a second one."""

    stage: Stage
    config: Path
    settings: Settings
    engine: Engine
    simulator: Simulator
    service_port: int
    service: Process
    token: Secret
    people: Installed
    people_pack: Path
    other: Process
    other_url: str = ""
    crm_url: str = ""

    @property
    def url(self) -> str:
        """Where the service listens."""
        return f"http://127.0.0.1:{self.service_port}"

    @property
    def operator(self) -> Operator:
        """What `doonce show` and `doonce status` use."""
        return Operator(self.engine)

    # --- the service ----------------------------------------------------------------------------------------------

    def start_service(self, **settings: str) -> Process:
        """`doonce up` on this deployment, with settings of its own over the file's (as `DOONCE_…`)."""
        return start_service(self.stage, self.config, self.service_port, "service", settings)

    def start_other(self) -> None:
        """A second process on the same database, on a port of its own."""
        port = free_port()
        self.other = start_service(self.stage, self.config, port, "other-service", {})
        self.other_url = f"http://127.0.0.1:{port}"

    def restart_service(self, **settings: str) -> None:
        """End the service in good order, and start it again."""
        self.service.end()
        self.service = self.start_service(**settings)

    def armed(self, point: str, action: str) -> tuple[Path, dict[str, str]]:
        """Settings that make a service kill or stop itself at a named point, and the flag that it leaves."""
        flag = self.stage.folder / f"reached-{point}-{secrets.token_hex(3)}"
        return flag, {"testing": "true", "point": point, "point_action": action, "point_flag": str(flag)}

    # --- handing over ---------------------------------------------------------------------------------------------

    async def hand_over(
        self, installed: Installed, operation: str, local_ref: str, payload: Mapping[str, Any]
    ) -> str:
        """Hand one effect over through the service's HTTP API; the command's id."""
        async with HttpHandoffs(self.url, self.token) as port:
            request = request_for(installed, operation, local_ref, payload)
            (answer,) = await port.accept([request])
        if isinstance(answer, Refused) or answer.command_id is None:
            raise RuntimeError(f"the service refused: {answer}")
        return answer.command_id

    async def link(self, installed: Installed, kind: str, local: str, remote: str) -> None:
        """`doonce link`."""
        await installing.adopt(self.engine, installed, kind, local, remote)

    # --- looking --------------------------------------------------------------------------------------------------

    async def command(self, command_id: str) -> CommandView:
        """Where a command stands."""
        return await self.operator.command(command_id)

    async def ended(self, command_id: str, seconds: float = 40.0) -> CommandView:
        """Wait for a command's end."""

        async def final() -> CommandView | None:
            view = await self.command(command_id)
            return view if view.final else None

        view: CommandView = await self.stage.until(f"{command_id} has ended", final, seconds)
        return view

    async def timeline(self, asked: str) -> Timeline:
        """The story of an id."""
        return (await self.operator.show(asked))[0]

    async def tell(self, asked: str) -> Timeline:
        """Print the story of an id, as `doonce show` does."""
        timeline = await self.timeline(asked)
        self.stage.out.print(f"          [dim]$ doonce show {asked}[/dim]")
        print_timeline(self.stage.out, timeline)
        return timeline

    def patches(self, text: str) -> list[dict[str, Any]]:
        """The simulator's ledger: every PATCH that arrived with this text in its body."""
        return [e for e in self.simulator.ledger() if e["method"] == "PATCH" and text in (e["body"] or "")]


def start_service(stage: Stage, config: Path, port: int, name: str, settings: Mapping[str, str]) -> Process:
    """Start `doonce up`, and wait until it is ready."""
    environment = {f"DOONCE_{key.upper()}": value for key, value in settings.items()}
    command = ("-m", "doonce.app.cli", "up", "--config", str(config), "--port", str(port))
    process, _ = stage.start(name, *command, environment=environment)
    return process


def scope_of(installed: Installed) -> HandoffScope:
    """The scope that an emitter pins."""
    document = installed.view.document
    return HandoffScope(
        org=document.org,
        installation=document.installation,
        capability=document.capability,
        binding_digest=installed.view.digest,
        binding_generation=installed.generation,
    )


def request_for(
    installed: Installed, operation: str, local_ref: str, payload: Mapping[str, Any], key: str | None = None
) -> AcceptRequest:
    """One handoff as an outbox row would pin it."""
    scope = scope_of(installed)
    raw = json.dumps(payload).encode()
    outbox_id = new_id("obx")
    whole = handoff_key(
        scope.org, scope.installation, scope.capability, scope.binding_digest, key or outbox_id
    )
    return AcceptRequest(
        key=whole,
        scope=scope,
        outbox_id=outbox_id,
        operation=operation,
        local_ref=local_ref,
        link=None,
        payload=raw,
        payload_digest=digest_bytes(raw),
        source_lane=None,
    )


def short_pack(stage: Stage, name: str) -> Path:
    """The shipped pack with a demo's clocks."""
    folder = stage.folder / "packs" / name
    shutil.copytree(ROOT / "packs" / name, folder)
    text = (folder / "pack.toml").read_text()
    for pattern, short in SHORT_CLOCKS:
        text = re.sub(pattern, short, text, flags=re.MULTILINE)
    (folder / "pack.toml").write_text(text)
    return folder


def service_config(stage: Stage, inbox_url: str, inbox_credential: Path) -> Path:
    """The deployment's configuration: everything on this host, and clocks for a demo."""
    return write_toml(
        stage.folder / "doonce.toml",
        {
            "database": f"sqlite:///{stage.folder}/doonce.db",
            "stop_seconds": 5.0,
            "sweep_seconds": 60.0,
            "egress": {"plain_http": True, "private_networks": ["all"], "undeclared_origins": True},
            "effects": {"lease_us": 4_000_000, "poll_seconds": 0.3},
            "reconciles": {"lease_us": 4_000_000, "poll_seconds": 0.3},
            "completions": {"lease_us": 4_000_000, "poll_seconds": 0.3},
            "events": {"lease_us": 4_000_000, "poll_seconds": 0.3},
            "dispatch": {"margin_us": 1_000_000},
            "reconcile": {"again_us": 500_000, "again_cap_us": 1_000_000},
            "inboxes": {"crm": {"url": inbox_url, "credential_file": str(inbox_credential)}},
        },
    )


async def publish(engine: Engine, settings: Settings, pack: Path, binding: Path, secret: str) -> Installed:
    """`doonce publish`."""
    view = await asyncio.to_thread(installing.compiled, pack, binding, settings.egress.origins())
    return await installing.install(engine, view, Secret(secret), reason="the demo")


def credential_file(path: Path, text: str) -> Path:
    """A credential in a file that only this user reads."""
    path.touch(mode=0o600)
    path.write_text(text + "\n")
    return path


async def set_up(stage: Stage, simulator: Simulator) -> Scene:
    """Start the service, publish the binding of the first stories, start the application."""
    inbox = f"http://127.0.0.1:{free_port()}"
    inbox_credential = credential_file(stage.folder / "inbox.credential", secrets.token_urlsafe(24))
    config = service_config(stage, f"{inbox}/doonce/completions", inbox_credential)
    port = free_port()
    service = start_service(stage, config, port, "service", {})
    stage.say(f"the service runs, all roles in one process (pid {service.pid}): doonce up --port {port}")
    settings = load_settings(config, environment={})
    engine = open_engine(settings)
    binding = write_toml(stage.folder / "people.toml", people_binding(simulator.url))
    pack = short_pack(stage, "hubspot")
    people = await publish(engine, settings, pack, binding, TOKEN)
    stage.say(f"published {people.view.document.pack} as {people.view.digest[:23]}…, principal connected")
    _, token = await BearerCredentials(engine.database).issue(
        ORG, INSTALLATION, [PEOPLE, RACE, CARDS], "the demo"
    )
    scene = Scene(stage, config, settings, engine, simulator, port, service, token, people, pack, service)
    credential_file(stage.folder / "service.credential", token.reveal())
    start_crm(scene, int(inbox.rpartition(":")[2]))
    return scene


def people_binding(origin: str) -> dict[str, Any]:
    """How the application's people are the provider's contacts."""
    return {
        "format": "doonce.binding/1",
        "org": ORG,
        "installation": INSTALLATION,
        "capability": PEOPLE,
        "pack": "hubspot@1.0.0",
        "origin": origin,
        "principal": "portal",
        "operations": ["contact.patch"],
        "fields": {"contact": {"outbound": {"title": "jobtitle"}, "inbound": {}}},
        "policies": {"completion": {"mode": "push", "url_name": "crm"}},
    }


def race_binding(origin: str) -> dict[str, Any]:
    """The same for two processes that have no inbox: what became of a command is theirs to ask for."""
    return people_binding(origin) | {"capability": RACE, "policies": {"completion": {"mode": "pull"}}}


def start_crm(scene: Scene, port: int) -> None:
    """The example application: its own database, its relay and its inbox."""
    scope = scope_of(scene.people)
    config = write_toml(
        scene.stage.folder / "crm.toml",
        {
            "database": f"sqlite:///{scene.stage.folder}/crm.db",
            "service": scene.url,
            "service_credential_file": "service.credential",
            "inbox_credential_file": "inbox.credential",
            "operation": "contact.patch",
            "idle_ms": 100,
            "retry_cap_ms": 500,
            "scope": {
                "org": scope.org,
                "installation": scope.installation,
                "capability": scope.capability,
                "binding_digest": scope.binding_digest,
                "binding_generation": scope.binding_generation,
            },
            "listen": {"host": "127.0.0.1", "port": port},
        },
    )
    process, ready = scene.stage.start("crm", "-m", "examples.crm", "serve", str(config))
    scene.crm_url = json.loads(ready)["ready"]
    scene.stage.say(f"the application runs (pid {process.pid}), its inbox at {scene.crm_url}")


def told_alike(one: Admission | Refused, other: Admission | Refused) -> bool:
    """Whether two askers got the same durable answer."""
    return isinstance(one, Admission) and isinstance(other, Admission) and one == other
