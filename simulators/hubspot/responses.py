"""HTTP/1.1 replies as bytes: the vendor's headers, and the ways in which a reply can be wrong."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from simulators.hubspot.contacts import Answer

_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
_JSON: Final = "application/json;charset=utf-8"

INTERIM: Final = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"


def head(status: int, headers: Iterable[tuple[str, str]], *, version: str = "1.1") -> bytes:
    """Status line and headers, with the empty line."""
    lines = [f"HTTP/{version} {status} {_REASONS.get(status, 'Unknown')}"]
    lines.extend(f"{name}: {value}" for name, value in headers)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def whole(answer: Answer, extra: str) -> bytes:
    """The answer as it should be. `extra` is header lines, each with its line end (the rate limits)."""
    more = "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
    length = "" if answer.status == 204 else f"Content-Length: {len(answer.body)}\r\n"
    kind = f"Content-Type: {_JSON}\r\n" if answer.body else ""
    reason = _REASONS.get(answer.status, "Unknown")
    text = f"HTTP/1.1 {answer.status} {reason}\r\n{kind}{length}{extra}{more}\r\n"
    return text.encode("latin-1") + answer.body


def with_length(answer: Answer, length: int) -> bytes:
    """The answer with another Content-Length than its body's."""
    return head(answer.status, [("Content-Type", _JSON), ("Content-Length", str(length))]) + answer.body


def body_or_filler(answer: Answer) -> Answer:
    """An answer that has a body to be broken, also where the right one (204) has none."""
    if answer.status == 204 or not answer.body:
        return Answer(200, b'{"archived":true,"filler":"0123456789"}', answer.committed)
    return answer
