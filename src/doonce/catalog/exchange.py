"""What goes to a provider and what comes back, as plain values."""

from doonce.base.records import Record
from doonce.catalog.model import Outcome, Verdict


class FrozenRequest(Record, frozen=True):
    """A rendered request, without the secret: the same bytes on every attempt (PROTOCOL F5).

    `target` is relative to `origin` (path and query); `headers` hold no secret; `body_sha256` is
    `sha256:<hex>` of the raw body.
    """

    method: str
    origin: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    body_sha256: str
    idempotency_key: str | None


class Response(Record, frozen=True):
    """An answer with a status; where it was cut, malformed or over a bound, `complete` is False."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    complete: bool = True
    reason: str = ""

    def header(self, name: str) -> str | None:
        """Return the value of the header `name` (lower case), None where it is absent or given twice."""
        values = [
            value
            for key, value in self.headers
            if key == name or (len(key) == len(name) and key.lower() == name)
        ]
        return values[0] if len(values) == 1 else None


class Classified(Record, frozen=True):
    """What one attempt's end means.

    `result` is a JSON object for the application (None where there is none), `retry_after_us` the provider's
    wish (bounded by the pack), `verify` asks for the probe now: the provider refused a repetition, and the
    effect may be there. `for_later` says that the provider accepted the request and has yet to act on it.
    `effect_free` says that this attempt is proven to have done nothing: it never left, or the pack knows that
    the answer means so. `receipt` are the declared safe headers of the answer.
    """

    outcome: Outcome
    reason: str
    result: bytes | None = None
    retry_after_us: int | None = None
    verify: bool = False
    for_later: bool = False
    effect_free: bool = False
    receipt: tuple[tuple[str, str], ...] = ()


class Judgement(Record, frozen=True):
    """What a probe's answer proves about an attempt.

    `names_attempt` says that the evidence cannot stem from anything else, so that a lane need not be held to
    the in-flight horizon (PROTOCOL L4). `not_before_us` is set where the finding came too early to count
    (PROTOCOL H3): probe again then. `result` is a JSON object, as a direct answer would have given.
    """

    verdict: Verdict
    evidence: str
    names_attempt: bool = False
    result: bytes | None = None
    not_before_us: int | None = None
