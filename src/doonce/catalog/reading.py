"""Strict reading of hand-written TOML: whatever a file says is used, or is refused by name.

Every refusal is one `Invalid` that names the file, the table and the field, with what to write instead as
its hint.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS, check_text

E = TypeVar("E", bound=Enum)
T = TypeVar("T")

NAME: Final = re.compile(r"[a-z][a-z0-9_]*([.-][a-z0-9_]+)*", re.ASCII)
"""Names of packs, operations, parameters and capabilities."""

UNITS_US: Final = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
DURATION_US_MAX: Final = 366 * UNITS_US["d"]

_DURATION: Final = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)", re.ASCII)
_INTEGER_MAX: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fault is, in words that the author of the file knows."""

    file: str
    table: str = ""

    def inner(self, name: str) -> "Place":
        """Return the place of a table inside this one."""
        shown = name if re.fullmatch(r"[A-Za-z0-9_-]+", name, re.ASCII) else f'"{name}"'
        return Place(self.file, f"{self.table}.{shown}" if self.table else shown)

    def fault(self, field: str, what: str, hint: str = "") -> Invalid:
        """Return the error to raise for `field` of this table; an empty field means the table itself."""
        parts = [self.file, f"[{self.table}]" if self.table else "", field]
        return Invalid(f"{' '.join(part for part in parts if part)}: {what}", hint=hint)


class Table:
    """One table of a file; each field is taken once, and `close` refuses whatever was not taken."""

    __slots__ = ("_left", "place")

    def __init__(self, place: Place, values: Mapping[str, object]) -> None:
        self.place = place
        self._left = dict(values)

    def has(self, field: str) -> bool:
        """Say whether `field` is written and not yet taken."""
        return field in self._left

    def fault(self, field: str, what: str, hint: str = "") -> Invalid:
        """Return the error to raise for `field`."""
        return self.place.fault(field, what, hint)

    def close(self, known: str = "") -> None:
        """Raise `Invalid` for the first field that nobody asked for; `known` goes into the hint."""
        for field in self.names():
            raise self.fault(
                field, "unknown field", known or "remove it, or check its spelling in docs/packs.md"
            )

    def names(self) -> list[str]:
        """Return the fields that were not taken yet, in order."""
        return sorted(self._left)

    def take(self, field: str, kind: type[T], wanted: str) -> T:
        """Return the value of `field`, which must be exactly of `kind` (a boolean is no whole number)."""
        if field not in self._left:
            raise self.fault(field, "missing", f"write {field} = {wanted}")
        value = self._left.pop(field)
        if type(value) is not kind:
            raise self.fault(field, f"must be {wanted}, not {_named(value)}", f"write {field} = {wanted}")
        return value

    def text(
        self,
        field: str,
        *,
        pattern: re.Pattern[str] | None = None,
        wanted: str = '"a text"',
        bytes_max: int = 0,
    ) -> str:
        """Return a text that is there, not empty, printable, bounded and (where given) matches `pattern`."""
        value = self.take(field, str, wanted)
        return checked_text(self.place, field, value, pattern=pattern, wanted=wanted, bytes_max=bytes_max)

    def optional_text(
        self,
        field: str,
        *,
        pattern: re.Pattern[str] | None = None,
        wanted: str = '"a text"',
        bytes_max: int = 0,
    ) -> str | None:
        """Return what `text` returns, or None where the field is absent."""
        if field not in self._left:
            return None
        return self.text(field, pattern=pattern, wanted=wanted, bytes_max=bytes_max)

    def boolean(self, field: str, *, default: bool | None = None) -> bool:
        """Return true or false; the field must be there unless there is a default."""
        if default is not None and field not in self._left:
            return default
        return self.take(field, bool, "true or false")

    def integer(self, field: str, *, least: int, most: int, default: int | None = None) -> int:
        """Return an integer within `least..most`."""
        if default is not None and field not in self._left:
            return default
        value = self.take(field, int, f"a whole number from {least} to {most}")
        if not least <= value <= most:
            raise self.fault(
                field, f"{value} is outside {least} to {most}", "choose a value within these bounds"
            )
        return value

    def duration_us(
        self, field: str, *, most_us: int = DURATION_US_MAX, default_us: int | None = None
    ) -> int:
        """Return a duration in microseconds, written with its unit: "500ms", "30s", "10m", "24h", "7d"."""
        if default_us is not None and field not in self._left:
            return default_us
        value = self.take(field, str, 'a duration with its unit, such as "30s"')
        found = _DURATION.fullmatch(value)
        if found is None:
            raise self.fault(
                field, "is not a duration", 'write a whole number and ms, s, m, h or d: "500ms", "30s"'
            )
        duration = int(found.group(1)) * UNITS_US[found.group(2)]
        if not 0 < duration <= most_us:
            raise self.fault(
                field, f'"{value}" is out of bounds', f"more than 0 and at most {most_us // 1_000} ms"
            )
        return duration

    def optional_duration_us(self, field: str) -> int | None:
        """Return what `duration_us` returns, or None where the field is absent."""
        return self.duration_us(field) if field in self._left else None

    def choice(self, field: str, kind: type[E], *, default: E | None = None) -> E:
        """Return one member of an enumeration, written as its value."""
        if default is not None and field not in self._left:
            return default
        choices = ", ".join(f'"{member.value}"' for member in kind)
        value = self.take(field, str, f"one of {choices}")
        try:
            return kind(value)
        except ValueError:
            raise self.fault(field, "is not a known value", f"write one of {choices}") from None

    def texts(self, field: str, *, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Return a list of different texts, in the order written."""
        if default is not None and field not in self._left:
            return default
        values = self.take(field, list, "a list of texts")
        texts = tuple(checked_text(self.place, field, value, wanted="a list of texts") for value in values)
        if len(set(texts)) != len(texts):
            raise self.fault(field, "names one thing twice", "remove the repetition")
        return texts

    def array(self, field: str) -> list[object]:
        """Return a list as it is, empty where the field is absent."""
        if field not in self._left:
            return []
        values = self.take(field, list, "a list")
        return list(values)

    def table(self, field: str) -> "Table":
        """Return a table that must be there."""
        return Table(self.place.inner(field), self.take(field, dict, "a table"))

    def optional_table(self, field: str) -> "Table | None":
        """Return a table, or None where it is absent."""
        return self.table(field) if field in self._left else None

    def tables(self, field: str) -> list["Table"]:
        """Return an array of tables, empty where the field is absent."""
        found = []
        for index, values in enumerate(self.array(field)):
            if not isinstance(values, dict):
                raise self.fault(
                    field, f"must hold tables, not {_named(values)}", f"write [[{field}]] tables"
                )
            found.append(Table(Place(self.place.file, f"{self.place.inner(field).table}[{index}]"), values))
        return found

    def named_tables(self, field: str) -> dict[str, "Table"]:
        """Return the tables inside the table `field` by their (checked) names."""
        outer = self.optional_table(field)
        if outer is None:
            return {}
        for name in outer.names():
            checked_text(
                outer.place, "", name, pattern=NAME, wanted="lower-case names with dots", bytes_max=0
            )
        return {name: outer.table(name) for name in outer.names()}

    def text_map(self, field: str) -> dict[str, str]:
        """Return a table whose values are all texts, empty where the field is absent."""
        outer = self.optional_table(field)
        return {} if outer is None else {name: outer.text(name) for name in outer.names()}

    def scalar_map(self, field: str) -> dict[str, str | int | bool]:
        """Return a table of texts, whole numbers and booleans, empty where the field is absent."""
        outer = self.optional_table(field)
        return {} if outer is None else {name: outer.scalar(name) for name in outer.names()}

    def scalar(self, field: str) -> str | int | bool:
        """Return a text (it may be empty), a whole number or a boolean."""
        value = self._left.get(field)
        if isinstance(value, str):
            text = self.take(field, str, "a text")
            return checked_text(self.place, field, text, wanted="a text", empty_allowed=True)
        if isinstance(value, bool):
            return self.take(field, bool, "true or false")
        value = self.take(field, int, "a text, a whole number, true or false")
        if abs(value) > _INTEGER_MAX:
            raise self.fault(field, "is beyond what every JSON reader holds exactly", "write it as a text")
        return value


def checked_text(
    place: Place,
    field: str,
    value: object,
    *,
    pattern: re.Pattern[str] | None = None,
    wanted: str,
    bytes_max: int = 0,
    empty_allowed: bool = False,
) -> str:
    """Return `value` when it is a fit text for `field`; raise an `Invalid` that names the place otherwise."""
    try:
        text = check_text("the text", value, bytes_max or LIMITS.key_bytes_max, empty_allowed=empty_allowed)
    except Invalid as fault:
        raise place.fault(field, fault.message, f"write {wanted}") from None
    if pattern is not None and pattern.fullmatch(text) is None:
        raise place.fault(field, f"{text!r} is not spelled as it must be", f"write {wanted}")
    return text


def read_toml(raw: bytes, file: str) -> Table:
    """Return the top table of a TOML document; raises `Invalid`, with the line, for anything else."""
    place = Place(file)
    if len(raw) > LIMITS.document_bytes_max:
        raise place.fault("", f"has {len(raw)} bytes; at most {LIMITS.document_bytes_max} are allowed")
    try:
        return Table(place, tomllib.loads(raw.decode()))
    except UnicodeDecodeError as fault:
        raise place.fault("", f"is not UTF-8 at byte {fault.start}", "save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as fault:
        raise place.fault("", f"is not TOML: {fault}", "see https://toml.io for the grammar") from None
    except RecursionError:
        raise place.fault("", "is nested too deeply", "flatten it") from None


def _named(value: object) -> str:
    names = {str: "a text", bool: "a boolean", int: "a whole number", float: "a fraction", list: "a list"}
    return names.get(type(value), "a table" if isinstance(value, Mapping) else f"a {type(value).__name__}")
