"""Principals as the rest of the service uses them: connect, rotate, rewrap, and the secret for one call."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from doonce.base.errors import DoonceError, MissingOrDenied, Stale
from doonce.base.ids import new_id
from doonce.base.limits import LIMITS
from doonce.base.secrets import Secret
from doonce.db.clock import boottime_ns
from doonce.db.database import Database
from doonce.principals import store
from doonce.principals.model import (
    Connect,
    Disconnection,
    Identity,
    Principal,
    PrincipalName,
    Reconnect,
    Rotation,
    Token,
    generation_stale,
)
from doonce.principals.vault import Vault

T = TypeVar("T")
NOBODY = Identity()


@dataclass(frozen=True, slots=True)
class PrincipalSettings:
    """How opened secrets are kept in this process's memory.

    `check_every_ms`: how long a secret is used before the database is asked for a newer version: one read a principal
    and interval instead of one a call. A rotation elsewhere is noticed within it. An ended generation needs no such
    luck, since every dispatch mark fences it. `secrets_max`: principals kept at once.
    """

    check_every_ms: int = 1_000
    secrets_max: int = 1_024
    rotation_tries_max: int = 5


@dataclass(frozen=True, slots=True)
class _Opened:
    token: Token
    secret: Secret
    read_at_ns: int


class Principals:
    """The principals of one database, with their secrets. Safe to share between tasks of one event loop."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        settings: PrincipalSettings | None = None,
        now_ns: Callable[[], int] = boottime_ns,
    ) -> None:
        self._database = database
        self._vault = vault
        self._settings = settings or PrincipalSettings()
        self._now_ns = now_ns
        self._opened: OrderedDict[str, _Opened] = OrderedDict()
        self._reading: dict[str, asyncio.Task[_Opened | None]] = {}
        self._ids: OrderedDict[PrincipalName, str] = OrderedDict()

    async def secret(self, principal_id: str, generation: int) -> Secret:
        """The newest secret of a principal within the pinned generation.

        Raises `Stale` (axis generation) when that generation is not current, `Unavailable` when the database cannot
        be asked or the key ring does not open the token. Never falls back to a secret that it could not check in time.
        """
        opened = self._opened.get(principal_id)
        if opened is None or self._is_due(opened) or opened.token.generation < generation:
            opened = await self._read_once(principal_id)
        current = opened.token.generation if opened is not None else None
        if opened is None or current != generation:
            raise generation_stale(generation, current)
        return opened.secret

    def _is_due(self, opened: _Opened) -> bool:
        return self._now_ns() - opened.read_at_ns >= self._settings.check_every_ms * 1_000_000

    def forget(self, principal_id: str) -> None:
        """Ask the database anew at the next call: after a rotation, or when a provider refused the secret."""
        self._opened.pop(principal_id, None)
        self._reading.pop(principal_id, None)

    async def find(self, org: str, installation: str, name: str) -> Principal:
        """The principal of that name; raises `MissingOrDenied`."""
        key: PrincipalName = (org, installation, name)
        found = (await self._database.read(store.by_name, [key])).get(key)
        if found is None:
            raise MissingOrDenied(f"there is no principal named {name}", hint="connect it first")
        return found

    async def id_of(self, org: str, installation: str, name: str) -> str:
        """The id of the principal of that name, from memory once it is known: a name never gets another id.

        Says nothing about its generation, which only a fence can. Raises `MissingOrDenied`.
        """
        key: PrincipalName = (org, installation, name)
        if key not in self._ids:
            self._ids[key] = (await self.find(*key)).id
            if len(self._ids) > self._settings.secrets_max:
                self._ids.popitem(last=False)
        return self._ids[key]

    async def connect(
        self,
        *,
        org: str,
        installation: str,
        pack: str,
        name: str,
        secret: Secret,
        identity: Identity = NOBODY,
    ) -> Principal:
        """Make a principal in its first generation; raises `Conflict` when the name is taken."""
        principal_id = new_id("prn")
        token = self._vault.seal(principal_id, 1, 1, secret)
        wanted = Connect(principal_id, new_id("gen"), org, installation, pack, name, identity, token)
        return _or_raise(await self._database.transact(store.connect, wanted))

    async def reconnect(
        self, principal: Principal, secret: Secret, *, reason: str, identity: Identity = NOBODY
    ) -> Principal:
        """Begin the next generation; raises `Stale` when `principal` is not how it stands now."""
        token = self._vault.seal(principal.id, principal.generation + 1, 1, secret)
        wanted = Reconnect(
            principal_id=principal.id,
            org=principal.org,
            installation=principal.installation,
            after=principal.generation,
            generation_id=new_id("gen"),
            identity=identity,
            token=token,
            reason=_cut(reason),
        )
        try:
            return _or_raise(await self._database.transact(store.reconnect, wanted))
        finally:
            self.forget(principal.id)

    async def rotate(self, principal: Principal, secret: Secret) -> int:
        """Replace the secret within the current generation; returns the new version. The old one is erased."""
        return await self._rotate(principal, lambda _: secret)

    async def disconnect(self, principal: Principal, *, reason: str) -> Principal:
        """End the current generation; everything pinned to it fails closed."""
        wanted = Disconnection(
            principal.id, principal.org, principal.installation, principal.generation, _cut(reason)
        )
        try:
            return _or_raise(await self._database.transact(store.disconnect, wanted))
        finally:
            self.forget(principal.id)

    async def rewrap(self) -> int:
        """Seal every current token with the ring's current key; returns how many. Generations stay.

        Can be stopped and run again at any point. Afterwards no current token needs the ring's other keys.
        """
        done = 0
        for token in await self._database.read(store.tokens_under_other_keys, self._vault.key_id):
            found = (await self._database.read(store.get, [token.principal_id])).get(token.principal_id)
            if found is None or found.current != token.generation:
                continue  # disconnected or reconnected meanwhile: its newest token is sealed with the current key
            await self._rotate(found, self._vault.open)
            done += 1
        return done

    async def _rotate(self, principal: Principal, secret_after: Callable[[Token], Secret]) -> int:
        for _ in range(self._settings.rotation_tries_max):
            newest = (await self._database.read(store.tokens, [principal.id])).get(principal.id)
            if newest is None or newest.generation != principal.generation:
                raise generation_stale(principal.generation, newest.generation if newest else None)
            token = self._vault.seal(
                principal.id, newest.generation, newest.version + 1, secret_after(newest)
            )
            rotation = Rotation(principal.org, principal.installation, token)
            try:
                result = await self._database.transact(store.rotate, rotation)
            finally:
                self.forget(principal.id)
            if isinstance(result, Stale) and result.axis == "token_version":
                continue
            return _or_raise(result)
        raise Stale("other rotations keep coming first", hint="try again", axis="token_version")

    async def _read_once(self, principal_id: str) -> _Opened | None:
        reading = self._reading.get(principal_id)
        if reading is None:
            reading = asyncio.ensure_future(self._read(principal_id))
            self._reading[principal_id] = reading
            reading.add_done_callback(lambda done: self._finish(principal_id, done))
        return await asyncio.shield(reading)

    async def _read(self, principal_id: str) -> _Opened | None:
        began_ns = self._now_ns()
        token = (await self._database.read(store.tokens, [principal_id])).get(principal_id)
        if token is None:
            return None
        known = self._opened.get(principal_id)
        secret = known.secret if known is not None and known.token == token else self._vault.open(token)
        return _Opened(token, secret, began_ns)

    def _finish(self, principal_id: str, done: asyncio.Task[_Opened | None]) -> None:
        failed = done.cancelled() or done.exception() is not None
        if self._reading.get(principal_id) is not done:
            return  # forgotten meanwhile: what it read may be old
        del self._reading[principal_id]
        self._opened.pop(principal_id, None)
        opened = None if failed else done.result()
        if opened is not None:
            self._opened[principal_id] = opened
            while len(self._opened) > self._settings.secrets_max:
                self._opened.popitem(last=False)


def _or_raise(result: T | DoonceError) -> T:
    if isinstance(result, DoonceError):
        raise result
    return result


def _cut(reason: str) -> str:
    return reason.encode()[: LIMITS.reason_bytes_max].decode(errors="ignore")
