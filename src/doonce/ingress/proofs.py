"""Keys and what they prove. A key is read once, when a route is opened; from then on nothing here raises."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, assert_never

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.serialization import load_der_public_key

from doonce.base.errors import Invalid
from doonce.base.secrets import Secret
from doonce.catalog.webhooks import Algorithm, SecretForm, SignatureEncoding, Verifier

_HEX: Final = re.compile(rb"(?:[0-9A-Fa-f]{2})+")
_BASIC: Final = re.compile(rb"basic ", re.IGNORECASE)
_HASHES: Final = {
    Algorithm.HMAC_SHA256: "sha256",
    Algorithm.HMAC_SHA1: "sha1",
    Algorithm.HMAC_SHA512: "sha512",
}


class Key(ABC):
    """One active secret, ready to check proofs with."""

    __slots__ = ()

    @abstractmethod
    def proves(self, content: bytes, proofs: Sequence[bytes]) -> bool:
        """Whether one of these proofs, decoded, is one of this key for exactly this content; never raises.

        Each of them is looked at, however early one fits. What the content alone decides is made once, whatever number
        of proofs a stranger sends.
        """


def _is_one_of(wanted: bytes, proofs: Sequence[bytes]) -> bool:
    return any([hmac.compare_digest(wanted, proof) for proof in proofs])  # noqa: C419 - a list: every proof is tried


class _Mac(Key):
    __slots__ = ("_hash", "_secret")

    def __init__(self, secret: Secret, hash_name: str) -> None:
        self._secret = secret
        self._hash = hash_name

    def proves(self, content: bytes, proofs: Sequence[bytes]) -> bool:
        return _is_one_of(hmac.digest(self._secret.reveal_bytes(), content, self._hash), proofs)


class _SecretFirst(Key):
    __slots__ = ("_secret",)

    def __init__(self, secret: Secret) -> None:
        self._secret = secret

    def proves(self, content: bytes, proofs: Sequence[bytes]) -> bool:
        return _is_one_of(hashlib.sha256(self._secret.reveal_bytes() + content).digest(), proofs)


class _Shown(Key):
    """The proof is the secret itself; hashed first, so that not even its length shows in the time."""

    __slots__ = ("_digest",)

    def __init__(self, secret: Secret) -> None:
        self._digest = hashlib.sha256(secret.reveal_bytes()).digest()

    def proves(self, content: bytes, proofs: Sequence[bytes]) -> bool:
        return _is_one_of(self._digest, [hashlib.sha256(proof).digest() for proof in proofs])


class _Ed25519(Key):
    __slots__ = ("_key",)

    def __init__(self, key: ed25519.Ed25519PublicKey) -> None:
        self._key = key

    def proves(self, content: bytes, proofs: Sequence[bytes]) -> bool:
        return any([self._signed(content, proof) for proof in proofs])  # noqa: C419 - a list: every proof is tried

    def _signed(self, content: bytes, proof: bytes) -> bool:
        try:
            self._key.verify(proof, content)
        except (InvalidSignature, ValueError):
            return False
        return True


class _P256(Key):
    __slots__ = ("_key",)

    def __init__(self, key: ec.EllipticCurvePublicKey) -> None:
        self._key = key

    def proves(self, content: bytes, proofs: Sequence[bytes]) -> bool:
        digest = hashlib.sha256(content).digest()
        return any([self._signed(digest, proof) for proof in proofs])  # noqa: C419 - a list: every proof is tried

    def _signed(self, digest: bytes, proof: bytes) -> bool:
        try:
            self._key.verify(proof, digest, ec.ECDSA(Prehashed(hashes.SHA256())))
        except (InvalidSignature, ValueError):
            return False
        return True


def read_key(verifier: Verifier, secret: Secret) -> Key:
    """The key that a secret is for this verifier.

    Raises `Invalid`, which never shows it, for a secret that is not spelled as the pack says, or is no such key.
    """
    raw = _unspelled(verifier, secret)
    match verifier.algorithm:
        case Algorithm.HMAC_SHA256 | Algorithm.HMAC_SHA1 | Algorithm.HMAC_SHA512:
            return _Mac(Secret(raw), _HASHES[verifier.algorithm])
        case Algorithm.SHA256_SECRET_FIRST:
            return _SecretFirst(Secret(raw))
        case Algorithm.SHARED_TOKEN:
            return _Shown(Secret(raw))
        case Algorithm.BASIC:
            if b":" not in raw:
                raise Invalid("a basic secret is user:password", hint="store both, joined by a colon")
            return _Shown(Secret(raw))
        case Algorithm.ED25519:
            return _Ed25519(_ed25519(raw))
        case Algorithm.ECDSA_P256_SHA256:
            return _P256(_p256(raw))
        case _:
            assert_never(verifier.algorithm)


def decode_proof(verifier: Verifier, text: bytes) -> bytes | None:
    """The bytes of one proof in its header; None for a text that is none."""
    if verifier.algorithm is Algorithm.BASIC:
        found = _BASIC.match(text)
        return None if found is None else _base64(text[found.end() :].strip(b" "), b"+/")
    match verifier.encoding:
        case None:
            return text
        case SignatureEncoding.HEX:
            return bytes.fromhex(text.decode()) if _HEX.fullmatch(text) else None
        case SignatureEncoding.BASE64:
            return _base64(text, b"+/")
        case SignatureEncoding.BASE64URL:
            return _base64(text, b"-_")
        case _:
            assert_never(verifier.encoding)


def _base64(text: bytes, alphabet: bytes) -> bytes | None:
    """Padded or not, but in the one spelling of its bytes: no other character, no stray bit."""
    padded = text if text.endswith(b"=") else text + b"=" * (-len(text) % 4)
    try:
        raw = base64.b64decode(padded, altchars=alphabet, validate=True)
    except binascii.Error:
        return None
    return raw if base64.b64encode(raw, altchars=alphabet) == padded else None


def _unspelled(verifier: Verifier, secret: Secret) -> bytes:
    text = secret.reveal_bytes().removeprefix(verifier.secret_prefix.encode())
    raw: bytes | None
    match verifier.secret:
        case SecretForm.TEXT:
            raw = secret.reveal_bytes() if not verifier.secret_prefix else text
        case SecretForm.HEX:
            raw = bytes.fromhex(text.decode()) if _HEX.fullmatch(text) else None
        case SecretForm.BASE64:
            raw = _base64(text, b"+/")
        case _:
            assert_never(verifier.secret)
    if not raw:
        raise Invalid(
            f"the secret is not {verifier.secret.value}, as this provider's are",
            hint="copy it from the provider's page as a whole, without line ends",
        )
    return raw


def _ed25519(raw: bytes) -> ed25519.Ed25519PublicKey:
    try:
        return ed25519.Ed25519PublicKey.from_public_bytes(raw)
    except ValueError:
        raise Invalid("the key is no Ed25519 public key", hint="it has 32 bytes") from None


def _p256(raw: bytes) -> ec.EllipticCurvePublicKey:
    try:
        key = load_der_public_key(raw)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise Invalid("the key is no public key on P-256", hint="it is DER (SubjectPublicKeyInfo) in base64")
    return key
