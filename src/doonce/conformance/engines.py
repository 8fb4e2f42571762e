"""The engine of the service as the suite runs it: short leases and pauses, the witness in reach, one scope only."""

from __future__ import annotations

from collections.abc import Sequence

from doonce.app.engine import Engine, EngineSettings
from doonce.base.secrets import Secret
from doonce.conformance.jobs import Place
from doonce.conformance.scratch import DEPLOYMENT, Scratch
from doonce.db.database import Database, open_database
from doonce.db.mysql import MysqlSettings
from doonce.db.points import ArmedPoint, PointAction, Points
from doonce.db.postgresql import PostgresqlSettings
from doonce.effects.caller import DispatchSettings
from doonce.effects.outbound import PRIVATE_ALLOWED, EgressPolicy
from doonce.principals.vault import KeyRing, Vault
from doonce.work.model import Scope
from doonce.work.service import WorkerSettings


class ScopedEngine(Engine):
    """An engine that works for one installation only, so that no case touches another one's work."""

    only: Scope

    async def scopes(self) -> Sequence[Scope]:
        """That installation."""
        return [self.only]


def open_scratch(url: str, kill_at: str = "") -> Database:
    """The scratch database; at the named point its process kills itself."""
    database = open_database(
        url,
        postgresql=PostgresqlSettings(idle_in_transaction_timeout_ms=2_000),
        mysql=MysqlSettings(idle_in_transaction_timeout_seconds=2),
    )
    if kill_at:
        database.points = Points(ArmedPoint(kill_at, PointAction.KILL))
    return database


def engine_of(
    place: Place, database: Database, *, concurrency: int = 4, lease_us: int = 2_000_000
) -> ScopedEngine:
    """An engine over the scratch database; nothing is started."""
    family = WorkerSettings(
        concurrency=concurrency, lease_us=lease_us, poll_seconds=0.05, suspects_seconds=0.5
    )
    egress = EgressPolicy(
        origins=frozenset({place.origin}), http_allowed=True, private_networks=PRIVATE_ALLOWED
    )
    ring = KeyRing("conformance", {"conformance": Secret(bytes.fromhex(place.key))})
    settings = EngineSettings(
        deployment=DEPLOYMENT,
        effects=family,
        dispatch=DispatchSettings(margin_us=500_000, evidence_pause_seconds=0.05),
        sweep_seconds=0.5,
    )
    engine = ScopedEngine(database, Vault(ring), egress, egress, {}, settings)
    engine.only = Scope(place.org, place.installation)
    return engine


def scratch_of(place: Place) -> Scratch:
    """The scratch place that a process was told of; it must still prove that it is one."""
    return Scratch(place.url, place.home, place.name, place.guard, open_database(place.url).dialect)
