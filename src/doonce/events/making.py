"""From what was read to events that can be made: ids, sealed contents, whose work each is, what is gone."""

from __future__ import annotations

from collections.abc import Sequence

from doonce.base.ids import new_id
from doonce.base.json import loads
from doonce.base.keys import frame
from doonce.base.patterns import best
from doonce.catalog.compile import BindingView
from doonce.catalog.webhooks import EventRule
from doonce.events.mapping import Told, told_of
from doonce.events.model import Derived, handed_to, is_hydrated, lane_of
from doonce.events.store import NewEvent, Source
from doonce.links.model import RemoteKey
from doonce.ownership.model import Family
from doonce.principals.service import Principals
from doonce.principals.vault import Vault
from doonce.work.model import NewItem, Scope


class EventMaker:
    """Makes events of what a receipt or a page tells; nothing of it is stored here."""

    def __init__(self, vault: Vault, principals: Principals) -> None:
        self._vault = vault
        self._principals = principals

    async def made(
        self, view: BindingView, rule: EventRule, source: Source, found: Sequence[Derived]
    ) -> tuple[NewEvent, ...]:
        """The events, in their order, each with its id and, where the binding routes it, the work of handing it over.

        Raises `DoonceError` where the principal that the binding names cannot be looked up.
        """
        gone = await self._gone(view, rule, found)
        return tuple(self._event(view, rule, source, one, gone.get(one.position)) for one in found)

    async def _gone(
        self, view: BindingView, rule: EventRule, found: Sequence[Derived]
    ) -> dict[int, RemoteKey]:
        """The objects that events say are deleted, by the events' positions."""
        told = {one.position: _deleted(view, rule, one) for one in found}
        deleted = {position: one for position, one in told.items() if one is not None}
        if not deleted:
            return {}
        document = view.document
        org, installation = document.org, document.installation
        principal_id = await self._principals.id_of(org, installation, document.principal)
        return {
            position: (org, installation, principal_id, one.kind, one.remote_id)
            for position, one in deleted.items()
        }

    def _event(
        self, view: BindingView, rule: EventRule, source: Source, derived: Derived, gone: RemoteKey | None
    ) -> NewEvent:
        event_id = new_id("evt")
        sealed, key_id = self._vault.seal_bytes(content_place(event_id), derived.content)
        family = _first_family(view, rule, source.route.webhook, derived)
        work = None if family is None else _work(family, event_id, source, derived)
        return NewEvent(
            event_id, derived.identity, derived.type, derived.position, sealed, key_id, work, gone
        )


def _first_family(view: BindingView, rule: EventRule, webhook: str, derived: Derived) -> Family | None:
    """Whose work an event is first: its object's reader's, or at once that of whoever hands it over; or nobody's."""
    route = (view.document.routes or {})[webhook]
    family = handed_to(route, derived.type)
    if family is None or not route.hydrate:
        return family
    content = loads(derived.content, bytes_max=len(derived.content))
    told = told_of(rule, view.document.fields, derived.type, content)
    return Family.HYDRATE if is_hydrated(route, told) else family


def _deleted(view: BindingView, rule: EventRule, derived: Derived) -> Told | None:
    """The object that an event says is deleted."""
    if not any(best(told.deletes, derived.type) for told in rule.objects.values()):
        return None
    content = loads(derived.content, bytes_max=len(derived.content))
    told = told_of(rule, view.document.fields, derived.type, content)
    return told if told is not None and told.deleted else None


def _work(family: Family, event_id: str, source: Source, derived: Derived) -> NewItem:
    return NewItem(
        id=new_id("wrk"),
        family=family.value,
        scope=Scope(source.route.org, source.route.installation),
        subject_kind="event",
        subject_id=event_id,
        view_digest=source.view_digest,
        source_lane=lane_of(source.route.parts, derived.object_id),
    )


def content_place(event_id: str) -> str:
    """What an event's content is sealed for."""
    return frame("event_content", event_id)
