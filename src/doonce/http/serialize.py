"""The bytes of a request: exactly what the caller asked for and what HTTP/1.1 makes necessary."""

import functools
import re
from collections.abc import Mapping
from typing import Final

from doonce.base.errors import Invalid
from doonce.base.secrets import Secret
from doonce.http.model import Request
from doonce.http.origins import Origin

REQUEST_HEAD_BYTES_MAX: Final = 32_768
"""Servers commonly refuse more than 8 to 32 KiB; a longer head is a rendering fault, found before sending."""

REQUEST_BODY_BYTES_MAX: Final = 8 * 1024 * 1024
"""Far above a payload (256 KiB) with its envelope. The whole body lies in memory and in one write."""

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}")
_TARGET: Final = re.compile(r"/[\x21-\x22\x24-\x7e]{0,16384}")
_VALUE: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")

_METHODS_REFUSED: Final = frozenset({"CONNECT", "TRACE"})
_BODY_EXPECTED: Final = frozenset({"POST", "PUT", "PATCH"})
_FRAMING: Final = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "proxy-authorization",
        "proxy-connection",
    }
)
"""Headers that decide where a message goes or ends: the client alone writes them."""


def serialize(request: Request, origin: Origin, secret_headers: Mapping[str, Secret]) -> Secret:
    """Head and body as one byte string, to be written at once; raises Invalid before anything is done.

    It is itself a Secret, because it holds the revealed ones while the gate decides. Nothing in a message of
    an error comes from a header value.
    """
    method, target, body = request.method, request.target, request.body
    if _TOKEN.fullmatch(method) is None or method.upper() in _METHODS_REFUSED:
        raise Invalid("the method is not a method that may be sent")
    if _TARGET.fullmatch(target) is None:
        raise Invalid("the target is not an absolute path and query in printable ASCII")
    if len(body) > REQUEST_BODY_BYTES_MAX:
        raise Invalid(f"the body has {len(body)} bytes, more than {REQUEST_BODY_BYTES_MAX}")
    lines = [f"{method} {target} HTTP/1.1", f"Host: {origin.authority}"]
    for name, value in request.headers:
        lines.append(_line(name, value))
    if secret_headers:
        _refuse_second(request, secret_headers)
    for name, secret in secret_headers.items():
        lines.append(_line(name, secret.reveal()))
    if body or method in _BODY_EXPECTED:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines).encode("ascii")
    if len(head) > REQUEST_HEAD_BYTES_MAX:
        raise Invalid(f"the request head has {len(head)} bytes, more than {REQUEST_HEAD_BYTES_MAX}")
    return Secret(b"%b\r\n\r\n%b" % (head, body))


def _line(name: str, value: str) -> str:
    _check_name(name)
    if _VALUE.fullmatch(value) is None:
        raise Invalid(f"the value of the header {name} is not trimmed printable ASCII")
    return f"{name}: {value}"


@functools.lru_cache(maxsize=1024)
def _check_name(name: str) -> None:
    """Names are few and come back with every request."""
    if _TOKEN.fullmatch(name) is None:
        raise Invalid("a header name is not a token")
    if name.lower() in _FRAMING:
        raise Invalid(f"the header {name} belongs to the client and cannot be set")


def _refuse_second(request: Request, secret_headers: Mapping[str, Secret]) -> None:
    opened = {name.lower() for name, _ in request.headers}
    for name in secret_headers:
        if name.lower() in opened:
            raise Invalid(f"the header {name} is given both openly and as a secret")
