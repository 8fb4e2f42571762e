"""What nobody would do, or whose end nobody would hear, is refused at acceptance with the reason."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from simulators.launch import Simulator
from tests.e2e.conftest import PACK, TOKEN, deployment, people

from doonce import Doonce, Installation
from doonce.base.errors import Unavailable
from doonce.base.ids import new_token
from doonce.commands import closure
from doonce.db import maintenance

pytestmark = pytest.mark.e2e

PUSHED = {"policies": {"completion": {"mode": "push", "url_name": "shop"}}}


async def execute(url: str, text: str) -> None:
    await maintenance.run(url, lambda connection: connection.exec_driver_sql(text), write=True)


async def commands(url: str) -> int:
    def read(connection: sa.Connection) -> int:
        handoffs = connection.exec_driver_sql("SELECT count(*) FROM handoff").scalar_one()
        return int(handoffs + connection.exec_driver_sql("SELECT count(*) FROM command").scalar_one())

    return await maintenance.run(url, read, write=False)


@pytest.mark.parametrize(
    "family,change,said",
    [
        ("effect", "UPDATE work_ownership SET state = 'fenced'", "is fenced"),
        ("reconcile", "UPDATE work_ownership SET state = 'draining'", "is draining"),
        ("completion", "DELETE FROM work_ownership", "has no owner"),
    ],
)
async def test_a_command_whose_family_has_no_active_owner_is_refused_and_can_come_again(
    app: Doonce,
    crm: Installation,
    database_url: str,
    simulator: Simulator,
    monkeypatch: pytest.MonkeyPatch,
    family: str,
    change: str,
    said: str,
) -> None:
    monkeypatch.setattr(closure, "LOOK_AGAIN_NS", 0)
    key = new_token()
    known = await crm.accept("contact.patch", "1", {"title": "CTO"}, key=key)
    await app.outcome(known)
    before = await commands(database_url)
    await execute(database_url, f"{change} WHERE family = '{family}'")
    with pytest.raises(Unavailable, match=f"the family '{family}' {said}") as refused:
        await crm.accept("contact.patch", "1", {"title": "CFO"})
    assert "active owner" in refused.value.hint
    assert await crm.accept("contact.patch", "1", {"title": "CTO"}, key=key) == known
    assert await commands(database_url) == before
    assert simulator.stats()["method:PATCH"] == 1


async def test_a_command_whose_completion_nobody_takes_is_refused(
    app: Doonce, database_url: str, simulator: Simulator, tmp_path: Path
) -> None:
    binding = people(simulator.url)
    binding["policies"] = binding["policies"] | PUSHED["policies"]
    crm = await app.installation("acme", "main", pack=PACK, binding=binding, secret=TOKEN)
    await crm.link("contact", local="1", remote="501")
    with pytest.raises(Unavailable, match="no inbox named 'shop' is configured") as refused:
        await crm.accept("contact.patch", "1", {"title": "CTO"})
    assert "inboxes.shop" in refused.value.hint
    assert await commands(database_url) == 0
    shop = {"shop": {"url": "http://127.0.0.1:9/doonce/completions", "credential": "secret"}}
    async with deployment(database_url, tmp_path, inboxes=shop) as configured:
        crm = await configured.installation("acme", "main", pack=PACK, binding=binding, secret=TOKEN)
        await crm.accept("contact.patch", "1", {"title": "CTO"})
    assert await commands(database_url) == 2


async def test_a_good_answer_is_not_asked_for_each_time(
    app: Doonce, crm: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closure, "LOOK_AGAIN_NS", 3_600 * 1_000_000_000)
    await crm.accept("contact.patch", "1", {"title": "CTO"})
    monkeypatch.setattr(closure, "FAMILIES", None)
    await crm.accept("contact.patch", "1", {"title": "CFO"})
