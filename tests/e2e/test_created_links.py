"""What an application creates it can change next, by its own name for it; a link that stands is never moved."""

import pytest
from simulators.launch import Simulator
from tests.e2e.conftest import until

from doonce import Doonce, Installation
from doonce.app.operate.model import Decision
from doonce.base.errors import MissingOrDenied
from doonce.commands.model import CommandState
from doonce.links.model import LinkState

pytestmark = pytest.mark.e2e

REFUSED = b'doonce_created_links_total{fate="refused",operation="contact.create"} 1.0'
MADE = b'doonce_created_links_total{fate="made",operation="contact.create"} 1.0'


async def test_a_created_record_is_found_by_the_next_command(
    app: Doonce, crm: Installation, simulator: Simulator
) -> None:
    created = await app.outcome(await crm.accept("contact.create", "9", {"email": "new@example.com"}))
    assert created.state is CommandState.ACCEPTED
    remote_id = str(created.result["remote_id"])
    changed = await app.outcome(await crm.accept("contact.patch", "9", {"title": "CTO"}))
    assert changed.state is CommandState.ACCEPTED
    assert simulator.contact(remote_id)["properties"]["jobtitle"] == "CTO"
    link = await crm.link("contact", local="9", remote=remote_id)
    assert (link.state, link.version, link.remote_id) == (LinkState.ACTIVE, 1, remote_id)
    assert MADE in app.engine.metrics.text()


async def test_a_create_whose_answer_was_lost_is_linked_by_its_probe(
    app: Doonce, crm: Installation, simulator: Simulator
) -> None:
    simulator.faults({"fault": "commit_close", "method": "POST", "times": 1})
    created = await app.outcome(await crm.accept("contact.create", "9", {"email": "new@example.com"}))
    assert created.state is CommandState.ACCEPTED
    assert simulator.stats()["method:POST"] == 1
    changed = await app.outcome(await crm.accept("contact.patch", "9", {"title": "CTO"}))
    assert changed.state is CommandState.ACCEPTED
    assert simulator.contact(str(created.result["remote_id"]))["properties"]["jobtitle"] == "CTO"
    assert MADE in app.engine.metrics.text()


@pytest.mark.parametrize("lost", [False, True])
async def test_a_record_that_is_linked_already_stays_linked_and_its_create_accepted(
    app: Doonce, crm: Installation, simulator: Simulator, lost: bool
) -> None:
    if lost:
        simulator.faults({"fault": "commit_close", "method": "POST", "times": 1})
    before = await crm.link("contact", local="1", remote="501")
    command = await crm.accept("contact.create", "1", {"email": "new@example.com"})
    created = await app.outcome(command)
    assert created.state is CommandState.ACCEPTED
    assert "not linked: the local record is linked to another remote record" in created.reason
    assert await crm.link("contact", local="1", remote="501") == before
    shown = await app.show(command)
    assert any("not linked" in moment.detail for story in shown for moment in story.moments)
    assert REFUSED in app.engine.metrics.text()
    changed = await app.outcome(await crm.accept("contact.patch", "1", {"title": "CTO"}))
    assert changed.result["remote_id"] == "501"


async def test_an_operators_word_accepts_and_links_nothing(
    app: Doonce, crm: Installation, simulator: Simulator
) -> None:
    simulator.faults(
        {"fault": "reset_after_body", "method": "POST", "times": 1},
        {"fault": "status", "status": 503, "method": "GET", "times": 1_000},
    )
    command = await crm.accept("contact.create", "9", {"email": "new@example.com"})

    async def unknown() -> str | None:
        outcome = await app.outcome(command, timeout_seconds=0.0)
        return outcome.attempt if outcome.state is CommandState.UNKNOWN else None

    attempt = await until(unknown)
    decided = await app.resolve(attempt, Decision.HAPPENED, who="ann", reason="I looked")
    assert decided.state is CommandState.ACCEPTED
    assert decided.reason == "I looked; not linked: what proves the effect names no object"
    assert REFUSED in app.engine.metrics.text()
    with pytest.raises(MissingOrDenied, match="no remote record is linked"):
        await crm.accept("contact.patch", "9", {"title": "CTO"})
