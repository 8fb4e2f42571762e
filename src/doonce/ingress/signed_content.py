"""The exact bytes that a provider signed, put together again from what came."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final, assert_never
from urllib.parse import parse_qsl

from doonce.catalog.signed_content import Content, Header, Source, Text
from doonce.ingress import headers
from doonce.ingress.model import Delivery, Reason

FORM_FIELDS_MAX: Final = 1_000
"""Fields of one form; the largest known has some fifty."""

_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")


def signed_content(content: Content, delivery: Delivery, *, timestamp: bytes, url: bytes) -> bytes | Reason:
    """The bytes of a template for this delivery, or why there are none."""
    parts: list[bytes] = []
    for piece in content:
        part = _part(piece, delivery, timestamp, url)
        if isinstance(part, Reason):
            return part
        parts.append(part)
    return b"".join(parts)


def _part(piece: Text | Header | Source, delivery: Delivery, timestamp: bytes, url: bytes) -> bytes | Reason:
    match piece:
        case Text():
            return piece.raw
        case Header():
            return headers.only(delivery, piece.name)
        case Source.BODY:
            return delivery.body
        case Source.TIMESTAMP:
            return timestamp
        case Source.METHOD:
            return delivery.method
        case Source.URL:
            return url
        case Source.SORTED_FORM:
            return _sorted_form(delivery.body)
        case _:
            assert_never(piece)


def _sorted_form(body: bytes) -> bytes | Reason:
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=FORM_FIELDS_MAX
        )
        return "".join(name + value for name, value in sorted({*pairs})).encode()
    except ValueError:  # no UTF-8, before or after decoding, or too many fields
        return Reason.FORM_MALFORMED


def full_url(url: bytes, query: bytes, unescaped: frozenset[int]) -> bytes:
    """The public URL with the query that came; these characters stand for themselves, however they were escaped."""
    whole = url + b"?" + query if query else url
    if not unescaped:
        return whole

    def plain(found: re.Match[bytes]) -> bytes:
        code = int(found.group(1), 16)
        return bytes([code]) if code in unescaped else found.group()

    return _ESCAPE.sub(plain, whole)


def body_digest_matches(delivery: Delivery, parameter: str) -> bool:
    """Whether the one query parameter of this name is the SHA-256 of the body, in hexadecimal digits."""
    name = parameter.encode() + b"="
    given = [field[len(name) :] for field in delivery.query.split(b"&") if field.startswith(name)]
    wanted = hashlib.sha256(delivery.body).hexdigest().encode()
    return len(given) == 1 and hmac.compare_digest(given[0].lower(), wanted)
