"""Whether a delivery is what its provider sent: bytes in, `Verified | Rejected` out.

Total: nothing that stands in a header or a body raises, and the work is bounded by the size of the request. Constant in
time: every active secret is tried with every proof, however early one fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from doonce.base.errors import Invalid
from doonce.base.secrets import Secret
from doonce.catalog.closure_webhook import signs_url
from doonce.catalog.signed_content import Content, parse_content
from doonce.catalog.webhooks import Verifier, Webhook
from doonce.ingress import headers, stamps
from doonce.ingress.model import Decision, Delivery, Reason, Rejected, Verified
from doonce.ingress.proofs import Key, decode_proof, read_key
from doonce.ingress.signed_content import body_digest_matches, full_url, signed_content

SECRETS_MAX: Final = 8
"""Active secrets of one route; a rotation has two, and each costs a signature on every delivery."""

PROOFS_MAX: Final = 8
"""Signatures of one delivery that are looked at: a sender makes one with each of its active keys, and each of them may
cost as much as the body is long.
"""

_OF_PROOF: Final = {
    Reason.HEADER_MISSING: Reason.PROOF_MISSING,
    Reason.HEADER_REPEATED: Reason.PROOF_REPEATED,
}
_OF_TIMESTAMP: Final = {
    Reason.HEADER_MISSING: Reason.TIMESTAMP_MISSING,
    Reason.HEADER_REPEATED: Reason.TIMESTAMP_REPEATED,
}


@dataclass(frozen=True, slots=True)
class OpenVerifier:
    """A verifier with its active keys, read once. The keys do not print."""

    verifier: Verifier
    body_bytes_max: int
    content: Content
    keys: tuple[Key, ...]
    url: bytes
    unescaped: frozenset[int]


def open_verifier(webhook: Webhook, secrets: Sequence[Secret], *, url: str | None) -> OpenVerifier:
    """The verifier of a webhook with these active secrets, under the public URL `url` where that is signed.

    Raises `Invalid`, which shows no secret, for none or too many of them, for one that is no key of this provider, and
    for a URL that is missing.
    """
    verifier = webhook.verifier
    if not 1 <= len(secrets) <= SECRETS_MAX:
        raise Invalid(f"a route has 1 to {SECRETS_MAX} active secrets, not {len(secrets)}")
    if signs_url(verifier) and url is None:
        raise Invalid("this provider signs the URL of the route", hint="give it as the provider knows it")
    return OpenVerifier(
        verifier=verifier,
        body_bytes_max=webhook.body_bytes_max,
        content=parse_content(verifier.content or ""),
        keys=tuple(read_key(verifier, secret) for secret in secrets),
        url=(url or "").encode(),
        unescaped=frozenset(verifier.url_unescaped.encode()),
    )


def verify(opened: OpenVerifier, delivery: Delivery, *, now_us: int) -> Decision:
    """Whether one of the active secrets proves this delivery, and its time is near enough."""
    verifier = opened.verifier
    if len(delivery.body) > opened.body_bytes_max:
        return Rejected(Reason.BODY_LONG)
    proofs = _proofs(verifier, delivery)
    if isinstance(proofs, Reason):
        return Rejected(proofs)
    text, signed_at_us = b"", None
    if verifier.timestamp is not None:
        listed = headers.items(delivery, verifier.timestamp.source)
        if isinstance(listed, Reason):
            return Rejected(_OF_TIMESTAMP.get(listed, listed))
        if len(listed) > 1:
            return Rejected(Reason.TIMESTAMP_REPEATED)
        text = listed[0]
        found = stamps.signed_at_us(verifier.timestamp, text, now_us)
        if isinstance(found, Reason):
            return Rejected(found)
        signed_at_us = found
    url = full_url(opened.url, delivery.query, opened.unescaped)
    content = signed_content(opened.content, delivery, timestamp=text, url=url)
    if isinstance(content, Reason):
        return Rejected(content)
    index = _proven_by(opened.keys, content, proofs)
    if index is None:
        return Rejected(Reason.PROOF_WRONG)
    parameter = verifier.body_digest_query
    if parameter is not None and not body_digest_matches(delivery, parameter):
        return Rejected(Reason.BODY_DIGEST_WRONG)
    return Verified(index, signed_at_us)


def _proofs(verifier: Verifier, delivery: Delivery) -> list[bytes] | Reason:
    listed = headers.items(delivery, verifier.proof)
    if isinstance(listed, Reason):
        return _OF_PROOF.get(listed, listed)
    if len(listed) > PROOFS_MAX:
        return Reason.ITEMS_TOO_MANY
    decoded = [decode_proof(verifier, item) for item in listed]
    return [proof for proof in decoded if proof is not None] or Reason.PROOF_MALFORMED


def _proven_by(keys: Sequence[Key], content: bytes, proofs: Sequence[bytes]) -> int | None:
    proven: dict[int, bool] = {index: key.proves(content, proofs) for index, key in enumerate(keys)}
    return next((index for index, is_proven in proven.items() if is_proven), None)
