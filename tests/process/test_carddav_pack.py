"""The CardDAV pack against Radicale, a server that nobody here wrote: real HTTP, real files."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from doonce.base.secrets import Secret
from doonce.catalog.auth import secret_headers
from doonce.catalog.binding import read_binding
from doonce.catalog.classify import classify_response
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view
from doonce.catalog.exchange import FrozenRequest, Judgement, Response
from doonce.catalog.files import load_pack
from doonce.catalog.model import Outcome, Verdict
from doonce.catalog.probe import judge, probe_request
from doonce.catalog.render import render

pytestmark = pytest.mark.process

PACK = Path(__file__).parents[2] / "packs" / "carddav"
COMMAND = "cmd_1"
SECOND = 1_000_000
DISPATCHED = 1_796_000_000 * SECOND
SETTLED = DISPATCHED + 60 * SECOND
START_S = 20
CARD = (
    "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:ann\r\nfn:Ann Lövelace of a name that is far too long for one line of"
    " seventy-five octets\r\nN:Lövelace;Ann\r\nTEL;type=work;TYPE=voice;pref=1:+1\r\n"
    "ORG:Acme\\, Inc\\; Co;Dev\r\nNOTE:two\\nlines\\; and a backslash \\\\\r\nEMAIL:ann@x.example\r\n"
    "REV:20260101T000000Z\r\nEND:VCARD\r\n"
)
MAKE_BOOK = b"""<?xml version="1.0"?><mkcol xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav"><set><prop>
<resourcetype><collection/><C:addressbook/></resourcetype></prop></set></mkcol>"""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, the folder that it stores in, and a view that is bound to it."""

    port: int
    storage: Path
    view: BindingView

    def call(self, method: str, target: str, headers: dict[str, str], body: bytes = b"") -> Response:
        """Send one request with the standard library's client and return the whole answer."""
        secrets = secret_headers(self.view.auth, Secret("ann:secret"))
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            sent = headers | {name: secret.reveal() for name, secret in secrets.items()}
            connection.request(method, target, body=body or None, headers=sent)
            answer = connection.getresponse()
            lower = tuple((name.lower(), value) for name, value in answer.getheaders())
            return Response(answer.status, lower, answer.read())
        finally:
            connection.close()

    def send(self, request: FrozenRequest) -> Response:
        """Send a frozen request."""
        return self.call(request.method, request.target, dict(request.headers), request.body)

    def cards(self) -> list[str]:
        """What the server's own files hold."""
        book = self.storage / "collection-root" / "ann" / "book"
        return [path.read_text() for path in sorted(book.glob("*.vcf"))]


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_listening(process: "subprocess.Popen[bytes]", port: int) -> None:
    """Return once the server accepts connections; fail where it ended, or after `START_S`."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        assert process.poll() is None, "the server ended at its start"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
        except OSError:
            continue
        return
    pytest.fail(f"the server does not listen after {START_S} s")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with one empty address book, ended and reaped afterwards."""
    port, storage = free_port(), tmp_path / "storage"
    users = tmp_path / "users"
    users.write_text("ann:secret\n")
    config = tmp_path / "config"
    config.write_text(
        f"[server]\nhosts = 127.0.0.1:{port}\n"
        f"[auth]\ntype = htpasswd\nhtpasswd_filename = {users}\nhtpasswd_encryption = plain\ndelay = 0\n"
        f"[storage]\nfilesystem_folder = {storage}\n"
    )
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "radicale", "--config", str(config)], stdout=log, stderr=subprocess.STDOUT
    )
    try:
        wait_until_listening(process, port)
        running = Server(port, storage, bound_view(port))
        assert (
            running.call("MKCOL", "/ann/book/", {"Content-Type": "application/xml"}, MAKE_BOOK).status == 201
        )
        yield running
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=10)
        log.close()


def bound_view(port: int) -> BindingView:
    """A view of the pack for the server at `port`."""
    binding = read_binding(
        {
            "format": "doonce.binding/1",
            "org": "acme",
            "installation": "main",
            "capability": "crm.cards",
            "pack": "carddav@1.0.0",
            "principal": "prn_ann",
            "origin": f"http://127.0.0.1:{port}",
            "operations": ["card.create", "card.update", "card.read"],
            "parameters": {"collection": "ann/book"},
        }
    )
    return compile_view(load_pack(PACK), binding, origins=OriginPolicy(plain_http=True))


def created(card: str = CARD) -> bytes:
    """The payload that creates a card."""
    return json.dumps({"uid": "ann", "card": card}).encode()


def replaced(etag: str, card: str) -> bytes:
    """The payload that replaces a card."""
    return json.dumps({"etag": etag, "card": card}).encode()


def probed(
    server: Server, operation: str, payload: bytes, remote_id: str | None, *, refused_with: int | None = None
) -> Judgement:
    """What the declared probe finds now."""
    arguments = {"remote_id": remote_id, "command_id": COMMAND}
    frozen = render(server.view, operation, payload, **arguments).request  # type: ignore[arg-type]
    answer = server.send(probe_request(server.view, operation, payload, **arguments))  # type: ignore[arg-type]
    return judge(
        server.view.operation(operation).contract,
        frozen,
        answer,
        dispatched_at_us=DISPATCHED,
        probed_at_us=SETTLED,
        refused_with=refused_with,
    )


def test_a_repeated_create_is_refused_and_its_effect_is_proven(server: Server) -> None:
    payload = created()
    contract = server.view.operation("card.create").contract
    request = render(server.view, "card.create", payload, remote_id=None, command_id=COMMAND).request
    first = classify_response(contract, request, server.send(request))
    assert first.outcome is Outcome.ACCEPTED
    result = json.loads(first.result or b"")
    assert result["remote_id"] == "ann.vcf"

    answer = server.send(request)
    assert answer.status == 412
    second = classify_response(contract, request, answer, earlier_maybe_sent=True)
    assert (second.outcome, second.verify) == (Outcome.OUTCOME_UNKNOWN, True)
    proven = probed(server, "card.create", payload, None, refused_with=412)
    assert proven.verdict is Verdict.EFFECT_PROVEN
    assert json.loads(proven.result or b"") == result
    assert len(server.cards()) == 1
    assert (
        server.cards()[0].encode() != request.body
    )  # the server wrote the card anew; the comparison survives it


def test_somebody_elses_card_under_the_same_name_is_not_ours(server: Server) -> None:
    other = render(
        server.view, "card.create", created(CARD.replace("Ann", "Eve")), remote_id=None, command_id="c2"
    ).request
    assert server.send(other).status == 201
    request = render(server.view, "card.create", created(), remote_id=None, command_id=COMMAND).request
    assert server.send(request).status == 412
    assert probed(server, "card.create", created(), None, refused_with=412).verdict is Verdict.SUPERSEDED


def test_a_card_that_never_arrived_is_proven_to_be_missing(server: Server) -> None:
    assert probed(server, "card.create", created(), None).verdict is Verdict.NO_EFFECT_PROVEN


def test_an_update_replaces_exactly_the_version_that_it_names(server: Server) -> None:
    create = render(server.view, "card.create", created(), remote_id=None, command_id="c1").request
    contract = server.view.operation("card.update").contract
    etag = str(server.send(create).header("etag"))
    payload = replaced(etag, CARD.replace("ann@x.example", "ann@y.example"))
    assert probed(server, "card.update", payload, "ann.vcf").verdict is Verdict.NO_EFFECT_PROVEN

    request = render(server.view, "card.update", payload, remote_id="ann.vcf", command_id=COMMAND).request
    assert classify_response(contract, request, server.send(request)).outcome is Outcome.ACCEPTED
    repeated = classify_response(contract, request, server.send(request), earlier_maybe_sent=True)
    assert repeated.verify
    assert (
        probed(server, "card.update", payload, "ann.vcf", refused_with=412).verdict is Verdict.EFFECT_PROVEN
    )
    assert "ann@y.example" in server.cards()[0]

    late = replaced(etag, CARD.replace("ann@x.example", "ann@z.example"))
    assert (
        server.send(
            render(server.view, "card.update", late, remote_id="ann.vcf", command_id="c3").request
        ).status
        == 412
    )
    assert probed(server, "card.update", late, "ann.vcf", refused_with=412).verdict is Verdict.SUPERSEDED
    assert len(server.cards()) == 1


def test_a_card_that_the_server_refuses_is_rejected(server: Server) -> None:
    request = render(
        server.view, "card.create", created("BEGIN:VCARD\r\nnothing"), remote_id=None, command_id=COMMAND
    ).request
    contract = server.view.operation("card.create").contract
    assert classify_response(contract, request, server.send(request)).outcome is Outcome.REJECTED
    assert server.cards() == []


def test_a_read_gives_the_version_that_an_update_needs(server: Server) -> None:
    create = render(server.view, "card.create", created(), remote_id=None, command_id="c1").request
    etag = server.send(create).header("etag")
    request = render(server.view, "card.read", b"{}", remote_id="ann.vcf", command_id="c2").request
    read = classify_response(server.view.operation("card.read").contract, request, server.send(request))
    assert json.loads(read.result or b"") == {"etag": etag}
