"""What every command takes, and how it opens the deployment."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Group, Parameter

from doonce.app import logs
from doonce.app.config import load_settings
from doonce.app.engine import Engine
from doonce.app.opening import open_engine
from doonce.app.proof import prove_schema
from doonce.app.settings import Settings
from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS
from doonce.base.secrets import Secret

RUNNING: Final = Group.create_ordered("Running")
CONNECTING: Final = Group.create_ordered("Connecting applications and providers")
OPERATING: Final = Group.create_ordered("Operating")
PROVING: Final = Group.create_ordered("Proving")

AsJson = Annotated[bool, Parameter(name="--json", negative="", help="Answer as one JSON document.")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Deployment:
    """Which deployment a command is about."""

    config: Annotated[Path | None, Parameter(help="The configuration file (DOONCE_CONFIG, doonce.toml).")] = (
        None
    )
    database: Annotated[str | None, Parameter(help="The database's URL, over the configuration's.")] = None

    def settings(self, **over: Any) -> Settings:
        """The settings of this process."""
        given = {name: value for name, value in over.items() if value is not None}
        if self.database is not None:
            given["database"] = self.database
        return load_settings(self.config, over=given)


@contextlib.asynccontextmanager
async def opened(deployment: Deployment) -> AsyncIterator[Engine]:
    """An engine that works on nothing, over a database whose schema is right; closed afterwards.

    The schema is proven first: a command about a database that is not there leaves no key file for it either.
    """
    settings = deployment.settings()
    logs.configure(settings.log_format)
    await prove_schema(settings.database)
    engine = open_engine(settings)
    try:
        yield engine
    finally:
        await engine.stop()


def read_secret(file: Path | None) -> Secret | None:
    """The secret that a file, or standard input (`-`), holds; never on the command line, where others read it."""
    if file is None:
        return None
    try:
        if str(file) == "-":
            raw = sys.stdin.buffer.read(LIMITS.secret_bytes_max + 2)
        else:
            with file.open("rb") as opened_file:
                raw = opened_file.read(LIMITS.secret_bytes_max + 2)
    except OSError as error:
        raise Invalid(
            f"the secret file {file} cannot be read: {error.strerror}",
            hint="check the path, or write - and pipe it in",
        ) from error
    secret = raw.rstrip(b"\r\n")
    if not secret:
        raise Invalid(
            f"the secret file {file} is empty", hint="put the secret into it, as the provider's page shows it"
        )
    return Secret(secret)
