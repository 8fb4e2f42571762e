"""RFC 6901 pointers into JSON values: "" is the whole document, "/properties/email" a member of a member."""

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Final, TypeAlias

from doonce.base.errors import Invalid
from doonce.base.json import JsonValue


class Absent(Enum):
    """The one value that says that nothing is there; null is something."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
Found: TypeAlias = "JsonValue | Absent"


@lru_cache(maxsize=4096)
def parse_pointer(text: str) -> tuple[str, ...]:
    """Return the steps of a pointer; raises `Invalid` for a text that is not one."""
    if text == "":
        return ()
    if not text.startswith("/"):
        raise Invalid("a JSON pointer is empty or starts with /", hint='write "/properties/email"')
    steps = text[1:].split("/")
    for step in steps:
        if "~" in step.replace("~0", "").replace("~1", ""):
            raise Invalid("a ~ in a JSON pointer is written ~0, a / within a name ~1")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)


def lookup(value: JsonValue, pointer: str) -> Found:
    """Return what `pointer` leads to in `value`, or `ABSENT`; a list is indexed by plain decimal numbers."""
    found: Found = value
    for step in parse_pointer(pointer):
        if isinstance(found, Mapping):
            found = found.get(step, ABSENT)
        elif isinstance(found, Sequence) and not isinstance(found, str):
            is_index = step.isascii() and step.isdecimal() and (step == "0" or not step.startswith("0"))
            found = found[int(step)] if is_index and len(step) < 10 and int(step) < len(found) else ABSENT
        else:
            return ABSENT
    return found
