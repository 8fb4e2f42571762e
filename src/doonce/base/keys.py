"""Composite keys as one text: two different tuples never make the same key (DESIGN rule 7).

    frame("lane", "a:b", "c")  ==  "lane:3.a:b1.c"

The kind, a colon, and for each part its length in bytes of UTF-8, a full stop and the part itself.
"""

import re
from dataclasses import dataclass
from typing import Final

from doonce.base.digests import check_digest
from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS, check_size, check_text

HANDOFF_KIND: Final = "handoff"

_KIND: Final = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)
_LENGTH: Final = re.compile(rb"(0|[1-9][0-9]{0,3})\.")


@dataclass(frozen=True, slots=True)
class HandoffKey:
    """What a handoff key says: the exact scope it is for and the application's own part (PROTOCOL F1, F2)."""

    org: str
    installation: str
    capability: str
    binding_digest: str
    local_key: str


def frame(kind: str, *parts: str) -> str:
    """Return the one key for `kind` and `parts`; other kinds, parts or numbers of parts give other keys.

    A part may be empty. Raises `Invalid` for a kind that is not a short lower-case word, a part with control
    characters or unpaired surrogates, and a key over `LIMITS.key_bytes_max`.
    """
    if _KIND.fullmatch(kind) is None:
        raise Invalid("a key's kind is a lower-case word of at most 32 characters")
    framed = [kind, ":"]
    for part in parts:
        check_text(f"a part of the {kind} key", part, LIMITS.key_bytes_max, empty_allowed=True)
        framed += (str(len(part.encode())), ".", part)
    key = "".join(framed)
    check_size(f"the {kind} key", len(key.encode()), LIMITS.key_bytes_max)
    return key


def unframe(text: str, kind: str, parts: int) -> tuple[str, ...]:
    """Return the parts of a key that `frame` made from `kind` and exactly `parts` of them.

    Raises `Invalid`, which does not show the key, for every other text; so a key has only one spelling.
    """
    check_text(f"the {kind} key", text, LIMITS.key_bytes_max)
    head = f"{kind}:"
    if not text.startswith(head):
        raise Invalid(f"this is not a {kind} key")
    raw, at = text.encode(), len(head)
    found: list[str] = []
    while at < len(raw):
        length = _LENGTH.match(raw, at)
        if length is None:
            raise Invalid(f"the {kind} key is malformed at byte {at}")
        start = length.end()
        at = start + int(length.group(1))
        if at > len(raw):
            raise Invalid(f"the {kind} key ends within a part")
        try:
            found.append(raw[start:at].decode())
        except UnicodeDecodeError:
            raise Invalid(f"the {kind} key cuts a character at byte {at}") from None
    if len(found) != parts:
        raise Invalid(f"the {kind} key has {len(found)} parts instead of {parts}")
    return tuple(found)


def handoff_key(org: str, installation: str, capability: str, binding_digest: str, local_key: str) -> str:
    """Return the text of a handoff key; `parse_handoff_key` gives back exactly these five fields.

    Raises `Invalid`, which names the field, for one that is empty, over its bound or not plain text, and for
    a binding digest that is not one.
    """
    _check_fields(org, installation, capability, binding_digest, local_key)
    return frame(HANDOFF_KIND, org, installation, capability, binding_digest, local_key)


def parse_handoff_key(text: str) -> HandoffKey:
    """Return what a handoff key says; raise `Invalid` for any text that `handoff_key` cannot have made."""
    key = HandoffKey(*unframe(text, HANDOFF_KIND, 5))
    _check_fields(key.org, key.installation, key.capability, key.binding_digest, key.local_key)
    return key


def _check_fields(org: str, installation: str, capability: str, binding_digest: str, local_key: str) -> None:
    check_text("org", org, LIMITS.org_bytes_max)
    check_text("installation", installation, LIMITS.installation_bytes_max)
    check_text("capability", capability, LIMITS.capability_bytes_max)
    check_digest("binding_digest", binding_digest)
    check_text("local_key", local_key, LIMITS.local_key_bytes_max)
