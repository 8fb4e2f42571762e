"""The HTTP API as a caller meets it: a real server on loopback, strict bodies, one shape of error, one scope."""

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from simulators.launch import Simulator
from tests.e2e.conftest import PACK, TOKEN, people, toml, until

from doonce import Doonce, Installation
from doonce.app.operate.gauges import Gauges
from doonce.app.operate.service import Operator
from doonce.app.serve import http_server
from doonce.app.settings import Settings
from doonce.app.web.api import OPERATE
from doonce.app.web.readiness import Readiness
from doonce.base.digests import digest_bytes
from doonce.base.errors import Unavailable
from doonce.base.keys import handoff_key
from doonce.base.limits import LIMITS
from doonce.base.secrets import Secret
from doonce.runtime.http_port import HttpHandoffs
from doonce.trust.service import BearerCredentials
from doonce.wire import AcceptRequest, Admission, RejectRequest

pytestmark = pytest.mark.e2e


@dataclass
class Api:
    """A running server, and the tokens of who may ask."""

    url: str
    readiness: Readiness
    session: aiohttp.ClientSession
    app: Doonce
    token: str
    operator_token: str
    other_token: str

    async def call(
        self, method: str, path: str, body: Any = None, *, token: str | None = "", raw: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Any]:  # fmt: skip
        """One request; the status and the JSON of its answer."""
        sent = {"Content-Type": "application/json"} | (headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        async with self.session.request(method, self.url + path, data=data, headers=sent) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text.startswith("{") else text


@asynccontextmanager
async def api_of(app: Doonce) -> AsyncIterator[Api]:
    """A server over a running deployment."""
    readiness = Readiness()
    readiness.clear("start")
    listener = socket.create_server(("127.0.0.1", 0))
    server = http_server(Settings(), app.engine, readiness)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    credentials = BearerCredentials(app.engine.database)
    _, token = await credentials.issue("acme", "main", ["people.write"])
    _, operator = await credentials.issue("acme", "main", ["people.write", OPERATE])
    _, other = await credentials.issue("acme", "other", ["people.write", OPERATE])
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with aiohttp.ClientSession() as session:
        yield Api(url, readiness, session, app, token.reveal(), operator.reveal(), other.reveal())
    server.should_exit = True
    await serving


@pytest.fixture
async def api(app: Doonce, crm: Installation) -> AsyncIterator[Api]:
    async with api_of(app) as running:
        yield running


def request_of(crm: Installation, payload: bytes, key: str = "k-1", **over: Any) -> dict[str, Any]:
    """One acceptance as JSON."""
    scope = crm.scope
    asked = {
        "key": handoff_key(scope.org, scope.installation, scope.capability, scope.binding_digest, key),
        "scope": {
            "org": scope.org,
            "installation": scope.installation,
            "capability": scope.capability,
            "binding_digest": scope.binding_digest,
            "binding_generation": scope.binding_generation,
        },
        "outbox_id": f"outbox-{key}",
        "operation": "contact.patch",
        "local_ref": "1",
        "link": None,
        "payload": base64.b64encode(payload).decode(),
        "payload_digest": digest_bytes(payload),
        "source_lane": None,
    }
    return asked | over


async def accept(api: Api, asked: dict[str, Any], token: str = "") -> dict[str, Any]:
    """The one result of a batch of one."""
    status, answer = await api.call("POST", "/v1/handoffs/accept", {"requests": [asked]}, token=token)
    assert status == 200, answer
    (result,) = answer["results"]
    return dict(result)


async def test_a_handoff_becomes_a_command_and_its_end_can_be_asked_for(
    api: Api, crm: Installation, simulator: Simulator
) -> None:
    result = await accept(api, request_of(crm, b'{"title":"CTO"}'))
    assert result["state"] == "COMMAND_ACCEPTED"
    await api.app.outcome(result["command_id"])
    status, view = await api.call("GET", f"/v1/commands/{result['command_id']}")
    assert (status, view["state"], view["final"]) == (200, "accepted", True)
    assert view["result"]["remote_id"] == "501"
    status, shown = await api.call("GET", f"/v1/show/{result['receipt_id']}")
    assert (status, shown["timelines"][0]["id"]) == (200, result["command_id"])
    assert simulator.stats()["method:PATCH"] == 1


async def test_the_runtime_port_speaks_it(api: Api, crm: Installation) -> None:
    raw = b'{"title":"CTO"}'
    plain = request_of(crm, raw) | {"payload": raw, "scope": crm.scope}
    request = AcceptRequest(**plain)
    async with HttpHandoffs(api.url, Secret(api.token)) as port:
        (first,) = await port.accept([request])
        (again,) = await port.accept([request])
        rejection = RejectRequest(
            key=request.key,
            scope=request.scope,
            payload_digest=request.payload_digest,
            outbox_id=request.outbox_id,
        )
        told = await port.reject(rejection)
    assert isinstance(first, Admission)
    assert first == again == told


async def test_a_key_of_another_scope_is_missing_whether_it_exists_or_not(
    api: Api, crm: Installation
) -> None:
    scope = crm.scope
    there = request_of(crm, b'{"title":"CTO"}')
    await accept(api, there)
    for key in (there["key"], handoff_key("acme", "other", scope.capability, scope.binding_digest, "none")):
        asked = there | {"key": key, "scope": there["scope"] | {"installation": "other"}}
        result = await accept(api, asked)
        assert result["error_class"] == "MISSING_OR_DENIED"
    wrong_key = there | {"key": handoff_key("acme", "other", scope.capability, scope.binding_digest, "k-1")}
    assert (await accept(api, wrong_key))["error_class"] == "MISSING_OR_DENIED"


async def test_cross_scope_looks_like_missing(api: Api, crm: Installation) -> None:
    result = await accept(api, request_of(crm, b'{"title":"CTO"}'))
    command, receipt = result["command_id"], result["receipt_id"]
    missing = "cmd_" + "0" * 32
    for path in ("/v1/commands/{}", "/v1/show/{}"):
        theirs = await api.call("GET", path.format(command), token=api.other_token)
        nobodys = await api.call("GET", path.format(missing), token=api.other_token)
        assert theirs == nobodys
        assert theirs[0] == 404
    theirs = await api.call("POST", f"/v1/commands/{command}/cancel", token=api.other_token)
    assert theirs[0] == 404
    assert (await api.call("GET", f"/v1/show/{receipt}", token=api.other_token))[0] == 404


@pytest.mark.parametrize("token", [None, "nonsense", "dnc_" + "A" * 43])
async def test_nobody_gets_in_without_a_credential(api: Api, token: str | None) -> None:
    for method, path in (
        ("POST", "/v1/handoffs/accept"), ("POST", "/v1/handoffs/reject"), ("GET", "/v1/commands/cmd_0"),
        ("GET", "/v1/show/cmd_0"), ("GET", "/v1/status"), ("POST", "/v1/attempts/att_0/resolve"),
        ("POST", "/v1/publish"), ("POST", "/v1/commands/cmd_0/cancel"), ("GET", "/v1/gaps"),
        ("POST", "/v1/gaps/close"), ("GET", "/v1/receipts/ing_0/body"), ("POST", "/v1/work/wrk_0/replay"),
        ("POST", "/v1/work/wrk_0/release"),
    ):  # fmt: skip
        status, answer = await api.call(method, path, {}, token=token)
        assert (status, answer["error"]["class"]) == (401, "UNAUTHENTICATED"), path


async def test_anybody_may_read_what_the_api_is(api: Api) -> None:
    status, told = await api.call("GET", "/v1/openapi.json", token=None)
    assert (status, told["openapi"]) == (200, "3.1.0")


async def test_operating_needs_its_capability(api: Api, crm: Installation, simulator: Simulator) -> None:
    for method, path in (
        ("GET", "/v1/status"),
        ("POST", "/v1/attempts/att_0/resolve"),
        ("POST", "/v1/publish"),
        ("GET", "/v1/gaps"),
        ("POST", "/v1/gaps/close"),
        ("GET", "/v1/receipts/ing_0/body"),
        ("POST", "/v1/work/wrk_0/replay"),
        ("POST", "/v1/work/wrk_0/release"),
    ):
        status, answer = await api.call(method, path, {})
        assert (status, answer["error"]["class"]) == (403, "FORBIDDEN")
    status, answer = await api.call("GET", "/v1/status", token=api.operator_token)
    assert (status, answer["dispatch"]) == (200, "open")
    assert "://" not in answer["database"]


async def test_an_operator_resolves_over_http(api: Api, crm: Installation, simulator: Simulator) -> None:
    simulator.faults({"fault": "reset_after_body", "method": "PATCH", "times": 1})
    command = (await accept(api, request_of(crm, b'{"title":"CTO"}')))["command_id"]

    async def unknown() -> Any:
        _, view = await api.call("GET", f"/v1/commands/{command}")
        return view if view["state"] == "unknown" else None

    view = await until(unknown)
    path = f"/v1/attempts/{view['attempt_id']}/resolve"
    asked = {"decision": "happened", "reason": "I looked"}
    assert (await api.call("POST", path, asked, token=api.other_token))[0] == 404
    assert (await api.call("POST", path, asked | {"decision": "maybe"}, token=api.operator_token))[0] == 400
    status, view = await api.call("POST", path, asked, token=api.operator_token)
    assert (status, view["state"]) == (200, "accepted")
    assert (await api.call("POST", path, asked, token=api.operator_token))[0] == 409


async def test_publishing_over_http(api: Api, crm: Installation, simulator: Simulator) -> None:
    binding = toml(people(simulator.url) | {"operations": ["contact.patch"]})
    binding = binding.replace(f'origin = "{simulator.url}"\n', "")
    schemas = {path.name: path.read_text() for path in (PACK / "schemas").glob("*.json")}
    body = {"pack": (PACK / "pack.toml").read_text(), "schemas": schemas, "binding": binding}
    status, answer = await api.call("POST", "/v1/publish", body, token=api.operator_token)
    assert status == 200, answer
    assert answer["binding_digest"] != crm.scope.binding_digest
    assert (await api.call("POST", "/v1/publish", body, token=api.other_token))[0] == 404
    wrong = body | {"binding": binding.replace("principal", "prinzipal")}
    status, answer = await api.call("POST", "/v1/publish", wrong, token=api.operator_token)
    assert (status, answer["error"]["class"]) == (400, "INVALID")
    assert "binding.toml" in answer["error"]["message"]


@pytest.mark.parametrize(
    "raw, says",
    [
        (b"", "empty"),
        (b"{}", "requests"),
        (b'{"requests":[],"requests":[]}', "requests"),
        (b'{"requests":[]}', "from 1 to 500"),
        (b'{"requests":NaN}', ""),
        (b'{"requests":[]} {}', ""),
        (b'{"requests":[],"more":1}', ""),
        (b'\xff\xfe{"requests":[]}', ""),
        (b'{"requests":"\\ud800"}', ""),
    ],
)
async def test_a_body_that_is_not_one_strict_document_is_invalid(api: Api, raw: bytes, says: str) -> None:
    status, answer = await api.call("POST", "/v1/handoffs/accept", raw=raw)
    assert (status, answer["error"]["class"]) == (400, "INVALID")
    assert "Traceback" not in json.dumps(answer)


async def test_a_body_over_its_bound_is_refused_before_it_is_read(api: Api) -> None:
    status, answer = await api.call("POST", "/v1/handoffs/reject", raw=b" " * 8_193)
    assert (status, answer["error"]["class"]) == (400, "INVALID")
    assert "8192" in answer["error"]["message"]
    status, answer = await api.call(
        "POST", "/v1/handoffs/accept", raw=b"{}", headers={"Content-Type": "text/plain"}
    )
    assert "application/json" in answer["error"]["message"]


async def test_a_body_without_a_length_ends_at_its_bound(api: Api) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(9):
            yield b" " * 1_024

    headers = {"Authorization": f"Bearer {api.token}", "Content-Type": "application/json"}
    url = f"{api.url}/v1/handoffs/reject"
    async with api.session.post(url, data=endless(), headers=headers) as refused:
        answer = await refused.json()
    assert refused.status == 400
    assert "the body has" in answer["error"]["message"]


async def test_a_payload_at_its_bound_is_taken_and_one_byte_over_is_not(
    api: Api, crm: Installation, simulator: Simulator
) -> None:
    exact = b'{"title":"CTO"}' + b" " * (LIMITS.payload_bytes_max - 15)
    assert len(exact) == LIMITS.payload_bytes_max
    assert (await accept(api, request_of(crm, exact)))["state"] == "COMMAND_ACCEPTED"
    asked = {"requests": [request_of(crm, exact + b" ", key="k-2")]}
    status, answer = await api.call("POST", "/v1/handoffs/accept", asked)
    assert (status, answer["error"]["class"]) == (400, "INVALID")
    assert "262144" in answer["error"]["message"]


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/handoffs", "/v1/commands/a/b/c", "/docs", "/v2/status"])
async def test_unknown_paths_are_missing_in_the_same_shape(api: Api, path: str) -> None:
    status, answer = await api.call("GET", path)
    assert (status, answer["error"]["class"]) == (404, "MISSING_OR_DENIED")


async def test_another_method_is_invalid(api: Api) -> None:
    status, answer = await api.call("DELETE", "/v1/status")
    assert (status, answer["error"]["class"]) == (400, "INVALID")


@pytest.mark.parametrize(
    "method, path",
    [
        ("POST", "/v1/handoffs/accept/"), ("GET", "/v1/status/"), ("GET", "/v1/commands/cmd_0%2F"), ("GET", "/livez/"),
        ("POST", "/in"),
    ],
)  # fmt: skip
async def test_a_path_with_a_slash_too_many_or_too_few_is_none(api: Api, method: str, path: str) -> None:
    """Not a redirection: a sender that follows one sends twice, and one that does not hears nothing."""
    async with api.session.request(method, api.url + path, data=b"{}", allow_redirects=False) as answer:
        assert answer.status == 404
        assert json.loads(await answer.read())["error"]["class"] == "MISSING_OR_DENIED"


async def test_live_and_ready_differ(api: Api) -> None:
    assert (await api.call("GET", "/livez", token=None))[0] == 200
    assert (await api.call("GET", "/readyz", token=None)) == (200, {"ready": True, "causes": {}})
    api.readiness.blocked("database", "it went away")
    status, answer = await api.call("GET", "/readyz", token=None)
    assert (status, answer["causes"]) == (503, {"database": "it went away"})
    assert (await api.call("GET", "/livez", token=None))[0] == 200


async def test_a_draining_process_takes_nothing_more(api: Api, crm: Installation) -> None:
    api.readiness.begin_drain()
    asked = {"requests": [request_of(crm, b'{"title":"CTO"}')]}
    status, answer = await api.call("POST", "/v1/handoffs/accept", asked)
    assert (status, answer["error"]["class"]) == (503, "UNAVAILABLE")
    assert (await api.call("GET", "/v1/status", token=api.operator_token))[0] == 200


async def test_metrics_say_what_an_operator_looks_for(api: Api, crm: Installation) -> None:
    result = await accept(api, request_of(crm, b'{"title":"CTO"}'))
    await api.app.outcome(result["command_id"])
    status, text = await api.call("GET", "/metrics", token=None)
    assert status == 200
    for line in (
        'doonce_effect_outcomes_total{operation="contact.patch",outcome="ACCEPTED"} 1.0',
        'doonce_work_waiting{family="effect"} 0.0',
        "doonce_unknown_outcomes 0.0",
        "doonce_ready 1.0",
    ):
        assert line in text
    assert TOKEN not in text


async def test_gauges_outlive_a_database_that_does_not_answer(app: Doonce) -> None:
    class Broken(Operator):
        async def counts(self, scope: Any = None) -> Any:
            raise Unavailable("gone")

    await Gauges(app.engine.metrics, Broken(app.engine)).refresh(ready=True)
    assert b"doonce_ready 1.0" in app.engine.metrics.text()


async def test_a_fault_of_ours_shows_nothing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret inside")

    monkeypatch.setattr(Operator, "command", fail)
    status, answer = await api.call("GET", "/v1/commands/cmd_0")
    assert (status, answer["error"]["class"]) == (500, "INTERNAL")
    assert "secret inside" not in json.dumps(answer)
