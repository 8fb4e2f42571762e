"""The first three stories: once, nobody knows, too late."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import msgspec
from examples.crm import leads
from examples.demo.scene import TOKEN, Scene, publish, race_binding, request_for, told_alike
from examples.demo.stage import ROOT, write_toml

from doonce.app.operate.model import Timeline
from doonce.commands.model import CommandState
from doonce.wire import AcceptResults, Admission, AdmissionState

ONCE_LEAD, KILLED_LEAD, STOPPED_LEAD = 1, 2, 3
CONTACTS: Final = {1: "501", 2: "502", 3: "503"}
RACE_KEYS: Final = 300
RACE_CONTACTS: Final = 10
BEYOND_LEASE_SECONDS: Final = 2.0


async def once(scene: Scene) -> None:
    """A change of the application and its intent in one transaction; one call; the result in one transaction."""
    stage = scene.stage
    stage.act("1  Once", "A change in the application reaches the provider once, and the result comes back.")
    await prepare_leads(scene)
    stage.say(
        "the application changes a lead's title and writes its outbox row in one transaction of its own database"
    )
    timeline = await changed(scene, ONCE_LEAD, "CTO")
    await scene.ended(timeline.id)
    lead = await told(scene, ONCE_LEAD, "accepted")
    timeline = await scene.tell(timeline.id)
    arrived = scene.patches("CTO")
    stage.check("the provider's ledger shows one PATCH", len(arrived), 1)
    stage.check(
        "it is sparse: only jobtitle", json.loads(arrived[0]["body"]), {"properties": {"jobtitle": "CTO"}}
    )
    stage.check(
        "of the contact that was linked", arrived[0]["target"], f"/crm/v3/objects/contacts/{CONTACTS[1]}"
    )
    stage.check("the contact has the title", contact(scene, ONCE_LEAD)["jobtitle"], "CTO")
    stage.check("the application committed its projection", lead["synced_title"], "CTO")
    change = lead["changes"][-1]
    stage.check("with the terminal receipt, in one transaction", change["state"], "completed")
    stage.check("about this very command", change["command_id"], timeline.id)


async def nobody_knows(scene: Scene) -> None:
    """SIGKILL after the request left; then SIGSTOP between the mark and the first byte."""
    stage = scene.stage
    stage.act(
        "2  Nobody knows",
        "The process dies after the request left and before the answer was stored. Nothing is sent again: the "
        "provider is asked.",
    )
    await killed_after_sending(scene)
    stage.say("now the same with a process that is paused between its mark and the first byte")
    await stopped_before_sending(scene)


async def killed_after_sending(scene: Scene) -> None:
    """The answer was there and not yet stored."""
    stage = scene.stage
    _, armed = scene.armed("call.answered", "kill")
    scene.restart_service(**armed)
    stage.say(f"the service (pid {scene.service.pid}) will be killed at the named point call.answered")
    timeline = await changed(scene, KILLED_LEAD, "CFO")
    stage.check("the service was killed by SIGKILL", await stage.died(scene.service), -signal.SIGKILL)
    stage.check("one PATCH had arrived by then", len(scene.patches("CFO")), 1)
    scene.service = scene.start_service()
    stage.say(
        f"a new process (pid {scene.service.pid}) starts and waits for the lease of the dead one to end"
    )
    view = await scene.ended(timeline.id)
    lead = await told(scene, KILLED_LEAD, "accepted")
    timeline = await scene.tell(timeline.id)
    stage.check("the attempt ended as unknown", events(timeline).count("attempt OUTCOME_UNKNOWN"), 1)
    stage.check(
        "a probe read the contact, and proved the effect", "verdict: effect_proven" in events(timeline), True
    )
    stage.check("nothing was sent again: the ledger shows one PATCH", len(scene.patches("CFO")), 1)
    stage.check("the command is accepted", view.state, CommandState.ACCEPTED)
    stage.check("and the application was told", lead["synced_title"], "CFO")


async def stopped_before_sending(scene: Scene) -> None:
    """A sender that sleeps through its lease wakes up to a world that has gone on."""
    stage = scene.stage
    flag, armed = scene.armed("call.marked", "stop")
    # Only the effect's family works in this process, so that nothing else of it stands still in the middle.
    scene.restart_service(**armed, completions__poll_seconds="30", reconciles__poll_seconds="30")
    stage.say(
        f"the service (pid {scene.service.pid}) will be stopped at call.marked: marked, not a byte sent"
    )
    timeline = await changed(scene, STOPPED_LEAD, "COO")
    await stage.until("the sender stands still", lambda: flag.exists() and is_stopped(scene.service.pid))
    stage.check("it stands still, and nothing has arrived", len(scene.patches("COO")), 0)
    scene.start_other()
    stage.say(f"another process (pid {scene.other.pid}) takes over once the lease has ended")

    async def unknown() -> bool:
        return (await scene.command(timeline.id)).state is CommandState.UNKNOWN

    await stage.until("the attempt is unknown", unknown, 30)
    marked_at = dispatched_at(await scene.timeline(timeline.id))
    after_us = int((4.0 + BEYOND_LEASE_SECONDS) * 1e6)

    async def long_after() -> bool:
        return (await scene.operator.counts()).now_us > marked_at + after_us

    await stage.until("the lease is long over", long_after)
    stage.check("still unknown, and nothing was sent", len(scene.patches("COO")), 0)
    stage.say("the sleeper is continued (SIGCONT)")
    os.kill(scene.service.pid, signal.SIGCONT)
    await scene.ended(timeline.id)
    await told(scene, STOPPED_LEAD, "accepted")
    timeline = await scene.tell(timeline.id)
    said = "sent nothing: the time to send by had passed" in scene.service.log.read_text()
    stage.check("it sent nothing, and says so", said, True)
    stage.check("its word came as late evidence", "late evidence: closed_unsent" in events(timeline), True)
    stage.check(
        "which proves that a successor may send", "verdict: no_effect_proven" in events(timeline), True
    )
    stage.check("and one PATCH arrived", len(scene.patches("COO")), 1)


async def too_late(scene: Scene) -> None:
    """Acceptance and rejection race for each key; one wins, and both are told the same."""
    stage = scene.stage
    stage.act(
        "3  Too late",
        f"Two processes race for {RACE_KEYS} handoff keys, one to hand over, one to withdraw, through two services.",
    )
    for number in range(RACE_CONTACTS):
        await scene.link(scene.people, "contact", f"race-{number}", str(600 + number))
    plan = await race_plan(scene)
    racers = [start_racer(scene, role, url, plan) for role, url in
              (("accept", scene.url), ("reject", scene.other_url))]  # fmt: skip
    for racer in racers:
        if racer.stdin is None or racer.stdout is None:
            raise RuntimeError("a racer has no pipes")
        racer.stdout.readline()
    stage.say("both are ready: go")
    for racer in racers:
        racer.stdin.write(b"go\n")  # type: ignore[union-attr]  # opened as pipes, checked above
        racer.stdin.flush()  # type: ignore[union-attr]  # the same
    accepts, rejects = (told_to(racer) for racer in racers)
    stage.check("every key was answered, twice", (len(accepts), len(rejects)), (RACE_KEYS, RACE_KEYS))
    alike = sum(told_alike(accepts[key], rejects[key]) for key in accepts)
    stage.check("both were told the same, key by key", alike, RACE_KEYS)
    winners = Counter(answer.state for answer in accepts.values())
    handed, withdrawn = winners[AdmissionState.COMMAND_ACCEPTED], winners[AdmissionState.HANDOFF_REJECTED]
    stage.say(f"the hand-over won {handed} keys, the withdrawal {withdrawn}")
    await _accepted_arrive_once(scene, accepts, plan)
    scene.other.end()


async def _accepted_arrive_once(scene: Scene, accepts: dict[str, Admission], plan: Path) -> None:
    """Every accepted key arrives once at the provider, no rejected one at all."""
    stage = scene.stage
    titles = titles_of(plan)
    accepted = {titles[key] for key, answer in accepts.items() if answer.command_id is not None}
    commands = {answer.command_id for answer in accepts.values() if answer.command_id is not None}
    stage.check("one command for each accepted key", len(commands), len(accepted))

    def arrived() -> list[str]:
        return [json.loads(entry["body"])["properties"]["jobtitle"] for entry in scene.patches("race ")]

    await stage.until("all accepted ones have arrived", lambda: len(arrived()) >= len(accepted), 60)
    for command_id in commands:
        await scene.ended(command_id)
    stage.check("each accepted key arrived once, and no rejected one", sorted(arrived()), sorted(accepted))


# --- the application, from outside --------------------------------------------------------------------------------


async def prepare_leads(scene: Scene) -> None:
    """Leads in the application's database, contacts at the provider, and links between them."""
    engine = leads.open_database(f"sqlite:///{scene.stage.folder}/crm.db")
    scene.simulator.seed(*[seeded(identity) for identity in CONTACTS.values()])
    scene.simulator.seed(*[seeded(str(600 + number)) for number in range(RACE_CONTACTS)])
    for lead_id, contact_id in CONTACTS.items():
        leads.add_lead(engine, lead_id, f"Lead {lead_id}", "Engineer")
        await scene.link(scene.people, "contact", str(lead_id), contact_id)
    engine.dispose()
    scene.stage.say(f"{len(CONTACTS)} leads, linked to {len(CONTACTS)} contacts that exist already")


def seeded(contact_id: str) -> dict[str, Any]:
    """A contact of the simulator."""
    return {"id": contact_id, "properties": {"email": f"p{contact_id}@example.com", "jobtitle": "Engineer"}}


async def changed(scene: Scene, lead_id: int, title: str) -> Timeline:
    """Change a title in the application's own process; the command that the relay made of it."""
    command = ["-m", "examples.crm", "change", str(scene.stage.folder / "crm.toml"), str(lead_id), title]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(  # noqa: S603, ASYNC221 (our own module; nothing else is to happen meanwhile)
        [sys.executable, *command], cwd=ROOT, env=environment, check=True, capture_output=True
    )
    outbox_id = json.loads(done.stdout)["outbox_id"]

    async def handed_over() -> Timeline | None:
        told = await scene.operator.find(outbox_id)
        return told[0] if told else None

    timeline: Timeline = await scene.stage.until("the relay has handed it over", handed_over)
    scene.stage.say(f"the relay hands {outbox_id} over: {timeline.id}")
    return timeline


async def told(scene: Scene, lead_id: int, status: str) -> dict[str, Any]:
    """Wait until the application's own database says so; the lead as it is there."""
    engine = leads.open_database(f"sqlite:///{scene.stage.folder}/crm.db")

    def lead() -> dict[str, Any] | None:
        found = next(one for one in leads.show(engine) if one["id"] == lead_id)
        return found if found["sync_status"] == status else None

    try:
        found: dict[str, Any] = await scene.stage.until(f"the application says {status}", lead, 40)
    finally:
        engine.dispose()
    return found


def contact(scene: Scene, lead_id: int) -> dict[str, Any]:
    """The provider's contact of a lead."""
    properties: dict[str, Any] = scene.simulator.contact(CONTACTS[lead_id])["properties"]
    return properties


def events(timeline: Timeline) -> list[str]:
    """What happened, in order."""
    return [moment.event for moment in timeline.moments]


def dispatched_at(timeline: Timeline) -> int:
    """When the first attempt was marked."""
    return next(moment.at_us for moment in timeline.moments if moment.event == "attempt dispatched")


def is_stopped(pid: int) -> bool:
    """Whether a process stands still (state T)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


# --- the race -----------------------------------------------------------------------------------------------------


async def race_plan(scene: Scene) -> Path:
    """What both racers work through, in one order, under a binding of their own."""
    file = write_toml(scene.stage.folder / "race.toml", race_binding(scene.simulator.url))
    installed = await publish(scene.engine, scene.settings, scene.people_pack, file, TOKEN)
    requests = []
    for number in range(RACE_KEYS):
        title = f"race {number}"
        local_ref = f"race-{number % RACE_CONTACTS}"
        request = request_for(installed, "contact.patch", local_ref, {"title": title}, f"race-{number}")
        requests.append({"key": request.key, "title": title, "request": request})
    path = scene.stage.folder / "race.json"
    path.write_bytes(msgspec.json.encode({"keys": requests}))
    return path


def titles_of(plan: Path) -> dict[str, str]:
    """The title that each key of the plan asks for."""
    return {row["key"]: row["title"] for row in json.loads(plan.read_text())["keys"]}


def start_racer(scene: Scene, role: str, url: str, plan: Path) -> "subprocess.Popen[bytes]":
    """One racing process; it waits for a line on its standard input."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    credential = scene.stage.folder / "service.credential"
    return subprocess.Popen(  # noqa: S603 (our own module)
        [sys.executable, "-m", "examples.demo.race", role, url, str(credential), str(plan)],
        cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def told_to(racer: "subprocess.Popen[bytes]") -> dict[str, Admission]:
    """What a racer was told, by key."""
    said, _ = racer.communicate(timeout=120)
    results = msgspec.json.decode(said, type=AcceptResults).results
    return {answer.key: answer for answer in results if isinstance(answer, Admission)}
