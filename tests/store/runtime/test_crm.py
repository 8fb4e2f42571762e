"""The example application: its change and its outbox row are one, and so are projection and receipt."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from examples.crm import leads
from examples.crm.settings import load
from sqlalchemy import Engine
from tests.process.effects.journal import sync_url
from tests.store.runtime.authority import Authority
from tests.store.runtime.relays import longest
from tests.store.runtime.service import TOKEN, serving

from doonce.base.errors import Invalid, MissingOrDenied
from doonce.runtime import inbox
from doonce.runtime.relay import Relay
from doonce.wire import CompletionNotice, CompletionOutcome, HandoffScope, encode


@pytest.fixture
def application_url(database_url: str) -> str:
    """A new database of the application's, as SQLAlchemy has it."""
    return sync_url(database_url)


@pytest.fixture
def engine(application_url: str) -> Iterator[Engine]:
    made = leads.open_database(application_url)
    leads.add_lead(made, 42, "Ada", "Engineer")
    yield made
    made.dispose()


def change(engine: Engine, scope: HandoffScope, title: str, lead_id: int = 42) -> str:
    return leads.change_title(engine, lead_id, title, scope=scope, operation="contact.patch")


async def relay(engine: Engine, authority: Authority) -> None:
    async with Relay(engine.begin, authority, draw=longest) as running:
        while (await running.run_once()).claimed:
            pass


def tell(engine: Engine, notice: CompletionNotice) -> None:
    with engine.begin() as connection:
        inbox.apply(connection, notice, leads.project, note=leads.note)


def lead(engine: Engine) -> dict[str, Any]:
    (found,) = leads.show(engine)
    return found


async def test_a_change_comes_back_as_a_projection(
    engine: Engine, scope: HandoffScope, authority: Authority
) -> None:
    change(engine, scope, "CTO")
    assert (lead(engine)["title"], lead(engine)["sync_status"]) == ("CTO", "waiting")
    await relay(engine, authority)
    (key,) = authority.accepted_order
    tell(engine, authority.complete(key, CompletionOutcome.UNKNOWN))
    assert lead(engine)["sync_status"] == "unknown"
    result = b'{"remote_id": "501", "updated_at": "2026-01-01T00:00:00Z"}'
    tell(engine, authority.complete(key, CompletionOutcome.ACCEPTED, result))

    found = lead(engine)
    assert (found["sync_status"], found["synced_title"], found["remote_id"], found["remote_version"]) == (
        "accepted",
        "CTO",
        "501",
        "2026-01-01T00:00:00Z",
    )
    assert [one["state"] for one in found["changes"]] == ["completed"]


async def test_an_older_change_does_not_speak_for_the_lead(
    engine: Engine, scope: HandoffScope, authority: Authority
) -> None:
    change(engine, scope, "CTO")
    change(engine, scope, "CEO")
    await relay(engine, authority)
    first, second = authority.accepted_order
    tell(engine, authority.complete(first, CompletionOutcome.ACCEPTED))
    found = lead(engine)
    assert (found["sync_status"], found["synced_title"]) == ("waiting", "CTO")
    tell(engine, authority.complete(second, CompletionOutcome.REJECTED))
    found = lead(engine)
    assert (found["sync_status"], found["synced_title"]) == ("rejected", "CTO")


def test_a_change_that_cannot_be_handed_over_is_no_change(engine: Engine, scope: HandoffScope) -> None:
    with pytest.raises(Invalid):
        leads.change_title(engine, 42, "CTO", scope=scope, operation="")
    with pytest.raises(MissingOrDenied):
        change(engine, scope, "CTO", lead_id=43)

    assert (lead(engine)["title"], lead(engine)["changes"]) == ("Engineer", [])


async def test_a_withdrawn_change(engine: Engine, scope: HandoffScope, authority: Authority) -> None:
    outbox_id = change(engine, scope, "CTO")
    assert leads.withdraw(engine, outbox_id).value == "asked"
    await relay(engine, authority)

    assert leads.withdraw(engine, outbox_id).value == "withdrawn"
    assert authority.accepted_order == []


ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

CONFIG = """
database = "{url}"
service = "{service}"
service_credential_file = "service.credential"
inbox_credential_file = "inbox.credential"
operation = "contact.patch"
idle_ms = 20

[scope]
org = "acme"
installation = "main"
capability = "people.write"
binding_digest = "sha256:{digest}"
binding_generation = 1

[listen]
port = 0
"""


def configure(folder: Path, url: str, service: str) -> Path:
    (folder / "service.credential").write_text(TOKEN + "\n")
    (folder / "inbox.credential").write_text("the inbox's token\n")
    path = folder / "crm.toml"
    path.write_text(CONFIG.format(url=url, service=service, digest="a" * 64))
    return path


@pytest.mark.process
async def test_the_processes_from_change_to_projection(
    application_url: str, tmp_path: Path, authority: Authority
) -> None:
    async with serving(authority) as url, asyncio.timeout(100):
        path = configure(tmp_path, application_url, url)
        await crm("add", str(path), "42", "Ada")
        server = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "examples.crm", "serve", str(path)),
            stdout=asyncio.subprocess.PIPE,
            env=ENVIRONMENT,
        )
        try:
            assert server.stdout is not None
            inbox_url = json.loads(await server.stdout.readline())["ready"]
            changed = json.loads(await crm("change", str(path), "42", "CTO"))
            key = await authority.first_accepted()
            notice = authority.complete(key, CompletionOutcome.ACCEPTED, b'{"etag": "\\"7\\""}')
            async with ClientSession() as session:
                headers = {"Authorization": "Bearer the inbox's token", "Content-Type": "application/json"}
                async with session.post(inbox_url, data=encode(notice), headers=headers) as response:
                    assert response.status == 200
            server.send_signal(signal.SIGTERM)
            assert await server.wait() == 0
        finally:
            if server.returncode is None:
                server.kill()
                await server.wait()
        shown = json.loads(await crm("show", str(path)))

    assert (shown["sync_status"], shown["synced_title"], shown["remote_version"]) == (
        "accepted",
        "CTO",
        '"7"',
    )
    assert [one["outbox_id"] for one in shown["changes"]] == [changed["outbox_id"]]


async def crm(*arguments: str) -> str:
    """Run one command of the example and return what it printed."""
    command = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "examples.crm", *arguments), stdout=asyncio.subprocess.PIPE, env=ENVIRONMENT
    )
    printed, _ = await command.communicate()
    assert command.returncode == 0
    return printed.decode()


@pytest.mark.parametrize(
    "content,match",
    [("database = 1", "database"), ("surprise = 1", "surprise"), ("=", "crm.toml"), (None, "cannot read")],
)
def test_a_configuration_that_is_wrong_is_named(tmp_path: Path, content: str | None, match: str) -> None:
    path = tmp_path / "crm.toml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(Invalid, match=match):
        load(path)


def test_the_example_configuration_is_one() -> None:
    settings = load(Path("examples/crm/crm.example.toml"))

    assert settings.scope.org == "acme"
    assert settings.listen.port == 8201
