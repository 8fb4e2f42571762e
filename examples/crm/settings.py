"""The application's configuration: one TOML file, read once at start."""

import tomllib
from pathlib import Path

import msgspec

from doonce.base.errors import Invalid
from doonce.base.secrets import Secret
from doonce.wire import HandoffScope


class Listen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the completion inbox listens; port 0 takes a free one."""

    host: str = "127.0.0.1"
    port: int = 8201


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`database` is a SQLAlchemy URL; credentials are in files of their own, named relative to this one."""

    database: str
    service: str
    service_credential_file: str
    inbox_credential_file: str
    operation: str
    scope: HandoffScope
    listen: Listen = msgspec.field(default_factory=Listen)
    idle_ms: int = 500
    retry_cap_ms: int = 300_000


def load(path: Path) -> Settings:
    """Return the settings in `path`; raise `Invalid`, which names what is wrong, for any other content."""
    try:
        settings = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Settings)
    except OSError as missing:
        raise Invalid(f"cannot read {path}: {missing.strerror}") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as wrong:
        raise Invalid(f"{path}: {wrong}", hint="see examples/crm/crm.example.toml") from None
    folder = path.parent
    return msgspec.structs.replace(
        settings,
        service_credential_file=str(folder / settings.service_credential_file),
        inbox_credential_file=str(folder / settings.inbox_credential_file),
    )


def credential(path: str) -> Secret:
    """Return the credential that a file holds, without the line's end."""
    try:
        return Secret(Path(path).read_bytes().strip())
    except OSError as missing:
        raise Invalid(f"cannot read the credential in {path}: {missing.strerror}") from None
