"""Packs and bindings from a folder: the only place in this folder that reads files."""

from pathlib import Path
from typing import Final

from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS
from doonce.catalog.binding import read_binding
from doonce.catalog.model import Binding, Pack
from doonce.catalog.pack import read_pack

PACK_FILE: Final = "pack.toml"
SCHEMA_FOLDER: Final = "schemas"


def load_pack(folder: Path) -> Pack:
    """Return the pack in `folder`: its `pack.toml` and its `schemas/*.json`.

    Raises `Invalid`, which names the file, for one that is missing or over its bound, and as `read_pack`
    does.
    """
    schemas = {path.name: _read(path) for path in sorted((folder / SCHEMA_FOLDER).glob("*.json"))}
    return read_pack(_read(folder / PACK_FILE), schemas, file=str(folder / PACK_FILE))


def load_binding(path: Path) -> Binding:
    """Return the binding in a TOML file; raises `Invalid` as `load_pack` does."""
    return read_binding(_read(path), file=str(path))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(LIMITS.document_bytes_max + 1)
    except OSError as fault:
        raise Invalid(f"{path}: cannot be read ({fault.strerror})", hint="check the path") from fault
    if len(raw) > LIMITS.document_bytes_max:
        raise Invalid(f"{path}: is over {LIMITS.document_bytes_max} bytes")
    return raw
