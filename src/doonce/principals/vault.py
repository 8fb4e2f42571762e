"""Secrets at rest: AES-256-GCM under a key ring from a file, each seal bound to the one place it was made for.

The ring is a TOML file, readable by its owner alone:

    current = "k3f9a…"
    [keys]
    k3f9a… = "<32 bytes, base64>"

The current key seals; every key of the ring opens. A new key is added, all tokens are rewrapped (`Principals.rewrap`),
and then the old key can be taken out.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from doonce.base.errors import Invalid, Unavailable
from doonce.base.keys import frame
from doonce.base.limits import LIMITS, check_size
from doonce.base.secrets import Secret
from doonce.principals.model import Token

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
RING_BYTES_MAX: Final = 65_536
_KEY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Keys by id, and which of them seals. The keys do not print."""

    current: str
    keys: Mapping[str, Secret]

    @classmethod
    def generate(cls) -> KeyRing:
        """A ring with one new random key."""
        return cls("", {}).with_new_key()

    def with_new_key(self) -> KeyRing:
        """A ring that seals with a new random key and still opens with the ones it had."""
        key_id = f"k{os.urandom(6).hex()}"
        return KeyRing(key_id, {**self.keys, key_id: Secret(os.urandom(KEY_BYTES))})


class Vault:
    """Seals and opens tokens. A seal opens only for the principal, generation and version it was made for."""

    def __init__(self, ring: KeyRing) -> None:
        self.key_id = ring.current
        self._ciphers = {key_id: AESGCM(key.reveal_bytes()) for key_id, key in ring.keys.items()}

    def seal(self, principal_id: str, generation: int, version: int, secret: Secret) -> Token:
        """A token sealed with the ring's current key; raises `Invalid` for a secret over its bound."""
        raw = secret.reveal_bytes()
        check_size("the secret", len(raw), LIMITS.secret_bytes_max)
        nonce = os.urandom(NONCE_BYTES)
        place = _place(principal_id, generation, version)
        sealed = nonce + self._ciphers[self.key_id].encrypt(nonce, raw, place)
        return Token(principal_id, generation, version, sealed, self.key_id)

    def open(self, token: Token) -> Secret:
        """The secret of a token.

        Raises `Unavailable`, which names the key's id, when the ring lacks that key, or when its key of that id is
        another one or the sealed bytes are not what was sealed for this place.
        """
        cipher = self._ciphers.get(token.key_id)
        if cipher is None:
            raise Unavailable(
                f"the token of {token.principal_id} is sealed with the key {token.key_id}, "
                "which is not in the key ring",
                hint="start with the key file that has this key, or connect the principal anew",
            )
        place = _place(token.principal_id, token.generation, token.version)
        try:
            raw = cipher.decrypt(token.sealed[:NONCE_BYTES], token.sealed[NONCE_BYTES:], place)
        except (InvalidTag, ValueError):
            raise Unavailable(
                f"the token of {token.principal_id} does not open with the key {token.key_id}",
                hint="the key file has another key under this id, or the row was changed; nothing was sent",
            ) from None
        return Secret(raw)

    def seal_bytes(self, place: str, raw: bytes) -> tuple[bytes, str]:
        """Bytes sealed for one place with the ring's current key, and that key's id."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._ciphers[self.key_id].encrypt(nonce, raw, place.encode()), self.key_id

    def open_bytes(self, place: str, sealed: bytes, key_id: str) -> bytes:
        """What was sealed for this place; raises `Unavailable`, which names the place and the key's id, as `open`."""
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise Unavailable(
                f"{place} is sealed with the key {key_id}, which is not in the key ring",
                hint="start with the key file that has this key",
            )
        try:
            return cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], place.encode())
        except (InvalidTag, ValueError):
            raise Unavailable(
                f"{place} does not open with the key {key_id}",
                hint="the key file has another key under this id, or the row was changed",
            ) from None


def _place(principal_id: str, generation: int, version: int) -> bytes:
    return frame("token", principal_id, str(generation), str(version)).encode()


def load_key_ring(path: Path) -> KeyRing:
    """The ring of a key file. Raises `Invalid` for a file that others may read, or that is no key ring."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            raw = file.read(RING_BYTES_MAX + 1)
    except OSError as error:
        raise Invalid(
            f"the key file {path} cannot be read: {error.strerror}", hint="name it in the configuration"
        ) from error
    if mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise Invalid(f"the key file {path} is open to others", hint=f"run `chmod 600 {path}`")
    check_size("the key file", len(raw), RING_BYTES_MAX)
    return _parsed(raw, path)


def _parsed(raw: bytes, path: Path) -> KeyRing:
    try:
        document = tomllib.loads(raw.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise Invalid(f"the key file {path} is not TOML") from None  # the cause would show its content
    current, keys = document.get("current"), document.get("keys")
    if (
        not isinstance(current, str)
        or not isinstance(keys, dict)
        or current not in keys
        or len(document) != 2
    ):
        raise Invalid(f"the key file {path} must have `current` and a table `keys` that has the current key")
    ring: dict[str, Secret] = {}
    for key_id, text in keys.items():
        key = b""
        with contextlib.suppress(binascii.Error, TypeError, ValueError):
            key = base64.b64decode(text, validate=True)
        if _KEY_ID.fullmatch(key_id) is None or len(key) != KEY_BYTES:
            raise Invalid(
                f"the key file {path} has a key that is not {KEY_BYTES} bytes in base64, or a wrong id"
            )
        ring[key_id] = Secret(key)
    return KeyRing(current, ring)


def save_key_ring(path: Path, ring: KeyRing) -> None:
    """Replace the key file as a whole, for its owner alone; after a crash it is the old one or the new one."""
    temporary = _written(path, ring)
    temporary.replace(path)
    _flush_directory(path.parent)


def ensure_key_ring(path: Path) -> KeyRing:
    """The ring of the key file, which is made with one new key where there is none.

    Two processes at once get one ring: the first file stays.
    """
    if not path.exists():
        temporary = _written(path, KeyRing.generate())
        try:
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            temporary.unlink()
        _flush_directory(path.parent)
    return load_key_ring(path)


def _written(path: Path, ring: KeyRing) -> Path:
    lines = [f'current = "{ring.current}"', "[keys]"]
    lines += [
        f'{key_id} = "{base64.b64encode(key.reveal_bytes()).decode()}"' for key_id, key in ring.keys.items()
    ]
    temporary = path.with_name(f"{path.name}.{os.urandom(6).hex()}")
    try:
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(
            f"the key file {path} cannot be written: {error.strerror}",
            hint="make its folder writable for this user, or name another place as key_file",
        ) from error
    with os.fdopen(file, "w") as writer:
        writer.write("\n".join(lines) + "\n")
        writer.flush()
        os.fsync(writer.fileno())
    return temporary


def _flush_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
