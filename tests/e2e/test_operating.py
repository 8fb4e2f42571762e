"""The operators' side: the story of anything, what nobody knows, cancel and resolve; always within a scope."""

import json

import msgspec
import pytest
from rich.console import Console
from simulators.launch import Simulator
from tests.e2e.conftest import PACK, PACKS, TOKEN, people, until

from doonce import Doonce, Installation
from doonce.app.cli.output import print_status
from doonce.app.operate.model import Decision, Timeline
from doonce.app.operate.service import Operator
from doonce.base.errors import Conflict, Invalid, MissingOrDenied
from doonce.commands.model import CommandState
from doonce.ownership.model import Family
from doonce.work import store
from doonce.work.model import ENGINE, NewItem, Scope

pytestmark = pytest.mark.e2e

HERE = Scope("acme", "main")
ELSEWHERE = Scope("acme", "other")
SECRET_TITLE = "a-title-that-only-the-payload-has"


def operator(app: Doonce) -> Operator:
    return Operator(app.engine)


def events(timeline: Timeline) -> list[str]:
    return [moment.event for moment in timeline.moments]


async def unknown_command(app: Doonce, crm: Installation, simulator: Simulator) -> tuple[str, str]:
    """A command whose one call got no usable answer, and whose probe cannot tell."""
    simulator.faults({"fault": "reset_after_body", "method": "PATCH", "times": 1})
    command = await crm.accept("contact.patch", "1", {"title": SECRET_TITLE})

    async def unknown() -> str | None:
        view = await operator(app).command(command)
        return view.attempt_id if view.state is CommandState.UNKNOWN else None

    return command, await until(unknown)


async def test_every_id_of_a_story_tells_it(app: Doonce, crm: Installation) -> None:
    command = await crm.accept("contact.patch", "1", {"title": SECRET_TITLE}, key="title-1")
    await app.outcome(command)
    (timeline,) = await app.show(command)
    assert timeline.state == "accepted"
    for event in (
        "accepted",
        "attempt prepared",
        "attempt dispatched",
        "attempt ACCEPTED",
        "command accepted",
    ):
        assert event in events(timeline)
    asked = {moment.id for moment in timeline.moments} | {timeline.facts["receipt"], timeline.facts["outbox"]}
    asked |= {(await operator(app).command(command)).key}
    assert {one[:4] for one in asked} >= {"cmd_", "wrk_", "att_", "hnd_", "obx_", "hand"}
    for one in asked:
        (told,) = await app.show(one)
        assert told.id == command
        assert await operator(app).find(one, ELSEWHERE) == []
        assert (await operator(app).find(one, HERE))[0].id == command


async def test_links_and_principals_have_stories(app: Doonce, crm: Installation) -> None:
    link = await crm.link("contact", local="1", remote="501")
    (told,) = await app.show(link.id)
    assert (told.kind, told.state, told.facts["remote id"]) == ("link", "active", "501")
    (told,) = await app.show(link.principal_id)
    assert (told.kind, told.state) == ("principal", "connected")
    assert events(told) == ["generation 1 began"]
    for asked in (link.id, link.principal_id):
        assert await operator(app).find(asked, ELSEWHERE) == []


async def test_a_withdrawn_handoff_has_a_story(app: Doonce, crm: Installation) -> None:
    await crm.withdraw("title-1", {"title": "CTO"})
    scope = crm.scope
    key = f"handoff:4.acme4.main12.people.write71.{scope.binding_digest}7.title-1"
    (told,) = await app.show(key)
    assert (told.kind, told.state) == ("handoff", "HANDOFF_REJECTED")


async def test_no_payload_and_no_secret_is_shown(app: Doonce, crm: Installation) -> None:
    command = await crm.accept("contact.patch", "1", {"title": SECRET_TITLE})
    await app.outcome(command)
    shown = msgspec.json.encode(await app.show(command)).decode()
    status = msgspec.json.encode(await operator(app).status()).decode()
    for text in (SECRET_TITLE, TOKEN):
        assert text not in shown
        assert text not in status


@pytest.mark.parametrize("asked", ["cmd_" + "0" * 32, "nothing of ours", "att_" + "f" * 32])
async def test_what_is_not_there_is_missing(app: Doonce, asked: str) -> None:
    with pytest.raises(MissingOrDenied):
        await app.show(asked)


async def test_status_counts_what_needs_a_later_release(app: Doonce, crm: Installation) -> None:
    needing = NewItem(
        id="wrk_" + "1" * 32, family=Family.EFFECT.value, scope=HERE, subject_kind="command",
        subject_id="cmd_" + "1" * 32, view_digest="sha256:later", capability_version=ENGINE + 1,
    )  # fmt: skip
    await app.engine.database.transact(store.enqueue, [needing])
    command = await crm.accept("contact.patch", "1", {"title": "CTO"})
    await app.outcome(command)
    for scope, newer in ((None, 1), (HERE, 1), (ELSEWHERE, 0)):
        status = await operator(app).status(scope)
        assert {family.family: family.newer for family in status.families if family.newer} == (
            {"effect": newer} if newer else {}
        )
    out = Console(record=True, width=120)
    print_status(out, await operator(app).status())
    assert "effect: 1 need a later release of doonce" in out.export_text()


async def test_status_names_what_nobody_knows_and_who_owns(
    app: Doonce, crm: Installation, simulator: Simulator
) -> None:
    command, attempt = await unknown_command(app, crm, simulator)
    status = await operator(app).status()
    (one,) = status.unknown
    assert (one.attempt_id, one.command_id, one.operation) == (attempt, command, "contact.patch")
    assert not one.needs_operator
    assert one.lane is not None
    assert {family.owner for family in status.families} == {"default"}
    assert status.dispatch == "open"
    assert (await operator(app).status(ELSEWHERE)).unknown == ()
    assert len((await operator(app).status(HERE)).unknown) == 1


@pytest.mark.parametrize(
    "decision, state",
    [
        (Decision.HAPPENED, CommandState.ACCEPTED),
        (Decision.NOT_HAPPENED, CommandState.DEAD),
        (Decision.SUPERSEDED, CommandState.DEAD),
    ],
)
async def test_an_operator_decides_once(
    app: Doonce, crm: Installation, simulator: Simulator, decision: Decision, state: CommandState
) -> None:
    command, attempt = await unknown_command(app, crm, simulator)
    outcome = await app.resolve(attempt, decision, who="ann", reason="I looked")
    assert outcome.state is state
    with pytest.raises(Conflict):
        await app.resolve(attempt, Decision.HAPPENED, who="bob", reason="me too")
    (told,) = await app.show(command)
    assert "operator ann" in {moment.who for moment in told.moments}
    assert simulator.stats()["method:PATCH"] == 1
    assert (await operator(app).status()).unknown == ()


async def test_an_operator_may_have_it_sent_again(
    app: Doonce, crm: Installation, simulator: Simulator
) -> None:
    command, attempt = await unknown_command(app, crm, simulator)
    outcome = await app.resolve(attempt, "resend", who="ann", reason="it is not there")
    assert not outcome.final
    assert (await app.outcome(command)).state is CommandState.ACCEPTED
    assert simulator.stats()["method:PATCH"] == 2
    assert simulator.contact("501")["properties"]["jobtitle"] == SECRET_TITLE


async def test_what_is_not_in_question_is_not_decided(app: Doonce, crm: Installation) -> None:
    command = await crm.accept("contact.patch", "1", {"title": "CTO"})
    outcome = await app.outcome(command)
    assert outcome.attempt is not None
    with pytest.raises(Conflict, match="not in question"):
        await app.resolve(outcome.attempt, Decision.NOT_HAPPENED, who="ann", reason="no")
    with pytest.raises(Invalid, match="no attempt id"):
        await app.resolve(command, Decision.HAPPENED, who="ann", reason="no")
    with pytest.raises(Invalid, match="is no decision"):
        await app.resolve(outcome.attempt, "perhaps", who="ann", reason="no")
    with pytest.raises(MissingOrDenied):
        await operator(app).resolve(
            outcome.attempt, Decision.HAPPENED, who="eve", reason="mine", scope=ELSEWHERE
        )


async def test_waiting_work_is_cancelled(app: Doonce, crm: Installation, simulator: Simulator) -> None:
    app.engine.gate.set("a test wants work to wait")
    command = await crm.accept("contact.patch", "1", {"title": "CTO"})
    with pytest.raises(MissingOrDenied):
        await operator(app).cancel(command, ELSEWHERE)
    outcome = await app.cancel(command)
    assert outcome.state is CommandState.CANCELLED
    assert (await app.cancel(command)).state is CommandState.CANCELLED
    app.engine.gate.set("")
    later = await crm.accept("contact.patch", "1", {"title": "CFO"})
    assert (await app.outcome(later)).state is CommandState.ACCEPTED
    bodies = [json.loads(entry["body"]) for entry in simulator.ledger()]
    assert bodies == [{"properties": {"jobtitle": "CFO"}}]


async def test_an_end_and_an_unknown_are_not_cancelled(
    app: Doonce, crm: Installation, simulator: Simulator
) -> None:
    command, _ = await unknown_command(app, crm, simulator)
    with pytest.raises(Conflict, match="nobody knows"):
        await app.cancel(command)


async def test_l3_a_lane_goes_on_past_a_head_that_an_operator_releases(
    app: Doonce, crm: Installation, simulator: Simulator
) -> None:
    simulator.seed({"id": "502", "properties": {"jobtitle": "Engineer"}})
    await crm.link("contact", local="2", remote="502")
    simulator.faults({"fault": "reset_after_body", "method": "PATCH", "times": 1})
    head = await crm.accept("contact.patch", "1", {"title": SECRET_TITLE}, lane="in order")
    behind = await crm.accept("contact.patch", "2", {"title": "CTO"}, lane="in order")

    async def unknown() -> bool:
        return (await operator(app).command(head)).state is CommandState.UNKNOWN

    await until(unknown)
    assert (await operator(app).command(behind)).state is CommandState.WAITING
    (told,) = await app.show(head)
    work = next(moment.id for moment in told.moments if moment.event.startswith("effect work dead"))
    with pytest.raises(MissingOrDenied):
        await operator(app).release(work, who="eve", reason="mine", scope=ELSEWHERE)
    for _ in range(2):
        released = await operator(app).release(work, who="ann", reason="they are unrelated", scope=HERE)
        assert (released.work_id, released.command_id) == (work, head)
    assert (await app.outcome(behind)).state is CommandState.ACCEPTED
    assert (await operator(app).command(head)).state is CommandState.UNKNOWN
    (told,) = await app.show(head)
    (note,) = [moment.detail for moment in told.moments if "let go on" in moment.detail]
    assert note.count("its lane was let go on by ann: they are unrelated") == 1
    with pytest.raises(Invalid, match="no work id"):
        await operator(app).release(head, who="ann", reason="no")
    other = await crm.accept("contact.patch", "2", {"title": "CFO"})
    await app.outcome(other)
    (plain,) = await app.show(other)
    unordered = next(moment.id for moment in plain.moments if moment.event.startswith("effect work"))
    with pytest.raises(Conflict, match="holds up no lane"):
        await operator(app).release(unordered, who="ann", reason="no")


async def test_what_may_have_happened_is_not_cancelled(app: Doonce, simulator: Simulator) -> None:
    """The work waits for its next try, but an earlier call got no answer: its outcome decides (PROTOCOL W5)."""
    binding = {
        "format": "doonce.binding/1",
        "org": "acme",
        "installation": "main",
        "capability": "cards.write",
        "pack": "carddav@1.0.0",
        "origin": simulator.url,
        "principal": "ann",
        "operations": ["card.create"],
        "parameters": {"collection": "ann/book"},
        "policies": {"retry": {"base": "1h", "cap": "1h"}},
    }
    book = await app.installation(
        "acme", "main", pack=PACKS / "carddav", binding=binding, secret="ann:secret"
    )
    simulator.faults({"fault": "reset_after_body", "method": "PUT", "times": 1})
    card = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:ann\r\nFN:Ann\r\nEND:VCARD\r\n"
    command = await book.accept("card.create", "1", {"uid": "ann", "card": card})

    async def waits_again() -> bool:
        told = await app.show(command)
        return "attempt REPLAY_SAFE_RETRY" in events(told[0])

    await until(waits_again)
    with pytest.raises(Conflict, match="may have had its effect"):
        await app.cancel(command)


async def test_a_probe_is_not_what_is_in_question(
    app: Doonce, crm: Installation, simulator: Simulator
) -> None:
    command, attempt = await unknown_command(app, crm, simulator)

    async def probe() -> str | None:
        (told,) = await app.show(command)
        return next((moment.id for moment in told.moments if moment.event == "probe prepared"), None)

    with pytest.raises(Conflict, match="not in question"):
        await app.resolve(await until(probe), Decision.HAPPENED, who="ann", reason="no")
    assert (await app.resolve(attempt, Decision.HAPPENED, who="ann", reason="yes")).final


async def test_a_gate_that_closes_after_the_mark_withdraws_it(
    app: Doonce, crm: Installation, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark may be in another database than the one that was relied on (PROTOCOL S2): nothing is sent."""
    engine = app.engine

    def close(point: str) -> None:
        if point == "call.marked":
            engine.gate.set("a promoted standby")

    monkeypatch.setattr(engine.database.points, "_watch", close)
    command = await crm.accept("contact.patch", "1", {"title": "CTO"})

    async def withdrawn() -> bool:
        (told,) = await app.show(command)
        return "attempt RETRYABLE_PRE_DISPATCH" in events(told)

    await until(withdrawn)
    assert simulator.stats()["requests"] == 0
    monkeypatch.undo()
    engine.gate.set("")
    assert (await app.outcome(command)).state is CommandState.ACCEPTED
    assert simulator.stats()["method:PATCH"] == 1


async def test_an_ended_command_is_not_cancelled(app: Doonce, crm: Installation) -> None:
    command = await crm.accept("contact.patch", "1", {"title": "CTO"})
    await app.outcome(command)
    with pytest.raises(Conflict, match="has ended as accepted"):
        await app.cancel(command)


async def test_counts_are_of_one_installation(app: Doonce, crm: Installation, simulator: Simulator) -> None:
    other = await app.installation(
        "acme", "other", pack=PACK, binding=people(simulator.url, installation="other"), secret=TOKEN
    )
    await other.link("contact", local="1", remote="501")
    app.engine.gate.set("a test wants work to wait")
    await crm.accept("contact.patch", "1", {"title": "CTO"})
    await other.accept("contact.patch", "1", {"title": "CTO"})

    async def waiting(scope: Scope | None) -> int:
        counted = await operator(app).counts(scope)
        return next(one.waiting for one in counted.families if one.family == "effect")

    assert await waiting(None) == 2
    assert await waiting(HERE) == 1
    assert await waiting(ELSEWHERE) == 1
