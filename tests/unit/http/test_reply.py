"""Reading a reply: what counts as complete, what as broken, and that nothing grows without bound."""

import gzip
import itertools
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doonce.http import Bounds, Replied, Unanswered
from doonce.http.reply import ReplyReader

SMALL = Bounds(head_bytes_max=400, body_bytes_max=100, decompressed_bytes_max=200, interim_replies_max=3)


def read(
    *pieces: bytes, method: str = "GET", bounds: Bounds = SMALL, end: str = "clean"
) -> tuple[Replied | Unanswered, bool]:
    """The outcome and whether the connection may be used again."""
    reader = ReplyReader(bounds, method=method)
    for piece in pieces:
        if reader.feed(piece):
            break
    else:
        reader.end("ended", clean=end == "clean")
    return reader.outcome(), reader.reusable


def head(*lines: str, status: str = "200 OK", version: str = "1.1") -> bytes:
    return "".join(f"{line}\r\n" for line in (f"HTTP/{version} {status}", *lines, "")).encode("latin-1")


def test_a_whole_reply_is_complete_and_its_connection_reusable() -> None:
    outcome, reusable = read(head("Content-Length: 2", "X-Note:  a b ", "Empty:") + b"ok")
    assert outcome == Replied(
        200, (("content-length", "2"), ("x-note", "a b"), ("empty", "")), b"ok", complete=True
    )
    assert reusable


REPLIES = [
    head("Content-Length: 5", "A: b") + b"hello",
    head("Transfer-Encoding: chunked") + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: z\r\n\r\n",
    head(status="103 Early Hints") + head(status="100 Continue") + head("Content-Length: 1") + b"x",
    head(status="204 No Content"),
    head(status="304 Not Modified"),
]


@given(reply=st.sampled_from(REPLIES), cuts=st.lists(st.integers(0, 120), max_size=8))
def test_where_the_bytes_are_cut_makes_no_difference(reply: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(cut % len(reply) for cut in cuts), len(reply)]
    pieces = [reply[start:stop] for start, stop in itertools.pairwise(edges) if start < stop]
    assert read(*pieces) == read(reply)


@given(reply=st.sampled_from(REPLIES), length=st.integers(0, 120), clean=st.booleans())
def test_a_truncated_reply_is_never_complete(reply: bytes, length: int, clean: bool) -> None:
    kept = reply[: length % len(reply)]
    outcome, reusable = read(kept, end="clean" if clean else "reset")
    assert isinstance(outcome, Unanswered) or not outcome.complete
    assert not reusable


@given(data=st.binary(max_size=600), start=st.sampled_from([b"", b"HTTP/1.1 ", *REPLIES]))
def test_any_bytes_end_in_an_outcome_within_bounds(data: bytes, start: bytes) -> None:
    outcome, _ = read(start + data)
    if isinstance(outcome, Replied):
        assert 100 <= outcome.status <= 999
        assert len(outcome.body) <= SMALL.decompressed_bytes_max


@pytest.mark.parametrize("end, complete", [("clean", True), ("reset", False)])
def test_a_reply_without_length_is_complete_only_at_an_orderly_close(end: str, complete: bool) -> None:
    outcome, reusable = read(head(version="1.0"), b"abc", b"def", end=end)
    assert isinstance(outcome, Replied)
    assert (outcome.body, outcome.complete, reusable) == (b"abcdef", complete, False)


@pytest.mark.parametrize(
    "raw, status",
    [
        (head("Content-Length: 9") + b"short", 200),
        (head("Content-Length: 3", "Content-Length: 3") + b"abc", 200),
        (head("Content-Length: 3", "Transfer-Encoding: chunked") + b"abc", 200),
        (head("Content-Length: -3") + b"abc", 200),
        (head("Content-Length: 99999999999999999999999") + b"abc", 200),
        (head("Transfer-Encoding: gzip") + b"abc", 200),
        (head("Transfer-Encoding: gzip, chunked") + b"1\r\nx\r\n0\r\n\r\n", 200),
        (head("Transfer-Encoding: chunked") + b"zz\r\nabc\r\n", 200),
        (head("Transfer-Encoding: chunked") + b"3\r\nabcdef\r\n0\r\n\r\n", 200),
        (head("A: b", " folded") + b"", 200),
        (head("A b") + b"", 200),
        (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", 200),
        (head("Upgrade: websocket", "Connection: upgrade", status="101 Switching Protocols") + b"\x81", 101),
        (head("A: \x01"), 200),
    ],
)
def test_a_reply_that_breaks_the_grammar_has_a_status_but_is_not_complete(raw: bytes, status: int) -> None:
    outcome, reusable = read(raw)
    assert isinstance(outcome, Replied)
    assert (outcome.status, outcome.complete, reusable) == (status, False, False)
    assert outcome.reason


@pytest.mark.parametrize(
    "raw",
    [b"", b"HTTP/1.1 2", b"garbage\r\n\r\n", b"\x16\x03\x01", head(status="000 No"), head(status="99 No")],
)
def test_without_a_status_nothing_was_answered(raw: bytes) -> None:
    outcome, reusable = read(raw)
    assert isinstance(outcome, Unanswered)
    assert outcome.reason
    assert not reusable


def test_only_interim_replies_are_no_answer() -> None:
    outcome, _ = read(head(status="100 Continue") + head(status="103 Early Hints"))
    assert outcome == Unanswered("ended")


@pytest.mark.parametrize("count, complete", [(3, True), (4, False)])
def test_interim_replies_are_counted(count: int, complete: bool) -> None:
    outcome, _ = read(head(status="103 Early Hints") * count + head("Content-Length: 0"))
    assert (isinstance(outcome, Replied) and outcome.complete) is complete


def test_interim_heads_count_as_head_bytes() -> None:
    interim = head("Link: " + "x" * 150, status="103 Early Hints")
    outcome, _ = read(interim, interim, interim)
    assert outcome == Unanswered("the head is over the bound of 400 bytes")


@pytest.mark.parametrize("step", [1, 50, 100_000])
def test_the_head_is_bounded_however_it_arrives(step: int) -> None:
    raw = head("Long: " + "x" * 100_000)
    reader = ReplyReader(SMALL, method="GET")
    fed = 0
    while not reader.feed(raw[fed : fed + step]):
        fed += step
    assert fed <= 400 + 50
    outcome = reader.outcome()
    assert isinstance(outcome, Replied)
    assert not outcome.complete


@pytest.mark.parametrize("size, complete", [(100, True), (101, False)])
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_the_body_is_bounded(framing: str, size: int, complete: bool) -> None:
    body = b"x" * size
    raw = {
        "length": head(f"Content-Length: {size}") + body,
        "chunked": head("Transfer-Encoding: chunked") + b"%x\r\n%b\r\n0\r\n\r\n" % (size, body),
        "close": head(version="1.0") + body,
    }[framing]
    outcome, _ = read(raw)
    assert isinstance(outcome, Replied)
    assert outcome.complete is complete
    assert len(outcome.body) <= 100


@pytest.mark.parametrize("endless", [b"X: ", b"0;extension=", b"0\r\nTrailer: "])
def test_what_the_parser_swallows_without_a_word_is_bounded_too(endless: bytes) -> None:
    reader = ReplyReader(SMALL, method="GET")
    raw = head("Transfer-Encoding: chunked") if endless.startswith(b"0") else b"HTTP/1.1 200 OK\r\n"
    reader.feed(raw + endless)
    fed = 0
    while not reader.feed(b"x" * 10):
        fed += 10
        assert fed < 2_000
    outcome = reader.outcome()
    assert isinstance(outcome, Replied)
    assert not outcome.complete


@pytest.mark.parametrize(
    "appended", [OK := head("Content-Length: 0"), b"garbage", head("Content-Length: 9"), b"HTTP/1.1 200"]
)
def test_bytes_behind_the_reply_spoil_the_connection_not_the_reply(appended: bytes) -> None:
    outcome, reusable = read(head("Content-Length: 2") + b"ok" + appended)
    assert isinstance(outcome, Replied)
    assert (outcome.status, outcome.body, outcome.complete, reusable) == (200, b"ok", True, False)


@pytest.mark.parametrize("line", ["Connection: close", "Connection: Close, x"])
def test_a_server_that_will_close_is_taken_at_its_word(line: str) -> None:
    outcome, reusable = read(head("Content-Length: 2", line) + b"ok")
    assert isinstance(outcome, Replied)
    assert outcome.complete
    assert not reusable


def test_http_1_0_keeps_no_connection() -> None:
    assert read(head("Content-Length: 2", version="1.0") + b"ok")[1] is False


def test_a_reply_to_head_has_no_body_whatever_its_length_says() -> None:
    outcome, reusable = read(head("Content-Length: 500"), method="HEAD")
    assert isinstance(outcome, Replied)
    assert (outcome.complete, outcome.body, reusable) == (True, b"", False)


def test_trailers_are_not_headers() -> None:
    outcome, _ = read(REPLIES[1])
    assert isinstance(outcome, Replied)
    assert outcome.headers == (("transfer-encoding", "chunked"),)
    assert outcome.body == b"abcde"


def raw_deflate(data: bytes) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return deflater.compress(data) + deflater.flush()


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzipped,
    "x-gzip": gzipped,
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("size, complete", [(200, True), (201, False), (100_000, False), (0, True)])
def test_decompression_is_bounded(coding: str, size: int, complete: bool) -> None:
    plain = b"x" * size
    packed = CODINGS[coding](plain)
    bounds = Bounds(body_bytes_max=10_000, decompressed_bytes_max=200)
    outcome, _ = read(
        head(f"Content-Encoding: {coding}", f"Content-Length: {len(packed)}") + packed, bounds=bounds
    )
    assert isinstance(outcome, Replied)
    assert outcome.complete is complete
    assert outcome.body == plain[:200]


@pytest.mark.parametrize("coding", CODINGS)
def test_a_bomb_is_not_unpacked_to_find_out(coding: str) -> None:
    packed = CODINGS[coding](bytes(32 * 1024 * 1024))
    raw = head(f"Content-Encoding: {coding}", f"Content-Length: {len(packed)}") + packed
    bounds = Bounds(body_bytes_max=100_000, decompressed_bytes_max=200)
    tracemalloc.start()
    try:
        outcome, _ = read(raw, bounds=bounds)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(outcome, Replied)
    assert not outcome.complete
    assert peak_bytes < 1_000_000


@pytest.mark.parametrize(
    "coding, packed",
    [
        ("gzip", b"not gzip at all"),
        ("gzip", gzipped(b"x" * 50)[:-4]),
        ("gzip", gzipped(b"x") + b"tail"),
        ("gzip", gzipped(b"x") + gzipped(b"y")),
        ("deflate", zlib.compress(b"x" * 50)[:-5]),
        ("br", b"\x0b\x02\x80hello\x03"),
        ("gzip, gzip", gzipped(gzipped(b"x"))),
    ],
)
def test_a_coding_that_cannot_be_undone_makes_the_reply_incomplete(coding: str, packed: bytes) -> None:
    outcome, _ = read(head(f"Content-Encoding: {coding}", f"Content-Length: {len(packed)}") + packed)
    assert isinstance(outcome, Replied)
    assert not outcome.complete
    assert outcome.reason
