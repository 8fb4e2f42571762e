"""The whole object is read before an event about it is handed over; the simulator's ledger is the witness."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from simulators.launch import Simulator
from tests.e2e.conftest import PACK, QUICK, TOKEN, deployment, until
from tests.e2e.hydrating import PATH, ROUTE, SECRET, binding, event, reads, signed
from tests.e2e.test_handlers import SOON, receiver_of
from tests.store.ingress.routes import Receiver

from doonce import Doonce, Event, Installation
from doonce.app.operate.service import Operator
from doonce.base.errors import Conflict
from doonce.base.secrets import Secret

pytestmark = pytest.mark.e2e
STAGE = {"lifecyclestage": "customer", "city": "Graz", "jobtitle": "Engineer"}


def hydrating(url: str, folder: Path, **policy: Any) -> Doonce:
    """An embedded deployment that tries again soon."""
    return deployment(
        url,
        folder,
        events=QUICK,
        handlers=QUICK,
        hydrations=QUICK,
        handler={"policy": SOON},
        hydration={"policy": SOON | policy},
        dispatch={"margin_us": 1_000_000},
    )


@asynccontextmanager
async def receiving(
    app: Doonce, simulator: Simulator, **route: Any
) -> AsyncIterator[tuple[Receiver, Installation]]:
    """The deployment running, with a binding that reads whole contacts."""
    async with app:
        crm = await app.installation(
            "acme", "main", pack=PACK, binding=binding(simulator.url, **route), secret=TOKEN
        )
        await app.engine.ingress.add_secret(ROUTE, Secret(SECRET), alone=True)
        yield receiver_of(app), crm


def taking(app: Doonce) -> list[Event]:
    """What a handler of everything gets, in its order."""
    seen: list[Event] = []

    @app.on("hubspot.contact.*")
    async def take(event: Event) -> None:
        seen.append(event)

    return seen


async def deliver(at: Receiver, *events: dict[str, Any]) -> None:
    body = json.dumps(events).encode()
    assert await at.deliver("events", body, headers=signed(body), path=PATH) == 200


async def work(at: Receiver, family: str) -> list[dict[str, Any]]:
    rows = [row for row in await at.rows("work_item") if row["family"] == family]
    return sorted(rows, key=lambda row: (row["created_at"], row["id"]))


async def ended(at: Receiver, family: str, count: int) -> list[dict[str, Any]]:
    """The work of a family, once so many items of it have ended."""

    async def found() -> list[dict[str, Any]]:
        items = await work(at, family)
        return items if sum(item["finished_at"] is not None for item in items) >= count else []

    return list(await until(found))


async def test_a_handler_gets_the_whole_object_beside_what_was_told(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    app = hydrating(database_url, tmp_path)
    seen = taking(app)
    simulator.seed({"id": "777", "properties": STAGE})
    async with receiving(app, simulator) as (at, crm):
        await crm.link("contact", local="ours", remote="777")
        await deliver(at, event("777"))
        (handed,) = await ended(at, "handler", 1)
        (read,) = await work(at, "hydrate")
        (stored,) = await at.rows("event")
    (told,) = seen
    about = told.object
    assert about is not None
    assert about.fields == {"stage": "customer", "town": "Graz", "telephone": None}, "not only what was told"
    assert (about.kind, about.remote_id, about.local_ref) == ("contact", "777", "ours")
    assert (about.deleted, about.missing) == (False, False)
    document: Any = about.document
    assert document["id"] == "777"
    assert document["properties"]["jobtitle"] == "Engineer"
    assert about.raw_document is not None
    assert json.loads(about.raw_document) == document
    content: Any = told.content
    assert content["propertyValue"] == "lead", "the event stays as it was told"
    (arrived,) = reads(simulator.ledger(), "777")
    asked = parse_qs(urlsplit(arrived["target"]).query)["properties"]
    assert asked == ["city,email,jobtitle,lifecyclestage,phone"]
    assert ("authorization", f"Bearer {TOKEN}") in [
        (name.lower(), value) for name, value in arrived["headers"]
    ]
    assert about.read_at_us is not None
    assert stored["derived_at"] < about.read_at_us <= read["finished_at"]
    assert (read["state"], handed["state"], handed["predecessor"]) == ("succeeded", "succeeded", read["id"])
    assert (read["source_lane"], read["source_position"]) == (
        handed["source_lane"],
        handed["source_position"],
    )


async def test_one_objects_events_are_read_and_handed_over_in_order(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    app = hydrating(database_url, tmp_path)
    seen = taking(app)
    simulator.seed(*({"id": name, "properties": STAGE} for name in ("777", "778")))
    async with receiving(app, simulator) as (at, _):
        simulator.faults(
            {
                "fault": "status",
                "status": 503,
                "method": "GET",
                "path": "/crm/v3/objects/contacts/777",
                "times": 2,
            }
        )
        told = [event(contact) for _ in range(4) for contact in ("777", "778")]
        await deliver(at, *told)
        await ended(at, "handler", 8)
        items = await work(at, "hydrate")
    for contact in ("777", "778"):
        numbers = [one.content["eventId"] for one in seen if one.content["objectId"] == int(contact)]  # type: ignore[index,call-overload]
        assert numbers == [one["eventId"] for one in told if one["objectId"] == int(contact)]
    assert len(reads(simulator.ledger(), "777")) == 6
    assert len(reads(simulator.ledger(), "778")) == 4
    assert sorted(item["attempts"] for item in items) == [1] * 7 + [3]


async def test_an_object_that_is_not_there_is_told_of_as_missing_and_its_link_stays(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    app = hydrating(database_url, tmp_path)
    seen = taking(app)
    async with receiving(app, simulator) as (at, crm):
        await crm.link("contact", local="ours", remote="999")
        await deliver(at, event("999"))
        await ended(at, "handler", 1)
        (read,) = await work(at, "hydrate")
        (timeline,) = await Operator(app.engine).show(seen[0].id)
    about = seen[0].object
    assert about is not None
    assert about.missing
    assert about.document is None
    assert about.raw_document is None
    assert about.read_at_us is not None
    assert not about.deleted
    assert about.fields == {"stage": "lead"}, "what the event itself said"
    assert about.link is not None
    assert read["summary"] == "status 404: the provider has no such object"
    assert timeline.facts["object"].startswith("was not there, at ")


async def test_a_deleted_object_is_not_read(database_url: str, tmp_path: Path, simulator: Simulator) -> None:
    app = hydrating(database_url, tmp_path)
    seen = taking(app)
    async with receiving(app, simulator) as (at, _):
        await deliver(at, event("501", "contact.deletion"))
        await ended(at, "handler", 1)
        assert not await work(at, "hydrate")
    assert seen[0].object is not None
    assert seen[0].object.deleted
    assert seen[0].object.read_at_us is None
    assert not simulator.ledger()


async def test_a_refused_read_is_dead_holds_its_object_up_and_is_replayed(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    app = hydrating(database_url, tmp_path)
    seen = taking(app)
    simulator.seed({"id": "777", "properties": STAGE})
    async with receiving(app, simulator) as (at, _):
        operator = Operator(app.engine)
        simulator.faults({"fault": "status", "status": 403, "method": "GET", "times": 2})
        await deliver(at, event("777"), event("777"))
        first = (await ended(at, "hydrate", 1))[0]
        assert (first["state"], first["failure_class"]) == ("dead", "rejected")
        (timeline,) = await operator.show(first["subject_id"])
        assert timeline.state == "dead: its object could not be read"
        assert {"read prepared", "read dispatched", "read REJECTED"} <= {
            one.event for one in timeline.moments
        }
        again = await operator.replay(first["id"])
        assert (again.family, again.event_id) == ("hydrate", first["subject_id"])

        async def died_again() -> bool:
            return [item["state"] for item in await work(at, "hydrate")].count("dead") == 2

        await until(died_again)
        assert not seen, "what is behind a dead one waits"
        await operator.replay(again.work_id)
        await ended(at, "handler", 2)
        with pytest.raises(Conflict):
            await operator.replay((await work(at, "hydrate"))[-1]["id"])
    assert [one.id for one in seen] == sorted({one.id for one in seen}, key=[one.id for one in seen].index)
    assert seen[0].id == first["subject_id"]
    assert len(reads(simulator.ledger(), "777")) == 4


async def test_a_dead_read_is_let_go_past(database_url: str, tmp_path: Path, simulator: Simulator) -> None:
    app = hydrating(database_url, tmp_path)
    seen = taking(app)
    simulator.seed({"id": "777", "properties": STAGE})
    async with receiving(app, simulator) as (at, _):
        simulator.faults({"fault": "status", "status": 403, "method": "GET"})
        await deliver(at, event("777"), event("777"))
        first = (await ended(at, "hydrate", 1))[0]
        await Operator(app.engine).release(first["id"], who="a test", reason="not needed")
        await ended(at, "handler", 1)
    assert len(seen) == 1
    assert seen[0].id != first["subject_id"]


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "redirect"},
        {"fault": "malformed_json"},
        {"fault": "second_json"},
        {"fault": "gigabyte"},
        {"fault": "half_answer"},
        {"fault": "empty"},
        {"fault": "reset_after_body"},
        {"fault": "status", "status": 429, "retry_after": "0"},
    ],
    ids=lambda fault: str(fault["fault"]),
)
async def test_an_answer_that_is_none_is_asked_for_again(
    database_url: str, tmp_path: Path, simulator: Simulator, fault: dict[str, Any]
) -> None:
    app = hydrating(database_url, tmp_path)
    seen = taking(app)
    simulator.seed({"id": "777", "properties": STAGE})
    async with receiving(app, simulator) as (at, _):
        simulator.faults({"method": "GET"} | fault)
        await deliver(at, event("777"))
        await ended(at, "handler", 1)
        (read,) = await work(at, "hydrate")
        (timeline,) = await Operator(app.engine).show(seen[0].id)
    assert read["attempts"] == 2
    assert len(reads(simulator.ledger(), "777")) == 2
    outcomes = [one.event for one in timeline.moments if one.event.startswith("read ")]
    assert outcomes.count("read REPLAY_SAFE_RETRY") == 1
    assert outcomes.count("read ACCEPTED") == 1
    assert seen[0].object is not None
    assert seen[0].object.fields["stage"] == "customer"


async def test_a_read_that_is_given_up_is_dead(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    app = hydrating(database_url, tmp_path, tries_max=3)
    async with receiving(app, simulator) as (at, _):
        simulator.faults({"fault": "status", "status": 500, "method": "GET", "times": 9})
        await deliver(at, event("501"))
        (read,) = await ended(at, "hydrate", 1)
        assert (read["state"], read["failure_class"], read["attempts"]) == ("dead", "tries_exhausted", 3)
        assert not await work(at, "handler")
    assert len(reads(simulator.ledger(), "501")) == 3


async def test_an_id_that_fits_into_no_path_is_dead_and_nothing_is_sent(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    app = hydrating(database_url, tmp_path)
    async with receiving(app, simulator) as (at, _):
        await deliver(at, event("1") | {"objectId": "../owners"})
        (read,) = await ended(at, "hydrate", 1)
        assert (read["state"], read["failure_class"]) == ("dead", "never_dispatched")
        assert "cannot stand in a path" in read["summary"]
    assert not simulator.ledger()


async def test_a_reconnect_does_not_retarget_a_read_that_waits(
    database_url: str, tmp_path: Path, simulator: Simulator
) -> None:
    app = hydrating(database_url, tmp_path)
    seen = taking(app)
    simulator.seed({"id": "777", "properties": STAGE})
    async with receiving(app, simulator) as (at, _):
        principals = app.engine.principals
        known = await principals.find("acme", "main", "portal")
        gone = await principals.disconnect(known, reason="a test")
        await deliver(at, event("777"))

        async def waits() -> bool:
            return any("not connected" in (item["summary"] or "") for item in await work(at, "hydrate"))

        await until(waits)
        await principals.reconnect(gone, Secret(TOKEN), reason="perhaps another account")
        (read,) = await ended(at, "hydrate", 1)
        assert (read["state"], read["failure_class"]) == ("dead", "never_dispatched")
        assert "generation 2 of the principal began after this event came" in read["summary"]
        assert not reads(simulator.ledger(), "777")
        await Operator(app.engine).replay(read["id"])
        await ended(at, "handler", 1)
    assert seen[0].object is not None
    assert seen[0].object.fields["stage"] == "customer"
    assert len(reads(simulator.ledger(), "777")) == 1
