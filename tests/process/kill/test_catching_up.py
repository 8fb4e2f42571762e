"""SIGKILL around every commit between a gap and its end: what the provider made is one event each, by whichever way."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import random
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.event_list import EventList, serving
from tests.process.effects.journal import Journal
from tests.process.effects.processes import Process
from tests.process.effects.settings import Armed, WorkerSettings, key_ring
from tests.process.effects.waiting import until
from tests.process.effects.worker import engine_of, open_for_test
from tests.process.kill.boundaries import CALLS, CATCH_UP_OPERATIONS, sides
from tests.process.kill.shop import Shop
from tests.store.effects.catching import BINDING, EMPTY, PACK, ROUTE

from doonce.app import installing
from doonce.base.secrets import Secret
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import OriginPolicy, compile_view
from doonce.catalog.pack import read_pack
from doonce.db.migrate import migrate
from doonce.effects.tables import effect_attempt
from doonce.events.making import content_place
from doonce.events.tables import event
from doonce.ingress.tables import ingress_gap, ingress_page
from doonce.ownership import store as ownership
from doonce.principals.vault import Vault

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

PATH = "/in/acme/main/shop.events/once"
NEW_MAX = 12
"""Events of one round; then the sender goes on losing, so that there is always something to catch up with."""

SLOW_PACK = (
    PACK.replace('before = "10s"', 'before = "10m"')
    .replace('after = "1ms"', 'after = "50ms"')
    .replace("pages_max = 5", "pages_max = 500")
)


@dataclass(slots=True)
class GapShop(Shop):
    """A route whose deliveries come once, and the provider that lists them."""

    origin: str = ""
    provider: EventList = field(default_factory=lambda: EventList(page_size=7))

    def settings(self, **changes: Any) -> WorkerSettings:
        """Of a process that receives and catches up."""
        return Shop.settings(
            self, origin=self.origin, families=("event", "push", "catch_up"), lease_us=700_000, **changes
        )

    def happens(self, url: str, *, lost: bool) -> None:
        """Something happens, and its one delivery arrives, or is far too long."""
        made = self.provider.make(f"e{len(self.provider.events)}", time.time() * 1_000)
        self.send(url, json.dumps(made).encode(), lost=lost)

    def send(self, url: str, body: bytes, *, lost: bool) -> None:
        """One try of one delivery."""
        if lost:
            body += b" " * 300_000
        request = urllib.request.Request(url + PATH, body, method="POST")
        request.add_header("Shop-Signature", hmac.digest(b"s", body, "sha256").hex())
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except (OSError, urllib.error.HTTPError):
            return

    def open_gaps(self) -> int:
        """How many there are."""
        return len(self.journal.rows(sa.select(ingress_gap).where(ingress_gap.c.closed_at.is_(None))))

    def check_all(self) -> None:
        """One event for each of the provider's, one work item for each event, and every request in the journal."""
        vault = Vault(key_ring(self.key))
        rows = self.journal.rows(sa.select(event))
        told = [
            json.loads(vault.open_bytes(content_place(row.id), bytes(row.sealed), row.key_id))["id"]
            for row in rows
        ]
        assert sorted(told) == sorted(one["id"] for one in self.provider.events)
        pushes = [item.subject_id for item in self.journal.items("push")]
        assert sorted(pushes) == sorted(row.id for row in rows), "not one work item each"
        gaps = self.journal.rows(sa.select(ingress_gap))
        assert {row.closed_by for row in gaps} == {"reconciliation"}
        items = self.journal.items("catch_up")
        assert {item.state for item in items} == {"succeeded"}
        attempts = self.journal.rows(sa.select(effect_attempt))
        dispatched = [row for row in attempts if row.dispatched_at is not None]
        assert len(self.provider.asked) <= len(dispatched), "a request that no journal knows"
        assert all(row.outcome is not None for row in attempts)
        pages = self.journal.rows(sa.select(ingress_page))
        assert len({row.attempt_id for row in pages}) == len(pages)
        sources = {row.receipt_id[:3] for row in rows}
        assert sources == {"ing", "pag"}, "some came by webhook, and some by page"


@contextmanager
def opened(url: str, folder: Path) -> Iterator[GapShop]:
    """A shop on an empty database, with its provider; its processes end with it."""
    asyncio.run(migrate(url, install=lambda: ownership.install("default", "test", "first")))
    shop = GapShop(url, folder, os.urandom(32).hex(), Journal(url))
    with serving(shop.provider) as shop.origin:
        try:
            asyncio.run(_set_up(shop))
            yield shop
        finally:
            shop.close()


async def _set_up(shop: GapShop) -> None:
    engine = engine_of(shop.settings(watch=None), open_for_test(shop.url))
    binding = read_binding(BINDING | {"origin": shop.origin})
    origins = OriginPolicy(undeclared=True, plain_http=True)
    view = compile_view(read_pack(SLOW_PACK.encode(), EMPTY), binding, origins=origins)
    await installing.install(engine, view, Secret("the key"), reason="a test")
    await engine.ingress.add_secret(ROUTE, Secret("s"), alone=False)
    await engine.stop()


def until_dead(shop: GapShop, rng: random.Random, url: str, doomed: Process, point: str) -> None:
    """Let things happen, some of them lost; then lose on, until the process is dead."""
    sent = 0

    def over() -> bool:
        nonlocal sent
        if sent < NEW_MAX:
            shop.happens(url, lost=rng.random() < 0.5)
        else:
            shop.send(url, b"{}", lost=True)
        sent += 1
        return doomed.is_dead()

    until(over, f"the death at {point}")
    doomed.wait_killed()


def test_killed_at_each_step_of_a_catch_up(database_url: str, tmp_path: Path, kill_seed: int) -> None:
    """Losses that come all the time, and one process dies at each point, mid-way."""
    rng = random.Random(f"catching up {kill_seed}")  # a seed is to be repeated
    shared = ("prepare_reads", "mark")
    points = [side for name in (*CATCH_UP_OPERATIONS, *shared) for side in sides(name)] + [*CALLS]
    rng.shuffle(points)
    with opened(database_url, tmp_path) as shop:
        following = shop.spawn()
        for point in points:
            doomed, following = following, shop.spawn()
            if "start_catch_up" in point:
                settle(shop)
            url = shop.serve(doomed, Armed(point, "kill"))
            until_dead(shop, rng, url, doomed, point)
        url = shop.serve(following)
        shop.happens(url, lost=False)
        shop.happens(url, lost=True)  # so that what a killed process forgot to count is read as well
        until(lambda: shop.open_gaps() > 0, "the last gap")
        until(lambda: shop.open_gaps() == 0, "the end of the last gap", seconds=60)
        until(shop.is_quiet, "the end of every derivation")
        following.stop()
        assert set(points) <= shop.points()
        shop.check_all()


def settle(shop: GapShop) -> None:
    """Have every open gap read, so that the next loss opens one."""
    process = shop.spawn()
    shop.serve(process)
    until(lambda: shop.open_gaps() == 0, "the end of every gap", seconds=60)
    process.stop()
