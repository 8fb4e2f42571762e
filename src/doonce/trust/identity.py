"""Identity and WorkScope: no public constructor, so holding one is the proof that somebody was verified (PROTOCOL F6).

A verifier, pluggable, turns a credential into claims; `Verifier.verify` makes the identity of them. The embedding
application makes one of its own configuration. Only an identity makes a scope, and only within its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, final

from doonce.base.digests import check_digest
from doonce.base.errors import Forbidden, MissingOrDenied, Unauthenticated
from doonce.base.limits import LIMITS, check_text
from doonce.base.secrets import Secret


@dataclass(frozen=True, slots=True)
class Claims:
    """What a verifier found a credential to prove. `subject` names the credential or workload, for the record."""

    subject: str
    org: str
    installation: str
    capabilities: frozenset[str]


@dataclass(frozen=True, slots=True)
class InstallationConfig:
    """Whom an embedding application acts for: its own configuration, trusted as its code is."""

    org: str
    installation: str
    capabilities: frozenset[str]


class _Verified:
    """A value without a public constructor: not copied into another, unpickled, subclassed or changed."""

    __slots__ = ("_values",)

    _values: tuple[Any, ...]

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError(f"{type(self).__name__} is made by verification alone")

    def __setattr__(self, _name: str, _value: object) -> NoReturn:
        raise AttributeError("a verified value does not change")

    def __delattr__(self, _name: str) -> NoReturn:
        raise AttributeError("a verified value does not change")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, _memo: object) -> Any:
        return self

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("a verified value is not serialized")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Verified) and type(other) is type(self) and other._values == self._values

    def __hash__(self) -> int:
        return hash(self._values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._values!r}"


Sealed = TypeVar("Sealed", bound=_Verified)


def _seal(kind: type[Sealed], *values: Any) -> Sealed:
    sealed = object.__new__(kind)
    object.__setattr__(sealed, "_values", values)
    return sealed


@final
class WorkScope(_Verified):
    """For whom work may be done: proven, exact, complete. Only `Identity.scope` makes one."""

    __slots__ = ()

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("a work scope has no other form")

    @property
    def org(self) -> str:
        """The organization."""
        return str(self._values[0])

    @property
    def installation(self) -> str:
        """The installation within it."""
        return str(self._values[1])

    @property
    def capability(self) -> str:
        """What the caller may ask for there."""
        return str(self._values[2])

    @property
    def binding_digest(self) -> str:
        """The binding view that the caller pinned; that it is published for this scope is the catalog's to prove."""
        return str(self._values[3])


@final
class Identity(_Verified):
    """Who is asking. Only `Verifier.verify` and `embedded` make one."""

    __slots__ = ()

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("an identity has no other form")

    @property
    def subject(self) -> str:
        """Which credential or workload it was, for the record."""
        return str(self._values[0])

    @property
    def org(self) -> str:
        """The one organization that it may act for."""
        return str(self._values[1])

    @property
    def installation(self) -> str:
        """The one installation that it may act for."""
        return str(self._values[2])

    @property
    def capabilities(self) -> frozenset[str]:
        """What it may ask for there."""
        return frozenset(self._values[3])

    def scope(self, org: str, installation: str, capability: str, binding_digest: str) -> WorkScope:
        """The scope that a request names, if this identity may act for it.

        Raises `MissingOrDenied` for any other organization or installation, whether it exists or not, `Forbidden` for
        a capability that it lacks within its own, `Invalid` for a text that is no digest.
        """
        if not self.covers(org, installation):
            raise MissingOrDenied("there is nothing here for this identity")
        if capability not in self.capabilities:
            raise Forbidden(
                "this identity does not have the capability",
                hint="issue a credential that has it, or ask within another capability",
            )
        check_digest("binding_digest", binding_digest)
        return _seal(WorkScope, org, installation, capability, binding_digest)

    def covers(self, org: str, installation: str) -> bool:
        """Whether a row of that scope may be shown to it; where not, the answer is that there is none."""
        return (org, installation) == (self.org, self.installation)


class Verifier(ABC):
    """Turns credentials into identities. A deployment may bring its own by implementing `claims`."""

    @final
    async def verify(self, credential: Secret) -> Identity:
        """Who holds this credential; raises `Unauthenticated`, the same for every reason, when nobody does."""
        claims = await self.claims(credential)
        if claims is None:
            raise Unauthenticated("the credential is not valid", hint="send `Authorization: Bearer <token>`")
        return _identity(claims.subject, claims.org, claims.installation, claims.capabilities)

    @abstractmethod
    async def claims(self, credential: Secret) -> Claims | None:
        """What the credential proves, or None when it proves nothing. Raises only when it cannot be known now."""


def embedded(config: InstallationConfig) -> Identity:
    """The identity of an application that runs doonce inside itself, by its own configuration."""
    return _identity("embedded", config.org, config.installation, config.capabilities)


def check_claims(org: str, installation: str, capabilities: Iterable[str]) -> None:
    """Raise `Invalid` for a scope that cannot be stored or compared."""
    check_text("org", org, LIMITS.org_bytes_max)
    check_text("installation", installation, LIMITS.installation_bytes_max)
    for capability in capabilities:
        check_text("capability", capability, LIMITS.capability_bytes_max)


def _identity(subject: str, org: str, installation: str, capabilities: frozenset[str]) -> Identity:
    check_claims(org, installation, capabilities)
    return _seal(Identity, subject, org, installation, frozenset(capabilities))
