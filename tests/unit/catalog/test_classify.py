"""What a classification carries: results, receipts, waits; and what an earlier attempt does to a refusal."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.catalog.samples import one_operation, sample_pack

from doonce.catalog.bounds import REPLAY_MARGIN_US
from doonce.catalog.classify import (
    CrashedState,
    classify_response,
    classify_unanswered,
    may_replay,
    no_effect_admissible_from_us,
    resends_by_itself,
    settle_crash,
)
from doonce.catalog.exchange import FrozenRequest, Response
from doonce.catalog.model import Outcome

CHANGE = sample_pack().operations["item.change"]
CREATE = sample_pack().operations["item.create"]
READ = sample_pack().operations["item.read"]
REQUEST = FrozenRequest(
    "PATCH", "https://api.shop.example", "/stores/north/items/42", (), b"{}", "sha256:", None
)
SECOND = 1_000_000
HOUR = 3_600 * SECOND


def answer(status: int, body: bytes = b'{"id":"42"}', **headers: str) -> Response:
    """An answer with headers, whose names are written with underscores."""
    return Response(status, tuple((name.replace("_", "-"), value) for name, value in headers.items()), body)


def test_an_acceptance_carries_its_result_and_receipt() -> None:
    accepted = classify_response(CHANGE, REQUEST, answer(200, x_request_id="r-1", set_cookie="s", etag='"1"'))
    assert accepted.outcome is Outcome.ACCEPTED
    assert accepted.result == b'{"remote_id":"42"}'
    assert accepted.receipt == (("x-request-id", "r-1"),)


def test_a_rejection_carries_its_status_and_declared_code() -> None:
    rejected = classify_response(CHANGE, REQUEST, answer(422, b'{"error":{"code":"TOO_BIG","secret":"s"}}'))
    assert rejected.outcome is Outcome.REJECTED
    assert json.loads(rejected.result or b"") == {"status": 422, "code": "TOO_BIG"}


@pytest.mark.parametrize(
    "raw, remote_id",
    [
        (b'"42"', "42"),
        (b"42", "42"),
        (b"12345678901234567890123", "12345678901234567890123"),
        (b'"\\u00e4"', "ä"),
    ],
)
def test_a_remote_id_becomes_a_text(raw: bytes, remote_id: str) -> None:
    created = classify_response(CREATE, REQUEST, answer(201, b'{"id":' + raw + b"}"))
    assert json.loads(created.result or b"") == {"remote_id": remote_id}


@pytest.mark.parametrize(
    "raw", [b'""', b"null", b"true", b"1.5", b"{}", b"[]", b'"a\\nb"', b'"' + b"x" * 513 + b'"']
)
def test_a_creation_without_a_usable_remote_id_is_not_accepted(raw: bytes) -> None:
    created = classify_response(CREATE, REQUEST, answer(201, b'{"id":' + raw + b"}"))
    assert created.outcome is Outcome.REPLAY_SAFE_RETRY  # the idempotency key makes asking again harmless
    assert created.result is None


def test_an_over_long_result_is_left_out_and_the_effect_stays_accepted() -> None:
    contract = one_operation("PUT", 'results.note = { json = "/note" }')
    body = json.dumps({"id": 1, "note": "x" * 4_097}).encode()
    accepted = classify_response(contract, REQUEST, answer(200, body))
    assert (accepted.outcome, accepted.result) == (Outcome.ACCEPTED, b"{}")


RETRY_AFTER = {
    "silent": ({}, 5 * SECOND),
    "seconds": ({"retry_after": "7"}, 7 * SECOND),
    "zero": ({"retry_after": "0"}, 0),
    "over the pack's bound": ({"retry_after": "86400"}, 600 * SECOND),
    "absurd": ({"retry_after": "9" * 40}, 5 * SECOND),
    "negative": ({"retry_after": "-1"}, 5 * SECOND),
    "not a number": ({"retry_after": "soon"}, 5 * SECOND),
    "a fraction": ({"retry_after": "1.5"}, 5 * SECOND),
    "other digits": ({"retry_after": "٣"}, 5 * SECOND),
    "a date": (
        {"retry_after": "Mon, 30 Nov 2026 03:00:30 GMT", "date": "Mon, 30 Nov 2026 03:00:00 GMT"},
        30 * SECOND,
    ),
    "a date without ours to compare": ({"retry_after": "Mon, 30 Nov 2026 03:00:30 GMT"}, 5 * SECOND),
    "a date in the past": (
        {"retry_after": "Mon, 30 Nov 2026 02:00:00 GMT", "date": "Mon, 30 Nov 2026 03:00:00 GMT"},
        0,
    ),
}


@pytest.mark.parametrize("case", RETRY_AFTER)
def test_retry_after_is_honoured_and_bounded(case: str) -> None:
    headers, expected = RETRY_AFTER[case]
    limited = classify_response(CHANGE, REQUEST, answer(429, **headers))
    assert (limited.outcome, limited.retry_after_us) == (Outcome.REPLAY_SAFE_RETRY, expected)


def test_a_twice_given_header_says_nothing() -> None:
    response = Response(429, (("retry-after", "1"), ("Retry-After", "2")), b"")
    assert classify_response(CHANGE, REQUEST, response).retry_after_us == 5 * SECOND


def test_an_undeclared_503_of_a_read_waits_as_asked() -> None:
    assert classify_response(READ, REQUEST, answer(503, retry_after="20")).retry_after_us == 20 * SECOND
    assert classify_response(READ, REQUEST, answer(503, retry_after="999999")).retry_after_us == HOUR


def test_a_refused_repetition_does_not_settle_what_came_before() -> None:
    expired = classify_response(CREATE, REQUEST, answer(401), earlier_maybe_sent=True)
    assert expired.outcome is Outcome.OUTCOME_UNKNOWN
    assert not expired.verify
    assert classify_response(CREATE, REQUEST, answer(401)).outcome is Outcome.REJECTED
    assert classify_response(READ, REQUEST, answer(404), earlier_maybe_sent=True).outcome is Outcome.REJECTED


def test_a_pack_may_know_that_a_refusal_settles_everything() -> None:
    rule = (
        '[[operations."thing.do".outcomes]]\nstatus = [422]\noutcome = "rejected"\nsettles_earlier = true\n'
    )
    contract = one_operation("POST", rule)
    assert (
        classify_response(contract, REQUEST, answer(422), earlier_maybe_sent=True).outcome is Outcome.REJECTED
    )
    assert (
        classify_response(contract, REQUEST, answer(400), earlier_maybe_sent=True).outcome
        is Outcome.OUTCOME_UNKNOWN
    )


def test_a_rule_that_looks_into_a_malformed_body_decides_nothing() -> None:
    rule = '[[operations."thing.do".outcomes]]\nstatus = [409]\noutcome = "accepted"\n'
    rule += 'body = { json = "/dup", equals = true }\n'
    contract = one_operation("POST", rule)
    assert classify_response(contract, REQUEST, answer(409, b'{"dup":true}')).outcome is Outcome.ACCEPTED
    assert classify_response(contract, REQUEST, answer(409, b'{"dup":1}')).outcome is Outcome.REJECTED
    assert classify_response(contract, REQUEST, answer(409, b'{"dup":tr')).outcome is Outcome.OUTCOME_UNKNOWN


DISPATCHED = 1_000 * HOUR
WINDOW = 24 * HOUR


def test_a_crash_before_the_mark_sent_nothing() -> None:
    for contract in (CHANGE, CREATE, READ):
        settled = settle_crash(
            contract, CrashedState.PREPARED, now_us=DISPATCHED, first_dispatched_at_us=None
        )
        assert settled.outcome is Outcome.RETRYABLE_PRE_DISPATCH


def test_a_crash_after_the_mark_is_unknown_unless_proven() -> None:
    def outcome(contract: object, now_us: int) -> Outcome:
        return settle_crash(
            contract,  # type: ignore[arg-type]
            CrashedState.DISPATCHED,
            now_us=now_us,
            first_dispatched_at_us=DISPATCHED,
        ).outcome

    last = DISPATCHED + WINDOW - REPLAY_MARGIN_US - 1
    assert outcome(CHANGE, DISPATCHED + 1) is Outcome.OUTCOME_UNKNOWN
    assert outcome(CREATE, DISPATCHED + 1) is Outcome.REPLAY_SAFE_RETRY
    assert outcome(CREATE, last) is Outcome.REPLAY_SAFE_RETRY
    assert outcome(CREATE, last + 1) is Outcome.OUTCOME_UNKNOWN
    assert outcome(READ, DISPATCHED + 100 * WINDOW) is Outcome.REPLAY_SAFE_RETRY


def test_a_window_without_a_beginning_is_closed() -> None:
    assert not may_replay(CREATE, now_us=DISPATCHED, first_dispatched_at_us=None)
    assert may_replay(READ, now_us=DISPATCHED, first_dispatched_at_us=None)


def test_the_horizon_of_no_effect() -> None:
    assert no_effect_admissible_from_us(CHANGE, DISPATCHED) == DISPATCHED + 62 * SECOND
    assert no_effect_admissible_from_us(CREATE, DISPATCHED) is None


def test_only_a_rejected_duplicate_or_an_open_window_resends_by_itself() -> None:
    unique = one_operation("POST", "duplicates_rejected = true")
    late = DISPATCHED + WINDOW
    assert resends_by_itself(unique, now_us=late, first_dispatched_at_us=DISPATCHED)
    assert not resends_by_itself(CHANGE, now_us=DISPATCHED, first_dispatched_at_us=DISPATCHED)
    assert resends_by_itself(CREATE, now_us=DISPATCHED + HOUR, first_dispatched_at_us=DISPATCHED)
    assert not resends_by_itself(CREATE, now_us=late, first_dispatched_at_us=DISPATCHED)


def test_a_reason_is_bounded() -> None:
    assert len(classify_unanswered(CHANGE, "x" * 10_000).reason) <= 255


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "error", "code", "ok"]), inner)
    ),
    max_leaves=8,
)
BODIES = (
    st.binary(max_size=64)
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.sampled_from([b"[" * 100_000, b'{"id":' * 3_000, b"1e999999999", b'{"id":"\\ud800"}', b"9" * 6_000])
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["retry-after", "date", "x-request-id", "etag", "Retry-After"]) | st.text(max_size=5),
        st.text(max_size=30)
        | st.sampled_from(["Mon, 99 Foo 2026 03:00:30 GMT", "1e9", "Thu, 01 Jan 0001 00:00:00 +2400"]),
    ),
    max_size=4,
).map(tuple)


@given(
    contract=st.sampled_from([CHANGE, CREATE, READ]),
    status=st.integers(-5, 1_200),
    headers=HEADERS,
    body=BODIES,
    complete=st.booleans(),
    earlier=st.booleans(),
)
def test_every_answer_has_an_outcome(contract, status, headers, body, complete, earlier) -> None:  # type: ignore[no-untyped-def]
    response = Response(status, headers, body, complete, "why")
    classified = classify_response(contract, REQUEST, response, earlier_maybe_sent=earlier)
    assert isinstance(classified.outcome, Outcome)
    assert (
        classified.outcome is not Outcome.RETRYABLE_PRE_DISPATCH
    )  # an answer proves that something was sent
    assert classified.retry_after_us is None or 0 <= classified.retry_after_us <= HOUR
    if classified.outcome is Outcome.ACCEPTED:
        assert complete
        assert 200 <= status <= 299
    if classified.result is not None:
        json.loads(classified.result)
