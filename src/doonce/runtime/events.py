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
    """What an event says about one object of the provider's, as the binding maps it; or what the whole object says.

    `link` and `local_ref` are None where no record of the application's is linked to it. `deleted`: the provider says
    that it is gone; its link is suspended then, and the record stays the application's to keep. `read_at_us` is the
    time before the whole object was read, microseconds UTC, None where the binding does not ask for that;
    `raw_document` is what was read then, byte for byte.
    """

    kind: str
    remote_id: str
    deleted: bool
    link: str | None
    local_ref: str | None
    raw_fields: bytes = field(repr=False)
    read_at_us: int | None = None
    raw_document: bytes | None = field(default=None, repr=False)

    @property
    def fields(self) -> dict[str, JsonValue]:
        """The application's names of the fields that the provider owns, with exact values.

        Those that the event has; or where the whole object was read, those that it has.
        """
        value = json.loads(self.raw_fields, bytes_max=len(self.raw_fields))
        return value if isinstance(value, dict) else {}

    @property
    def missing(self) -> bool:
        """Whether the whole object was asked for, and the provider had none: `fields` are the event's own then."""
        return self.read_at_us is not None and self.raw_document is None

    @property
    def document(self) -> JsonValue:
        """The provider's answer with the whole object, its numbers exact; None where there is none.

        It is made anew each time, so nobody can change it.
        """
        raw = self.raw_document
        return None if raw is None else json.loads(raw, bytes_max=len(raw))


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
            told.kind,
            told.remote_id,
            told.deleted,
            told.link,
            told.local_ref,
            bytes(told.fields),
            None if told.read is None else told.read.at_us,
            None if told.read is None else told.read.document,
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
