"""The simulator itself: the vendor's documented shapes, and a ledger that misses nothing."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from simulators.launch import Simulator, running

from doonce.base.secrets import Secret
from doonce.http import PRIVATE_ALLOWED, Client, EgressPolicy, Go, Replied, Request, boottime_ns

pytestmark = pytest.mark.process

CONTACTS = "/crm/v3/objects/contacts"


async def call(
    client: Client, url: str, method: str, target: str, document: object = None, *, token: str = "t"
) -> tuple[int, Any, dict[str, str]]:
    """Status, decoded body (None if empty) and headers."""

    async def gate() -> Go:
        now_ns = boottime_ns()
        return Go(now_ns + 1_000_000_000, now_ns + 10_000_000_000)

    body = (
        b""
        if document is None
        else document
        if isinstance(document, bytes)
        else json.dumps(document).encode()
    )
    secrets = {"Authorization": Secret(f"Bearer {token}")} if token else {}
    sent = await client.send(Request(method, url, target, (), body), secret_headers=secrets, gate=gate)
    assert isinstance(sent, Replied), sent
    assert sent.complete
    return sent.status, json.loads(sent.body) if sent.body else None, dict(sent.headers)


async def test_a_sparse_patch_changes_what_it_names_and_nothing_else(
    client: Client, simulator: Simulator
) -> None:
    simulator.seed({"id": "512", "properties": {"email": "a@example.com", "jobtitle": "CTO", "phone": "1"}})
    status, document, headers = await call(
        client, simulator.url, "PATCH", f"{CONTACTS}/512", {"properties": {"jobtitle": "CEO"}}
    )
    assert status == 200
    assert set(document) == {"id", "properties", "createdAt", "updatedAt", "archived"}
    assert (document["id"], document["archived"]) == ("512", False)
    assert document["properties"]["jobtitle"] == "CEO"
    assert document["properties"]["hs_object_id"] == "512"
    assert document["updatedAt"] >= document["createdAt"]
    assert document["createdAt"].endswith("Z")
    assert headers["content-type"] == "application/json;charset=utf-8"
    limits = {name for name in headers if name.startswith("x-hubspot-ratelimit-")}
    assert {name.removeprefix("x-hubspot-ratelimit-") for name in limits} == {
        "daily",
        "daily-remaining",
        "interval-milliseconds",
        "max",
        "remaining",
    }
    assert simulator.contact("512")["properties"]["phone"] == "1"
    assert simulator.contact("512")["version"] == 2


async def test_get_shows_the_default_properties_and_those_asked_for(
    client: Client, simulator: Simulator
) -> None:
    simulator.seed({"id": "1", "properties": {"email": "a@example.com", "jobtitle": "CTO"}})
    _, plain, _ = await call(client, simulator.url, "GET", f"{CONTACTS}/1")
    assert "jobtitle" not in plain["properties"]
    _, asked, _ = await call(client, simulator.url, "GET", f"{CONTACTS}/1?properties=jobtitle,phone")
    assert (asked["properties"]["jobtitle"], asked["properties"]["phone"]) == ("CTO", None)
    target = f"{CONTACTS}/a%40example.com?idProperty=email"
    _, by_email, _ = await call(client, simulator.url, "GET", target)
    assert by_email == plain


async def test_create_conflict_archive_and_absence(client: Client, simulator: Simulator) -> None:
    new = {"properties": {"email": "New@example.com", "firstname": "N"}}
    status, created, _ = await call(client, simulator.url, "POST", CONTACTS, new)
    assert status == 201
    again, conflict, _ = await call(client, simulator.url, "POST", CONTACTS, new)
    assert again == 409
    assert conflict["message"] == f"Contact already exists. Existing ID: {created['id']}"
    assert (conflict["status"], conflict["category"]) == ("error", "CONFLICT")
    assert set(conflict) == {"status", "message", "correlationId", "category"}
    one = f"{CONTACTS}/{created['id']}"
    assert (await call(client, simulator.url, "DELETE", one))[:2] == (204, None)
    assert (await call(client, simulator.url, "DELETE", one))[0] == 204
    status, missing, _ = await call(client, simulator.url, "GET", one)
    assert (status, missing["category"], missing["message"]) == (
        404,
        "OBJECT_NOT_FOUND",
        "resource not found",
    )
    effects = [entry["committed"] for entry in simulator.ledger()]
    assert effects == [True, False, True, False, False]


@pytest.mark.parametrize(
    "body, category, code",
    [
        (b"{", "VALIDATION_ERROR", None),
        (b'{"properties":{"nosuch":"x"}}', "VALIDATION_ERROR", "PROPERTY_DOESNT_EXIST"),
        (b'{"properties":{"hs_object_id":"9"}}', "VALIDATION_ERROR", "READ_ONLY_VALUE"),
        (b'{"properties":[]}', "VALIDATION_ERROR", None),
    ],
)
async def test_a_bad_body_changes_nothing(
    client: Client, simulator: Simulator, body: bytes, category: str, code: str | None
) -> None:
    simulator.seed({"id": "1"})
    status, document, _ = await call(client, simulator.url, "PATCH", f"{CONTACTS}/1", body)
    assert (status, document["status"], document["category"]) == (400, "error", category)
    assert code is None or document["errors"][0]["code"] == code
    assert simulator.contact("1")["version"] == 1
    assert [entry["committed"] for entry in simulator.ledger()] == [False]


async def test_a_missing_token_is_refused(client: Client, simulator: Simulator) -> None:
    status, document, _ = await call(client, simulator.url, "GET", f"{CONTACTS}/1", token="")
    assert (status, document["category"]) == (401, "INVALID_AUTHENTICATION")


async def test_token_and_rate_are_enforced_where_asked_for(tmp_path: Path) -> None:
    with running("simulators.hubspot", tmp_path / "l", "--token", "right", "--rate-max", "2") as simulator:
        client = _client(simulator)
        assert (await call(client, simulator.url, "GET", f"{CONTACTS}/1", token="wrong"))[0] == 401
        statuses: list[int] = []
        document: dict[str, Any] = {}
        for _ in range(6):  # the window of ten seconds may turn over once
            status, document, _ = await call(client, simulator.url, "GET", f"{CONTACTS}/1", token="right")
            statuses.append(status)
        await client.close()
        assert statuses[:2] == [404, 404]
        assert statuses[-1] == 429
        assert (document["errorType"], document["policyName"]) == ("RATE_LIMIT", "TEN_SECONDLY_ROLLING")


async def test_every_request_is_recorded_whole(client: Client, simulator: Simulator) -> None:
    simulator.seed({"id": "1"})
    body = b'{"properties":{"jobtitle":"\xc3\x84rztin"}}'
    await call(client, simulator.url, "PATCH", f"{CONTACTS}/1?x=y", body)
    (entry,) = simulator.ledger()
    assert (entry["method"], entry["target"], entry["status"]) == ("PATCH", f"{CONTACTS}/1?x=y", 200)
    assert entry["body"].encode() == body
    assert entry["body_bytes"] == len(body)
    assert (entry["complete"], entry["committed"], entry["fault"]) == (True, True, "")
    assert ["authorization", "Bearer t"] in entry["headers"]
    assert simulator.stats()["requests"] == 1


@pytest.mark.parametrize(
    "raw, method, body_bytes",
    [
        (b"PATC", "", 0),
        (b"PATCH /crm/v3/objects/contacts/1 HTTP/1.1\r\nHost: x\r\n", "", 0),
        (b"PATCH /crm/v3/objects/contacts/1 HTTP/1.1\r\nContent-Length: 50\r\n\r\n", "PATCH", 0),
        (b"PATCH /crm/v3/objects/contacts/1 HTTP/1.1\r\nContent-Length: 50\r\n\r\n{half", "PATCH", 5),
        (b"\x16\x03\x01 not http", "", 0),
    ],
)
def test_what_breaks_off_is_recorded_too(
    simulator: Simulator, raw: bytes, method: str, body_bytes: int
) -> None:
    host, _, port = simulator.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1000):
            pass
    (entry,) = simulator.ledger()
    assert (entry["method"], entry["body_bytes"], entry["complete"]) == (method, body_bytes, False)
    assert entry["committed"] is False


async def test_the_file_only_grows_and_outlives_reset_and_restart(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    for _ in range(2):
        with running("simulators.hubspot", path) as simulator:
            client = _client(simulator)
            await call(client, simulator.url, "GET", f"{CONTACTS}/1")
            assert len(simulator.ledger()) == 1
            simulator.reset()
            assert simulator.ledger() == []
            await call(client, simulator.url, "GET", f"{CONTACTS}/2")
            assert len(simulator.ledger()) == 1
            await client.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("target", "reset")[-1:] for line in lines] == ["1", "t", "2"] * 2


async def test_an_unknown_fault_or_field_is_refused(client: Client, simulator: Simulator) -> None:
    for rule in ({"fault": "earthquake"}, {"fault": "stall", "often": 1}):
        status, _, _ = await call(client, simulator.url, "POST", "/_sim/faults", {"faults": [rule]})
        assert status == 400
    assert simulator.control("GET", "faults") == {"faults": []}
    assert simulator.ledger() == []


async def test_faults_are_taken_by_method_and_path_in_order(client: Client, simulator: Simulator) -> None:
    simulator.seed({"id": "1"}, {"id": "2"})
    simulator.faults(
        {"fault": "status", "status": 503, "method": "PATCH", "path": f"{CONTACTS}/2", "times": 2},
        {"fault": "status", "status": 429, "method": "GET"},
    )
    change = {"properties": {"jobtitle": "x"}}
    statuses = [
        (await call(client, simulator.url, "PATCH", f"{CONTACTS}/{contact}", change))[0]
        for contact in (1, 2, 2, 2)
    ]
    assert statuses == [200, 503, 503, 200]
    assert [(await call(client, simulator.url, "GET", f"{CONTACTS}/1"))[0] for _ in range(2)] == [429, 200]


def _client(simulator: Simulator) -> Client:
    policy = EgressPolicy(
        origins=frozenset({simulator.url}), http_allowed=True, private_networks=PRIVATE_ALLOWED
    )
    return Client(policy)
