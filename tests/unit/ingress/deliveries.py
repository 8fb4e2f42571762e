"""Deliveries as a server hands them on, and verifiers opened over the packs that ship."""

from collections.abc import Mapping
from pathlib import Path

from doonce.base.secrets import Secret
from doonce.catalog.files import load_pack
from doonce.catalog.webhooks import Webhook
from doonce.ingress.model import Delivery
from doonce.ingress.verify import OpenVerifier, open_verifier

PACKS = Path(__file__).parents[3] / "packs"
SECOND = 1_000_000


def webhook(pack: str, name: str) -> Webhook:
    """One webhook of a pack that ships."""
    return (load_pack(PACKS / pack).webhooks or {})[name]


def opened(pack: str, name: str, *secrets: str, url: str | None = None) -> OpenVerifier:
    """Its verifier with these secrets."""
    return open_verifier(webhook(pack, name), [Secret(secret) for secret in secrets], url=url)


def delivery(
    headers: Mapping[str, str], body: bytes | str, *, method: str = "POST", query: str = ""
) -> Delivery:
    """A request with these headers, named as a person writes them."""
    raw = tuple((name.lower().encode(), value.encode("latin-1")) for name, value in headers.items())
    return Delivery(method.encode(), query.encode(), raw, body.encode() if isinstance(body, str) else body)
