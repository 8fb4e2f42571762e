"""What can be set. Each field is a line in docs/settings.md, with its unit, its default and the reason for it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from doonce.app.engine import EngineSettings
from doonce.app.retention import RetentionSettings
from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS, check_text
from doonce.base.secrets import Secret
from doonce.catalog.compile import OriginPolicy
from doonce.db.database import RetrySettings
from doonce.db.durability import DurabilitySettings
from doonce.db.mysql import MysqlSettings
from doonce.db.points import ArmedPoint, PointAction
from doonce.db.postgresql import PostgresqlSettings
from doonce.db.sqlite import SqliteSettings
from doonce.effects.caller import DispatchSettings
from doonce.effects.completions import CompletionSettings
from doonce.effects.handing import HandlerSettings
from doonce.effects.hydrator import HydrationSettings
from doonce.effects.outbound import PRIVATE_ALLOWED, ClientSettings, EgressPolicy
from doonce.effects.reconciler import ReconcileSettings
from doonce.effects.telling import Inbox
from doonce.ingress.service import IngressSettings
from doonce.work.fairness import WEIGHT_MAX, WEIGHT_MIN
from doonce.work.service import WorkerSettings

PORT_MAX = 65_535


class Role(str, Enum):
    """What a process does; any set of them, in any number of processes."""

    API = "api"
    WORKER = "worker"
    RECONCILER = "reconciler"
    INGRESS = "ingress"


class LogFormat(str, Enum):
    """How log lines look."""

    CONSOLE = "console"
    JSON = "json"


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the configuration: immutable, without unknown names."""


class Listen(Part, frozen=True, kw_only=True):
    """Where the HTTP side listens, and how it is bounded."""

    host: str = "127.0.0.1"
    port: int = 8410
    connections_max: int = 512
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: int = 10


class InboxSettings(Part, frozen=True, kw_only=True):
    """Where one application takes completions; the credential is given here or by the name of a file."""

    url: str
    credential: Secret | None = None
    credential_file: Path | None = None

    def inbox(self, name: str) -> Inbox:
        """The inbox, with its credential read. Raises `Invalid`, which names the setting."""
        split = urlsplit(self.url)
        if split.scheme not in ("http", "https") or not split.netloc or split.query or split.fragment:
            raise Invalid(
                f"inboxes.{name}.url is no address of an inbox",
                hint='write "https://app.example/doonce/completions"',
            )
        return Inbox(f"{split.scheme}://{split.netloc}", split.path or "/", self._credential(name))

    def _credential(self, name: str) -> Secret:
        if (self.credential is None) == (self.credential_file is None):
            raise Invalid(
                f"inboxes.{name} needs one credential", hint="set credential or credential_file, not both"
            )
        if self.credential is not None:
            return self.credential
        file = self.credential_file
        try:
            text = file.read_text().strip() if file is not None else ""
        except (OSError, UnicodeDecodeError):
            text = ""
        if not text:
            raise Invalid(f"inboxes.{name}.credential_file: {file} holds no credential")
        return Secret(text)


class EgressSettings(Part, frozen=True, kw_only=True):
    """Which places may be called. All off in production; a simulator on this host needs all three."""

    private_networks: tuple[str, ...] = ()
    plain_http: bool = False
    undeclared_origins: bool = False

    def policy(self) -> EgressPolicy:
        """What the outbound client obeys."""
        if "all" in self.private_networks:
            return EgressPolicy(http_allowed=self.plain_http, private_networks=PRIVATE_ALLOWED)
        try:
            networks = tuple(ipaddress.ip_network(text) for text in self.private_networks)
        except ValueError as error:
            raise Invalid(
                f"egress.private_networks: {error}", hint='write networks such as "10.0.0.0/8", or "all"'
            ) from None
        return EgressPolicy(http_allowed=self.plain_http, private_networks=networks)

    def origins(self) -> OriginPolicy:
        """What bindings may say about origins."""
        return OriginPolicy(undeclared=self.undeclared_origins, plain_http=self.plain_http)


class Settings(Part, frozen=True, kw_only=True):
    """The configuration of one process."""

    database: str = "sqlite:///doonce.db"
    deployment: str = "default"
    roles: tuple[Role, ...] = (Role.API, Role.WORKER, Role.RECONCILER, Role.INGRESS)
    key_file: Path | None = None
    log_format: LogFormat = LogFormat.CONSOLE
    sweep_seconds: float = 5.0
    sweep_rows: int = 500
    stop_seconds: float = 30.0
    listen: Listen = Listen()
    inboxes: dict[str, InboxSettings] = {}
    egress: EgressSettings = EgressSettings()
    effects: WorkerSettings = WorkerSettings()
    reconciles: WorkerSettings = WorkerSettings(concurrency=16)
    completions: WorkerSettings = WorkerSettings(concurrency=32)
    events: WorkerSettings = WorkerSettings(concurrency=32)
    hydrations: WorkerSettings = WorkerSettings(concurrency=16)
    handlers: WorkerSettings = WorkerSettings(concurrency=32)
    pushes: WorkerSettings = WorkerSettings(concurrency=32)
    catch_ups: WorkerSettings = WorkerSettings(concurrency=8)
    weights: dict[str, int] = {}
    ingress: IngressSettings = IngressSettings()
    dispatch: DispatchSettings = DispatchSettings()
    reconcile: ReconcileSettings = ReconcileSettings()
    completion: CompletionSettings = CompletionSettings()
    hydration: HydrationSettings = HydrationSettings()
    handler: HandlerSettings = HandlerSettings()
    retention: RetentionSettings = RetentionSettings()
    client: ClientSettings = ClientSettings()
    postgresql: PostgresqlSettings = PostgresqlSettings()
    sqlite: SqliteSettings = SqliteSettings()
    mysql: MysqlSettings = MysqlSettings()
    durability: DurabilitySettings = DurabilitySettings()
    retry: RetrySettings = RetrySettings()
    testing: bool = False
    point: str | None = None
    point_action: PointAction = PointAction.KILL
    point_hit: int = 1
    point_flag: Path | None = None

    def check(self) -> None:
        """Raise `Invalid`, which names the setting, for a value out of its bounds."""
        check_text("deployment", self.deployment, LIMITS.name_bytes_max)
        if not self.roles:
            raise Invalid("roles is empty", hint=f"write some of {', '.join(role.value for role in Role)}")
        if not 0 <= self.listen.port <= PORT_MAX:
            raise Invalid(f"listen.port must be from 0 to {PORT_MAX}")
        for name, value in _numbers(self):
            if value <= 0 and name != "listen.port":
                raise Invalid(f"{name} must be more than 0")
        if (self.point is not None or self.point_flag is not None) and not self.testing:
            raise Invalid(
                "point makes a process kill or stop itself, and needs testing = true",
                hint="remove point from the configuration of a real deployment",
            )
        for org, weight in self.weights.items():
            if not WEIGHT_MIN <= weight <= WEIGHT_MAX:
                raise Invalid(
                    f"weights.{org} must be from {WEIGHT_MIN} to {WEIGHT_MAX}",
                    hint="an organization without a weight has 1; only how weights compare matters",
                )
        self.egress.policy()
        self.retention.check()

    def engine(self) -> EngineSettings:
        """What the engine gets."""
        return EngineSettings(
            deployment=self.deployment,
            effects=self.effects,
            reconciles=self.reconciles,
            completions=self.completions,
            events=self.events,
            hydrations=self.hydrations,
            handlers=self.handlers,
            pushes=self.pushes,
            catch_ups=self.catch_ups,
            weights=self.weights,
            ingress=self.ingress,
            dispatch=self.dispatch,
            reconcile=self.reconcile,
            completion=self.completion,
            hydration=self.hydration,
            handler=self.handler,
            retention=self.retention,
            client=self.client,
            sweep_seconds=self.sweep_seconds,
            sweep_rows=self.sweep_rows,
            stop_seconds=self.stop_seconds,
        )

    def open_inboxes(self) -> dict[str, Inbox]:
        """The configured inboxes by name, with their credentials."""
        return {name: inbox.inbox(name) for name, inbox in self.inboxes.items()}

    def inbox_egress(self) -> EgressPolicy:
        """Inboxes are the deployment's own: their configured origins may be reached wherever they are."""
        origins = frozenset(inbox.inbox(name).origin for name, inbox in self.inboxes.items())
        return EgressPolicy(origins=origins, http_allowed=True, private_networks=PRIVATE_ALLOWED)

    def armed_point(self) -> ArmedPoint | None:
        """Where a test makes this process kill or stop itself."""
        if self.point is None:
            return None
        return ArmedPoint(self.point, self.point_action, self.point_hit, self.point_flag)


def _numbers(value: object, at: str = "") -> list[tuple[str, float]]:
    """Every number below `value` by its dotted name: all of them are sizes, counts or times."""
    names: Iterable[str] = getattr(value, "__struct_fields__", ()) or getattr(
        value, "__dataclass_fields__", ()
    )
    found: list[tuple[str, float]] = []
    for name in names:
        inner = getattr(value, name)
        dotted = f"{at}.{name}" if at else name
        if isinstance(inner, dict):
            for key, entry in inner.items():
                found += _numbers(entry, f"{dotted}.{key}")
        elif isinstance(inner, int | float) and not isinstance(inner, bool):
            found.append((dotted, inner))
        else:
            found += _numbers(inner, dotted)
    return found


__all__ = ["InboxSettings", "Listen", "LogFormat", "Role", "Settings"]
