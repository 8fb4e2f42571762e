"""The one configuration, read once at start: a TOML file, then `DOONCE_*` of the environment over it.

    DOONCE_CONFIG=/etc/doonce.toml            which file; without it `doonce.toml` here, if there is one
    DOONCE_DATABASE=postgresql://…            a setting of the top
    DOONCE_LISTEN__PORT=8080                  two underscores open a table
    DOONCE_INBOXES__CRM__CREDENTIAL=…         and into a named one
    DOONCE_ROLES=worker,reconciler            a list, with commas

Whatever is not known is refused: a setting that is misspelt would otherwise be a setting that is not made.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from doonce.app.settings import Settings
from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS
from doonce.base.secrets import Secret

PREFIX: Final = "DOONCE_"
FILE_VARIABLE: Final = "DOONCE_CONFIG"
DEFAULT_FILE: Final = "doonce.toml"
FOREIGN: Final = ("DOONCE_TEST_",)
"""Variables that belong to the project's own tests, not to a deployment."""

Document: TypeAlias = dict[str, Any]


class Where(Protocol):
    """Says in words where a setting was written."""

    def __call__(self, path: tuple[str, ...], /) -> str: ...


def load_settings(
    path: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    over: Mapping[str, Any] | None = None,
) -> Settings:
    """Return the settings of this process.

    `over` are settings that a command line gives; they win over the environment, which wins over the file. Raises one
    `Invalid` that names the file or variable, the key, and what to write instead.
    """
    variables = dict(os.environ if environment is None else environment)
    file = path or _file_of(variables)
    document = {} if file is None else _read(file)
    origins: dict[tuple[str, ...], str] = {}
    _check_known(document, Settings, (), lambda _: str(file))
    for name, text in sorted(variables.items()):
        if name.startswith(PREFIX) and name != FILE_VARIABLE and not name.startswith(FOREIGN):
            at = tuple(part.lower() for part in name.removeprefix(PREFIX).split("__"))
            _put(document, at, _from_text(name, text, at), name)
            origins[at] = name
    for key, value in (over or {}).items():
        _put(document, tuple(key.split(".")), value, "the command line")
        origins[tuple(key.split("."))] = "the command line"

    def where(at: tuple[str, ...]) -> str:
        return origins.get(at) or (str(file) if file is not None else "the configuration")

    return _converted(document, where)


def _file_of(variables: Mapping[str, str]) -> Path | None:
    named = variables.get(FILE_VARIABLE)
    if named:
        return Path(named)
    default = Path(DEFAULT_FILE)
    return default if default.exists() else None


def _read(file: Path) -> Document:
    try:
        with file.open("rb") as opened:
            raw = opened.read(LIMITS.document_bytes_max + 1)
    except OSError as error:
        raise Invalid(
            f"the configuration {file} cannot be read: {error.strerror}",
            hint=f"name another one with --config or {FILE_VARIABLE}",
        ) from error
    if len(raw) > LIMITS.document_bytes_max:
        raise Invalid(f"the configuration {file} is over {LIMITS.document_bytes_max} bytes")
    try:
        return tomllib.loads(raw.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"the configuration {file} is not TOML: {error}") from None


# --- unknown names ------------------------------------------------------------------------------------------------


def fields_of(kind: Any) -> dict[str, Any]:
    """The settings of a struct or dataclass, name → type; empty for a single value."""
    if isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)):
        return get_type_hints(kind)
    return {}


def _entry_type(kind: Any) -> Any | None:
    """The type of a named table's entries, when `kind` is a mapping of them."""
    return get_args(kind)[1] if get_origin(kind) is dict else None


def _check_known(value: Any, kind: Any, at: tuple[str, ...], where: Where) -> None:
    """Refuse names that no setting has; wrong types are found later, by the conversion.

    But for numbers that are named by the deployment: the conversion could not say which of them it is.
    """
    if not isinstance(value, Mapping):
        return
    entry = _entry_type(kind)
    if entry is not None:
        for name, inner in value.items():
            if entry is int and type(inner) is not int:
                raise Invalid(f"{where(at)}: {'.'.join((*at, name))} is no {_word(int)}")
            _check_known(inner, entry, (*at, name), where)
        return
    known = fields_of(kind)
    for name, inner in value.items():
        if name not in known:
            raise _unknown(where(at), (*at, name), known)
        _check_known(inner, known[name], (*at, name), where)


def _unknown(where: str, at: tuple[str, ...], known: Mapping[str, Any]) -> Invalid:
    near = difflib.get_close_matches(at[-1], known, n=1)
    choices = f"did you mean {near[0]!r}?" if near else f"one of {', '.join(sorted(known))}"
    return Invalid(f"{where}: there is no setting {'.'.join(at)!r}", hint=choices if known else "remove it")


# --- the environment ----------------------------------------------------------------------------------------------


def _from_text(variable: str, text: str, at: tuple[str, ...]) -> Any:
    """The value that a variable's text is for the type of its setting."""
    kind: Any = Settings
    for depth, name in enumerate(at):
        entry = _entry_type(kind)
        known = fields_of(kind)
        if entry is None and name not in known:
            raise _unknown(variable, at[: depth + 1], known)
        kind = entry if entry is not None else known[name]
    if fields_of(kind) or _entry_type(kind) is not None:
        raise Invalid(f"{variable}: {'.'.join(at)} is a table", hint=f"name a setting in it: {variable}__…")
    if get_origin(kind) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    bases = [one for one in (get_args(kind) or (kind,)) if one is not type(None)]
    if bases[0] in (int, float, bool):
        try:
            return msgspec.convert(text, bases[0], strict=False)
        except msgspec.ValidationError:
            raise Invalid(f"{variable}: {text!r} is no {_word(bases[0])}") from None
    return text


def _word(kind: type) -> str:
    return {int: "whole number", float: "number", bool: "true or false"}.get(kind, kind.__name__)


def _put(document: Document, at: tuple[str, ...], value: Any, origin: str) -> None:
    table = document
    for name in at[:-1]:
        inner = table.setdefault(name, {})
        if not isinstance(inner, dict):
            raise Invalid(f"{origin}: {name!r} is not a table in the file")
        table = inner
    table[at[-1]] = value


def settings_from(given: Mapping[str, Any]) -> Settings:
    """Return the settings that code gives, by the names of the file; checked alike, and nothing else is read."""
    _check_known(given, Settings, (), lambda _: "the given settings")
    return _converted(dict(given), lambda _: "the given settings")


# --- types and bounds ---------------------------------------------------------------------------------------------


def _completed(table: Mapping[str, Any], defaults: Any) -> Document:
    """The table with what it leaves out: the defaults of its place, as documented, and not those of its type."""
    whole = dict(table)
    for name in fields_of(type(defaults)):
        default, given = getattr(defaults, name), table.get(name)
        if isinstance(given, Mapping):
            whole[name] = _completed(given, default)
        elif name not in table and type(default) in (bool, int, float, str):
            whole[name] = default
    return whole


def _converted(document: Document, where: Where) -> Settings:
    try:
        settings = msgspec.convert(_completed(document, Settings()), Settings, strict=True, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise _refused(str(error), where) from None
    settings.check()
    return settings


def _refused(message: str, where: Where) -> Invalid:
    """msgspec says `… - at `$.a.b``; say it as file, key and what is wrong."""
    what, _, at = message.partition(" - at `$")
    path = tuple(part for part in at.rstrip("`").split(".") if part)
    what = what.replace("Object missing required field", "missing setting").replace("`", "'")
    what = what.replace("got 'str'", "got a text").replace("Expected 'str'", "expected a text")
    name = f" {'.'.join(path)}:" if path else ""
    return Invalid(
        f"{where(path)}:{name} {what[:1].lower() + what[1:]}", hint="docs/settings.md has each setting"
    )


def _decode(kind: type, value: Any) -> Any:
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    if kind is Path and isinstance(value, str) and value:
        return Path(value)
    if isinstance(value, kind):
        return value
    raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
