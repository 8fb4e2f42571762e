"""The words of a provider's contract: what an operation sends, what an answer means, what a probe proves.

These types are the stored form of a binding view: they are encoded to canonical JSON and decoded from it, so
each refuses unknown fields and wrong types, and a new field needs a new format name (`compile.VIEW_FORMAT`).
Times are integer microseconds, positions in JSON documents are RFC 6901 pointers ("" is the whole document).
"""

from enum import Enum
from typing import Any, Final

from msgspec import UNSET, UnsetType, field

from doonce.catalog.parts import Condition, Part, Scalar
from doonce.catalog.webhooks import Route, Webhook


class Method(str, Enum):
    """The HTTP methods that an operation may use."""

    GET = "GET"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"


class Outcome(str, Enum):
    """How one attempt ended (authority section 6); each value has exactly one automatic next action."""

    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    RETRYABLE_PRE_DISPATCH = "RETRYABLE_PRE_DISPATCH"
    REPLAY_SAFE_RETRY = "REPLAY_SAFE_RETRY"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"


class Verdict(str, Enum):
    """What a probe proves about an attempt whose outcome is unknown (PROTOCOL H1)."""

    EFFECT_PROVEN = "effect_proven"
    NO_EFFECT_PROVEN = "no_effect_proven"
    SUPERSEDED = "superseded"
    CANNOT_TELL = "cannot_tell"


class Action(str, Enum):
    """What a pack says that an answer with some status means."""

    ACCEPTED = "accepted"
    ACCEPTED_FOR_LATER = "accepted_for_later"
    REJECTED = "rejected"
    NO_EFFECT = "no_effect"
    UNKNOWN = "unknown"
    VERIFY = "verify"


class ReplayKind(str, Enum):
    """Why sending the same request again is harmless, if it is."""

    NONE = "none"
    READ = "read"
    IDEMPOTENCY_KEY = "idempotency_key"
    PRECONDITION = "precondition"


class LinkUse(str, Enum):
    """What an operation does with the remote id of the record that it is about."""

    NONE = "none"
    EXISTING = "existing"
    CREATES = "creates"
    ENDS = "ends"


class SourceFailure(str, Enum):
    """What a dead or unknown head does to the rest of its source lane (PROTOCOL L3)."""

    BLOCK = "block"
    PASS = "pass"  # noqa: S105 - a lane's, not a pass word


class AuthScheme(str, Enum):
    """How the principal's secret travels."""

    NONE = "none"
    HEADER = "header"
    BASIC = "basic"


class BodyKind(str, Enum):
    """What an operation's body is made of."""

    NONE = "none"
    JSON = "json"
    TEXT = "text"


class ParameterKind(str, Enum):
    """Where a binding's parameter may stand: as one path segment, or as several."""

    SEGMENT = "segment"
    PATH = "path"


class CompareKind(str, Enum):
    """How a probe's answer is compared with the frozen request."""

    JSON = "json"
    LINES = "lines"
    IDEMPOTENCY_KEY = "idempotency_key"


class TimeFormat(str, Enum):
    """How a provider spells the time of a record's last change."""

    RFC3339 = "rfc3339"
    HTTP_DATE = "http_date"


class CompletionMode(str, Enum):
    """Who moves: doonce pushes a completion to the application, or the application asks for it."""

    PULL = "pull"
    PUSH = "push"


class Auth(Part, frozen=True, kw_only=True):
    """How requests are authenticated; the secret itself is never here."""

    scheme: AuthScheme
    header: str
    prefix: str


class ValueSource(Part, frozen=True, kw_only=True):
    """One place of an answer, or the last path segment of the request's target; exactly one is set."""

    json: str | None = None
    header: str | None = None
    target_segment: bool = False


class OutcomeRule(Part, frozen=True, kw_only=True):
    """The meaning of the statuses in `statuses` (inclusive ranges), where `body` holds, if it is set."""

    statuses: tuple[tuple[int, int], ...]
    action: Action
    body: Condition | None = None
    settles_earlier: bool = False
    retry_after_default_us: int | None = None
    retry_after_us_max: int | None = None


class BodyRule(Part, frozen=True, kw_only=True):
    """How the body is built: `fields_at` and `members` for JSON, `text_from` for text."""

    kind: BodyKind
    content_type: str | None = None
    fields_at: str | None = None
    members: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Scalar] = field(default_factory=dict)
    text_from: str | None = None


class Replay(Part, frozen=True, kw_only=True):
    """Why, and for how long after the first dispatch, a repetition is harmless (PROTOCOL D7)."""

    kind: ReplayKind
    window_us: int | None = None
    header: str | None = None
    if_none_match: bool = False
    if_match: str | None = None


class Compare(Part, frozen=True, kw_only=True):
    """One comparison of a probe; see `docs/packs.md` for what each kind does."""

    kind: CompareKind
    request: str = ""
    response: str = ""
    empty_is_null: bool = False
    content_lines: bool = False
    ordered: bool = True
    ignore: tuple[str, ...] = ()


class ChangedAt(Part, frozen=True, kw_only=True):
    """What the time of the record's last change says when the comparison failed."""

    source: ValueSource
    format: TimeFormat
    skew_us: int
    before: Verdict
    after: Verdict


class Probe(Part, frozen=True, kw_only=True):
    """How an unknown outcome is looked into: which read, what is compared, what the finding means."""

    operation: str
    compare: tuple[Compare, ...]
    missing_statuses: tuple[int, ...]
    missing: Verdict
    mismatch: Verdict
    mismatch_when_refused: Verdict
    unchanged: Verdict
    unchanged_header: str | None = None
    changed_at: ChangedAt | None = None
    names_attempt: bool = False
    results: dict[str, ValueSource] = field(default_factory=dict)


class OperationContract(Part, frozen=True, kw_only=True):
    """Everything that is known about one operation of a provider; nothing of it changes after publication."""

    summary: str
    method: Method
    target: str
    query: dict[str, str]
    headers: dict[str, str]
    object: str | None
    payload_schema: dict[str, Any]
    body: BodyRule
    link: LinkUse
    target_lane: str | None
    source_lane: SourceFailure
    replay: Replay
    duplicates_rejected: bool
    call_budget_us: int
    send_window_us: int
    settle_after_us: int | None
    response_bytes_max: int
    evidence: tuple[Condition, ...]
    outcomes: tuple[OutcomeRule, ...]
    results: dict[str, ValueSource]
    rejection: dict[str, ValueSource]
    receipt_headers: tuple[str, ...]
    probe: Probe | None


class Parameter(Part, frozen=True, kw_only=True):
    """A value that each binding must give, such as the path of a collection."""

    kind: ParameterKind
    summary: str


class Pack(Part, frozen=True, kw_only=True):
    """A definition pack: one provider, no tenant, no code."""

    name: str
    version: str
    title: str
    origins: tuple[str, ...]
    origin_from_binding: bool
    auth: Auth
    parameters: dict[str, Parameter]
    objects: dict[str, tuple[str, ...]]
    operations: dict[str, OperationContract]
    webhooks: dict[str, Webhook] | UnsetType = UNSET
    """Absent where there are none, so that such a pack has the digest that it always had."""


class FieldMap(Part, frozen=True, kw_only=True):
    """Which of the application's fields is which field of the provider's object, each with one owner.

    Both tables go from the application's name to the provider's. Outbound fields are the application's to
    write; inbound ones are the provider's, and no command may carry them.
    """

    outbound: dict[str, str]
    inbound: dict[str, str]


class Completion(Part, frozen=True, kw_only=True):
    """How the application hears of a command's end; `url_name` names a configured address, never an URL."""

    mode: CompletionMode
    url_name: str | None = None


class Policies(Part, frozen=True, kw_only=True):
    """The binding's choices about retries and answers; every bound has a default (`docs/packs.md`)."""

    wants_rejected_result: bool
    retry_base_us: int
    retry_cap_us: int
    attempts_max: int
    predispatch_failures_max: int
    predispatch_age_us_max: int
    deferrals_max: int
    deferral_age_us_max: int
    completion: Completion


class Binding(Part, frozen=True, kw_only=True):
    """How one installation of one organization uses a pack."""

    org: str
    installation: str
    capability: str
    pack: str
    origin: str | None
    principal: str
    operations: tuple[str, ...]
    parameters: dict[str, str]
    fields: dict[str, FieldMap]
    policies: Policies
    webhooks: dict[str, Route] | UnsetType = UNSET


class ViewDocument(Part, frozen=True, kw_only=True):
    """The content of a binding view; its canonical JSON is what a view's digest is over."""

    format: str
    org: str
    installation: str
    capability: str
    pack: str
    pack_digest: str
    origin: str
    auth: Auth
    principal: str
    parameters: dict[str, str]
    parameter_kinds: dict[str, ParameterKind]
    objects: dict[str, tuple[str, ...]]
    offered: tuple[str, ...]
    operations: dict[str, OperationContract]
    fields: dict[str, FieldMap]
    policies: Policies
    webhooks: dict[str, Webhook] | UnsetType = UNSET
    """Those that the binding receives; with them the format is another one (`compile.VIEW_FORMAT_WITH_ROUTES`)."""
    routes: dict[str, Route] | UnsetType = UNSET


RESULT_REMOTE_ID: Final = "remote_id"
"""The result that becomes a link's remote id; it must be a text that can be stored and sent again."""

RESULT_STATUS: Final = "status"
"""The HTTP status, in the result of a rejection."""
