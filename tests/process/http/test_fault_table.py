"""Fault by method: what the client says, and that at most one request ever arrived (PROTOCOL D3, D4)."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from simulators.launch import Simulator

from doonce.base.secrets import Secret
from doonce.http import Bounds, Client, Go, NotSent, Replied, Request, Sent, Stage, Unanswered, boottime_ns

pytestmark = pytest.mark.process

METHODS = ("PATCH", "POST", "PUT", "DELETE", "GET")
COMPLETE, BROKEN, UNANSWERED, NOT_SENT = "replied", "broken reply", "unanswered", "not sent"


@dataclass(frozen=True)
class Cell:
    """One row of the menu: the rule, the admissible classes, whether the effect happened."""

    name: str
    rule: dict[str, Any]
    expected: frozenset[str]
    committed: bool
    status: int = 0
    arrived: frozenset[int] = frozenset({1})
    deadline_ms: int = 10_000
    headers: dict[str, str] = field(default_factory=dict)


def cell(fault: str, expected: str | set[str], *, committed: bool, name: str = "", **more: Any) -> Cell:
    known = {key: more.pop(key) for key in list(more) if key in ("deadline_ms", "arrived", "headers")}
    classes = frozenset({expected} if isinstance(expected, str) else expected)
    return Cell(
        name or fault, {"fault": fault, **more}, classes, committed, status=more.get("status", 0), **known
    )


STATUSES = [
    cell("status", COMPLETE, committed=False, name=f"status {status}", status=status)
    for status in (400, 404, 408, 409, 412, 422, 425, 429, 500, 502, 503, 504)
] + [
    cell(
        "status",
        COMPLETE,
        committed=False,
        name=f"status {status}, Retry-After",
        status=status,
        retry_after="7",
        headers={"retry-after": "7"},
    )
    for status in (408, 425, 429, 503)
]

REDIRECTS = [
    cell(
        "redirect",
        COMPLETE,
        committed=False,
        name=f"redirect {status}",
        status=status,
        location="/crm/v3/objects/contacts/2",
        headers={"location": "/crm/v3/objects/contacts/2"},
    )
    for status in (301, 302, 303, 307, 308)
]

MENU = [
    cell("refuse", NOT_SENT, committed=False, arrived=frozenset({0})),
    cell("reset_on_accept", {NOT_SENT, UNANSWERED}, committed=False, arrived=frozenset({0, 1})),
    cell("reset_before_body", UNANSWERED, committed=False),
    cell("reset_during_body", UNANSWERED, committed=False),
    cell("reset_after_body", UNANSWERED, committed=False),
    cell("close_unanswered", UNANSWERED, committed=False),
    cell("commit_reset", UNANSWERED, committed=True),
    cell("commit_close", UNANSWERED, committed=True),
    cell("stall", UNANSWERED, committed=True, deadline_ms=200),
    cell("half_head", BROKEN, committed=True),
    cell("half_answer", BROKEN, committed=True),
    cell("slow_drip", COMPLETE, committed=True, delay_ms=0),
    cell("slow_drip", UNANSWERED, committed=True, name="too slow drip", delay_ms=60, deadline_ms=250),
    cell("length_short", COMPLETE, committed=True),
    cell("length_long", BROKEN, committed=True),
    cell("interim", COMPLETE, committed=True, count=20),
    cell("interim_flood", UNANSWERED, committed=True),
    cell("ok_false", COMPLETE, committed=False),
    cell("malformed_json", COMPLETE, committed=True),
    cell("second_json", COMPLETE, committed=True),
    cell("empty", COMPLETE, committed=True),
    cell("gigabyte", BROKEN, committed=True),
    cell("gzip_bomb", BROKEN, committed=True),
    cell("deflate_bomb", BROKEN, committed=True),
    cell("chunk_garbage", BROKEN, committed=True),
    cell("glued_reply", COMPLETE, committed=True),
    cell("late_reply", COMPLETE, committed=True),
    cell("until_close", COMPLETE, committed=True),
    cell("close_idle", COMPLETE, committed=True),
    *STATUSES,
    *REDIRECTS,
]


def request(simulator: Simulator, method: str, contact: str = "1") -> Request:
    base = "/sim/objects/contacts" if method == "PUT" else "/crm/v3/objects/contacts"
    target = base if method == "POST" else f"{base}/{contact}"
    properties = (
        b'{"properties":{"email":"new@example.com"}}'
        if method == "POST"
        else b'{"properties":{"jobtitle":"CEO"}}'
    )
    body = b"" if method in ("GET", "DELETE") else properties
    return Request(method, simulator.url, target, (("Content-Type", "application/json"),), body)


async def send(client: Client, asked: Request, *, deadline_ms: int = 10_000) -> Sent:
    gates = 0

    async def gate() -> Go:
        nonlocal gates
        gates += 1
        now_ns = boottime_ns()
        return Go(send_by_ns=now_ns + 1_000_000_000, abort_at_ns=now_ns + deadline_ms * 1_000_000)

    sent = await client.send(
        asked,
        secret_headers={"Authorization": Secret("Bearer token")},
        gate=gate,
        bounds=Bounds(body_bytes_max=262_144, decompressed_bytes_max=262_144),
    )
    refused_early = isinstance(sent, NotSent) and sent.stage is Stage.CONNECT
    assert gates == (0 if refused_early else 1)
    return sent


def class_of(sent: Sent) -> str:
    match sent:
        case Replied():
            return COMPLETE if sent.complete else BROKEN
        case Unanswered():
            return UNANSWERED
        case NotSent():
            return NOT_SENT


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("row", MENU, ids=lambda row: row.name)
async def test_each_cell(client: Client, simulator: Simulator, row: Cell, method: str) -> None:
    simulator.seed({"id": "1", "properties": {"email": "one@example.com"}}, {"id": "2"})
    simulator.faults({**row.rule, "times": 5})
    sent = await send(client, request(simulator, method), deadline_ms=row.deadline_ms)
    assert class_of(sent) in row.expected, sent
    if row.status and isinstance(sent, Replied):
        assert sent.status == row.status
    if isinstance(sent, Replied):
        assert row.headers.items() <= dict(sent.headers).items()
        assert len(sent.body) <= 262_144
    entries = simulator.ledger()
    assert len(entries) in row.arrived
    effects = sum(entry["committed"] for entry in entries)
    assert effects == (1 if row.committed and method != "GET" else 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fault", ["close_on_next", "reset_on_next"])
async def test_a_kept_connection_that_dies_under_a_request_is_not_an_occasion_to_resend(
    client: Client, simulator: Simulator, fault: str, method: str
) -> None:
    simulator.seed({"id": "1"}, {"id": "2"})
    simulator.faults({"fault": fault})
    first = await send(client, request(simulator, "GET"))
    assert class_of(first) == COMPLETE
    second = await send(client, request(simulator, method))
    assert class_of(second) == UNANSWERED
    entries = simulator.ledger()
    assert [entry["connection"] for entry in entries] == [entries[0]["connection"]] * 2
    assert entries[1]["committed"] is False


@pytest.mark.parametrize("fault", ["glued_reply", "length_short", "close_idle"])
@pytest.mark.parametrize("method", METHODS)
async def test_what_follows_a_reply_is_never_the_answer_to_the_next_request(
    client: Client, simulator: Simulator, fault: str, method: str
) -> None:
    simulator.seed({"id": "1"}, {"id": "2"})
    simulator.faults({"fault": fault})
    assert class_of(await send(client, request(simulator, "GET", "1"))) == COMPLETE
    second = await send(client, request(simulator, method, "2"))
    match second:
        case Replied():
            assert second.complete
            assert b"666" not in second.body
        case NotSent():
            assert second.stage is Stage.CLOSED
        case Unanswered():
            # the close crossed the request on the wire
            assert fault == "close_idle"
    assert len(simulator.ledger()) <= 2
