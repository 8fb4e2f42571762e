"""Routes as they stand now, and receipts that share commits."""

from __future__ import annotations

import asyncio
import functools
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from doonce.base.digests import digest_bytes
from doonce.base.errors import DoonceError, MissingOrDenied
from doonce.base.ids import new_id, new_token
from doonce.base.secrets import Secret
from doonce.catalog.service import Views
from doonce.catalog.webhooks import Redelivery, Webhook
from doonce.db.clock import boottime_ns
from doonce.db.committer import Committer, CommitterSettings, FlushObserver
from doonce.db.database import Database
from doonce.db.faults import DatabaseFault
from doonce.ingress import bodies, headers, secrets, store, tallies
from doonce.ingress.catch_ups import page_place
from doonce.ingress.model import Delivery, Reason, Verified
from doonce.ingress.receipts import Arrival, Fate, Receipt, RouteKey, Sealed, body_place, identity_of
from doonce.ingress.rewrapping import rewrap
from doonce.ingress.secrets import NewSecret, StoredSecret
from doonce.ingress.tallies import Tally
from doonce.ingress.verify import OpenVerifier, open_verifier
from doonce.principals.vault import Vault

log = structlog.get_logger()


class IngressObserver(FlushObserver, Protocol):
    """Where ingress reports what an operator looks for."""

    def delivered(self, fate: str) -> None: ...
    def turned_away(self, reason: str) -> None: ...


@dataclass(frozen=True, slots=True)
class IngressSettings:
    """How deliveries are taken. Each is a line in docs/settings.md.

    `in_flight_max`: deliveries read or committed at once, beyond which the next is shed with its provider's declared
    answer. `read_seconds`: for a body to arrive. `routes_every_ms`: how soon a publication or a secret made by another
    process counts here. `routes_max`: opened routes in memory, those that do not exist among them. `tally_seconds`: how
    soon what was turned away is durable. `bodies_kept_us`: how long a raw body can be read and derived from again; its
    receipt stays.
    """

    in_flight_max: int = 256
    read_seconds: float = 5.0
    routes_every_ms: int = 1_000
    routes_max: int = 1_024
    tally_seconds: float = 1.0
    bodies_kept_us: int = 2_592_000_000_000


@dataclass(frozen=True, slots=True)
class OpenRoute:
    """A route that can verify: the newest view that receives it, and the active secrets."""

    key: RouteKey
    view_digest: str
    webhook: Webhook
    verifier: OpenVerifier
    secret_ids: tuple[str, ...]


class Ingress:
    """Deliveries of one database. Safe to share between tasks of one event loop."""

    def __init__(
        self,
        database: Database,
        views: Views,
        vault: Vault,
        observer: IngressObserver,
        settings: IngressSettings | None = None,
        now_ns: Callable[[], int] = boottime_ns,
    ) -> None:
        self.settings = settings or IngressSettings()
        self._database = database
        self._views = views
        self._vault = vault
        self._observer = observer
        self._now_ns = now_ns
        self._routes: OrderedDict[RouteKey, tuple[int, OpenRoute | None]] = OrderedDict()
        self._openings: dict[RouteKey, asyncio.Task[OpenRoute | None]] = {}
        self._rejections: dict[RouteKey, Counter[str]] = {}
        self._losses: Counter[RouteKey] = Counter()
        self._unseen: dict[RouteKey, Counter[str]] = {}
        self._lost_at_ns: dict[RouteKey, int] = {}
        self._receipts: Committer[Arrival, Receipt] = Committer(
            database,
            store.receive,
            key=lambda arrival: arrival.identity,
            size=lambda arrival: 1_024 + len(arrival.sealed.raw),
            settings=CommitterSettings(bytes_max=8_388_608),
            observer=observer,
        )

    async def route(self, key: RouteKey) -> OpenRoute | None:
        """The route as it stands, at most `routes_every_ms` old; None where nothing is received there.

        Raises `Unavailable` when its secrets do not open, `Invalid` when one of them is no key: both are ours to mend.
        """
        known = self._routes.get(key)
        if known is None or self._now_ns() - known[0] >= self.settings.routes_every_ms * 1_000_000:
            return await asyncio.shield(self._opened(key))
        self._routes.move_to_end(key)
        return known[1]

    def _opened(self, key: RouteKey) -> asyncio.Task[OpenRoute | None]:
        """Open a route once for all who wait for it: at its turn of the second every delivery under way does."""
        opening = self._openings.get(key)
        if opening is None:
            opening = self._openings[key] = asyncio.create_task(self._remember(key))
            opening.add_done_callback(functools.partial(self._was_opened, key))
        return opening

    def _was_opened(self, key: RouteKey, done: asyncio.Task[OpenRoute | None]) -> None:
        """Take note of a failure even where everybody who waited has gone: it was theirs to hear."""
        self._openings.pop(key, None)
        if not done.cancelled():
            done.exception()

    async def _remember(self, key: RouteKey) -> OpenRoute | None:
        now_ns = self._now_ns()
        route = await self._open(key)
        self._routes[key] = (now_ns, route)
        self._routes.move_to_end(key)
        while len(self._routes) > self.settings.routes_max:
            self._routes.popitem(last=False)
        return route

    def known(self, key: RouteKey) -> OpenRoute | None:
        """The route as this process last saw it, without asking; None where it never did."""
        known = self._routes.get(key)
        return None if known is None else known[1]

    async def receive(self, route: OpenRoute, delivery: Delivery, verified: Verified) -> Receipt | Reason:
        """Make a verified delivery durable, or find that it is already; a delivery id that came twice is a reason.

        Raises what the database raises; then nothing may be told but to send it again.
        """
        named = route.webhook.delivery_id
        delivery_id = headers.only(delivery, named.encode()) if named is not None else None
        if delivery_id is Reason.HEADER_MISSING:
            delivery_id = None
        if isinstance(delivery_id, Reason):
            return delivery_id
        body_digest = digest_bytes(delivery.body)
        receipt_id = new_id("ing")
        sealed, key_id = self._vault.seal_bytes(body_place(receipt_id), delivery.body)
        receipt = await self._receipts.submit(
            Arrival(
                route=route.key,
                view_digest=route.view_digest,
                identity=identity_of(route.key, delivery_id, body_digest),
                nonce=new_token(),
                receipt_id=receipt_id,
                work_id=new_id("wrk"),
                secret_id=route.secret_ids[verified.secret_index],
                signed_at=verified.signed_at_us,
                event_type=_event_type(route, delivery),
                body_digest=body_digest,
                body_bytes=len(delivery.body),
                sealed=Sealed(sealed, key_id),
            )
        )
        self._observer.delivered(receipt.fate.value)
        if receipt.fate is Fate.QUARANTINED:
            log.warning("a delivery is quarantined", receipt=receipt.receipt_id, webhook=route.key.webhook)
        return receipt

    async def body(self, receipt_id: str) -> bytes:
        """The raw body of a receipt, a quarantined one's too, or of a page (`pag_…`).

        Raises `MissingOrDenied` when there is none or its time is over, `Unavailable` when it does not open.
        """
        is_page = receipt_id.startswith("pag_")
        sealed = await self._database.read(bodies.sealed_page if is_page else bodies.sealed_body, receipt_id)
        if sealed is None:
            raise MissingOrDenied(
                "this receipt has no body any more", hint="bodies are erased after ingress.bodies_kept_us"
            )
        place = page_place(receipt_id) if is_page else body_place(receipt_id)
        return self._vault.open_bytes(place, sealed.raw, sealed.key_id)

    async def erase_bodies(self, rows_max: int) -> int:
        """Erase bodies whose time is over, at most so many of each kind; how many it was."""
        asked = bodies.Erase(self.settings.bodies_kept_us, rows_max)
        return await self._database.transact(bodies.erase, asked)

    async def rewrap(self) -> int:
        """Seal every secret and body with the ring's current key; returns how many. Can be stopped and run again."""
        done = 0
        for shelf in (bodies.SECRETS, bodies.RECEIPTS, bodies.QUARANTINED, bodies.PAGES):
            done += await rewrap(self._database, self._vault, shelf)
        return done

    async def add_secret(self, key: RouteKey, secret: Secret, *, alone: bool) -> list[StoredSecret]:
        """Make a secret of a published route active; `alone` ends the others.

        Raises `MissingOrDenied` when no published view receives it, `Invalid` for a secret that is no key there,
        `Exhausted` for one too many.
        """
        webhook, url, _ = await self._published(key)
        open_verifier(webhook, [secret], url=url)
        secret_id = new_id("whs")
        sealed, key_id = self._vault.seal_bytes(secrets.place_of(secret_id), secret.reveal_bytes())
        added = await self._database.transact(
            secrets.add, NewSecret(secret_id, key, Sealed(sealed, key_id), alone)
        )
        self._routes.pop(key, None)
        if isinstance(added, DoonceError):
            raise added
        return added

    def turned_away(
        self, route: OpenRoute | None, reason: str, *, lost: bool, unseen: RouteKey | None = None
    ) -> None:
        """Count a delivery that got no receipt; `lost`: it may have been a true one (PROTOCOL I4).

        `unseen` names the route where this process has never opened it; whether there is one is found out when the
        counts are made durable. Of such names `routes_max` are kept, since anybody can make them up.
        """
        self._observer.turned_away(reason)
        if route is None:
            if lost and unseen is not None and self._has_room_for(unseen):
                self._unseen.setdefault(unseen, Counter())[reason] += 1
                self._lost_at_ns.setdefault(unseen, self._now_ns())
            return
        self._rejections.setdefault(route.key, Counter())[reason] += 1
        if lost and route.webhook.redelivery is Redelivery.NONE:
            self._losses[route.key] += 1
            self._lost_at_ns.setdefault(route.key, self._now_ns())

    def _has_room_for(self, key: RouteKey) -> bool:
        if key in self._unseen or len(self._unseen) < self.settings.routes_max:
            return True
        log.warning("a loss is not counted: too many routes that were never opened here", webhook=key.webhook)
        return False

    async def _look_at_unseen(self) -> None:
        """Count what was lost at routes that nobody had opened here, now that it can be asked which there are."""
        for key in tuple(self._unseen):
            try:
                route = await self.route(key)
            except (DoonceError, DatabaseFault) as error:
                log.warning("a route that was never opened here is not known yet", error=str(error))
                continue
            counts = self._unseen.pop(key)
            if route is None:
                continue
            self._rejections.setdefault(key, Counter()).update(counts)
            if route.webhook.redelivery is Redelivery.NONE:
                self._losses[key] += counts.total()

    async def flush_tallies(self) -> None:
        """Make what was turned away durable; what cannot be written now is kept for the next time."""
        await self._look_at_unseen()
        rejections, self._rejections = self._rejections, {}
        losses, self._losses = self._losses, Counter()
        unknown = {key: at for key, at in self._lost_at_ns.items() if key in self._unseen}
        lost_at_ns, self._lost_at_ns = self._lost_at_ns, unknown
        if not rejections:
            return
        now_ns = self._now_ns()
        noted = [
            Tally(key, dict(counts), losses[key], (now_ns - lost_at_ns.get(key, now_ns)) // 1_000)
            for key, counts in sorted(rejections.items(), key=_parts)
        ]
        try:
            await self._database.transact(tallies.note, noted)
        except (DoonceError, DatabaseFault) as error:
            log.warning("rejections could not be noted", error=str(error))
            for key, counts in rejections.items():
                self._rejections.setdefault(key, Counter()).update(counts)
            self._losses.update(losses)
            self._lost_at_ns |= lost_at_ns

    async def run(self) -> None:
        """Flush tallies until cancelled."""
        while True:
            await asyncio.sleep(self.settings.tally_seconds)
            await self.flush_tallies()

    async def drain(self) -> None:
        """Wait for the receipts that are under way, and flush what was counted."""
        await self._receipts.drain()
        await self.flush_tallies()

    async def _open(self, key: RouteKey) -> OpenRoute | None:
        try:
            webhook, url, digest = await self._published(key)
        except MissingOrDenied:
            return None
        stored = await self._database.read(secrets.active, key)
        if not stored:
            return None
        opened = [
            Secret(self._vault.open_bytes(secrets.place_of(one.id), one.sealed.raw, one.sealed.key_id))
            for one in stored
        ]
        verifier = open_verifier(webhook, opened, url=url)
        return OpenRoute(key, digest, webhook, verifier, tuple(one.id for one in stored))

    async def _published(self, key: RouteKey) -> tuple[Webhook, str | None, str]:
        view = await self._views.latest(key.org, key.installation, key.capability)
        webhook = (view.document.webhooks or {}).get(key.webhook)
        if webhook is None:
            raise MissingOrDenied("no published binding receives this webhook", hint="publish one that does")
        return webhook, (view.document.routes or {})[key.webhook].url, view.digest


def _event_type(route: OpenRoute, delivery: Delivery) -> str | None:
    named = route.webhook.events.type_header
    return None if named is None else headers.type_of(delivery, named)


def _parts(entry: tuple[RouteKey, Counter[str]]) -> tuple[str, ...]:
    return entry[0].parts
