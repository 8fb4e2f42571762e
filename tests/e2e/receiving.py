"""A process that receives deliveries, and a sender that speaks whatever bytes it likes over a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
import socket
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from tests.e2e.test_serve import Service, service

from doonce.app import installing
from doonce.app.config import settings_from
from doonce.app.opening import open_engine
from doonce.app.proof import migrate_database
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import OriginPolicy, compile_view
from doonce.catalog.pack import read_pack
from doonce.ingress.receipts import RouteKey

INSTALLATION, CAPABILITY = "main", "shop.events"
SECRETS = {"acme": "secret of acme", "other": "secret of other"}
BODY_BYTES_MAX = 4_096
HEAD_SECONDS, READ_SECONDS = 0.6, 0.4
METRIC = re.compile(r'^(doonce_\w+_total)\{reason="(\w+)"\} ([0-9.]+)$', re.MULTILINE)

PACK = b"""
format = "doonce.pack/1"
name = "shop"
version = "1.0.0"
title = "A shop"
auth = { scheme = "none" }

[webhooks.timed]
summary = "Signed with its time"
body_bytes_max = 4096
response_deadline = "5s"
redelivery = "window"
redelivery_window = "3d"
events = { type = "/type", identity = ["/id"] }

[webhooks.timed.verifier]
algorithm = "hmac-sha256"
header = "Shop-Signature"
separator = ","
prefix = "v1="
encoding = "hex"
content = "{timestamp}.{body}"

[webhooks.timed.verifier.timestamp]
header = "Shop-Time"
format = "seconds"
past = "5m"
future = "5m"

[webhooks.once]
summary = "Sent once"
body_bytes_max = 4096
response_deadline = "5s"
redelivery = "none"
delivery_id = "Shop-Delivery"
events = { format = "raw" }
verifier = { algorithm = "hmac-sha256", header = "Shop-Signature", encoding = "hex", content = "{body}" }
"""


def binding(org: str) -> dict[str, Any]:
    """A tenant's binding."""
    return {
        "format": "doonce.binding/1",
        "org": org,
        "installation": INSTALLATION,
        "capability": CAPABILITY,
        "pack": "shop@1.0.0",
        "principal": "nobody",
        "operations": [],
        "webhooks": {"timed": {}, "once": {"accepts_loss": "a test"}},
    }


def path_of(webhook: str, org: str = "acme") -> bytes:
    """Where a webhook comes in."""
    return f"/in/{org}/{INSTALLATION}/{CAPABILITY}/{webhook}".encode()


def timed(body: bytes, *, at: str | None = None, org: str = "acme") -> list[bytes]:
    """Headers that prove a body at a time."""
    stamp = (str(int(time.time())) if at is None else at).encode()
    proof = hmac.digest(SECRETS[org].encode(), stamp + b"." + body, "sha256").hex().encode()
    return [b"Shop-Time: " + stamp, b"Shop-Signature: v1=" + proof]


def once(body: bytes, *, org: str = "acme", delivery_id: str | None = None) -> list[bytes]:
    """Headers that prove a body."""
    proof = hmac.digest(SECRETS[org].encode(), body, "sha256").hex().encode()
    named = [] if delivery_id is None else [b"Shop-Delivery: " + delivery_id.encode()]
    return [b"Shop-Signature: " + proof, *named]


def request(
    path: bytes,
    headers: list[bytes],
    body: bytes = b"",
    *,
    method: bytes = b"POST",
    version: bytes = b"1.1",
    length: int | None = -1,
) -> bytes:
    """One request, byte for byte; `length` None announces none."""
    lines = [method + b" " + path + b" HTTP/" + version, b"Host: x", *headers]
    if length is not None:
        lines.append(b"Content-Length: %d" % (len(body) if length == -1 else length))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@dataclass(slots=True)
class Receiver:
    """A process with the role ingress, seen from outside."""

    service: Service
    database: str
    folder: Path

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self.service.url.removeprefix("http://").split(":")
        return host, int(port)

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """A connection of its own."""
        with socket.create_connection(self.address, timeout=10) as connection:
            yield connection

    def say(self, *pieces: bytes) -> bytes:
        """Send these bytes, and all that is answered until the other side closes or has answered once."""
        with self.connected() as connection:
            for piece in pieces:
                connection.sendall(piece)
            return heard(connection)

    def status(self, *pieces: bytes) -> int:
        """The status of the first answer; 0 where there is none."""
        return status_of(self.say(*pieces))

    def counts(self) -> Counter[str]:
        """What was turned away, by reason, as a request or before it was one."""
        with urllib.request.urlopen(self.service.url + "/metrics", timeout=10) as answer:
            text = answer.read().decode()
        counts: Counter[str] = Counter()
        for _, reason, value in METRIC.findall(text):
            counts[reason] += int(float(value))
        return counts

    def threads(self) -> int:
        """How many threads the process has."""
        status = Path(f"/proc/{self.service.process.pid}/status").read_text()
        return int(status.partition("Threads:")[2].split()[0])

    def log(self) -> str:
        """All that it said."""
        return self.service.log.read_text()

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Every row of a table."""
        url = self.database.replace("postgresql:", "postgresql+psycopg:").replace("mysql:", "mysql+pymysql:")
        engine = sa.create_engine(url)
        with engine.connect() as connection:
            found = connection.execute(sa.select(sa.text("*")).select_from(sa.table(table))).mappings().all()
        engine.dispose()
        return [{name: _as_text(name, value) for name, value in row.items()} for row in found]


def _as_text(column: str, value: Any) -> Any:
    """MariaDB keeps names as the bytes that they are; what is sealed is bytes everywhere."""
    return value.decode() if isinstance(value, bytes) and column != "sealed" else value


def heard(connection: socket.socket) -> bytes:
    """One whole answer (the service always announces its length), or what came before the end."""
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            got += piece
            head, end, body = got.partition(b"\r\n\r\n")
            if head.startswith(b"HTTP/1.1 100"):
                continue
            found = re.search(rb"(?i)content-length: (\d+)", head)
            if end and found and len(body) >= int(found[1]):
                break
    return got


def status_of(answer: bytes) -> int:
    """The status that an answer begins with."""
    return int(answer.split(b" ", 2)[1]) if answer else 0


def prepare(url: str, folder: Path) -> None:
    """A migrated database on which two tenants receive the same webhooks under secrets of their own."""

    async def run() -> None:
        settings = settings_from({"database": url, "key_file": str(folder / "keys.toml")})
        await migrate_database(settings)
        engine = open_engine(settings)
        for org, secret in SECRETS.items():
            view = compile_view(read_pack(PACK, {}), read_binding(binding(org)), origins=OriginPolicy())
            await installing.install(engine, view, None, reason="a test")
            for webhook in ("timed", "once"):
                key = RouteKey(org, INSTALLATION, CAPABILITY, webhook)
                await engine.ingress.add_secret(key, Secret(secret), alone=False)
        await engine.stop()

    asyncio.run(run())


@contextlib.contextmanager
def receiving(url: str, folder: Path, **settings: str) -> Iterator[Receiver]:
    """`doonce serve --role ingress` on a prepared database, with short deadlines."""
    environment = {
        "DOONCE_DATABASE": url,
        "DOONCE_KEY_FILE": str(folder / "keys.toml"),
        "DOONCE_LISTEN__HEAD_SECONDS": str(HEAD_SECONDS),
        "DOONCE_INGRESS__READ_SECONDS": str(READ_SECONDS),
        "DOONCE_INGRESS__TALLY_SECONDS": "0.05",
    } | settings
    with service(folder, "serve", "--role", "ingress", "--port", "0", **environment) as started:
        assert started.url.startswith("http://"), started.log.read_text()
        receiver = Receiver(started, url, folder)
        yield receiver
        assert "Traceback" not in receiver.log(), receiver.log()
