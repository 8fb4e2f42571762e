"""TLS under an authority made here: the name is checked and sent, and a failed handshake let nothing out."""

import asyncio
import datetime
import ipaddress
import os
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from doonce.base.secrets import Secret
from doonce.http import Client, EgressPolicy, Go, NotSent, Replied, Stage, Unanswered
from doonce.http.dial import default_tls

from .raw import OK, SECOND_NS, Peer, answer_all, asking, permit, replying, send, serving, until

NAME = "api.example.com"


@dataclass(frozen=True)
class Authority:
    """A certificate authority on disk, and the contexts of both sides."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def client(self) -> ssl.SSLContext:
        """The default context, trusting this authority too."""
        context = default_tls()
        context.load_verify_locations(
            cadata=self.certificate.public_bytes(serialization.Encoding.PEM).decode()
        )
        return context

    def server(self, *names: str, days: int = 1) -> ssl.SSLContext:
        """A server's context with a certificate for these names."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives: list[x509.GeneralName] = []
        for name in names:
            try:
                alternatives.append(x509.IPAddress(ipaddress.ip_address(name)))
            except ValueError:
                alternatives.append(x509.DNSName(name))
        certificate = (
            _builder(names[0], self.certificate.subject, key.public_key(), days)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
            .sign(self.key, hashes.SHA256())
        )
        path = self.folder / f"{names[0]}{days}.pem"
        path.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(path)
        return context


def _builder(
    subject: str, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    start, end = sorted((now - datetime.timedelta(days=2), now + datetime.timedelta(days=days)))
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
    certificate = (
        _builder("test authority", name, key.public_key(), 1)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_signing_only(), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(tmp_path_factory.mktemp("authority"), key, certificate)


def _signing_only() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


async def loopback(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


def client_for(origin: str, tls: ssl.SSLContext | None) -> Client:
    networks = (ipaddress.ip_network("127.0.0.0/8"),)
    policy = EgressPolicy(origins=frozenset({origin}), private_networks=networks)
    return Client(policy, tls=tls, resolver=loopback)


async def test_a_call_over_tls_names_the_host_in_the_handshake_and_the_request(authority: Authority) -> None:
    context = authority.server(NAME)
    asked: list[str | None] = []
    context.sni_callback = lambda _, name, __: asked.append(name)
    async with serving(answer_all, tls=context) as server:
        origin = f"https://{NAME}:{server.port}"
        client = client_for(origin, authority.client())
        for _ in range(3):
            sent = await send(client, asking(origin, "PUT", body=b"x" * 100_000))
            assert isinstance(sent, Replied)
            assert sent.complete
        await client.close()
        assert asked == [NAME]
        assert server.received.count(f"Host: {NAME}:{server.port}".encode()) == 3


async def test_a_server_that_prefers_another_protocol_is_held_to_http_1(authority: Authority) -> None:
    context = authority.server(NAME)
    context.set_alpn_protocols(["h2", "http/1.1"])
    chosen: list[str | None] = []

    async def script(peer: Peer) -> None:
        chosen.append(peer.writer.get_extra_info("ssl_object").selected_alpn_protocol())
        await answer_all(peer)

    async with serving(script, tls=context) as server:
        origin = f"https://{NAME}:{server.port}"
        client = client_for(origin, authority.client())
        assert isinstance(await send(client, asking(origin)), Replied)
        await client.close()
        assert chosen == ["http/1.1"]


async def test_an_address_as_host_is_checked_against_the_certificate(authority: Authority) -> None:
    async with serving(answer_all, tls=authority.server("127.0.0.1")) as server:
        client = client_for(server.origin, authority.client())
        assert isinstance(await send(client, asking(server.origin)), Replied)
        await client.close()


@pytest.mark.parametrize("fault", ["unknown authority", "other name", "expired"])
async def test_a_certificate_that_is_not_accepted_lets_no_byte_out(authority: Authority, fault: str) -> None:
    names = ("other.example.com",) if fault == "other name" else (NAME,)
    context = authority.server(*names, days=-1 if fault == "expired" else 1)
    async with serving(answer_all, tls=context) as server:
        origin = f"https://{NAME}:{server.port}"
        client = client_for(origin, None if fault == "unknown authority" else authority.client())
        asked = False

        async def gate() -> Go:
            nonlocal asked
            asked = True
            return permit()

        sent = await send(client, asking(origin, "PUT"), gate=gate, secrets={"A": Secret("Bearer hidden")})
        await client.close()
        assert isinstance(sent, NotSent)
        assert (sent.stage, asked, server.received) == (Stage.TLS, False, b"")
        assert "certificate not accepted" in sent.reason
        assert "hidden" not in repr(sent)


@pytest.mark.parametrize("how", ["plain text", "close", "reset", "silence"])
async def test_a_handshake_that_breaks_or_hangs_lets_no_byte_out(authority: Authority, how: str) -> None:
    hello = bytearray()

    async def script(peer: Peer) -> None:
        hello.extend(await peer.reader.read(10_000))
        match how:
            case "plain text":
                peer.write(OK)
            case "close":
                await peer.close()
            case "reset":
                peer.reset()
            case _:
                pass
        await peer.reader.read()

    async with serving(script) as server:
        origin = f"https://{NAME}:{server.port}"
        client = client_for(origin, authority.client())
        sent = await send(client, asking(origin, "PUT"), connect_timeout_ns=SECOND_NS // 5)
        await client.close()
        assert isinstance(sent, NotSent)
        assert sent.stage is Stage.TLS
        assert b"PUT" not in hello


async def test_a_close_without_notice_does_not_complete_a_reply_without_length(authority: Authority) -> None:
    """Anyone on the path can end a TCP connection; only a close notice of TLS is the server's own."""

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.write(b"HTTP/1.1 200 OK\r\n\r\npart")
        await peer.writer.drain()
        with socket.socket(fileno=os.dup(peer.writer.get_extra_info("socket").fileno())) as beneath:
            beneath.shutdown(socket.SHUT_WR)
        await peer.reader.read()

    async with serving(script, tls=authority.server(NAME)) as server:
        origin = f"https://{NAME}:{server.port}"
        client = client_for(origin, authority.client())
        sent = await send(client, asking(origin))
        await client.close()
        assert isinstance(sent, Replied)
        assert not sent.complete


async def test_a_close_with_notice_completes_it(authority: Authority) -> None:
    script = replying(b"HTTP/1.1 200 OK\r\n\r\nall of it", then_close=True)
    async with serving(script, tls=authority.server(NAME)) as server:
        origin = f"https://{NAME}:{server.port}"
        client = client_for(origin, authority.client())
        sent = await send(client, asking(origin))
        await client.close()
        assert isinstance(sent, Replied)
        assert (sent.complete, sent.body) == (True, b"all of it")


async def test_the_deadline_resets_over_tls_as_well(authority: Authority) -> None:
    reset = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        try:
            await peer.reader.read()
        except ConnectionResetError:
            reset.set()

    async with serving(script, tls=authority.server(NAME)) as server:
        origin = f"https://{NAME}:{server.port}"
        client = client_for(origin, authority.client())

        async def gate() -> Go:
            return permit(abort_ns=SECOND_NS // 10)

        assert isinstance(await send(client, asking(origin, "PUT"), gate=gate), Unanswered)
        async with asyncio.timeout(5):
            await reset.wait()
        await client.close()


@pytest.mark.parametrize("ending", ["cancelled", "out of time"])
async def test_a_goodbye_that_the_server_does_not_answer_ends(
    authority: Authority, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.write(OK)
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport reads, too
        try:
            await asyncio.Event().wait()
        finally:
            peer.reset()

    monkeypatch.setattr("doonce.http.dial._TLS_SHUTDOWN_S", 30.0)
    if ending == "out of time":
        monkeypatch.setattr("doonce.http.client._CLOSE_TIMEOUT_S", 0.2)
    async with serving(script, tls=authority.server("127.0.0.1")) as server:
        client = client_for(server.origin, authority.client())
        assert isinstance(await send(client, asking(server.origin)), Replied)
        socket_there = server.peers[0].writer.get_extra_info("socket")

        def is_connected() -> bool:
            """The system's word: on its list of states, ESTABLISHED is 1."""
            return bool(socket_there.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == b"\x01")

        closing = asyncio.create_task(client.close())
        await asyncio.sleep(0.05)
        assert is_connected()
        assert not closing.done()
        if ending == "cancelled":
            closing.cancel()
        await asyncio.wait([closing], timeout=2)
        assert closing.done()
        assert closing.cancelled() == (ending == "cancelled")
        await until(lambda: not is_connected(), timeout_s=2)
