"""A provider that sends once, a service that loses and is down, and what an operator sees of it: nothing is missing."""

from __future__ import annotations

import hmac
import json
import re
import signal
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.e2e.conftest import toml
from tests.e2e.conftest import until as eventually
from tests.e2e.test_serve import Service, service
from tests.event_list import EventList, serving
from tests.process.effects.waiting import until
from tests.store.effects.catching import BINDING, EMPTY, PACK

from doonce import Doonce
from doonce.app.cli.root import run
from doonce.app.operate.gaps import Reconcile
from doonce.base.errors import Invalid
from doonce.ingress.receipts import RouteKey

pytestmark = [pytest.mark.e2e, pytest.mark.process]

ROUTE = ("acme", "main", "shop.events", "once")


@dataclass(slots=True)
class Place:
    """A folder with a configuration, and the provider that the binding in it names."""

    folder: Path
    provider: EventList
    capsys: pytest.CaptureFixture[str]

    @property
    def config(self) -> Path:
        return self.folder / "doonce.toml"

    def doonce(self, *tokens: str, status: int = 0) -> str:
        """One command; what it printed."""
        self.capsys.readouterr()
        assert run([*tokens, "--config", str(self.config)]) == status
        told = self.capsys.readouterr()
        return told.out if status == 0 else told.err

    @contextmanager
    def up(self) -> Iterator[Service]:
        """The service, until the end of the block; it stops as it is asked to."""
        with service(self.folder, "up", "--port", "0", "--config", str(self.config)) as started:
            started.until_ready(ready=True)
            yield started
            started.process.send_signal(signal.SIGTERM)
            assert started.stopped() == 0
            assert "Traceback" not in started.log.read_text()

    def happens(self, at: Service | None, name: str, *, lost: bool) -> None:
        """Something happens at the provider, whose one delivery arrives, is turned away, or finds nobody."""
        body = json.dumps(self.provider.make(name, time.time() * 1_000)).encode()
        if at is None:
            return
        body += b" " * 300_000 if lost else b""
        request = urllib.request.Request(at.url + "/in/" + "/".join(ROUTE), body, method="POST")
        request.add_header("Shop-Signature", hmac.digest(b"the route's", body, "sha256").hex())
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                status = answer.status
        except urllib.error.HTTPError as refused:
            status = refused.code
        assert status == (413 if lost else 200)

    def events(self) -> int:
        """How many events there are in the database."""
        with closing(sqlite3.connect(self.folder / "doonce.db")) as database:
            return int(database.execute("SELECT count(*) FROM event").fetchone()[0])

    def gaps(self) -> list[dict[str, Any]]:
        """Open gaps, as the command line has them."""
        found: list[dict[str, Any]] = json.loads(self.doonce("gap", "list", "--json"))["gaps"]
        return found


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Place]:
    provider = EventList()
    with serving(provider) as origin:
        pack = tmp_path / "shop"
        (pack / "schemas").mkdir(parents=True)
        (pack / "pack.toml").write_text(PACK)
        (pack / "schemas" / "empty.json").write_bytes(EMPTY["empty.json"])
        handled = {"webhooks": {"once": {"handle": ["*"]}}}
        (tmp_path / "binding.toml").write_text(toml(BINDING | {"origin": origin} | handled))
        (tmp_path / "key").write_text("the key")
        (tmp_path / "route").write_text("the route's")
        (tmp_path / "doonce.toml").write_text(
            f'database = "sqlite:///{tmp_path}/doonce.db"\nkey_file = "{tmp_path}/keys"\nsweep_seconds = 0.1\n'
            "[egress]\nplain_http = true\nundeclared_origins = true\nprivate_networks = ['all']\n"
            "[ingress]\ntally_seconds = 0.05\n[catch_ups]\npoll_seconds = 0.05\n"
        )
        yield Place(tmp_path, provider, capsys)


def published(place: Place) -> str:
    """A published binding with the secrets that it needs; a token of an operator."""
    place.doonce("publish", str(place.folder / "shop"), str(place.folder / "binding.toml"),
                 "--secret-file", str(place.folder / "key"))  # fmt: skip
    place.doonce("webhook-secret", *ROUTE, "--secret-file", str(place.folder / "route"))
    told = place.doonce("credential", "issue", "acme", "main", "shop.events", "doonce.operate", "--json")
    return str(json.loads(told)["token"])


def post(at: Service, path: str, body: dict[str, Any], token: str) -> tuple[int, Any]:
    """One request to the API."""
    request = urllib.request.Request(at.url + path, json.dumps(body).encode(), method="POST")
    request.add_header("Authorization", f"Bearer {token}")
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def test_what_was_lost_and_what_nobody_counted_is_there_in_the_end(place: Place) -> None:
    place.doonce("migrate")
    token = published(place)
    with place.up() as up:
        place.happens(up, "a", lost=False)
        place.happens(up, "b", lost=True)
        until(lambda: place.events() == 2 and not place.gaps(), "the lost one, read")
        text = urllib.request.urlopen(up.url + "/metrics", timeout=10).read().decode()
        assert re.search(r'doonce_catch_up_pages_total\{fate="read"\} [1-9]', text)
    began = datetime.now(UTC).isoformat()
    place.happens(None, "c", lost=True)  # no process runs: nobody counts
    place.happens(None, "d", lost=True)
    with place.up() as up:
        assert not place.gaps()
        since_us = int(datetime.fromisoformat(began).timestamp() * 1_000_000)
        asked = {
            "capability": "shop.events",
            "webhook": "once",
            "since_us": since_us,
            "reason": "the host was down",
        }
        status, gap = post(up, "/v1/gaps/reconcile", asked, token)
        assert (status, gap["cause"], gap["asked_why"]) == (200, "operator", "the host was down")
        until(lambda: place.events() == 4 and not place.gaps(), "the outage, read")
        assert post(up, "/v1/gaps/reconcile", asked | {"sequence": 1}, token)[0] == 400
        told = place.doonce("show", gap["catch_up"]["catch_up_id"])
        assert "catch-up" in told
        assert "page stored" in told
        assert "the host was down" in told


def test_a_refused_read_is_shown_and_an_operator_starts_it_again(place: Place) -> None:
    place.doonce("migrate")
    published(place)
    place.provider.odd |= {1: (401, b"{}")}
    with place.up() as up:
        place.happens(up, "a", lost=True)

        def dead() -> dict[str, Any] | None:
            found = [gap for gap in place.gaps() if gap["catch_up"] and gap["catch_up"]["dead"]]
            return found[0] if found else None

        gap = until(dead, "the refusal")
        assert "rejected: status 401" in gap["catch_up"]["reason"]
        assert "doonce gap reconcile starts it again" in place.doonce("gap", "list")
        assert "doonce gap reconcile" in place.doonce("status")
        page = gap["catch_up"]["work_id"]
        assert "dead" in place.doonce("show", page)
        text = urllib.request.urlopen(up.url + "/metrics", timeout=10).read().decode()
        assert "doonce_gaps_for_operators 1.0" in text
        told = place.doonce("gap", "reconcile", *ROUTE, "--sequence", "9", "--reason", "x", status=3)
        assert "there is no such gap" in told
        told = place.doonce("gap", "reconcile", *ROUTE, "--since", "yesterday", "--reason", "x", status=2)
        assert "no time with its zone" in told
        place.doonce("gap", "reconcile", *ROUTE, "--sequence", "1", "--reason", "the key is right now")
        until(lambda: place.events() == 1 and not place.gaps(), "the lost one, read")


def test_a_dead_page_is_replayed_where_it_stopped(place: Place) -> None:
    place.doonce("migrate")
    published(place)
    place.provider.odd |= {2: (401, b"{}")}
    with place.up() as up:
        for name in ("a", "b", "c"):
            place.happens(up, name, lost=True)
        gap = until(
            lambda: next((gap for gap in place.gaps() if gap["catch_up"] and gap["catch_up"]["dead"]), None),
            "the refusal",
        )
        replayed = json.loads(place.doonce("replay", gap["catch_up"]["work_id"], "--json"))
        assert replayed["catch_up_id"] == gap["catch_up"]["catch_up_id"]
        until(lambda: place.events() == 3 and not place.gaps(), "the rest, read")


async def test_an_embedding_process_has_a_time_read(place: Place) -> None:
    place.happens(None, "a", lost=True)
    egress = {"plain_http": True, "undeclared_origins": True, "private_networks": ["all"]}
    url = f"sqlite:///{place.folder}/doonce.db"
    async with Doonce(url, key_file=str(place.folder / "keys"), egress=egress) as app:
        await app.installation(
            "acme",
            "main",
            pack=place.folder / "shop",
            binding=place.folder / "binding.toml",
            secret="the key",
        )
        since_us = time.time_ns() // 1_000 - 60_000_000
        asked = Reconcile(RouteKey(*ROUTE), "ann", "the host was down", since_us=since_us)
        gap = await app.reconcile_gap(asked)
        assert (gap.cause, gap.asked_by, gap.asked_why) == ("operator", "ann", "the host was down")
        with pytest.raises(Invalid, match="gap by its number, or a time"):
            await app.reconcile_gap(replace(asked, sequence=1))

        async def none_is_open() -> bool:
            return not await app.gaps()

        await eventually(none_is_open)
        assert place.events() == 1
