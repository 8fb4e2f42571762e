"""Events as an application's handlers get them, and which handler takes which (PROTOCOL K3). Pure.

    handlers = EventHandlers()

    @handlers.on("shop.order.paid")
    def paid(connection, event):
        connection.execute(...)

A name is the pack's and the event's type; `shop.*` stands for every type of the pack, `shop.order.*` for those that
begin so. One handler takes an event: the one with the most particular name.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from doonce.base import json
from doonce.base.errors import Invalid
from doonce.base.json import JsonValue
from doonce.base.limits import LIMITS, check_text
from doonce.base.patterns import best, is_pattern
from doonce.wire import EventNotice

H = TypeVar("H", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """What an event says about one object of the provider's, as the binding maps it.

    `link` and `local_ref` are None where no record of the application's is linked to it. `deleted`: the provider says
    that it is gone; its link is suspended then, and the record stays the application's to keep.
    """

    kind: str
    remote_id: str
    deleted: bool
    link: str | None
    local_ref: str | None
    raw_fields: bytes = field(repr=False)

    @property
    def fields(self) -> dict[str, JsonValue]:
        """The application's names of the fields that the provider owns and this event has, with exact values."""
        value = json.loads(self.raw_fields, bytes_max=len(self.raw_fields))
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Event:
    """What a provider said, once. `id` names it for ever; `raw` is its part of the delivery, byte for byte.

    `object` is what the binding maps of it, None where the event is about none of the pack's objects.
    """

    id: str
    pack: str
    type: str
    org: str
    installation: str
    capability: str
    webhook: str
    receipt_id: str
    recorded_at_us: int
    raw: bytes = field(repr=False)
    object: ObjectEvent | None = None

    @property
    def name(self) -> str:
        """What handlers are registered for: the pack's name, a full stop, the type."""
        return f"{self.pack}.{self.type}"

    @property
    def content(self) -> JsonValue:
        """The JSON value, its numbers exact (`int`, `Decimal`); made anew each time, so nobody can change the event.

        Raises `Invalid` for an event whose delivery was no JSON: `raw` has it.
        """
        return json.loads(self.raw, bytes_max=len(self.raw))


def event_of(notice: EventNotice) -> Event:
    """The event of a notice."""
    told = notice.object
    return Event(
        id=notice.event_id,
        pack=notice.pack,
        type=notice.type,
        org=notice.org,
        installation=notice.installation,
        capability=notice.capability,
        webhook=notice.webhook,
        receipt_id=notice.receipt_id,
        recorded_at_us=notice.recorded_at_us,
        raw=notice.content,
        object=None
        if told is None
        else ObjectEvent(
            told.kind, told.remote_id, told.deleted, told.link, told.local_ref, bytes(told.fields)
        ),
    )


class EventHandlers(Generic[H]):
    """The handlers of one application, by the names that they take."""

    def __init__(self) -> None:
        self._handlers: dict[str, H] = {}

    def __bool__(self) -> bool:
        return bool(self._handlers)

    def __iter__(self) -> Iterator[str]:
        """The registered names."""
        return iter(self._handlers)

    def on(self, name: str) -> Callable[[H], H]:
        """Register the decorated function for `pack.type`, or for all that begin so where `name` ends with `*`.

        Raises `Invalid` for a text that is no such name, and for one that is taken.
        """
        check_text("the event", name, 2 * LIMITS.name_bytes_max + 1)
        pack, _, kind = name.partition(".")
        if not pack or not kind or "*" in pack or not is_pattern(name):
            raise Invalid(f"{name!r} is no event", hint='write "pack.type", "pack.*" or "pack.beginning.*"')
        if name in self._handlers:
            raise Invalid(f"{name!r} has a handler already", hint="one event is one handler's")

        def register(handler: H) -> H:
            self._handlers[name] = handler
            return handler

        return register

    def find(self, event: Event) -> H | None:
        """The handler with the most particular name for this event, None where none takes it."""
        name = best(self._handlers, event.name)
        return None if name is None else self._handlers[name]
