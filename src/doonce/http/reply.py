"""Reading one reply, within bounds. No I/O: bytes go in, a Replied or Unanswered comes out.

The grammar is llhttp's, strict: no bare line feeds, no folded headers, no second Content-Length, none
beside chunked. Bytes beyond the first final reply are never parsed into an answer of anything; they only
make the connection unusable.
"""

import enum
import zlib
from typing import Final

import httptools

from doonce.http.model import Bounds, Replied, Unanswered

_HEADER_OVERHEAD_BYTES: Final = 4  # ": " and CRLF
_STATUS_LINE_BYTES: Final = 15  # "HTTP/1.1 200 " and CRLF
_FRAMING_FACTOR: Final = 8  # a chunk of one byte takes six
_BODILESS: Final = frozenset({204, 304})
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32
_RAW_DEFLATE: Final = -zlib.MAX_WBITS


class _State(enum.Enum):
    HEAD = enum.auto()
    BODY = enum.auto()
    COMPLETE = enum.auto()
    FAILED = enum.auto()


class _Stop(Exception):
    """Leaves the parser from inside a callback; the reason is in the reader."""


class ReplyReader:
    """Reads the reply to one request. `feed` until it says that it is over, then `outcome` once.

    `reusable` is true only after a complete reply to which nothing was appended, on a connection that both
    sides mean to keep.
    """

    __slots__ = (
        "_bodiless",
        "_body",
        "_body_bytes",
        "_bounds",
        "_chunked",
        "_coding",
        "_feed_head_bytes",
        "_head_bytes",
        "_headers",
        "_interim",
        "_length",
        "_parser",
        "_reason",
        "_received_bytes",
        "_state",
        "_status",
        "reusable",
    )

    def __init__(self, bounds: Bounds, *, method: str) -> None:
        self._bounds = bounds
        self._bodiless = method == "HEAD"
        self._state = _State.HEAD
        self._parser = httptools.HttpResponseParser(self)
        self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._head_bytes = 0
        self._feed_head_bytes = 0
        self._received_bytes = 0
        self._interim = 0
        self._length: int | None = None
        self._chunked = False
        self._coding = ""
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._reason = ""
        self.reusable = False

    def feed(self, data: bytes) -> bool:
        """Whether the reply is over: complete, or failed for good."""
        if self._is_over():
            return True
        self._feed_head_bytes = 0
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail("the server switched protocols, which nobody asked for")
        except httptools.HttpParserError as error:
            if self._state is _State.COMPLETE:
                self.reusable = False
            elif self._state is not _State.FAILED:
                self._fail(f"the reply is malformed: {error}")
        if not self._is_over():
            self._check_bounds(len(data))
        if self._is_over():
            del self._parser  # it holds this reader's methods: break the cycle now, not in the collector
            return True
        return False

    def end(self, reason: str, *, clean: bool) -> None:
        """The connection ended. `clean` is the peer's orderly close, which ends a reply without a length."""
        if self._is_over():
            return
        self.reusable = False
        delimited = self._length is not None or self._chunked
        if self._state is _State.BODY and clean and not delimited:
            self._state = _State.COMPLETE
        else:
            self._fail(reason)
        del self._parser

    def outcome(self) -> Replied | Unanswered:
        """What is known about the request that was sent."""
        if not self._status:
            return Unanswered(self._reason)
        headers = tuple(self._headers)
        body = b"".join(self._body)
        if self._state is not _State.COMPLETE:
            return Replied(
                self._status, headers, body if not self._coding else b"", complete=False, reason=self._reason
            )
        if self._coding:
            body, fault = _decompressed(self._coding, body, self._bounds.decompressed_bytes_max)
            if fault:
                return Replied(self._status, headers, body, complete=False, reason=fault)
        return Replied(self._status, headers, body, complete=True)

    # -- called by the parser ----------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._state is _State.COMPLETE:
            raise _Stop  # something follows the reply: `feed` sees to the connection

    def on_status(self, reason_phrase: bytes) -> None:
        self._count_head(len(reason_phrase))
        self._note_status()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + _HEADER_OVERHEAD_BYTES)
        if self._state is not _State.HEAD:
            return  # a trailer: counted, never a header
        self._note_status()
        lowered = name.decode("latin-1").lower()
        self._headers.append((lowered, value.decode("latin-1").strip(" \t")))

    def on_headers_complete(self) -> None:
        self._count_head(_STATUS_LINE_BYTES)
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self._interim += 1
            self._headers.clear()
            if status == 101:
                self._status = status
            elif self._interim > self._bounds.interim_replies_max:
                self._fail_within("too many interim replies")
            return
        if not 200 <= status <= 999:
            self._fail_within("the status is not one of HTTP")
        self._status = status
        self._read_framing()
        self._state = _State.BODY
        if self._bodiless and status not in _BODILESS:
            # the parser would wait for the body that the headers of a HEAD describe
            self._state = _State.COMPLETE
            raise _Stop
        if self._length is not None and self._length > self._bounds.body_bytes_max:
            self._fail_within(f"the body of {self._length} bytes is over the bound")

    def on_body(self, piece: bytes) -> None:
        room = self._bounds.body_bytes_max - self._body_bytes
        if len(piece) > room:
            self._body.append(piece[:room])
            self._body_bytes += room
            self._fail_within(f"the body is over the bound of {self._bounds.body_bytes_max} bytes")
        self._body.append(piece)
        self._body_bytes += len(piece)

    def on_message_complete(self) -> None:
        if self._state is not _State.BODY:
            return  # an interim reply
        self._state = _State.COMPLETE
        self.reusable = self._parser.should_keep_alive()

    # -- within ------------------------------------------------------------------------------------------

    def _is_over(self) -> bool:
        return self._state is _State.COMPLETE or self._state is _State.FAILED

    def _note_status(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:
            self._status = status

    def _read_framing(self) -> None:
        for name, value in self._headers:
            if name == "content-length":
                self._length = int(value)
            elif name == "transfer-encoding":
                if value.lower() != "chunked" or self._chunked:
                    self._fail_within("the transfer encoding is not chunked")
                self._chunked = True
            elif name == "content-encoding" and value.lower() != "identity":
                self._coding = f"{self._coding},{value.lower()}".strip(",")
        if self._status in _BODILESS:
            self._length = 0

    def _check_bounds(self, data_bytes: int) -> None:
        """Bounds what the parser keeps or skips without telling: unfinished lines, chunk extensions."""
        self._received_bytes += data_bytes
        self._head_bytes += data_bytes if self._state is _State.HEAD else self._feed_head_bytes
        if self._head_bytes > self._bounds.head_bytes_max:
            self._fail(self._head_over())
        elif self._received_bytes > 2 * self._bounds.head_bytes_max + _FRAMING_FACTOR * self._body_bytes:
            self._fail("the framing of the body is over the bound")

    def _count_head(self, byte_count: int) -> None:
        self._feed_head_bytes += byte_count
        if self._head_bytes + self._feed_head_bytes > self._bounds.head_bytes_max:
            self._fail_within(self._head_over())

    def _head_over(self) -> str:
        return f"the head is over the bound of {self._bounds.head_bytes_max} bytes"

    def _fail(self, reason: str) -> None:
        self._state = _State.FAILED
        self._reason = reason
        self.reusable = False

    def _fail_within(self, reason: str) -> None:
        self._fail(reason)
        raise _Stop


def _decompressed(coding: str, raw: bytes, bytes_max: int) -> tuple[bytes, str]:
    """The plain body, or what there is of it and why it is not whole.

    Bounded twice: the input is a body within its bound, the output stops one byte beyond `bytes_max`.
    """
    if coding not in ("gzip", "x-gzip", "deflate"):
        return b"", f"the content coding {coding[:64]!r} is not understood"
    if not raw:
        return b"", ""
    raw_deflate = coding == "deflate" and not _has_zlib_header(raw)
    inflater = zlib.decompressobj(_RAW_DEFLATE if raw_deflate else _GZIP_OR_ZLIB)
    try:
        plain = inflater.decompress(raw, bytes_max + 1)
    except zlib.error:
        return b"", "the compressed body is malformed"
    if len(plain) > bytes_max:
        return plain[:bytes_max], f"the body decompresses to more than {bytes_max} bytes"
    if not inflater.eof or inflater.unused_data:
        return plain, "the compressed body is truncated or has something appended"
    return plain, ""


def _has_zlib_header(raw: bytes) -> bool:
    return len(raw) >= 2 and raw[0] & 0x0F == 8 and (raw[0] << 8 | raw[1]) % 31 == 0
