"""The fault menu, by method and by contract, through the whole dispatcher: what is stored, and what arrived (D6).

Every cell is one command on a contact of its own, all of them run by one engine per database; each test then looks at
one cell. The expected outcomes are written by hand from PROTOCOL D4 and D6, not computed by the code under test.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from simulators.launch import Simulator
from tests.process.effects.deployment import Accepted, Deployment, Wanted, adopt, deployed
from tests.process.effects.table_pack import METHODS, SAYS, operation_name, table_pack

from doonce.app.engine import Engine
from doonce.http import Client, ClientSettings
from doonce.ownership.model import Family

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

ACCEPTED, REJECTED, UNKNOWN = "ACCEPTED", "REJECTED", "OUTCOME_UNKNOWN"
AGAIN, BEFORE = "REPLAY_SAFE_RETRY", "RETRYABLE_PRE_DISPATCH"
RUN_S = 60.0


@dataclass(frozen=True)
class Row:
    """One fault, and what each kind of operation makes of it.

    `silent` is for a write of whose answers the pack says nothing, `declares` where it has outcome rules, `replay`
    under a replay contract. A GET is a read: `read` is `replay` where that is not given. `delete` is for a silent
    DELETE, whose success needs no evidence but the status.
    """

    name: str
    rule: dict[str, Any]
    silent: str
    replay: str
    declares: str = ""
    read: str = ""
    delete: str = ""
    read_declares: str = ""
    delete_replay: str = ""

    def expected(self, method: str, says: str) -> str:
        """The outcome of one cell."""
        if method == "GET":
            outcome = self.read_declares if says == "declares" else ""
            outcome = outcome or self.read or self.replay
        elif says == "replay":
            outcome = (self.delete_replay if method == "DELETE" else "") or self.replay
        elif says == "declares":
            outcome = self.declares or (self.delete if method == "DELETE" else "") or self.silent
        else:
            outcome = (self.delete if method == "DELETE" else "") or self.silent
        return outcome


def row(fault: str, silent: str, replay: str, *, name: str = "", **more: Any) -> Row:
    known = {key: more.pop(key) for key in list(more) if key in Row.__dataclass_fields__}
    return Row(name or fault, {"fault": fault, **more}, silent, replay, **known)


def lost(fault: str, **more: Any) -> Row:
    """A byte may have left and no usable answer came: nobody knows, unless a repetition is harmless."""
    return row(fault, UNKNOWN, AGAIN, **more)


def status(code: int, silent: str, replay: str, **more: Any) -> Row:
    return row("status", silent, replay, name=f"status {code}", status=code, **more)


MENU = [
    # no usable answer
    lost("reset_before_body"),
    lost("reset_during_body"),
    lost("reset_after_body"),
    lost("close_unanswered"),
    lost("commit_reset"),
    lost("commit_close"),
    lost("stall"),
    lost("half_head"),
    lost("half_answer"),
    lost("slow_drip", name="too slow a drip", delay_ms=60),
    lost("length_long"),
    lost("interim_flood"),
    lost("gigabyte"),
    lost("gzip_bomb"),
    lost("deflate_bomb"),
    lost("chunk_garbage"),
    # whole answers, some of them odd
    row("slow_drip", ACCEPTED, ACCEPTED, name="a slow drip that ends", delay_ms=0),
    row("interim", ACCEPTED, ACCEPTED, count=20),
    row("until_close", ACCEPTED, ACCEPTED),
    row("glued_reply", ACCEPTED, ACCEPTED),
    # a success without its evidence
    lost("malformed_json", delete=ACCEPTED, delete_replay=ACCEPTED),
    lost("second_json", delete=ACCEPTED, delete_replay=ACCEPTED),
    lost("empty", delete=ACCEPTED, delete_replay=ACCEPTED),
    lost("length_short", delete=ACCEPTED, delete_replay=ACCEPTED, declares=UNKNOWN),
    lost("ok_false", delete=ACCEPTED, delete_replay=ACCEPTED, declares=REJECTED, read_declares=REJECTED),
    # statuses
    *(status(code, REJECTED, REJECTED) for code in (400, 401, 403, 404, 410, 422)),
    status(409, REJECTED, REJECTED, declares=UNKNOWN, read_declares=REJECTED),
    *(status(code, UNKNOWN, AGAIN) for code in (408, 425, 500, 502, 504)),
    status(429, UNKNOWN, AGAIN, declares=AGAIN),
    status(503, UNKNOWN, AGAIN, declares=REJECTED, read_declares=REJECTED),
    row(
        "status",
        UNKNOWN,
        AGAIN,
        name="status 429 with Retry-After",
        status=429,
        retry_after="7",
        declares=AGAIN,
    ),
    row(
        "status",
        UNKNOWN,
        AGAIN,
        name="status 503 with Retry-After",
        status=503,
        retry_after="7",
        declares=REJECTED,
        read_declares=REJECTED,
    ),
    *(
        row("redirect", UNKNOWN, AGAIN, name=f"redirect {code}", status=code)
        for code in (301, 302, 303, 307, 308)
    ),
]


@dataclass(frozen=True)
class Ran:
    """What became of one cell."""

    attempts: list[Any]
    arrivals: list[dict[str, Any]]
    item: Any


Table = dict[tuple[str, str, str], Ran]


async def run_all(deployment: Deployment, cells: dict[tuple[str, str, str], Wanted]) -> Table:
    """Run every command once, and say what is stored of each."""
    async with deployment.engine(concurrency=64, lease_us=30_000_000) as engine:
        fresh_connections(engine)
        accepted = await deployment.accept_in(engine, *cells.values())
        engine.start([Family.EFFECT])
        async with asyncio.timeout(RUN_S):
            while not all_ended(deployment):
                await asyncio.sleep(0.1)
    return table_of(deployment, cells, accepted)


def fresh_connections(engine: Engine) -> None:
    """A connection for each call: what a fault leaves on one must not reach the next cell."""
    outbound = engine._outbound
    outbound.providers = Client(outbound.providers._policy, ClientSettings(idle_max_ns=0))


def all_ended(deployment: Deployment) -> bool:
    """Whether every command has an attempt that ended."""
    ended = {attempt.subject_id for attempt in deployment.journal.attempts() if attempt.outcome is not None}
    return ended >= {one.id for one in deployment.accepted}


def table_of(
    deployment: Deployment, cells: dict[tuple[str, str, str], Wanted], accepted: list[Accepted]
) -> Table:
    arrivals: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in deployment.simulator.ledger():
        arrivals[parse_qs(urlsplit(entry["target"]).query)["command"][0]].append(entry)
    attempts: dict[str, list[Any]] = defaultdict(list)
    for attempt in deployment.journal.attempts():
        attempts[attempt.subject_id].append(attempt)
    items = {item.subject_id: item for item in deployment.journal.items("effect")}
    return {
        key: Ran(attempts[one.id], arrivals[one.id], items[one.id])
        for key, one in zip(cells, accepted, strict=True)
    }


def command_for(number: int, method: str, says: str) -> Wanted:
    """A command on a contact of its own; its case stands in the target, where a fault's path finds it."""
    case = f"case{number:05}"
    payload = {"case": case} if method in ("GET", "DELETE") else {"case": case, "title": case}
    if says == "replay" and method in ("PATCH", "DELETE"):
        payload["etag"] = '"v1"'
    contact = None if method == "POST" else case
    return Wanted(case, operation_name(method, says), contact, payload)


def path_of(case: str, method: str) -> str:
    base = "/sim/objects/contacts" if method == "PUT" else "/crm/v3/objects/contacts"
    return f"{base}?case={case}" if method == "POST" else f"{base}/{case}?"


CELLS = [(one, method, says) for one in MENU for method in METHODS for says in SAYS]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def engine_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database for the whole table, on each engine."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("module_postgres"))
    return f"sqlite:///{tmp_path_factory.mktemp('table') / 'table.db'}"


@pytest.fixture(scope="module")
def table(
    engine_url: str, simulator_process: Simulator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Table]:
    """The whole table, run once."""
    simulator_process.reset()
    folder: Path = tmp_path_factory.mktemp("table")
    names = [operation_name(method, says) for method in METHODS for says in SAYS]
    retry = {"base": "1h", "cap": "1h"}
    with deployed(
        engine_url, simulator_process, folder, pack=table_pack(), operations=names, retry=retry
    ) as deployment:
        cells = {
            (one.name, method, says): command_for(number, method, says)
            for number, (one, method, says) in enumerate(CELLS)
        }
        simulator_process.faults(
            *(
                {"method": method, "path": path_of(cells[one.name, method, says].name, method), **one.rule}
                for one, method, says in CELLS
            )
        )
        known = [wanted.contact for wanted in cells.values() if wanted.contact is not None]
        there = [contact for contact in known if contact not in never_seen(cells)]
        deployment.simulator.seed(
            *({"id": contact, "properties": {"jobtitle": "before"}} for contact in there)
        )
        asyncio.run(adopt(engine_url, known))
        yield asyncio.run(run_all(deployment, cells))


def never_seen(cells: dict[tuple[str, str, str], Wanted]) -> set[str | None]:
    """What a PUT under `If-None-Match: *` is to make."""
    return {
        wanted.contact for (_, method, says), wanted in cells.items() if (method, says) == ("PUT", "replay")
    }


@pytest.mark.parametrize(
    "one, method, says", CELLS, ids=[f"{one.name}-{method}-{says}" for one, method, says in CELLS]
)
def test_what_is_stored_of_each_cell(table: Table, one: Row, method: str, says: str) -> None:
    ran = table[one.name, method, says]
    first = ran.attempts[0]
    assert first.outcome == one.expected(method, says), first.reason
    assert first.dispatched_at is not None
    dispatched = [attempt for attempt in ran.attempts if attempt.dispatched_at is not None]
    assert 1 <= len(ran.arrivals) <= len(dispatched), "at most one request an attempt"
    if method != "GET" and says != "replay" and first.outcome != AGAIN:
        assert len(ran.arrivals) == 1
    assert sum(arrival["committed"] for arrival in ran.arrivals) <= 1
    assert ran.item.attempts == len(dispatched)
    if first.outcome in (ACCEPTED, REJECTED):
        assert ran.item.finished_at is not None
        assert first.effect_free == (first.outcome == REJECTED or method == "GET")


def test_expected_outcomes_agree_with_the_contract_of_each_kind() -> None:
    """No row is forgotten: outside of a contract nothing is ever sent again, and a lost answer is unknown."""
    for one in MENU:
        assert one.silent in (ACCEPTED, REJECTED, UNKNOWN)
        assert one.replay == (AGAIN if one.silent == UNKNOWN else one.silent)
    assert len({one.name for one in MENU}) == len(MENU)
