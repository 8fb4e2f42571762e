"""A deployment for each test, on each engine, and one simulated provider for all of them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from simulators.launch import Simulator, running

from doonce import Doonce, Installation

ROOT = Path(__file__).parents[2]
PACKS = ROOT / "packs"
PACK = PACKS / "hubspot"
TOKEN = "simulated-token"
LOCAL = {"plain_http": True, "private_networks": ["all"], "undeclared_origins": True}
QUICK = {"poll_seconds": 0.1}


@pytest.fixture(scope="session")
def simulator_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    """The provider, for the whole session."""
    ledger = tmp_path_factory.mktemp("simulator") / "ledger.jsonl"
    with running("simulators.hubspot", ledger, "--token", TOKEN) as started:
        yield started


@pytest.fixture
def simulator(simulator_process: Simulator) -> Simulator:
    """The provider as if new: one contact, no faults, an empty ledger."""
    simulator_process.reset()
    simulator_process.seed({"id": "501", "properties": {"email": "a@example.com", "jobtitle": "Engineer"}})
    return simulator_process


def people(origin: str, **over: Any) -> dict[str, Any]:
    """A binding for the simulator."""
    return {
        "format": "doonce.binding/1",
        "org": "acme",
        "installation": "main",
        "capability": "people.write",
        "pack": "hubspot@1.0.0",
        "origin": origin,
        "principal": "portal",
        "operations": ["contact.patch", "contact.create"],
        "fields": {"contact": {"outbound": {"title": "jobtitle", "email": "email"}, "inbound": {}}},
        "policies": {"retry": {"base": "50ms", "cap": "200ms"}, "pre_dispatch": {"failures_max": 3}},
    } | over


def deployment(url: str, folder: Path, **settings: Any) -> Doonce:
    """An embedded deployment that may call the simulator."""
    given = {
        "migrate": True,
        "egress": LOCAL,
        "effects": QUICK,
        "reconciles": QUICK,
        "completions": QUICK,
    } | settings
    return Doonce(url, key_file=str(folder / "keys.toml"), **given)


@pytest.fixture
async def app(database_url: str, tmp_path: Path) -> AsyncIterator[Doonce]:
    """A running deployment on one engine."""
    async with deployment(database_url, tmp_path) as running_app:
        yield running_app


@pytest.fixture
async def crm(app: Doonce, simulator: Simulator) -> Installation:
    """An installation whose record 1 is linked to the provider's contact 501."""
    installed = await app.installation("acme", "main", pack=PACK, binding=people(simulator.url), secret=TOKEN)
    await installed.link("contact", local="1", remote="501")
    return installed


async def until(fact: Callable[[], Awaitable[Any]], seconds: float = 30.0) -> Any:
    """Wait for a fact, bounded."""
    async with asyncio.timeout(seconds):
        while not (value := await fact()):  # a fact of the database has no event
            await asyncio.sleep(0.02)
    return value


def toml(document: dict[str, Any]) -> str:
    """Enough TOML for a binding."""
    lines: list[str] = []

    def table(at: tuple[str, ...], values: dict[str, Any]) -> None:
        if at:
            lines.append(f"[{'.'.join(at)}]")
        lines.extend(
            f"{key} = {json.dumps(value)}" for key, value in values.items() if not isinstance(value, dict)
        )
        for key, value in values.items():
            if isinstance(value, dict):
                table((*at, key), value)

    table((), document)
    return "\n".join(lines) + "\n"
