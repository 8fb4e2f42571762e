"""Derives events from receipts: the run of the family `event`."""

from __future__ import annotations

import random
from typing import Final, Protocol

import structlog

from doonce.base.errors import DoonceError
from doonce.catalog.service import Views
from doonce.db.committer import Committer, CommitterSettings, FlushObserver
from doonce.db.database import Database
from doonce.db.faults import DatabaseFault
from doonce.events import store
from doonce.events.making import EventMaker, content_place
from doonce.events.model import Undecodable, derive
from doonce.events.objects import OBJECTS
from doonce.events.store import Derivation, Made, NewEvent, Unread, source_of
from doonce.events.tables import event
from doonce.ingress.receipts import StoredReceipt, body_place
from doonce.ingress.rewrapping import rewrap, shelf
from doonce.principals.service import Principals
from doonce.principals.vault import Vault
from doonce.work.model import Event, RetryPolicy, Settled, Settlement

log = structlog.get_logger()
POLICY = RetryPolicy(base_us=1_000_000, cap_us=60_000_000, failing_us_max=604_800_000_000)
"""What hinders a derivation is ours to mend (a key that is missing, a view), so it is tried for a week."""


FINISH_BYTES_MAX = 16_777_216
"""One delivery's events with their rows: the largest body, and some 640 bytes for each of the most events."""


class EventObserver(FlushObserver, Protocol):
    """Where derivation reports what an operator looks for."""

    def event(self, fate: str) -> None: ...


NOBODY: Final = "nobody"
KNOWN: Final = "known"


class Deriver:
    """Runs claimed derivations."""

    def __init__(
        self,
        database: Database,
        views: Views,
        vault: Vault,
        principals: Principals,
        deployment: str,
        observer: EventObserver | None = None,
    ) -> None:
        self._views = views
        self._vault = vault
        self._maker = EventMaker(vault, principals)
        self._deployment = deployment
        self._observer = observer
        self._finishes: Committer[Derivation, Made] = Committer(
            database,
            store.finish_derivations,
            key=lambda derivation: derivation.settlement.claimed.item.id,
            size=lambda derivation: 1_024 + sum(640 + len(made.sealed) for made in derivation.events),
            settings=CommitterSettings(bytes_max=FINISH_BYTES_MAX),
            observer=observer,
        )

    async def run(self, unread: Unread) -> None:
        """Make the receipt's events, or end its item as dead with the reason: the receipt stays either way."""
        try:
            derivation = await self.derivation(unread)
            made = await self._finishes.submit(derivation)
        except (DoonceError, DatabaseFault) as error:
            log.warning("a derivation could not be finished", item=unread.claimed.item.id, error=str(error))
            return
        if self._observer is not None and made.settled is not Settled.STALE:
            for event in derivation.events:
                self._observer.event(fate_of(event) if event.id in made.new else KNOWN)

    async def derivation(self, unread: Unread) -> Derivation:
        """What the receipt's body comes to, with every id that is needed; nothing of it is stored yet."""
        try:
            return await self._read(unread)
        except DoonceError as error:
            return self._ended(unread, self._later(unread, str(error)))

    async def _read(self, unread: Unread) -> Derivation:
        receipt, claimed = unread.receipt, unread.claimed
        if receipt is None:
            return self._ended(unread, Settlement(claimed, Event.SKIP, summary="there is no such receipt"))
        if receipt.sealed is None:
            dead = Settlement(
                claimed, Event.DIE, failure_class="body_erased", summary="the body's time is over"
            )
            return self._ended(unread, dead)
        view = await self._views.get(receipt.view_digest)
        webhook = (view.document.webhooks or {})[receipt.route.webhook]
        body = self._vault.open_bytes(body_place(receipt.id), receipt.sealed.raw, receipt.sealed.key_id)
        found = derive(webhook.events, receipt.route.parts, receipt.identity, body, receipt.event_type)
        if isinstance(found, Undecodable):
            dead = Settlement(claimed, Event.DIE, failure_class="undecodable", summary=found.reason)
            return self._ended(unread, dead)
        events = await self._maker.made(view, webhook.events, source_of(receipt), found)
        handed = sum(one.work is not None for one in events)
        done = Settlement(claimed, Event.SUCCEED, summary=_summary(len(events), handed))
        return self._ended(unread, done, receipt, events)

    def _ended(
        self,
        unread: Unread,
        settlement: Settlement,
        receipt: StoredReceipt | None = None,
        events: tuple[NewEvent, ...] = (),
    ) -> Derivation:
        if unread.claimed.poison:
            settlement = Settlement(
                unread.claimed, Event.DIE, failure_class="poison", summary="it killed its worker"
            )
            events = ()
        if settlement.event is Event.DIE:
            item = unread.claimed.item
            log.warning(
                "a derivation is dead", receipt=item.subject_id, item=item.id, why=settlement.failure_class
            )
        return Derivation(settlement, self._deployment, receipt, events)

    def _later(self, unread: Unread, why: str) -> Settlement:
        item = unread.claimed.item
        delay_us = POLICY.delay_us(item.failures + 1, random.random())  # noqa: S311 (spreads retries)
        since_us = unread.claimed.lease_until - (item.first_failed_at or unread.claimed.lease_until)
        if since_us >= POLICY.failing_us_max:
            return Settlement(unread.claimed, Event.DIE, failure_class="not_derived", summary=why)
        return Settlement(unread.claimed, Event.RETRY, delay_us=delay_us, failed=True, summary=why)


def fate_of(event: NewEvent) -> str:
    """Whose a new event is, for the metrics."""
    return NOBODY if event.work is None else event.work.family


def _summary(events: int, handed: int) -> str:
    """What an operator is told; whether an event was new is only known in the transaction."""
    told = "1 event" if events == 1 else f"{events} events"
    return (
        told if handed == events else f"{told}, {events - handed} of a type that the binding hands to nobody"
    )


async def rewrap_events(database: Database, vault: Vault) -> int:
    """Seal every event's content, and every object that was read for one, with the ring's current key; how many.

    Can be stopped and run again.
    """
    return await rewrap(database, vault, CONTENTS) + await rewrap(database, vault, OBJECTS)


CONTENTS = shelf(event, "id", content_place)
