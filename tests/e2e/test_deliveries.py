"""Deliveries as an operator meets them: over HTTP and on the command line, within a scope, no body unasked for."""

import asyncio
import base64
import hmac
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.e2e.conftest import QUICK, deployment, until
from tests.e2e.test_api import Api, api_of

from doonce import Doonce
from doonce.app.cli.root import run
from doonce.app.operate.model import Timeline
from doonce.app.operate.service import Operator
from doonce.base.errors import MissingOrDenied
from doonce.base.secrets import Secret
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch
from doonce.ingress.receipts import RouteKey
from doonce.ingress.tables import ingress_receipt
from doonce.work.model import Scope

pytestmark = pytest.mark.e2e

PACK = """
format = "doonce.pack/1"
name = "shop"
version = "1.0.0"
title = "A shop"
auth = { scheme = "none" }

[webhooks.orders]
summary = "An order changed"
body_bytes_max = 4096
response_deadline = "5s"
redelivery = "none"
delivery_id = "Shop-Delivery"
events = { each = "/events", type = "/type", identity = ["/id"] }
verifier = { algorithm = "hmac-sha256", header = "Shop-Signature", encoding = "hex", content = "{body}" }
"""
BINDING = {
    "format": "doonce.binding/1",
    "org": "acme",
    "installation": "main",
    "capability": "people.write",
    "pack": "shop@1.0.0",
    "principal": "nobody",
    "operations": [],
    "webhooks": {"orders": {"accepts_loss": "a test"}},
}
PATH = "/in/acme/main/people.write/orders"
SECRET = "the-secret-of-the-shop"
MARKED = "a-name-that-only-the-body-has"
BODY = json.dumps({"events": [{"id": 1, "type": "made", "name": MARKED}, {"id": 2, "type": "paid"}]}).encode()
ALL = Statement(
    "test.e2e.receipts", lambda dialect: sa.select(ingress_receipt.c.id).order_by(ingress_receipt.c.id)
)
BROKEN = b'{"events":[{"id":3}]}'


@pytest.fixture
async def app(database_url: str, tmp_path: Path) -> AsyncIterator[Doonce]:
    """A running deployment that receives from a shop."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "pack.toml").write_text(PACK)
    async with deployment(
        database_url, tmp_path, events=QUICK, ingress={"tally_seconds": 0.05}
    ) as running_app:
        await running_app.installation("acme", "main", pack=folder, binding=BINDING)
        route = RouteKey("acme", "main", "people.write", "orders")
        await running_app.engine.ingress.add_secret(route, Secret(SECRET), alone=True)
        yield running_app


@pytest.fixture
async def api(app: Doonce) -> AsyncIterator[Api]:
    async with api_of(app) as running:
        yield running


async def deliver(api: Api, body: bytes, delivery: str = "d1") -> int:
    """One signed delivery; the status of its answer."""
    signature = hmac.digest(SECRET.encode(), body, "sha256").hex()
    headers = {"Shop-Signature": signature, "Shop-Delivery": delivery}
    status, _ = await api.call("POST", PATH, raw=body, token=None, headers=headers)
    return status


async def receipts(app: Doonce) -> list[str]:
    """The receipts, in the order in which they came."""

    def read() -> Txn[list[str]]:
        return [row[0] for row in (yield from fetch(ALL))]

    return await app.engine.database.read(read)


async def story(app: Doonce, receipt_id: str, state: str) -> Timeline:
    """A receipt's story, once it stands so."""

    async def there() -> Timeline | None:
        (told,) = await app.show(receipt_id)
        return told if told.state == state else None

    found: Timeline = await until(there)
    return found


def events(timeline: Timeline) -> list[str]:
    return [moment.event for moment in timeline.moments]


async def test_a_delivery_tells_its_story_by_each_of_its_ids(app: Doonce, api: Api) -> None:
    assert await deliver(api, BODY) == 200
    (receipt,) = await receipts(app)
    told = await story(app, receipt, "events derived")
    assert events(told)[:2] == ["delivery received", "event work created"]
    assert sorted(events(told)[2:]) == ["event derived", "event derived", "event work succeeded"]
    ids = {moment.id for moment in told.moments}
    assert {one[:4] for one in ids} == {"ing_", "wrk_", "evt_"}
    work = next(one for one in ids if one.startswith("wrk_"))
    (by_work,) = await app.show(work)
    assert by_work.id == receipt
    made = next(moment for moment in told.moments if moment.detail == "made")
    (of_event,) = await app.show(made.id)
    assert (of_event.kind, of_event.facts["receipt"], of_event.facts["type"]) == ("event", receipt, "made")
    elsewhere = Scope("acme", "other")
    for one in (receipt, work, made.id):
        assert await Operator(app.engine).find(one, elsewhere) == []
        status, _ = await api.call("GET", f"/v1/show/{one}", token=api.other_token)
        assert status == 404
        status, shown = await api.call("GET", f"/v1/show/{one}")
        assert status == 200
        assert MARKED not in json.dumps(shown)
        assert SECRET not in json.dumps(shown)


async def test_another_body_under_a_known_id_says_what_differs(app: Doonce, api: Api) -> None:
    await deliver(api, BODY)
    assert await deliver(api, BODY + b" ") == 200
    (first,) = await receipts(app)
    status, shown = await api.call("GET", "/v1/status", token=api.operator_token)
    assert status == 200
    assert shown["deliveries"]["quarantined"] == 1
    (odd,) = shown["deliveries"]["newest_quarantined"]
    (told,) = await app.show(odd)
    assert (told.kind, told.state, told.facts["first"]) == ("receipt", "quarantined", first)
    assert told.facts["digest"] != told.facts["its digest"]
    assert (told.facts["body"], told.facts["its body"]) == (f"{len(BODY) + 1} bytes", f"{len(BODY)} bytes")
    assert odd in {moment.id for moment in (await story(app, first, "events derived")).moments}
    status, _ = await api.call("POST", f"/v1/work/{odd}/replay", token=api.operator_token)
    assert status == 404  # it never had work


async def test_a_body_is_shown_to_who_may_and_asks(app: Doonce, api: Api) -> None:
    await deliver(api, BODY)
    (receipt,) = await receipts(app)
    path = f"/v1/receipts/{receipt}/body"
    assert (await api.call("GET", path))[0] == 403
    assert (await api.call("GET", path, token=api.other_token))[0] == 404
    status, told = await api.call("GET", path, token=api.operator_token)
    assert status == 200
    assert base64.b64decode(told["raw"]) == BODY
    assert told["digest"].startswith("sha256:")
    with pytest.raises(MissingOrDenied):
        await Operator(app.engine).body(receipt, who="eve", scope=Scope("acme", "other"))


async def test_a_dead_derivation_is_replayed_by_its_receipt(app: Doonce, api: Api) -> None:
    await deliver(api, BROKEN)
    (receipt,) = await receipts(app)
    await story(app, receipt, "dead")
    path = f"/v1/work/{receipt}/replay"
    assert (await api.call("POST", path, token=api.other_token))[0] == 404
    status, view = await api.call("POST", path, token=api.operator_token)
    assert (status, view["receipt_id"], view["family"]) == (200, receipt, "event")

    async def dead_again() -> Timeline | None:
        (told,) = await app.show(receipt)
        return told if events(told).count("event work dead") == 2 else None

    told = await until(dead_again)
    follows = [moment.detail for moment in told.moments if moment.id == view["work_id"]]
    assert f"follows {view['replay_of']}" in follows


async def test_a_gap_is_closed_over_http_by_a_credential_of_its_installation(app: Doonce, api: Api) -> None:
    assert await deliver(api, b"x" * 5000) == 413

    async def opened() -> Any:
        _, told = await api.call("GET", "/v1/gaps", token=api.operator_token)
        return told["gaps"]

    (gap,) = await until(opened)
    assert (await api.call("GET", "/v1/gaps", token=api.other_token))[1] == {"gaps": []}
    asked = {"capability": "people.write", "webhook": "orders", "sequence": 1, "reason": "asked the shop"}
    stale = asked | {"losses": gap["losses"] + 1}
    asked |= {"losses": gap["losses"]}
    assert (await api.call("POST", "/v1/gaps/close", asked, token=api.other_token))[0] == 404
    assert (await api.call("POST", "/v1/gaps/close", stale, token=api.operator_token))[0] == 412
    bad = asked | {"losses": -1}
    assert (await api.call("POST", "/v1/gaps/close", bad, token=api.operator_token))[0] == 400
    status, closed = await api.call("POST", "/v1/gaps/close", asked, token=api.operator_token)
    assert (status, closed["reason"]) == (200, "asked the shop")
    assert closed["closed_by"].startswith("crd_")
    assert (await Operator(app.engine).status()).gaps == ()


async def test_the_command_line_does_the_same(
    app: Doonce, api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await deliver(api, BODY)
    await deliver(api, b"x" * 5000, "d2")
    (receipt,) = await receipts(app)
    await story(app, receipt, "events derived")
    await until(lambda: Operator(app.engine).gaps())
    config = tmp_path / "doonce.toml"
    config.write_text(f'database = "{app.engine.database.url}"\nkey_file = "{tmp_path / "keys.toml"}"\n')

    async def doonce(*tokens: str) -> str:
        capsys.readouterr()
        assert await asyncio.to_thread(run, [*tokens, "--config", str(config)]) == 0
        return capsys.readouterr().out

    assert "events derived" in (plain := await doonce("show", receipt))
    assert MARKED not in plain
    assert MARKED in await doonce("show", receipt, "--body")
    told = json.loads(await doonce("show", receipt, "--body", "--json"))
    assert base64.b64decode(told["body"]["raw"]) == BODY
    assert set(json.loads(await doonce("show", receipt, "--json"))) == {"timelines"}
    text = await doonce("status")
    assert "1 deliveries and 2 events in a day, 0 quarantined" in text
    assert "body_long 1" in text
    assert "--sequence 1 --losses 1" in await doonce("gap", "list")
    route = ("acme", "main", "people.write", "orders")
    await doonce("gap", "close", *route, "--sequence", "1", "--losses", "1", "--reason", "asked the shop")
    assert "no gap is open" in await doonce("gap", "list")
    assert json.loads(await doonce("rewrap", "--json")) == {"principals": 0, "deliveries": 0, "events": 0}
