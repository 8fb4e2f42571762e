"""The words of a provider's webhooks: how a delivery proves who sent it, and what the provider does about a lost one.

Part of the stored form of a binding view, as `model` is: immutable, without unknown fields. Header names are in lower
case, times are integer microseconds.
"""

from enum import Enum

from doonce.catalog.parts import Condition, Part


class Algorithm(str, Enum):
    """How a delivery proves that its sender knows the secret, or holds the private half of a key."""

    HMAC_SHA256 = "hmac-sha256"
    HMAC_SHA1 = "hmac-sha1"
    HMAC_SHA512 = "hmac-sha512"
    SHA256_SECRET_FIRST = "sha256-secret-first"  # noqa: S105 - an algorithm's name
    ED25519 = "ed25519"
    ECDSA_P256_SHA256 = "ecdsa-p256-sha256"
    SHARED_TOKEN = "shared-token"  # noqa: S105 - an algorithm's name
    BASIC = "basic"

    @property
    def signs(self) -> bool:
        """Whether the proof is over the content of the delivery, not only something that its sender knows."""
        return self not in (Algorithm.SHARED_TOKEN, Algorithm.BASIC)


class SignatureEncoding(str, Enum):
    """How the bytes of a signature are spelled in its header."""

    HEX = "hex"
    BASE64 = "base64"
    BASE64URL = "base64url"


class SecretForm(str, Enum):
    """How the bytes of a key are spelled in the secret that a person copies from the provider's pages."""

    TEXT = "text"
    HEX = "hex"
    BASE64 = "base64"


class StampFormat(str, Enum):
    """How a provider spells the time of signing."""

    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    RFC3339 = "rfc3339"


class HeaderPart(Part, frozen=True, kw_only=True):
    """Where in the headers something stands.

    The whole value of `header` after `prefix`; with a `separator`, each item of the value that begins with `prefix`,
    and items that do not are somebody else's.
    """

    header: str
    prefix: str
    separator: str


class Timestamp(Part, frozen=True, kw_only=True):
    """When the delivery was signed, and how far that may be from now, in either direction."""

    source: HeaderPart
    format: StampFormat
    past_us: int
    future_us: int


class Verifier(Part, frozen=True, kw_only=True):
    """How a delivery is believed. `content` is the template of what is signed (`signed_content`).

    `url_unescaped` are characters that the provider signs unescaped where they are percent-encoded in the URL.
    `body_digest_query` names the query parameter that holds the SHA-256 of the body, where the signed URL vouches
    for it.
    """

    algorithm: Algorithm
    proof: HeaderPart
    encoding: SignatureEncoding | None
    content: str | None
    secret: SecretForm
    secret_prefix: str
    timestamp: Timestamp | None
    url_unescaped: str
    body_digest_query: str | None


class BodyChallenge(Part, frozen=True, kw_only=True):
    """A verified delivery that only asks whether anybody is there: where all of `when` holds, this is the answer.

    The answer is the text at the pointer `echo`, or `constant`.
    """

    when: tuple[Condition, ...]
    echo: str | None
    constant: str | None
    content_type: str


class QueryChallenge(Part, frozen=True, kw_only=True):
    """A GET that asks whether anybody is there: the value of the parameter `echo` is the answer.

    All of `when` must be in the query. Whoever asks learns nothing but that the route is there.
    """

    when: dict[str, str]
    echo: str


class Route(Part, frozen=True, kw_only=True):
    """How one installation receives a webhook.

    `url` is the public address as the provider knows it, where that is signed. `accepts_loss` says why nobody looks
    for lost deliveries, where the provider sends each once and the pack knows no reconciliation (PROTOCOL I4).
    `reconcile` says whether the pack's reconciliation is run here, where it knows one. `handle` are the types of events
    that are handed to the application, `*` at an end standing for any ending; an event of no such type is kept and
    handed to nobody. `push` names the configured address that they are pushed to; without it the process that embeds
    doonce runs their handlers. `hydrate` are the pack's objects that are read as a whole before an event about one is
    handed over.
    """

    url: str | None
    accepts_loss: str | None
    reconcile: bool
    handle: tuple[str, ...]
    push: str | None
    hydrate: tuple[str, ...]


class Redelivery(str, Enum):
    """What the provider does after a delivery that got no success."""

    NONE = "none"
    WINDOW = "window"


class BodyFormat(str, Enum):
    """What a delivery's body is read as, once it is durable."""

    JSON = "json"
    RAW = "raw"


class Hydration(Part, frozen=True, kw_only=True):
    """How the whole object that an event is about is read, by its remote id.

    `operation` is a read of this pack. In its answer, `fields` is the place of an object whose names are the provider's
    fields. An answer with one of `missing_statuses` says that there is no such object, or none any more.
    """

    operation: str
    fields: str
    missing_statuses: tuple[int, ...]


class ObjectRule(Part, frozen=True, kw_only=True):
    """What events of some types say about one kind of the pack's objects. Places are RFC 6901 pointers in an event.

    `remote_id` is the provider's id. `fields` is the place of an object whose names are the provider's fields; or
    `field_name` and `field_value` are the places of one field's name and value. `deletes` are those types that say that
    the object is gone. `hydrate` is the read of the whole of it, None where the pack knows none.
    """

    types: tuple[str, ...]
    remote_id: str
    fields: str | None
    field_name: str | None
    field_value: str | None
    deletes: tuple[str, ...]
    hydrate: Hydration | None


class EventRule(Part, frozen=True, kw_only=True):
    """Which events a delivery tells of. Places are RFC 6901 pointers.

    `each` is the list whose elements are the events, None where the whole body is one. In an event, `type` is the place
    of its type; `type_header` is the header that has it where the body does not, and where there is neither it is the
    webhook's name. `identity` are the places that together name an event for ever (PROTOCOL I2). Without them the
    delivery names its event: by its id, or by its raw body where `stable_bodies` says that a redelivery has the same
    bytes. `object_id` are the places that together name the provider's object that an event is about: the application
    is told of one object's events one after another. `objects` says what they say about the pack's own objects, by
    their names.
    """

    format: BodyFormat
    each: str | None
    type: str | None
    type_header: str | None = None
    identity: tuple[str, ...]
    object_id: tuple[str, ...]
    objects: dict[str, ObjectRule]
    stable_bodies: bool


class Answers(Part, frozen=True, kw_only=True):
    """What the provider is told: that a delivery is durable, and, with `overload_status`, to send it again later."""

    status: int
    body: str
    content_type: str
    overload_status: int
    retry_after_seconds: int | None


class PageCursor(Part, frozen=True, kw_only=True):
    """Where an answer has what names its next page: a JSON place, a header, or a place in its last item. One is set."""

    json: str | None
    header: str | None
    last_item: str | None


class Reconciliation(Part, frozen=True, kw_only=True):
    """The read that finds the events of a time, page by page: what lost deliveries would have told (PROTOCOL I4).

    `query` are parameters beside the operation's own, with `{since}`, `{until}` and `{cursor}`; those with a cursor are
    left out for the first page. The window is wider than the loss by `before_us` and `after_us`. `items` is the list of
    events in an answer. `cursor` leads to the next page; without `more` its absence is the end, with `more` the end is
    where that does not hold. `newest_first`: the provider lists them so. In an item, `type`, `identity` and `object_id`
    are where the webhook's own event rule has them, unless they are set.
    """

    operation: str
    query: dict[str, str]
    time_format: StampFormat
    before_us: int
    after_us: int
    items: str
    cursor: PageCursor | None
    more: Condition | None
    newest_first: bool
    pages_max: int
    type: str | None
    identity: tuple[str, ...]
    object_id: tuple[str, ...]


class Webhook(Part, frozen=True, kw_only=True):
    """Everything that is known about one kind of delivery of a provider.

    `delivery_id` is the header that names a delivery, the same on each redelivery (PROTOCOL I1). The provider counts a
    delivery as failed that has no answer within `response_deadline_us`.
    """

    summary: str
    body_bytes_max: int
    response_deadline_us: int
    answers: Answers
    events: EventRule
    verifier: Verifier
    body_challenge: BodyChallenge | None
    query_challenge: QueryChallenge | None
    delivery_id: str | None
    redelivery: Redelivery
    redelivery_window_us: int | None
    reconciliation: Reconciliation | None

    @property
    def reads(self) -> frozenset[str]:
        """The pack's reads that something of this webhook names; a binding need not offer them."""
        whole = [told.hydrate.operation for told in self.events.objects.values() if told.hydrate is not None]
        return frozenset(whole if self.reconciliation is None else [*whole, self.reconciliation.operation])
