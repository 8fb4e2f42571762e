"""One installation of doonce with the shipped contacts pack bound to the simulator: what all effect figures run on."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.case import Setting
from benchmarks.doonce_schema import DEPLOYMENT
from benchmarks.workload import CREDENTIAL, TITLE
from doonce.app.engine import Engine, EngineSettings
from doonce.app.metrics import Metrics
from doonce.base.digests import digest_bytes
from doonce.base.ids import new_id
from doonce.base.keys import handoff_key
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view
from doonce.catalog.files import load_pack
from doonce.db.database import open_database
from doonce.http import PRIVATE_ALLOWED, ClientSettings, EgressPolicy
from doonce.links import store as links
from doonce.links.model import NewLink
from doonce.principals.vault import KeyRing, Vault
from doonce.trust import Identity, InstallationConfig, embedded
from doonce.wire.handoffs import AcceptRequest, HandoffScope
from doonce.work.service import WorkerSettings

ORG, INSTALLATION, CAPABILITY, PRINCIPAL, KIND = "bench", "only", "contacts", "main", "contact"
PACKS = Path(__file__).resolve().parents[1] / "packs"
PAYLOAD = f'{{"title":"{TITLE}"}}'.encode()
OPERATION = "contact.patch"
LINKS_A_COMMIT = 1_000


def make_view(simulator_url: str) -> BindingView:
    """The binding: one field, completions left to be asked for."""
    binding = {
        "format": "doonce.binding/1",
        "org": ORG,
        "installation": INSTALLATION,
        "capability": CAPABILITY,
        "pack": "hubspot@1.0.0",
        "origin": simulator_url,
        "principal": PRINCIPAL,
        "operations": [OPERATION],
        "fields": {KIND: {"outbound": {"title": "jobtitle"}, "inbound": {}}},
        "policies": {"completion": {"mode": "pull"}},
    }
    origins = OriginPolicy(undeclared=True, plain_http=True)
    return compile_view(load_pack(PACKS / "hubspot"), read_binding(binding), origins=origins)


def key_ring(folder: str) -> KeyRing:
    """One key for all processes of a measurement."""
    path = Path(folder) / "key"
    if not path.exists():
        path.write_bytes(os.urandom(32))
    return KeyRing("bench", {"bench": Secret(path.read_bytes())})


def make_engine(setting: Setting, metrics: Metrics, in_flight: int) -> Engine:
    """The engine as the service composes it, allowed to reach the simulator.

    `in_flight` calls at most are under way; as many items again may wait for their turn or their flush.
    """
    egress = EgressPolicy(
        origins=frozenset({setting.simulator_url}), http_allowed=True, private_networks=PRIVATE_ALLOWED
    )
    return Engine(
        open_database(setting.database),
        Vault(key_ring(setting.folder)),
        egress,
        EgressPolicy(),
        {},
        EngineSettings(
            deployment=DEPLOYMENT,
            effects=WorkerSettings(concurrency=2 * in_flight),
            client=ClientSettings(connections_per_origin_max=in_flight),
        ),
        metrics,
    )


def identity() -> Identity:
    """The embedding application's."""
    return embedded(InstallationConfig(ORG, INSTALLATION, frozenset({CAPABILITY})))


async def make_world(engine: Engine, view: BindingView, contacts: list[str]) -> None:
    """Publish the view, connect the principal, and adopt a link to every contact."""
    await engine.views.publish([view])
    principal = await engine.principals.connect(
        org=ORG, installation=INSTALLATION, pack="hubspot", name=PRINCIPAL, secret=Secret(CREDENTIAL)
    )
    for start in range(0, len(contacts), LINKS_A_COMMIT):
        adopted = [
            NewLink(
                new_id("lnk"),
                ORG,
                INSTALLATION,
                principal.id,
                principal.generation,
                KIND,
                f"lead-{contact}",
                contact,
            )
            for contact in contacts[start : start + LINKS_A_COMMIT]
        ]
        await engine.database.transact(links.adopt, adopted)


def request_for(view: BindingView, contact: str) -> AcceptRequest:
    """What the application's relay would send for a change of this contact."""
    return AcceptRequest(
        key=handoff_key(ORG, INSTALLATION, CAPABILITY, view.digest, f"change-{contact}"),
        scope=HandoffScope(
            org=ORG,
            installation=INSTALLATION,
            capability=CAPABILITY,
            binding_digest=view.digest,
            binding_generation=1,
        ),
        outbox_id=new_id("obx"),
        operation=OPERATION,
        local_ref=f"lead-{contact}",
        link=None,
        payload=PAYLOAD,
        payload_digest=digest_bytes(PAYLOAD),
        source_lane=None,
    )
