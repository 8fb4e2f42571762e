"""What a verified delivery is to the database, and what becomes of it. Pure.

| stored under the identity | same body | other body                              |
|---------------------------|-----------|-----------------------------------------|
| nothing                   | RECEIVED  | -                                       |
| a receipt                 | DUPLICATE | QUARANTINED: kept beside it, no work    |
"""

from __future__ import annotations

from enum import Enum

from doonce.base.digests import digest_bytes
from doonce.base.keys import frame
from doonce.base.records import Record


class RouteKey(Record, frozen=True):
    """One webhook of one binding: where a delivery came in. Scope and identity are always within it."""

    org: str
    installation: str
    capability: str
    webhook: str

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """The columns of a row about this route."""
        return self.org, self.installation, self.capability, self.webhook


class Sealed(Record, frozen=True):
    """Bytes at rest."""

    raw: bytes
    key_id: str


class Arrival(Record, frozen=True):
    """A verified delivery to make durable. Ids and the nonce are made before the transaction (PROTOCOL T1, T7).

    `event_type` is what the header says that the pack names for it, None where it says nothing that could be a type.
    """

    route: RouteKey
    view_digest: str
    identity: str
    nonce: str
    receipt_id: str
    work_id: str
    secret_id: str
    signed_at: int | None
    body_digest: str
    body_bytes: int
    sealed: Sealed
    event_type: str | None = None


class StoredReceipt(Record, frozen=True):
    """A receipt as its row has it; it never changes, but that `sealed` is None once its body is erased."""

    id: str
    route: RouteKey
    view_digest: str
    identity: str
    body_digest: str
    sealed: Sealed | None
    received_at: int
    event_type: str | None = None


class Fate(str, Enum):
    """What became of an arrival. All but FULL are durable."""

    RECEIVED = "received"
    DUPLICATE = "duplicate"
    QUARANTINED = "quarantined"
    FULL = "full"


class Receipt(Record, frozen=True):
    """The durable fact about an arrival: `receipt_id` is the first one's for a duplicate."""

    receipt_id: str
    fate: Fate
    received_at: int


class KnownIdentity(Record, frozen=True):
    """An identity row as stored and locked; `applied` tells whether its receipt is there."""

    identity: str
    receipt_id: str
    body_digest: str
    nonce: str
    received_at: int
    applied: bool


def identity_of(route: RouteKey, delivery_id: bytes | None, body_digest: str) -> str:
    """The receipt's identity: the declared delivery id, else the raw body, always within the route (PROTOCOL I1)."""
    named = ("id", digest_bytes(delivery_id)) if delivery_id is not None else ("body", body_digest)
    return digest_bytes(frame("ingress", *route.parts, *named).encode())


def body_place(receipt_id: str) -> str:
    """What a receipt's body is sealed for."""
    return frame("ingress_body", receipt_id)


def judge(known: KnownIdentity, arrival: Arrival) -> Fate:
    """What an arrival is to the identity that is stored and locked."""
    if known.body_digest != arrival.body_digest:
        return Fate.QUARANTINED
    return Fate.RECEIVED if known.nonce == arrival.nonce else Fate.DUPLICATE
