"""Derives events from receipts: the run of the family `event`."""

from __future__ import annotations

import random

import structlog

from doonce.base.errors import DoonceError
from doonce.base.ids import new_id
from doonce.base.keys import frame
from doonce.catalog.service import Views
from doonce.db.committer import Committer, CommitterSettings, FlushObserver
from doonce.db.database import Database
from doonce.db.faults import DatabaseFault
from doonce.events import store
from doonce.events.model import Derived, Undecodable, derive
from doonce.events.store import Derivation, NewEvent, Unread
from doonce.events.tables import event
from doonce.ingress.receipts import StoredReceipt, body_place
from doonce.ingress.rewrapping import rewrap, shelf
from doonce.principals.vault import Vault
from doonce.work.model import Event, RetryPolicy, Settled, Settlement

log = structlog.get_logger()
POLICY = RetryPolicy(base_us=1_000_000, cap_us=60_000_000, failing_us_max=604_800_000_000)
"""What hinders a derivation is ours to mend (a key that is missing, a view), so it is tried for a week."""


FINISH_BYTES_MAX = 16_777_216
"""One delivery's events with their rows: the largest body, and some 300 bytes for each of the most events."""


class Deriver:
    """Runs claimed derivations."""

    def __init__(
        self,
        database: Database,
        views: Views,
        vault: Vault,
        deployment: str,
        observer: FlushObserver | None = None,
    ) -> None:
        self._views = views
        self._vault = vault
        self._deployment = deployment
        self._finishes: Committer[Derivation, Settled] = Committer(
            database,
            store.finish_derivations,
            key=lambda derivation: derivation.settlement.claimed.item.id,
            size=lambda derivation: 1_024 + sum(256 + len(made.sealed) for made in derivation.events),
            settings=CommitterSettings(bytes_max=FINISH_BYTES_MAX),
            observer=observer,
        )

    async def run(self, unread: Unread) -> None:
        """Make the receipt's events, or end its item as dead with the reason: the receipt stays either way."""
        try:
            derivation = await self._derivation(unread)
        except DoonceError as error:
            derivation = self._ended(unread, self._later(unread, str(error)))
        try:
            await self._finishes.submit(derivation)
        except (DoonceError, DatabaseFault) as error:
            log.warning("a derivation could not be finished", item=unread.claimed.item.id, error=str(error))

    async def _derivation(self, unread: Unread) -> Derivation:
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
        found = derive(webhook.events, receipt.route.parts, receipt.identity, body)
        if isinstance(found, Undecodable):
            dead = Settlement(claimed, Event.DIE, failure_class="undecodable", summary=found.reason)
            return self._ended(unread, dead)
        done = Settlement(claimed, Event.SUCCEED, summary=f"{len(found)} events")
        return self._ended(unread, done, receipt, tuple(self._sealed(one) for one in found))

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

    def _sealed(self, derived: Derived) -> NewEvent:
        event_id = new_id("evt")
        sealed, key_id = self._vault.seal_bytes(content_place(event_id), derived.content)
        return NewEvent(event_id, derived.identity, derived.type, derived.position, sealed, key_id)


async def rewrap_events(database: Database, vault: Vault) -> int:
    """Seal every event's content with the ring's current key; returns how many. Can be stopped and run again."""
    return await rewrap(database, vault, CONTENTS)


def content_place(event_id: str) -> str:
    """What an event's content is sealed for."""
    return frame("event_content", event_id)


CONTENTS = shelf(event, "id", content_place)
