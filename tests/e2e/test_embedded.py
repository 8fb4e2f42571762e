"""doonce inside an application: one accept, one outcome, and what repeats, fails or stays unknown."""

from pathlib import Path

import pytest
from simulators.launch import Simulator
from tests.e2e.conftest import PACK, TOKEN, deployment, people

from doonce import Doonce, Installation
from doonce.base.errors import Conflict, Invalid, MissingOrDenied, Quarantined, Unavailable
from doonce.commands.model import CommandState

pytestmark = pytest.mark.e2e


async def test_one_accept_one_outcome_one_call(app: Doonce, crm: Installation, simulator: Simulator) -> None:
    command = await crm.accept("contact.patch", "1", {"title": "CTO"})
    outcome = await app.outcome(command)
    assert outcome.state is CommandState.ACCEPTED
    assert outcome.final
    assert outcome.result["remote_id"] == "501"
    assert simulator.contact("501")["properties"]["jobtitle"] == "CTO"
    assert simulator.stats()["method:PATCH"] == 1


async def test_the_same_key_is_the_same_effect(app: Doonce, crm: Installation, simulator: Simulator) -> None:
    first = await crm.accept("contact.patch", "1", {"title": "CTO"}, key="title-1")
    again = await crm.accept("contact.patch", "1", {"title": "CTO"}, key="title-1")
    assert again == first
    assert (await app.outcome(first)).state is CommandState.ACCEPTED
    assert await crm.accept("contact.patch", "1", {"title": "CTO"}, key="title-1") == first
    assert simulator.stats()["method:PATCH"] == 1


async def test_the_same_key_with_other_content_is_quarantined(
    crm: Installation, simulator: Simulator
) -> None:
    await crm.accept("contact.patch", "1", {"title": "CTO"}, key="title-1")
    with pytest.raises(Quarantined):
        await crm.accept("contact.patch", "1", {"title": "CFO"}, key="title-1")


async def test_a_withdrawn_key_is_never_accepted(crm: Installation) -> None:
    assert await crm.withdraw("title-1", {"title": "CTO"})
    with pytest.raises(Conflict, match="rejected for ever: withdrawn"):
        await crm.accept("contact.patch", "1", {"title": "CTO"}, key="title-1")


async def test_an_accepted_key_is_not_withdrawn(app: Doonce, crm: Installation) -> None:
    command = await crm.accept("contact.patch", "1", {"title": "CTO"}, key="title-1")
    assert not await crm.withdraw("title-1", {"title": "CTO"})
    assert (await app.outcome(command)).state is CommandState.ACCEPTED


async def test_a_refusal_is_an_outcome(app: Doonce, crm: Installation, simulator: Simulator) -> None:
    simulator.faults({"fault": "status", "status": 400, "method": "PATCH"})
    outcome = await app.outcome(await crm.accept("contact.patch", "1", {"title": "CTO"}))
    assert outcome.state is CommandState.REJECTED
    assert outcome.result["status"] == 400


async def test_a_lost_answer_is_asked_about_and_not_sent_again(
    app: Doonce, crm: Installation, simulator: Simulator
) -> None:
    simulator.faults({"fault": "commit_close", "method": "PATCH", "times": 1})
    outcome = await app.outcome(await crm.accept("contact.patch", "1", {"title": "CTO"}))
    assert outcome.state is CommandState.ACCEPTED
    assert simulator.stats()["method:PATCH"] == 1
    assert simulator.stats()["method:GET"] == 1


async def test_what_can_be_had_after_a_restart(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    async with deployment(database_url, tmp_path) as app:
        crm = await app.installation("acme", "main", pack=PACK, binding=people(simulator.url), secret=TOKEN)
        await crm.link("contact", local="1", remote="501")
        command = await crm.accept("contact.patch", "1", {"title": "CTO"}, key="k")
        await app.outcome(command)
    async with deployment(database_url, tmp_path) as app:
        crm = await app.installation("acme", "main", pack=PACK, binding=people(simulator.url))
        assert await crm.accept("contact.patch", "1", {"title": "CTO"}, key="k") == command
        assert (await app.outcome(command)).final
    assert simulator.stats()["method:PATCH"] == 1


async def test_outcome_says_what_is_known_when_time_is_up(
    app: Doonce, crm: Installation, simulator: Simulator
) -> None:
    simulator.faults({"fault": "refuse"})
    outcome = await app.outcome(await crm.accept("contact.patch", "1", {"title": "CTO"}), timeout_seconds=0.0)
    assert not outcome.final
    assert outcome.state in (CommandState.WAITING, CommandState.RUNNING)


async def test_another_secret_is_the_next_token_version(
    app: Doonce, crm: Installation, simulator: Simulator
) -> None:
    again = await app.installation("acme", "main", pack=PACK, binding=people(simulator.url), secret="other")
    assert again.scope == crm.scope


async def test_a_first_start_needs_the_secret(app: Doonce, simulator: Simulator) -> None:
    with pytest.raises(Invalid, match="'portal' is not connected yet"):
        await app.installation("acme", "main", pack=PACK, binding=people(simulator.url))


async def test_a_binding_is_for_its_own_installation(app: Doonce, simulator: Simulator) -> None:
    with pytest.raises(Invalid, match="the binding is for acme / main, not acme / other"):
        await app.installation("acme", "other", pack=PACK, binding=people(simulator.url), secret=TOKEN)


async def test_the_defaults_refuse_a_simulator(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    async with deployment(database_url, tmp_path, egress={}) as app:
        with pytest.raises(Invalid, match="the pack declares"):
            await app.installation("acme", "main", pack=PACK, binding=people(simulator.url), secret=TOKEN)


async def test_a_server_is_not_migrated_unasked(fresh_postgres: str, tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        async with Doonce(fresh_postgres, key_file=str(tmp_path / "keys.toml")):
            pass
    assert "doonce migrate" in caught.value.hint


async def test_a_process_with_other_keys_does_not_start(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    async with deployment(database_url, tmp_path) as app:
        await app.installation("acme", "main", pack=PACK, binding=people(simulator.url), secret=TOKEN)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.raises(Unavailable, match="lacks the keys k") as caught:
        async with deployment(database_url, elsewhere):
            pass
    assert "copy the key file" in caught.value.hint


async def test_it_runs_only_inside_its_context() -> None:
    with pytest.raises(Conflict, match="not running"):
        await Doonce("sqlite:///nowhere.db").outcome("cmd_" + "0" * 32)


async def test_links_do_not_move(crm: Installation) -> None:
    first = await crm.link("contact", local="1", remote="501")
    assert (await crm.link("contact", local="1", remote="501")).id == first.id
    with pytest.raises(Conflict):
        await crm.link("contact", local="1", remote="777")
    with pytest.raises(Invalid, match="links no 'deal'"):
        await crm.link("deal", local="1", remote="501")


async def test_an_unlinked_record_says_what_to_do(crm: Installation) -> None:
    with pytest.raises(MissingOrDenied, match="no remote record is linked to '2'"):
        await crm.accept("contact.patch", "2", {"title": "CTO"})
