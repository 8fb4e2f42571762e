"""Every algorithm, encoding and spelling of a key that a pack may declare, on the vectors of the standards themselves.

The shipped packs use some of them; a pack that somebody writes may use any.
"""

import base64
from dataclasses import dataclass, replace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.unit.ingress.deliveries import delivery

from doonce.base.errors import Invalid
from doonce.base.secrets import Secret
from doonce.catalog.pack import read_pack
from doonce.catalog.webhooks import Webhook
from doonce.ingress.model import Decision, Reason, Rejected, Verified
from doonce.ingress.verify import open_verifier, verify

PACK = """
format = "doonce.pack/1"
name = "any"
version = "1.0.0"
title = "Any verifier"
auth = {{ scheme = "none" }}
[webhooks.event]
summary = "An event"
response_deadline = "10s"
redelivery = "window"
redelivery_window = "1h"
events = {{ format = "raw", stable_bodies = true }}
verifier = {{ {verifier} }}
"""
HMAC_KEY, HMAC_DATA = b"Jefe", b"what do ya want for nothing?"
POINT = ec.EllipticCurvePublicNumbers(
    int("60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6", 16),
    int("7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299", 16),
    ec.SECP256R1(),
).public_key()


@dataclass(frozen=True)
class Vector:
    """What a standard publishes: key, message, and what is made of them."""

    algorithm: str
    key: bytes
    message: bytes
    proof: bytes
    keys: tuple[str, ...] = ("text", "hex", "base64")
    encodings: tuple[str, ...] = ("hex", "base64", "base64url")


VECTORS = {
    # RFC 2202, test case 2
    "hmac-sha1": Vector(
        "hmac-sha1", HMAC_KEY, HMAC_DATA, bytes.fromhex("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79")
    ),
    # RFC 4231, test case 2
    "hmac-sha256": Vector(
        "hmac-sha256", HMAC_KEY, HMAC_DATA,
        bytes.fromhex("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    ),
    "hmac-sha512": Vector(
        "hmac-sha512", HMAC_KEY, HMAC_DATA,
        bytes.fromhex(
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
            "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
        ),
    ),
    # FIPS 180-2, appendix B.1: the digest of "abc", of which the key is the beginning
    "sha256-secret-first": Vector(
        "sha256-secret-first", b"a", b"bc",
        bytes.fromhex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ),
    # RFC 8032, section 7.1, test 2
    "ed25519": Vector(
        "ed25519", bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"), b"\x72",
        bytes.fromhex(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        ),
        keys=("hex", "base64"),
    ),
    # RFC 6979, A.2.5, SHA-256, "sample"
    "ecdsa-p256-sha256": Vector(
        "ecdsa-p256-sha256", POINT.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo), b"sample",
        encode_dss_signature(
            int("EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716", 16),
            int("F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8", 16),
        ),
        keys=("base64",),
        encodings=("base64", "base64url"),
    ),
}  # fmt: skip
CASES = [(name, key, code) for name, one in VECTORS.items() for key in one.keys for code in one.encodings]


def spelled(raw: bytes, form: str) -> str:
    """Bytes as a pack says that they are spelled."""
    match form:
        case "hex":
            return raw.hex()
        case "base64":
            return base64.b64encode(raw).decode()
        case "base64url":
            return base64.urlsafe_b64encode(raw).decode()
        case _:
            return raw.decode()


def webhook(verifier: str) -> Webhook:
    """The webhook of a pack with this verifier."""
    return (read_pack(PACK.format(verifier=verifier).encode(), {}).webhooks or {})["event"]


def signing(one: Vector, key: str, encoding: str) -> Webhook:
    """A webhook that is signed so, its key behind a prefix, its signature behind another."""
    return webhook(
        f'algorithm = "{one.algorithm}", header = "Proof", prefix = "v1=", encoding = "{encoding}", '
        f'content = "{{body}}", secret = "{key}", secret_prefix = "key_"'
    )


def judged(one: Vector, key: str, encoding: str, *, proof: str | None = None) -> Decision:
    """What is found about a message with this signature."""
    opened = open_verifier(signing(one, key, encoding), [Secret(f"key_{spelled(one.key, key)}")], url=None)
    header = f"v1={spelled(one.proof, encoding) if proof is None else proof}"
    return verify(opened, delivery({"Proof": header}, one.message), now_us=0)


@pytest.mark.parametrize("name, key, encoding", CASES)
def test_what_the_standard_publishes_verifies_however_it_is_spelled(
    name: str, key: str, encoding: str
) -> None:
    one = VECTORS[name]
    assert judged(one, key, encoding) == Verified(0, None)
    assert judged(replace(one, message=one.message + b"!"), key, encoding) == Rejected(Reason.PROOF_WRONG)
    for at in (0, len(one.proof) - 1):
        bent = one.proof[:at] + bytes([one.proof[at] ^ 1]) + one.proof[at + 1 :]
        assert judged(replace(one, proof=bent), key, encoding) == Rejected(Reason.PROOF_WRONG)


@pytest.mark.parametrize("encoding, stray", [("base64", "-_"), ("base64url", "+/"), ("hex", "gh")])
def test_an_alphabet_is_the_declared_one(encoding: str, stray: str) -> None:
    one = VECTORS["hmac-sha256"]
    proof = stray + spelled(one.proof, encoding)[len(stray) :]
    assert judged(one, "text", encoding, proof=proof) == Rejected(Reason.PROOF_MALFORMED)


def basic(header: str, secret: str = "Aladdin:open sesame") -> Decision:
    """What is found about a delivery with these credentials."""
    opened = open_verifier(webhook('algorithm = "basic"'), [Secret(secret)], url=None)
    return verify(opened, delivery({"Authorization": header}, b"anything"), now_us=0)


@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC"])
def test_the_credentials_of_rfc_7617_are_believed(scheme: str) -> None:
    assert basic(f"{scheme} QWxhZGRpbjpvcGVuIHNlc2FtZQ==") == Verified(0, None)
    assert basic(f"{scheme} dGVzdDoxMjPCow==", "test:123£") == Verified(0, None)


@pytest.mark.parametrize(
    "header, reason",
    [
        ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZR==", Reason.PROOF_MALFORMED),  # a stray bit
        ("Basic QWxhZGRpbjpvcGVuIHNlc2Ft", Reason.PROOF_WRONG),
        ("Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==", Reason.PROOF_MALFORMED),
        ("QWxhZGRpbjpvcGVuIHNlc2FtZQ==", Reason.PROOF_MALFORMED),
        ("Basic", Reason.PROOF_MALFORMED),
        ("Basic Aladdin:open sesame", Reason.PROOF_MALFORMED),
        ("", Reason.PROOF_MALFORMED),
    ],
)
def test_other_credentials_are_not(header: str, reason: Reason) -> None:
    assert basic(header) == Rejected(reason)


def test_a_basic_secret_has_both_halves() -> None:
    with pytest.raises(Invalid, match="user:password"):
        open_verifier(webhook('algorithm = "basic"'), [Secret("Aladdin")], url=None)
