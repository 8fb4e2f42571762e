"""Handing events to an application: to handlers in this process, or by a push to the application's own.

Each new event that its binding routes gets one work item, in the transaction that makes the event. Who claims it is its
family: `handler` where the process that embeds doonce has the handlers, `push` where the application is another one.

| what is durable                                 | after a crash here                                               |
|-------------------------------------------------|------------------------------------------------------------------|
| the receipt, its derivation waiting or claimed  | derived (again): nothing was made, or nothing is lost            |
| events, their work, the derivation's end: one   | the work is claimed                                              |
| transaction                                     |                                                                  |
| the claim; the handler has not committed        | its transaction is rolled back; claimed again at the lease's end |
| the handler's own transaction                   | handed over again: `inbox.once` says False there, nothing is     |
|                                                 | done twice, and the work ends                                    |
| the work's end                                  | nothing is left to do                                            |

No transaction of ours is open while a handler runs (PROTOCOL K3). Events of one object of the provider are one source
lane: the next is handed over when its predecessor's work has ended, and waits behind one that is dead (L3).

| what comes back                                  | the work item                                   |
|--------------------------------------------------|-------------------------------------------------|
| the handler returns; a whole, fitting receipt    | succeeded                                       |
| an error, no answer, another answer, no handler  | retry, with what may be shown of it; at the     |
|                                                  | bound dead (`not_delivered`), for `replay`      |
| its worker dies of it, again and again           | claimed alone, then dead (`poison`)             |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import msgspec
import structlog

from doonce.base.errors import DoonceError, Unavailable
from doonce.base.json import dumps, loads
from doonce.base.records import Record
from doonce.catalog.compile import BindingView
from doonce.catalog.service import Views
from doonce.db.database import Database
from doonce.db.faults import DatabaseFault
from doonce.db.transaction import Txn
from doonce.effects.telling import Inbox, again, needless, poisoned, push, told
from doonce.events import objects
from doonce.events import store as events
from doonce.events.making import content_place
from doonce.events.mapping import fields_of, told_of
from doonce.events.objects import ObjectRead, object_place
from doonce.events.store import StoredEvent
from doonce.http import Client
from doonce.links import store as links
from doonce.principals.service import Principals
from doonce.principals.vault import Vault
from doonce.wire.events import EventNotice, EventObject, EventObjectRead, EventReceipt, seal_event
from doonce.work import store as work
from doonce.work.model import Claimed, RetryPolicy, Settlement
from doonce.work.service import Worker

log = structlog.get_logger()

Hand = Callable[[BindingView, EventNotice], Awaitable[str]]
"""Hands an event over and says how in a few words that may be shown; raises a `DoonceError`, its text fit to be shown,
when the event has to be handed over again."""


class Handing(Record, frozen=True):
    """A claimed event, None where its row is not there, and what was read of its object first, if anything was."""

    claimed: Claimed
    event: StoredEvent | None
    object: ObjectRead | None


def claim_handings(request: work.ClaimRequest) -> Txn[list[Handing]]:
    """Claim events with their content and their objects, sealed."""
    claimed = yield from work.claim(request)
    found = yield from events.load(one.item.subject_id for one in claimed)
    read = yield from objects.load(one.item.subject_id for one in claimed if one.item.predecessor is not None)
    return [Handing(one, found.get(one.item.subject_id), read.get(one.item.subject_id)) for one in claimed]


@dataclass(frozen=True, slots=True)
class HandlerSettings:
    """How events are handed over. Each is a line in docs/settings.md.

    `policy`: a handler that fails is tried for three days, so that a weekend's outage kills nothing.
    `threads`: how many handlers that are plain functions run at once; others wait for one of them. `call_budget_ns`:
    how long an application is waited for in one push.
    """

    policy: RetryPolicy = field(
        default_factory=lambda: RetryPolicy(
            cap_us=600_000_000, failures_max=1_000, failing_us_max=259_200_000_000
        )
    )
    threads: int = 16
    call_budget_ns: int = 30_000_000_000


class Hander:
    """Runs claimed events of one family."""

    def __init__(
        self,
        database: Database,
        views: Views,
        vault: Vault,
        principals: Principals,
        hand: Hand,
        settings: HandlerSettings,
    ) -> None:
        self._database = database
        self._principals = principals
        self._views = views
        self._vault = vault
        self._hand = hand
        self._settings = settings
        self.worker: Worker[Handing] | None = None

    async def run(self, handing: Handing) -> None:
        """Hand the event over, and end its work or leave it for another time."""
        claimed = handing.claimed
        settlement = poisoned(claimed) if claimed.poison else await self._handed(handing)
        if self.worker is None:
            raise AssertionError("a hander belongs to a worker")
        try:
            await self.worker.settlements.submit(settlement)
        except (DoonceError, DatabaseFault) as error:
            log.warning("an event's work could not be settled", item=claimed.item.id, error=str(error))

    async def _handed(self, handing: Handing) -> Settlement:
        claimed, event = handing.claimed, handing.event
        if event is None:
            return needless(claimed, "there is no such event")
        try:
            view = await self._views.get(event.view_digest)
            return told(claimed, await self._hand(view, await self._notice(view, event, handing.object)))
        except DoonceError as error:
            return again(claimed, str(error), self._settings.policy, self._settings.policy.failures_max)

    async def _notice(self, view: BindingView, event: StoredEvent, read: ObjectRead | None) -> EventNotice:
        content = self._vault.open_bytes(content_place(event.id), event.sealed.raw, event.sealed.key_id)
        return seal_event(
            event_id=event.id,
            pack=view.document.pack.partition("@")[0],
            type=event.type,
            org=event.route.org,
            installation=event.route.installation,
            capability=event.route.capability,
            webhook=event.route.webhook,
            receipt_id=event.receipt_id,
            recorded_at_us=event.derived_at,
            content=content,
            object=await self._object(view, event, content, read),
        )

    async def _object(
        self, view: BindingView, event: StoredEvent, content: bytes, read: ObjectRead | None
    ) -> EventObject | None:
        """What the binding maps of the event, or of the whole object, with the link that the object has now."""
        document = view.document
        rule = (document.webhooks or {})[event.route.webhook].events
        if not rule.objects:
            return None
        told = told_of(rule, document.fields, event.type, loads(content, bytes_max=len(content)))
        if told is None:
            return None
        principal_id = await self._principals.id_of(document.org, document.installation, document.principal)
        key = (document.org, document.installation, principal_id, told.kind, told.remote_id)
        link = (await self._database.read(links.find_remote, [key])).get(key)
        whole = None if read is None else self._opened(event, read)
        fields = told.fields
        if whole is not None and whole.document is not None:
            fields = fields_of(rule.objects[told.kind], document.fields.get(told.kind), whole.document)
        return EventObject(
            kind=told.kind,
            remote_id=told.remote_id,
            deleted=told.deleted,
            link=None if link is None else link.id,
            local_ref=None if link is None else link.local_ref,
            fields=msgspec.Raw(dumps(dict(fields))),
            read=whole,
        )

    def _opened(self, event: StoredEvent, read: ObjectRead) -> EventObjectRead:
        sealed = read.sealed
        place = object_place(event.id)
        document = None if sealed is None else self._vault.open_bytes(place, sealed.raw, sealed.key_id)
        return EventObjectRead(at_us=read.read_at, document=document)


class Pusher:
    """Hands events to applications that are other processes, at the addresses that the deployment's settings have."""

    def __init__(self, client: Client, inboxes: Mapping[str, Inbox], settings: HandlerSettings) -> None:
        self._client = client
        self._inboxes = inboxes
        self._settings = settings

    async def hand(self, view: BindingView, notice: EventNotice) -> str:
        """Push an event to where its binding's route says; see `Hand`."""
        name = (view.document.routes or {})[notice.webhook].push
        inbox = None if name is None else self._inboxes.get(name)
        if inbox is None:
            raise Unavailable(f"no inbox named {name!r} is configured")
        receipt = await push(self._client, inbox, notice, EventReceipt, self._settings.call_budget_ns)
        if receipt.event_id != notice.event_id or receipt.notice_digest != notice.digest:
            raise Unavailable("the inbox's receipt is about something else")
        return f"{receipt.state.value}: {receipt.receipt_id}"
