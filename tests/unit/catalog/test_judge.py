"""What a probe's answer proves, and what it does not (PROTOCOL H1 to H3, L4)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.catalog.samples import one_operation, sample_view

from doonce.base.errors import Invalid
from doonce.catalog.exchange import FrozenRequest, Judgement, Response
from doonce.catalog.model import OperationContract, Verdict
from doonce.catalog.probe import judge, probe_operation, probe_request
from doonce.catalog.render import render

VIEW = sample_view()
CHANGE = VIEW.operation("item.change").contract
PAYLOAD = b'{"name":"A","cost":1.5}'
REQUEST = render(VIEW, "item.change", PAYLOAD, remote_id="42", command_id="cmd_1").request
SECOND = 1_000_000
DISPATCHED = 1_796_000_000 * SECOND  # 2026-11-30T00:53:20Z
SETTLED = DISPATCHED + 62 * SECOND


def found(attributes: object, changed: object = None, status: int = 200) -> Response:
    """The answer of item.read."""
    body: dict[str, object] = {"id": "42", "attributes": attributes}
    return Response(status, (), json.dumps(body if changed is None else body | {"changed": changed}).encode())


def judged(
    response: Response,
    contract: OperationContract = CHANGE,
    request: FrozenRequest = REQUEST,
    probed_at_us: int = SETTLED,
    refused_with: int | None = None,
) -> Judgement:
    """The judgement of an answer that came when a finding of no effect counts."""
    return judge(
        contract,
        request,
        response,
        dispatched_at_us=DISPATCHED,
        probed_at_us=probed_at_us,
        refused_with=refused_with,
    )


def test_the_probe_is_the_commands_own_read() -> None:
    probe = probe_request(VIEW, "item.change", PAYLOAD, remote_id="42", command_id="cmd_1")
    assert (probe.method, probe.body) == ("GET", b"")
    assert probe.target == "/stores/north/items/42?fields=label%2Cprice"
    assert probe_operation(CHANGE) == "item.read"


def test_an_operation_without_a_probe_cannot_be_looked_into() -> None:
    with pytest.raises(Invalid, match="declares no probe"):
        probe_request(VIEW, "item.create", b'{"name":"A"}', remote_id=None, command_id="cmd_1")
    create = VIEW.operation("item.create").contract
    assert judged(found({}), create).verdict is Verdict.CANNOT_TELL


SAME = {"label": "A", "price": 1.5, "stock": 7}
LATER, BEFORE, ABOUT = "2026-11-30T00:54:21Z", "2026-11-30T00:52:19.999Z", "2026-11-30T00:53:25+00:00"

FINDINGS: dict[str, tuple[Response, Verdict]] = {
    "the same": (found(SAME), Verdict.EFFECT_PROVEN),
    "the same, spelled as another number": (found(SAME | {"price": 1.50}), Verdict.EFFECT_PROVEN),
    "another value, unchanged since before": (found(SAME | {"label": "B"}, BEFORE), Verdict.NO_EFFECT_PROVEN),
    "another value, changed since": (found(SAME | {"label": "B"}, LATER), Verdict.SUPERSEDED),
    "another value, changed at about then": (found(SAME | {"label": "B"}, ABOUT), Verdict.CANNOT_TELL),
    "another value, no time": (found(SAME | {"label": "B"}), Verdict.CANNOT_TELL),
    "another value, time of no zone": (
        found(SAME | {"label": "B"}, "2026-11-30T00:00:00"),
        Verdict.CANNOT_TELL,
    ),
    "another value, a strange time": (found(SAME | {"label": "B"}, 17), Verdict.CANNOT_TELL),
    "a text for a number": (found(SAME | {"price": "1.5"}, BEFORE), Verdict.NO_EFFECT_PROVEN),
    "a value that is not shown": (found({"label": "A"}, BEFORE), Verdict.CANNOT_TELL),
    "nothing to compare": (found(None, BEFORE), Verdict.NO_EFFECT_PROVEN),
    "no attributes at all": (Response(200, (), b"{}"), Verdict.CANNOT_TELL),
    "not there": (Response(404, (), b""), Verdict.NO_EFFECT_PROVEN),
    "gone, undeclared": (Response(410, (), b""), Verdict.CANNOT_TELL),
    "not allowed": (Response(401, (), b""), Verdict.CANNOT_TELL),
    "limited": (Response(429, (), b""), Verdict.CANNOT_TELL),
    "broken": (Response(500, (), b""), Verdict.CANNOT_TELL),
    "a redirect": (Response(302, (), b""), Verdict.CANNOT_TELL),
    "truncated": (Response(200, (), b'{"attributes":', complete=False), Verdict.CANNOT_TELL),
    "a truncated 404": (Response(404, (), b"", complete=False), Verdict.CANNOT_TELL),
    "malformed": (Response(200, (), b'{"attributes":'), Verdict.CANNOT_TELL),
    "a page": (Response(200, (), b"<html>"), Verdict.CANNOT_TELL),
}


@pytest.mark.parametrize("case", FINDINGS)
def test_a_finding(case: str) -> None:
    response, verdict = FINDINGS[case]
    assert judged(response).verdict is verdict


@pytest.mark.parametrize(
    "case", [case for case, (_, verdict) in FINDINGS.items() if verdict is Verdict.NO_EFFECT_PROVEN]
)
def test_no_effect_counts_only_after_the_horizon(case: str) -> None:
    early = judged(FINDINGS[case][0], probed_at_us=SETTLED - 1)
    assert (early.verdict, early.not_before_us) == (Verdict.CANNOT_TELL, SETTLED)
    assert judged(FINDINGS[case][0], probed_at_us=SETTLED).verdict is Verdict.NO_EFFECT_PROVEN


def test_an_effect_counts_at_once_and_names_no_attempt() -> None:
    proven = judged(found(SAME), probed_at_us=DISPATCHED)
    assert proven.verdict is Verdict.EFFECT_PROVEN
    assert not proven.names_attempt
    assert proven.result == b'{"remote_id":"42"}'


KEYED = """
replay = { kind = "idempotency_key", header = "Idempotency-Key", window = "1h" }
body = { kind = "json", constants = { "/a" = 1 } }
[operations."thing.do".probe]
operation = "thing.read"
compare = [{ kind = "idempotency_key", response = "/key" }]
names_attempt = true
mismatch = "superseded"
"""


def test_the_idempotency_key_names_the_attempt() -> None:
    contract = one_operation("POST", KEYED)
    request = FrozenRequest("POST", "", "/things/1", (), b'{"a":1}', "", "k" * 64)
    proven = judged(Response(200, (), b'{"key":"' + b"k" * 64 + b'"}'), contract, request)
    assert (proven.verdict, proven.names_attempt) == (Verdict.EFFECT_PROVEN, True)
    other = judged(Response(200, (), b'{"key":"other"}'), contract, request)
    assert (other.verdict, other.names_attempt) == (Verdict.SUPERSEDED, False)
    assert judged(Response(200, (), b"{}"), contract, request).verdict is Verdict.CANNOT_TELL


VERSIONED = """
replay = { kind = "precondition", if_match = "etag", window = "1h" }
body = { kind = "text", from = "text", content_type = "text/plain" }
[[operations."thing.do".outcomes]]
status = [412]
outcome = "verify"
[operations."thing.do".probe]
operation = "thing.read"
compare = [{ kind = "lines" }]
unchanged_header = "etag"
unchanged = "no_effect_proven"
mismatch = "cannot_tell"
mismatch_when_refused = "superseded"
"""
REPLACE = one_operation("PUT", VERSIONED, ("etag", "text"))
REPLACING = FrozenRequest("PUT", "", "/things/1", (("If-Match", '"v1"'),), b"one\r\ntwo\r\n", "", None)


@pytest.mark.parametrize(
    "etag, body, refused_with, verdict",
    [
        ('"v2"', b"one\ntwo\n", None, Verdict.EFFECT_PROVEN),
        ('"v2"', b"one\ntwo\n", 412, Verdict.EFFECT_PROVEN),
        ('"v1"', b"zero\n", None, Verdict.NO_EFFECT_PROVEN),
        ('"v3"', b"zero\n", None, Verdict.CANNOT_TELL),
        ('"v3"', b"zero\n", 412, Verdict.SUPERSEDED),
        ('"v3"', b"zero\n", 500, Verdict.CANNOT_TELL),
        ('"v3"', b"two\none\n", 412, Verdict.SUPERSEDED),
        ('"v3"', b"\xff", 412, Verdict.CANNOT_TELL),
    ],
)
def test_a_version_tells_an_old_state_from_a_newer_one(
    etag: str, body: bytes, refused_with: int | None, verdict: Verdict
) -> None:
    response = Response(200, (("ETag", etag),), body)
    assert judged(response, REPLACE, REPLACING, refused_with=refused_with).verdict is verdict


ENDING = """
replay = { kind = "none" }
[operations."thing.do".probe]
operation = "thing.read"
missing_status = [404]
missing = "effect_proven"
mismatch = "no_effect_proven"
"""


def test_absence_proves_nothing_for_an_operation_that_ends_nothing() -> None:
    with pytest.raises(Invalid, match="ends a link"):
        one_operation("DELETE", ENDING)


@given(
    status=st.integers(-1, 700),
    body=st.binary(max_size=60)
    | st.sampled_from([b'{"attributes":' * 2_000, b'{"attributes":{"label":[]}}']),
    complete=st.booleans(),
    probed=st.integers(0, SETTLED * 2),
    refused=st.none() | st.integers(0, 700),
)
def test_every_answer_has_a_verdict(
    status: int, body: bytes, complete: bool, probed: int, refused: int | None
) -> None:
    response = Response(status, (), body, complete)
    for contract, request in ((CHANGE, REQUEST), (REPLACE, REPLACING)):
        judgement = judged(response, contract, request, probed_at_us=probed, refused_with=refused)
        assert isinstance(judgement.verdict, Verdict)
        if judgement.verdict is Verdict.NO_EFFECT_PROVEN:
            assert probed >= SETTLED
