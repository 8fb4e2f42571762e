"""docs/settings.md has one line for each setting, with the default that the code has, and none for what is gone."""

import re
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from doonce.app.config import fields_of
from doonce.app.settings import InboxSettings, Settings
from doonce.work.fairness import Room
from doonce.work.model import Scope

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"
ROW = re.compile(r"^\| `([a-zA-Z0-9_.]+)` \| ([^|]*) \| ([^|]*) \| ([^|]+) \|$")


def shown(value: Any) -> str:
    """A default as the page spells it."""
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return ", ".join(shown(one) for one in value)
    if isinstance(value, int | float):
        return f"{value:_}" if isinstance(value, int) else str(value)
    return str(value)


def settings_of(value: Any, at: str = "") -> dict[str, str]:
    """Every setting below `value`, dotted, with its default as it is spelled."""
    found: dict[str, str] = {}
    for name in fields_of(type(value)):
        inner = getattr(value, name)
        if fields_of(type(inner)):
            found |= settings_of(inner, f"{at}{name}.")
        elif name == "inboxes":
            found |= {f"{at}{name}.NAME.{field.name}": entry_default(field) for field in inbox_fields()}
        elif name == "weights":
            found[f"{at}{name}.NAME"] = shown(Room().weight(Scope("of nobody", "main")))
        else:
            found[f"{at}{name}"] = shown(inner)
    return found


def inbox_fields() -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(InboxSettings)


def entry_default(field: msgspec.structs.FieldInfo) -> str:
    return "must be given" if field.default is msgspec.NODEFAULT else shown(field.default)


def documented() -> dict[str, tuple[str, str, str]]:
    rows = [match for line in PAGE.read_text().splitlines() if (match := ROW.match(line))]
    names = [match.group(1) for match in rows]
    assert len(set(names)) == len(names), "a setting has two lines"
    return {match.group(1): (match.group(2), match.group(3), match.group(4)) for match in rows}


def test_each_setting_has_its_line_and_each_line_its_setting() -> None:
    assert set(documented()) == set(settings_of(Settings()))


def test_the_defaults_are_those_of_the_code() -> None:
    page = {name: default.strip().strip("`") for name, (_, default, _) in documented().items()}
    assert page == settings_of(Settings())


def test_each_line_has_a_unit_and_a_reason() -> None:
    for name, (unit, _, reason) in documented().items():
        assert unit.strip(), f"{name} has no unit"
        assert len(reason.split()) >= 3, f"{name} has no reason"


def test_times_say_their_unit_in_their_name() -> None:
    units = {"us": "µs", "ns": "ns", "ms": "ms", "seconds": "s"}
    for name, (unit, _, _) in documented().items():
        suffix = (
            name.rpartition("_")[2]
            if not name.endswith("_max")
            else name.removesuffix("_max").rpartition("_")[2]
        )
        if suffix in units:
            assert unit.strip() == units[suffix], f"{name} is in {units[suffix]}"
