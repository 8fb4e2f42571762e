"""Whatever a sender puts on the wire: an answer, a reasoned count, no thread, no line in the log, no row that grows."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from tests.e2e.receiving import (
    BODY_BYTES_MAX,
    Receiver,
    heard,
    once,
    path_of,
    prepare,
    receiving,
    request,
    status_of,
    timed,
)
from tests.process.effects.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.process]

BODY = b'{"id": "e1", "type": "made", "price": 1.50}'
TIMED, ONCE = path_of("timed"), path_of("once")
NOW = int(time.time())
CHUNKED = b"Transfer-Encoding: chunked"


@pytest.fixture(
    scope="module",
    params=[
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.postgresql),
        pytest.param("mariadb", marks=pytest.mark.mariadb),
    ],
)
def receiver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """One process for the tests of this module, on each engine."""
    folder = tmp_path_factory.mktemp("receiver")
    servers = {"postgresql": "module_postgres", "mariadb": "module_mariadb"}
    is_file = request.param == "sqlite"
    url = f"sqlite:///{folder}/test.db" if is_file else request.getfixturevalue(servers[request.param])
    prepare(url, folder)
    with receiving(url, folder) as started:
        assert started.status(request_of(ONCE, once(b"warm"), b"warm")) == 200
        yield started


request_of = request


@dataclass(frozen=True, slots=True)
class Case:
    """What is sent, what is answered (0: nothing), under which reason it is counted ("": it is taken)."""

    sends: Callable[[], list[bytes]]
    status: int
    reason: str


def timed_at(at: str, status: int, reason: str) -> Case:
    """A delivery that is signed for this time."""
    return Case(lambda: [request(TIMED, timed(BODY, at=at), BODY)], status, reason)


def with_headers(change: Callable[[list[bytes]], list[bytes]], status: int, reason: str) -> Case:
    """A delivery whose headers are changed after signing."""
    return Case(lambda: [request(TIMED, change(timed(BODY)), BODY)], status, reason)


def at_path(path: bytes) -> Case:
    """A signed delivery to this path."""
    return Case(lambda: [request(path, once(BODY), BODY)], 404, "no_route")


def again() -> bytes:
    """The same JSON, written by somebody else's serializer."""
    return json.dumps(json.loads(BODY), separators=(",", ":")).encode()


CASES: dict[str, Case] = {
    # --- signatures
    "a wrong signature": Case(lambda: [request(TIMED, timed(b"other"), BODY)], 401, "proof_wrong"),
    "the right signature over re-serialized JSON": Case(
        lambda: [request(TIMED, timed(BODY), again())], 401, "proof_wrong"
    ),
    "another tenant's signature": Case(
        lambda: [request(TIMED, timed(BODY, org="other"), BODY)], 401, "proof_wrong"
    ),
    "a route of another tenant": Case(
        lambda: [request(path_of("timed", "other"), timed(BODY), BODY)], 401, "proof_wrong"
    ),
    "no signature": with_headers(lambda given: given[:1], 401, "proof_missing"),
    "a doubled signature": with_headers(lambda given: [*given, given[1]], 401, "proof_repeated"),
    "comma-joined signatures, one right": with_headers(
        lambda given: [given[0], b"Shop-Signature: v1=" + b"0" * 64 + b", " + given[1].split(b" ")[1]],
        200,
        "",
    ),
    "comma-joined signatures, none right": with_headers(
        lambda given: [given[0], b"Shop-Signature: v1=" + b"0" * 64 + b",v1=" + b"1" * 64], 401, "proof_wrong"
    ),
    "a hundred signatures": with_headers(
        lambda given: [given[0], b"Shop-Signature: " + b",".join([b"v1=00"] * 100)], 401, "items_too_many"
    ),
    "a signature that is no hex": with_headers(
        lambda given: [given[0], b"Shop-Signature: v1=zz"], 401, "proof_malformed"
    ),
    "a signature that is not ASCII": with_headers(
        lambda given: [given[0], b"Shop-Signature: v1=\xc3\xa9\xff"], 401, "proof_malformed"
    ),
    "a huge signature": with_headers(
        lambda given: [given[0], b"Shop-Signature: v1=" + b"0" * 9_000], 401, "header_long"
    ),
    # --- times
    "a time in milliseconds": timed_at(str(NOW * 1_000), 401, "timestamp_ahead"),
    "a time with a fraction": timed_at(f"{NOW}.5", 401, "timestamp_malformed"),
    "a time in the far future": timed_at(str(NOW + 86_400 * 365), 401, "timestamp_ahead"),
    "a time of yesterday": timed_at(str(NOW - 86_400), 401, "timestamp_old"),
    "a time before all": timed_at("-1", 401, "timestamp_malformed"),
    "a time of a thousand digits": timed_at("9" * 1_000, 401, "timestamp_malformed"),
    "no time": with_headers(lambda given: given[1:], 401, "timestamp_missing"),
    "two times": with_headers(lambda given: [given[0], *given], 401, "timestamp_repeated"),
    # --- heads
    "another header that is not ASCII": with_headers(
        lambda given: [*given, b"X-Name: \xff\xfe \xc3\xa9"], 200, ""
    ),
    "a huge head in one piece": with_headers(
        lambda given: [*given, b"X-Long: " + b"x" * 20_000], 431, "head_long"
    ),
    "a head that does not end": Case(
        lambda: [b"POST / HTTP/1.1\r\nX-Long: " + b"x" * 20_000], 431, "head_long"
    ),
    "a thousand headers": with_headers(
        lambda given: [*given, *(b"X-%d: %d" % (number, number) for number in range(2_000))], 431, "head_long"
    ),
    "no HTTP": Case(lambda: [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"], 400, "malformed"),
    "a NUL in a header": with_headers(lambda given: [*given, b"X-Nul: a\x00b"], 400, "malformed"),
    "no host": Case(lambda: [b"POST / HTTP/1.1\r\n\r\n"], 400, "malformed"),
    "an upgrade": Case(
        lambda: [request(ONCE, [*once(b"u"), b"Connection: upgrade", b"Upgrade: websocket"], b"u")], 200, ""
    ),
    # --- bodies
    "a body that is no UTF-8": Case(lambda: [request(ONCE, once(b"\xff\x00\xfe"), b"\xff\x00\xfe")], 200, ""),
    "a length that is too great for the body": Case(
        lambda: [request(ONCE, once(BODY), BODY, length=len(BODY) + 5)], 408, "read_deadline"
    ),
    "a length that is too small for the body": Case(
        lambda: [request(ONCE, once(BODY), BODY, length=len(BODY) - 5)], 401, "proof_wrong"
    ),
    "a length over the bound": Case(
        lambda: [request(ONCE, once(BODY), b"", length=BODY_BYTES_MAX + 1)], 413, "body_long"
    ),
    "a length of nineteen digits": Case(
        lambda: [request(ONCE, once(BODY), b"", length=10**18)], 413, "body_long"
    ),
    "a negative length": Case(lambda: [request(ONCE, once(BODY), b"", length=-5)], 400, "malformed"),
    "two lengths": Case(lambda: [request(ONCE, [*once(BODY), b"Content-Length: 1"], BODY)], 400, "malformed"),
    "a length and chunks": Case(
        lambda: [request(ONCE, [*once(b"abc"), CHUNKED], b"3\r\nabc\r\n0\r\n\r\n")], 400, "framing"
    ),
    "chunks": Case(
        lambda: [request(ONCE, [*once(b"abc"), CHUNKED], b"3\r\nabc\r\n0\r\n\r\n", length=None)], 200, ""
    ),
    "chunks over the bound": Case(
        lambda: [
            request(ONCE, [*once(b""), CHUNKED], (b"400\r\n" + b"x" * 1_024 + b"\r\n") * 5, length=None)
        ],
        413,
        "body_long",
    ),
    "a chunk that is none": Case(
        lambda: [request(ONCE, [*once(b""), CHUNKED], b"zz\r\n", length=None)], 400, "disconnected"
    ),
    "another transfer coding": Case(
        lambda: [request(ONCE, [*once(b""), b"Transfer-Encoding: gzip"], b"", length=None)], 501, "malformed"
    ),
    "a compressed body": Case(
        lambda: [request(ONCE, [*once(BODY), b"Content-Encoding: gzip"], BODY)], 415, "content_encoding"
    ),
    # --- protocols and methods
    "HTTP/1.0": Case(lambda: [request(ONCE, once(b"old"), b"old", version=b"1.0")], 200, ""),
    "HTTP/1.0 without a length": Case(
        lambda: [request(ONCE, once(b""), b"", version=b"1.0", length=None)], 200, ""
    ),
    "a version that there is not": Case(lambda: [request(ONCE, once(b"v"), b"v", version=b"3.9")], 200, ""),
    "another method": Case(lambda: [request(ONCE, once(BODY), BODY, method=b"PUT")], 405, "method"),
    "an invented method": Case(lambda: [request(ONCE, once(BODY), BODY, method=b"MELT")], 405, "method"),
    # --- paths
    "an encoded slash": at_path(b"/in/acme%2Fmain/main/shop.events/once"),
    "an encoded slash before": at_path(b"/in%2Facme/main/shop.events/once"),
    "dots": at_path(b"/in/acme/main/../main/shop.events/once"),
    "encoded dots": at_path(b"/in/%2e%2e/main/shop.events/once"),
    "double slashes": at_path(b"/in/acme//main/shop.events/once"),
    "a slash at the end": at_path(b"/in/acme/main/shop.events/once/"),
    "an encoded line feed": at_path(b"/in/acme/main/shop.events/once%0a"),
    "an encoded NUL": at_path(b"/in/acme/main/shop.events/once%00"),
    "no UTF-8 in the path": at_path(b"/in/acme/main/shop.events/%ff"),
    "a long path": at_path(b"/in/" + b"x" * 9_000 + b"/main/shop.events/once"),
    "a tenant that is not there": at_path(b"/in/nobody/main/shop.events/once"),
    "a webhook that is not there": at_path(b"/in/acme/main/shop.events/twice"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_fault_has_its_answer_and_its_reasoned_count(receiver: Receiver, name: str) -> None:
    case = CASES[name]
    before, log, threads = receiver.counts(), receiver.log(), receiver.threads()
    assert receiver.status(*case.sends()) == case.status
    counted = {case.reason: 1} if case.reason else {}
    # what is answered below HTTP is counted when the request's own task hears of it, which may be after the answer
    until(lambda: receiver.counts() - before == counted, f"the count {counted}")
    assert receiver.log() == log, "a stranger writes no line"
    assert receiver.threads() <= threads, "nor does it cost a thread"


def closed_after(connection: socket.socket, piece: bytes, *, every_s: float = 0.02) -> bytes:
    """Send a piece again and again, until the other side closes; what it said."""
    connection.settimeout(every_s)
    said, deadline_s = b"", time.monotonic() + 10
    while time.monotonic() < deadline_s:
        try:
            connection.sendall(piece)
            got = connection.recv(65_536)
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            return said
        if not got:
            return said
        said += got
    raise AssertionError("it was held for ten seconds")


def test_a_head_that_comes_by_drops_is_given_up(receiver: Receiver) -> None:
    before = receiver.counts()
    with receiver.connected() as connection:
        connection.sendall(b"POST / HTTP/1.1\r\n")
        assert status_of(closed_after(connection, b"X: y\r\n")) == 408
    assert receiver.counts() - before == {"head_deadline": 1}


def test_a_connection_that_says_nothing_is_closed(receiver: Receiver) -> None:
    before = receiver.counts()
    with receiver.connected() as connection:
        assert heard(connection) == b""
    assert receiver.counts() - before == {"head_deadline": 1}


def test_the_next_head_on_a_kept_connection_is_bounded_too(receiver: Receiver) -> None:
    with receiver.connected() as connection:
        connection.sendall(request(ONCE, once(b"kept"), b"kept"))
        assert status_of(heard(connection)) == 200
        before = receiver.counts()
        connection.sendall(b"POST / HTTP/1.1\r\n")
        assert status_of(closed_after(connection, b"X: y\r\n")) == 408
    assert receiver.counts() - before == {"head_deadline": 1}


def test_a_body_that_comes_by_drops_is_given_up_and_opens_a_gap(receiver: Receiver) -> None:
    before, losses = receiver.counts(), sum(row["losses"] for row in receiver.rows("ingress_gap"))
    with receiver.connected() as connection:
        connection.sendall(request(ONCE, once(BODY), b"", length=BODY_BYTES_MAX))
        assert status_of(closed_after(connection, b"x")) == 408
    assert receiver.counts() - before == {"read_deadline": 1}
    (gap,) = until(lambda: [row for row in receiver.rows("ingress_gap") if row["losses"] > losses], "the gap")
    assert (gap["webhook"], gap["closed_at"]) == ("once", None)


def test_chunks_without_end_are_cut_off(receiver: Receiver) -> None:
    before = receiver.counts()
    with receiver.connected() as connection:
        connection.sendall(request(ONCE, [*once(b""), CHUNKED], length=None))
        said = closed_after(connection, b"400\r\n" + b"x" * 1_024 + b"\r\n", every_s=0.01)
    assert status_of(said) == 413
    assert receiver.counts() - before == {"body_long": 1}


def test_who_asks_before_sending_is_told_to_go_on_or_why_not(receiver: Receiver) -> None:
    asking = [*once(b"ask"), b"Expect: 100-continue"]
    with receiver.connected() as connection:
        connection.sendall(request(ONCE, asking, b"", length=3))
        assert status_of(connection.recv(1_024)) == 100
        connection.sendall(b"ask")
        assert status_of(heard(connection)) == 200
    before = receiver.counts()
    assert receiver.status(request(ONCE, asking, b"", length=BODY_BYTES_MAX + 1)) == 413
    assert receiver.status(request(ONCE, [*once(b"a"), b"Expect: the moon"], b"a")) == 200
    assert receiver.counts() - before == {"body_long": 1}


def test_a_sender_that_leaves_in_the_middle_is_counted(receiver: Receiver) -> None:
    before = receiver.counts()
    with receiver.connected() as connection:
        connection.sendall(request(ONCE, once(BODY), BODY, length=len(BODY) + 5))
    until(lambda: receiver.counts() - before == {"disconnected": 1}, "the count")


def test_two_requests_in_one_piece_are_two(receiver: Receiver) -> None:
    before = len(receiver.rows("ingress_receipt"))
    with receiver.connected() as connection:
        connection.sendall(request(ONCE, once(b"p1"), b"p1") + request(ONCE, once(b"p2"), b"p2"))
        said = b""
        while said.count(b"HTTP/1.1 200") < 2:
            said += connection.recv(65_536)
    assert len(receiver.rows("ingress_receipt")) == before + 2


def test_what_follows_a_body_that_is_too_long_for_its_length_is_no_request(receiver: Receiver) -> None:
    before = receiver.counts()
    with receiver.connected() as connection:
        connection.sendall(request(ONCE, once(b"abc"), b"abc and more\r\n\r\n", length=3))
        said = closed_after(connection, b"")
    assert [status_of(said), status_of(said[20:].partition(b"HTTP/1.1")[2])] == [200, 400]
    assert receiver.counts() - before == {"malformed": 1}


def test_strangers_left_no_row_that_grows(receiver: Receiver) -> None:
    """After all the above, and a hundred more: one row for each route and reason."""
    for number in range(100):
        assert receiver.status(request(ONCE, [b"Shop-Signature: %064d" % number], BODY)) == 401

    def counted() -> bool:
        rows = receiver.rows("ingress_rejection")
        return any(row["reason"] == "proof_wrong" and row["count"] >= 100 for row in rows)

    until(counted, "the count of a hundred")
    rows = receiver.rows("ingress_rejection")
    names = [(row["org"], row["webhook"], row["reason"]) for row in rows]
    assert len(names) == len(set(names)) < 40
    assert {name[0] for name in names} == {"acme", "other"}
    assert len(receiver.rows("ingress_gap")) == 1
    assert not receiver.rows("event"), "nobody works here"


def test_many_connections_that_say_nothing_keep_nobody_out(receiver: Receiver) -> None:
    """Beyond the bound, whoever has waited longest makes room."""
    folder = receiver.folder
    limited = {"DOONCE_LISTEN__CONNECTIONS_MAX": "20", "DOONCE_LISTEN__HEAD_SECONDS": "60"}
    with receiving(receiver.database, folder, **limited) as small, contextlib.ExitStack() as held:
        silent = [held.enter_context(small.connected()) for _ in range(60)]
        for number in range(10):
            body = b"among strangers %d" % number
            assert small.status(request(ONCE, once(body), body)) == 200
        assert small.counts()["connections"] >= 40
        assert heard(silent[0]) == b"", "the first to come had to go"
