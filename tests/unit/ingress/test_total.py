"""Nothing that a sender can put into a request raises, and nothing but the right proof is believed."""

import hmac

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.ingress.deliveries import PACKS, SECOND, opened, webhook

from doonce.catalog.files import load_pack
from doonce.ingress.challenge import answer_body, answer_query
from doonce.ingress.model import Delivery, Rejected, Verified
from doonce.ingress.verify import OpenVerifier, verify

AT = 1_796_000_000
SECRETS = {
    "message.asymmetric": "whpk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "message": "whsec_c2VjcmV0",
    "interaction": "00" * 32,
    "adyen": "00" * 32,
    "events": "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==",  # noqa: E501
}
ROUTES = [
    (folder.name, name)
    for folder in sorted(path.parent for path in PACKS.glob("*/pack.toml"))
    for name in sorted(load_pack(folder).webhooks or {})
]
VERIFIERS: dict[tuple[str, str], OpenVerifier] = {
    route: opened(
        *route,
        SECRETS.get(route[0], SECRETS.get(route[1], "a secret")),
        url="https://hooks.acme.example/in/1",
    )
    for route in ROUTES
}

near = st.sampled_from(
    [
        b"", b" ", b",", b"=", b"v1=", b"v1,", b"v1a,", b"v0=", b"t=", b"sha256=", b"sha1=", b"Basic ", b"00",
        b"AAAA", b"AA==", b"\xff", b"\x00", b"%", b"%ff", b"1796000000", b"1796000000000", b"1e9", b"-1", b"NaN",
        b"2026-11-30T00:53:20Z", b"9" * 40, b"{", b'{"type":1}', b'{"type":"url_verification","challenge":"x"}',
        b'{"challenge":', b"[" * 100, b"bodySHA256=", b"hub.challenge=", b"&", b"a=b",
    ]
)  # fmt: skip
values = st.lists(near | st.binary(max_size=12), max_size=6).map(b"".join)


@st.composite
def requests(draw: st.DrawFn, verifier: OpenVerifier) -> Delivery:
    """Requests that have, lack or repeat the headers that this verifier reads, filled with what nearly fits."""
    named = {verifier.verifier.proof.header.encode(), b"webhook-id", b"svix-id", b"content-type"}
    if verifier.verifier.timestamp is not None:
        named.add(verifier.verifier.timestamp.source.header.encode())
    headers = draw(st.lists(st.tuples(st.sampled_from(sorted(named)), values), max_size=8))
    return Delivery(
        draw(st.sampled_from([b"POST", b"GET", b"", b"\xff"])), draw(values), tuple(headers), draw(values)
    )


@pytest.mark.parametrize("route", ROUTES, ids="/".join)
def test_nothing_raises_and_nothing_is_believed(route: tuple[str, str]) -> None:
    verifier, contract = VERIFIERS[route], webhook(*route)

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
    @given(requests(verifier))
    def holds(sent: Delivery) -> None:
        assert isinstance(verify(verifier, sent, now_us=AT * SECOND), Rejected)
        for answer in (answer_body(contract, sent), answer_query(contract, sent)):
            assert answer is None or len(answer.body) <= 1_024

    holds()


@settings(max_examples=100, deadline=None, database=None)
@given(st.binary(max_size=64), st.binary(max_size=64))
def test_a_signature_is_one_of_exactly_one_body(body: bytes, other: bytes) -> None:
    proof = b"sha256=" + hmac.digest(b"a secret", body, "sha256").hex().encode()
    headers = ((b"x-hub-signature-256", proof),)
    verifier = VERIFIERS["github", "event"]
    assert verify(verifier, Delivery(b"POST", b"", headers, body), now_us=0) == Verified(0, None)
    changed = verify(verifier, Delivery(b"POST", b"", headers, other), now_us=0)
    assert isinstance(changed, Verified) is (body == other)
