"""The examples of docs/events.md are run as they stand."""

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from tests.e2e.conftest import ROOT, toml, until
from tests.e2e.test_handlers import receiver_of
from tests.store.ingress.routes import BINDING, PACK, key, signed
from tests.store.runtime.service import TOKEN
from tests.store.runtime.test_http import post
from tests.unit.wire.test_events import notice

from doonce.base.secrets import Secret
from doonce.runtime import schema
from doonce.runtime.asgi import EVENTS_PATH
from doonce.wire import encode

pytestmark = pytest.mark.e2e

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EMBEDDED, PUSHED = BLOCK.findall((ROOT / "docs" / "events.md").read_text())
PAYMENT = "CREATE TABLE payment (amount INTEGER)"


def example(text: str, **given: Any) -> SimpleNamespace:
    """The names that a block makes."""
    names = {"__name__": "example"} | given
    exec(compile(text, "docs/events.md", "exec"), names)
    return SimpleNamespace(**names)


async def test_the_handler_of_the_page_runs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "pack.toml").write_bytes(PACK)
    webhooks = {"batch": {"handle": ["order.paid", "customer.*"]}, "once": {"accepts_loss": "a test"}}
    (tmp_path / "binding.toml").write_text(toml(BINDING | {"webhooks": webhooks}))
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("shop.db")) as connection:
        connection.execute(PAYMENT)
        connection.execute("BEGIN IMMEDIATE")
        schema.create(connection)
        connection.commit()
    page, stop = example(EMBEDDED), asyncio.Event()
    running = asyncio.create_task(page.main(stop))

    async def with_secret() -> bool:
        try:
            await page.app.engine.ingress.add_secret(key("batch"), Secret("s"), alone=True)
        except Exception:  # noqa: BLE001  # not started, or not published yet
            return False
        return True

    await until(with_secret)
    at = receiver_of(page.app)
    body = b'{"events":[{"id":1,"type":"order.paid","amount":12},{"id":2,"type":"order.made"}]}'
    for name in ("a", "b"):
        await at.deliver("batch", body, headers={"Shop-Signature": signed(body), "Shop-Delivery": name})

    async def ended() -> bool:
        items = await at.rows("work_item")
        return len(items) == 3 and all(item["state"] == "succeeded" for item in items)

    await until(ended)
    with closing(sqlite3.connect("shop.db")) as connection:
        assert connection.execute("SELECT amount FROM payment").fetchall() == [(12,)]
    stop.set()
    await running


async def test_the_pushed_handler_of_the_page_runs_once(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    payments = sa.Table("payment", sa.MetaData(), sa.Column("amount", sa.Integer))
    with engine.begin() as connection:
        connection.exec_driver_sql(PAYMENT)
        schema.create(connection)
    page = example(PUSHED, engine=engine, token=TOKEN, insert=sa.insert, payments=payments)
    for _ in range(2):
        code, _answer = await post(
            page.application, encode(notice(content=b'{"amount":12}')), path=EVENTS_PATH
        )
        assert code == 200
    with engine.begin() as connection:
        assert connection.execute(sa.select(payments.c.amount)).scalars().all() == [12]
    engine.dispose()
