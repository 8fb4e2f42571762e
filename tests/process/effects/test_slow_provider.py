"""One installation's provider answers after a minute: the effects of others are done meanwhile, says its ledger."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from simulators.launch import Simulator
from tests.process.effects.deployment import (
    CAPABILITY,
    INSTALLATION,
    ORG,
    PACK,
    Deployment,
    Wanted,
    binding_of,
    deployed,
)
from tests.process.effects.waiting import until

from doonce.base.digests import digest_bytes
from doonce.base.ids import new_id
from doonce.base.keys import handoff_key
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view
from doonce.catalog.files import load_pack
from doonce.trust.identity import InstallationConfig, embedded
from doonce.wire.handoffs import AcceptRequest, HandoffScope

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

CONCURRENCY = 8
SLOW = "slow"
PATH = "/sim/objects/contacts"


@pytest.fixture
def deployment(database_url: str, simulator: Simulator, tmp_path: Path) -> Iterator[Deployment]:
    """The usual deployment, but for a pack whose calls may take two minutes."""
    folder = tmp_path / "pack"
    shutil.copytree(PACK, folder)
    text = (folder / "pack.toml").read_text()
    (folder / "pack.toml").write_text(text.replace('call_budget = "2s"', 'call_budget = "120s"'))
    with deployed(
        database_url, simulator, tmp_path, pack=load_pack(folder), operations=["contact.put"]
    ) as made:
        yield made


def slow_view(deployment: Deployment) -> BindingView:
    """The same binding, for a second installation."""
    pack = load_pack(deployment.folder / "pack")
    binding = binding_of(deployment.simulator.url, pack, ["contact.put"]) | {"installation": SLOW}
    return compile_view(pack, read_binding(binding), origins=OriginPolicy(undeclared=True, plain_http=True))


def set_up(deployment: Deployment, view: BindingView) -> None:
    """The second installation, beside the one that is there."""

    async def run() -> None:
        async with deployment.engine() as engine:
            await engine.views.publish([view])
            await engine.principals.connect(
                org=ORG, installation=SLOW, pack="ledgered", name="main", secret=Secret("token")
            )

    asyncio.run(run())


def accept(deployment: Deployment, view: BindingView, installation: str, count: int) -> None:
    """Effects of one installation, each on a contact of its own."""
    identity = embedded(InstallationConfig(org=ORG, installation=installation, capabilities=(CAPABILITY,)))
    scope = HandoffScope(
        org=ORG,
        installation=installation,
        capability=CAPABILITY,
        binding_digest=view.digest,
        binding_generation=1,
    )

    def request(name: str) -> AcceptRequest:
        payload = json.dumps({"title": name, "uid": name}).encode()
        return replace(
            deployment.request(Wanted(name, "contact.put", None, {})),
            key=handoff_key(ORG, installation, CAPABILITY, view.digest, name),
            scope=scope,
            outbox_id=new_id("obx"),
            payload=payload,
            payload_digest=digest_bytes(payload),
        )

    async def run() -> None:
        async with deployment.engine() as engine:
            admissions = await engine.acceptor.accept(
                identity, [request(f"{installation}{number:03}") for number in range(count)]
            )
            assert all(admission.command_id for admission in admissions)

    asyncio.run(run())


def arrived(deployment: Deployment, installation: str) -> list[dict[str, Any]]:
    """Requests at the provider, by the ledger of the simulator."""
    entries = deployment.simulator.ledger()
    return [entry for entry in entries if entry["target"].startswith(f"{PATH}/{installation}")]


@pytest.mark.parametrize("first", ["slow", "both"])
def test_an_installation_whose_provider_is_slow_leaves_the_others_their_calls(
    deployment: Deployment, first: str
) -> None:
    deployment.simulator.faults(
        {"fault": "slow_drip", "path": f"{PATH}/{SLOW}", "delay_ms": 500, "times": 1_000}
    )
    slow_one = slow_view(deployment)
    set_up(deployment, slow_one)
    accept(deployment, slow_one, SLOW, 100)
    if first == "both":
        accept(deployment, deployment.view, INSTALLATION, 100)
    worker = deployment.worker(concurrency=CONCURRENCY, families=("effect",), stop_seconds=0.1)
    if first == "slow":
        most = CONCURRENCY - 1
        until(lambda: len(arrived(deployment, SLOW)) == most, "the slow one has all slots but one")
        accept(deployment, deployment.view, INSTALLATION, 100)
    until(lambda: len(arrived(deployment, INSTALLATION)) == 100, "all calls of the quick one", seconds=90)
    quick, slow = arrived(deployment, INSTALLATION), arrived(deployment, SLOW)
    assert len({entry["target"] for entry in quick}) == 100
    assert all(entry["committed"] for entry in quick)
    assert 0 < len(slow) < CONCURRENCY, "none of the slow calls has ended, or another would have begun"
    worker.stop()
