"""PROTOCOL D6 as a table: every fault class by every method by what the pack says; expected values by hand.

Columns: a write on which the pack is silent; a write under a proven replay contract; a write whose pack gives
some statuses a meaning of their own (`RULES`); a read.
"""

import pytest
from tests.unit.catalog.samples import one_operation

from doonce.catalog.classify import classify_response, classify_unanswered, classify_unsent
from doonce.catalog.exchange import Classified, FrozenRequest, Response
from doonce.catalog.model import OperationContract, Outcome

A = Outcome.ACCEPTED
R = Outcome.REJECTED
PRE = Outcome.RETRYABLE_PRE_DISPATCH
AGAIN = Outcome.REPLAY_SAFE_RETRY
U = Outcome.OUTCOME_UNKNOWN

REQUEST = FrozenRequest("PUT", "https://api.one.example", "/things/1", (), b"", "sha256:", None)
GOOD = b'{"id":"1","ok":true}'

RULES = """
[[operations."thing.do".outcomes]]
status = [200]
body = { json = "/ok", equals = false }
outcome = "rejected"

[[operations."thing.do".outcomes]]
status = [202]
outcome = "accepted_for_later"

[[operations."thing.do".outcomes]]
status = [404]
outcome = "accepted"

[[operations."thing.do".outcomes]]
status = [409, 412]
outcome = "verify"

[[operations."thing.do".outcomes]]
status = [408, 429, 503]
outcome = "no_effect"
retry_after_max = "10m"

[[operations."thing.do".outcomes]]
status = [501]
outcome = "rejected"

[[operations."thing.do".outcomes]]
status = [403]
outcome = "unknown"

[operations."thing.do".probe]
operation = "thing.read"
"""

PROVEN = {
    "PATCH": 'replay = { kind = "precondition", if_match = "etag", window = "1h" }',
    "PUT": 'replay = { kind = "precondition", if_none_match = "*", window = "1h" }',
    "DELETE": 'replay = { kind = "precondition", if_match = "etag", window = "1h" }',
    "POST": 'replay = { kind = "idempotency_key", header = "Idempotency-Key", window = "1h" }',
}


def contract(method: str, column: str) -> OperationContract:
    """The contract of one cell's operation."""
    if column == "proven":
        properties = ("etag",) if "etag" in PROVEN[method] else ()
        return one_operation(method, PROVEN[method], properties)
    return one_operation(method, RULES if column == "rules" else "")


def answer(status: int, body: bytes = GOOD, *, complete: bool = True) -> Response:
    """An answer, by default with all the evidence."""
    return Response(status, (), body, complete, "" if complete else "the body was cut")


#                                          silent  proven  rules  read
ANSWERED: dict[str, tuple[Response, tuple[Outcome, Outcome, Outcome, Outcome]]] = {
    "200 with its evidence": (answer(200), (A, A, A, A)),
    "201 with its evidence": (answer(201), (A, A, A, A)),
    "202 with its evidence": (answer(202), (A, A, A, A)),
    "202 without evidence": (answer(202, b""), (U, AGAIN, A, AGAIN)),
    "200 that says no": (answer(200, b'{"id":"1","ok":false}'), (A, A, R, A)),
    "200 without evidence": (answer(200, b"{}"), (U, AGAIN, U, AGAIN)),
    "200 whose evidence is null": (answer(200, b'{"id":null,"ok":true}'), (U, AGAIN, U, AGAIN)),
    "204 without evidence": (answer(204, b""), (U, AGAIN, U, AGAIN)),
    "200 truncated": (answer(200, b'{"id":"1"', complete=False), (U, AGAIN, U, AGAIN)),
    "200 over a bound": (answer(200, complete=False), (U, AGAIN, U, AGAIN)),
    "200 malformed": (answer(200, b'{"id":"1"'), (U, AGAIN, U, AGAIN)),
    "200 with two documents": (answer(200, GOOD + GOOD), (U, AGAIN, U, AGAIN)),
    "200 that is a page": (answer(200, b"<html>id</html>"), (U, AGAIN, U, AGAIN)),
    "300": (answer(300), (U, AGAIN, U, AGAIN)),
    "301": (answer(301), (U, AGAIN, U, AGAIN)),
    "302": (answer(302), (U, AGAIN, U, AGAIN)),
    "304": (answer(304), (U, AGAIN, U, AGAIN)),
    "307": (answer(307), (U, AGAIN, U, AGAIN)),
    "308": (answer(308), (U, AGAIN, U, AGAIN)),
    "400": (answer(400), (R, R, R, R)),
    "401": (answer(401), (R, R, R, R)),
    "403": (answer(403), (R, R, U, R)),
    "404": (answer(404, b""), (R, R, A, R)),
    "405": (answer(405), (R, R, R, R)),
    "409": (answer(409), (R, R, U, R)),
    "410": (answer(410), (R, R, R, R)),
    "412": (answer(412), (R, R, U, R)),
    "413": (answer(413), (R, R, R, R)),
    "422": (answer(422), (R, R, R, R)),
    "499": (answer(499), (R, R, R, R)),
    "408": (answer(408), (U, AGAIN, AGAIN, AGAIN)),
    "425": (answer(425), (U, AGAIN, U, AGAIN)),
    "429": (answer(429), (U, AGAIN, AGAIN, AGAIN)),
    "404 truncated": (answer(404, complete=False), (U, AGAIN, U, AGAIN)),
    "429 truncated": (answer(429, complete=False), (U, AGAIN, U, AGAIN)),
    "500": (answer(500), (U, AGAIN, U, AGAIN)),
    "501": (answer(501), (U, AGAIN, R, AGAIN)),
    "502": (answer(502), (U, AGAIN, U, AGAIN)),
    "503": (answer(503), (U, AGAIN, AGAIN, AGAIN)),
    "504": (answer(504), (U, AGAIN, U, AGAIN)),
    "599": (answer(599), (U, AGAIN, U, AGAIN)),
    "100 as an answer": (answer(100), (U, AGAIN, U, AGAIN)),
    "101 as an answer": (answer(101), (U, AGAIN, U, AGAIN)),
    "0": (answer(0), (U, AGAIN, U, AGAIN)),
    "600": (answer(600), (U, AGAIN, U, AGAIN)),
    "999": (answer(999), (U, AGAIN, U, AGAIN)),
}

UNANSWERED = (
    "reset before the body",
    "reset while the body was sent",
    "reset after the body",
    "reset within the answer's head",
    "time-out without an answer",
    "closed without an answer",
    "TLS alert after the request",
    "answer's head over its bound",
)
UNSENT = ("resolve", "connect", "tls", "pool", "egress", "gate", "window", "closed")

CELLS = [
    (method, column)
    for method in ("PATCH", "POST", "PUT", "DELETE", "GET")
    for column in (("read",) if method == "GET" else ("silent", "proven", "rules"))
]
COLUMNS = ("silent", "proven", "rules", "read")
SILENCE = {"silent": U, "proven": AGAIN, "rules": U, "read": AGAIN}


@pytest.mark.parametrize("method, column", CELLS)
@pytest.mark.parametrize("fault", ANSWERED)
def test_an_answer(fault: str, method: str, column: str) -> None:
    response, expected = ANSWERED[fault]
    classified = classify_response(contract(method, column), REQUEST, response)
    assert classified.outcome is expected[COLUMNS.index(column)], classified.reason


@pytest.mark.parametrize("method, column", CELLS)
@pytest.mark.parametrize("fault", UNANSWERED)
def test_no_answer(fault: str, method: str, column: str) -> None:
    assert classify_unanswered(contract(method, column), fault).outcome is SILENCE[column]


@pytest.mark.parametrize("method, column", CELLS)
@pytest.mark.parametrize("stage", UNSENT)
def test_nothing_sent(stage: str, method: str, column: str) -> None:
    assert classify_unsent(contract(method, column), stage, "refused").outcome is PRE


def test_a_read_with_effects_may_say_so() -> None:
    odd = one_operation("GET", 'replay = { kind = "none" }')
    assert classify_unanswered(odd, "reset").outcome is U


def verified(status: int) -> Classified:
    """The classification of a status under `RULES`."""
    return classify_response(contract("PUT", "rules"), REQUEST, answer(status))


def test_only_a_declared_verify_asks_for_the_probe() -> None:
    assert verified(409).verify
    assert verified(412).verify
    assert not any(verified(status).verify for status in (200, 202, 403, 404, 429, 500))


def test_only_what_is_proven_harmless_is_free_of_effect() -> None:
    free = {
        status: verified(status).effect_free for status in (200, 202, 301, 403, 409, 422, 425, 429, 500, 503)
    }
    assert [status for status, is_free in free.items() if is_free] == [422, 429, 503]
    assert classify_unsent(contract("PUT", "silent"), "tls", "refused").effect_free
    assert not classify_unanswered(contract("PUT", "proven"), "reset").effect_free


def test_accepted_for_later_says_so() -> None:
    assert classify_response(contract("POST", "rules"), REQUEST, answer(202, b"")).for_later
    assert not classify_response(contract("POST", "rules"), REQUEST, answer(200)).for_later
