"""The reference verifier: bearer credentials, issued once in clear, kept as digests."""

from __future__ import annotations

import base64
import hmac
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from doonce.base.digests import digest_bytes
from doonce.base.errors import Invalid, MissingOrDenied
from doonce.base.ids import new_id
from doonce.base.limits import LIMITS, check_text
from doonce.base.secrets import Secret
from doonce.db.clock import boottime_ns
from doonce.db.database import Database
from doonce.trust import store
from doonce.trust.identity import Claims, Verifier, check_claims
from doonce.trust.store import Credential, CredentialState, NewCredential

TOKEN_BYTES: Final = 32
TOKEN_PREFIX: Final = "dnc_"  # noqa: S105 (what every token begins with, so that scanners of leaks find one)
_TOKEN: Final = re.compile(rb"dnc_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class CredentialSettings:
    """How verified credentials are kept in memory.

    `trusted_ms`: how long a verified credential is believed without asking the database: without it every request
    would cost a read, and with it a revocation that another process made takes effect within it. What proves nothing
    is never remembered. `credentials_max`: how many are kept.
    """

    trusted_ms: int = 1_000
    credentials_max: int = 1_024
    capabilities_max: int = 256


class BearerCredentials(Verifier):
    """Issues, revokes and verifies bearer credentials of one database."""

    def __init__(
        self,
        database: Database,
        settings: CredentialSettings | None = None,
        now_ns: Callable[[], int] = boottime_ns,
    ) -> None:
        self._database = database
        self._settings = settings or CredentialSettings()
        self._now_ns = now_ns
        self._trusted: OrderedDict[str, tuple[int, Claims]] = OrderedDict()

    async def claims(self, credential: Secret) -> Claims | None:
        """What the credential proves; the comparison takes the same time wherever it fails.

        The lookup goes by the digest of the token, of which nobody can choose or guess any part, so its time tells
        nothing of what is stored.
        """
        raw = credential.reveal_bytes()
        if _TOKEN.fullmatch(raw) is None:
            return None
        hashed = digest_bytes(raw)
        now_ns = self._now_ns()
        trusted = self._trusted.get(hashed)
        if trusted is not None and now_ns - trusted[0] < self._settings.trusted_ms * 1_000_000:
            return trusted[1]
        self._trusted.pop(hashed, None)
        found = await self._database.read(store.by_hash, hashed)
        if found is None or not hmac.compare_digest(found[0], hashed):
            return None
        if found[1].state is not CredentialState.ACTIVE:
            return None
        claims = Claims(found[1].id, found[1].org, found[1].installation, found[1].capabilities)
        self._trusted[hashed] = (now_ns, claims)
        if len(self._trusted) > self._settings.credentials_max:
            self._trusted.popitem(last=False)
        return claims

    async def issue(
        self, org: str, installation: str, capabilities: Iterable[str], note: str = ""
    ) -> tuple[Credential, Secret]:
        """A new credential and its token, which is shown here and never again.

        Raises `Invalid` for texts that cannot be stored and for no or too many capabilities.
        """
        wanted = frozenset(capabilities)
        check_claims(org, installation, wanted)
        check_text("note", note, LIMITS.reason_bytes_max, empty_allowed=True)
        if not 1 <= len(wanted) <= self._settings.capabilities_max:
            raise Invalid(
                f"a credential has 1 to {self._settings.capabilities_max} capabilities, not {len(wanted)}"
            )
        random = base64.urlsafe_b64encode(os.urandom(TOKEN_BYTES)).decode().rstrip("=")
        token = Secret(TOKEN_PREFIX + random)
        new = NewCredential(
            digest_bytes(token.reveal_bytes()), new_id("crd"), org, installation, wanted, note
        )
        return await self._database.transact(store.issue, new), token

    async def revoke(self, credential_id: str) -> Credential:
        """End a credential: here at once, in other processes within `trusted_ms`. Raises `MissingOrDenied`."""
        revoked = await self._database.transact(store.revoke, credential_id)
        if isinstance(revoked, MissingOrDenied):
            raise revoked
        self._trusted.clear()
        return revoked

    async def all(self) -> list[Credential]:
        """Every credential, without its token."""
        return await self._database.read(store.read_all)
