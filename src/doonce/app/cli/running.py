"""Commands that run something: up, serve, migrate, demo."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Final

import uvloop
from cyclopts import Parameter

from doonce.app import logs
from doonce.app.cli.options import AsJson, Deployment
from doonce.app.cli.output import print_json
from doonce.app.opening import sqlite_file
from doonce.app.proof import migrate_database
from doonce.app.serve import serve as serve_until_stopped
from doonce.app.settings import Role, Settings
from doonce.base.errors import Invalid
from doonce.db.database import safe_url

HERE: Final = Deployment()
DEMO: Final = "examples.demo"


def up(*, deployment: Deployment = HERE, port: int | None = None) -> None:
    """Run everything in this one process, until stopped: API, workers, reconciler.

    SQLite is migrated first; a server's database has to be migrated before (`doonce migrate`).

    Parameters
    ----------
    port
        Where the HTTP side listens (listen.port); 0 takes a free one. The address is the first line printed.
    """
    settings = deployment.settings(**{"listen.port": port, "roles": [role.value for role in Role]})
    if sqlite_file(settings.database) is not None:
        asyncio.run(migrate_database(settings))
    _serve(settings)


def serve(
    *,
    deployment: Deployment = HERE,
    role: Annotated[tuple[Role, ...], Parameter(negative="")] = (),
    port: int | None = None,
) -> None:
    """Run some roles of a deployment, until stopped. Any number of processes share one database.

    Parameters
    ----------
    role
        api, worker, reconciler; may be given several times (the configuration's roles by default).
    port
        Where the HTTP side listens (listen.port); 0 takes a free one.
    """
    roles = [one.value for one in role] or None
    _serve(deployment.settings(**{"listen.port": port, "roles": roles}))


def _serve(settings: Settings) -> None:
    logs.configure(settings.log_format)
    uvloop.run(serve_until_stopped(settings, _announce))


def _announce(address: str) -> None:
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()


def migrate(
    *,
    deployment: Deployment = HERE,
    after: Annotated[bool, Parameter(negative="")] = False,
    json: AsJson = False,
) -> None:
    """Bring the database's schema up to this release. Safe to run twice, and beside processes of the release before.

    Parameters
    ----------
    after
        No process of an older release is left: take away what only they needed, too. Refused while one is seen at work.
    """
    settings = deployment.settings()
    if not json:
        sys.stderr.write(f"migrating {safe_url(settings.database)} …\n")
    report = asyncio.run(migrate_database(settings, after=after))
    if json:
        print_json(
            {
                "database": safe_url(settings.database),
                "before": report.before,
                "after": report.after,
                "open": report.open,
            }
        )
        return
    done = f"applied {', '.join(report.applied)}" if report.applied else "nothing to do"
    sys.stdout.write(f"{done}; the schema is {report.after}\n")
    if report.open:
        sys.stdout.write(
            f"{', '.join(report.open)} wait until no process of an older release runs: `doonce migrate --after`\n"
        )


def demo(*, keep: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Watch the guarantees hold: five stories on SQLite, with real processes that are killed. About a minute.

    Parameters
    ----------
    keep
        Leave everything running at the end, and say where.
    """
    root = _checkout()
    command = [sys.executable, "-m", DEMO, *(["--keep"] if keep else [])]
    os.chdir(root)
    os.execv(sys.executable, command)  # noqa: S606 (our own module, without a shell)


def _checkout() -> Path:
    """The demo's parts (simulator, example application, packs) are in the source tree, not in the package."""
    for root in (Path.cwd(), Path(__file__).parents[4]):
        if root.joinpath(*DEMO.split("."), "__main__.py").exists():
            return root
    raise Invalid(
        "the demo is part of the source tree, and this is not one",
        hint="clone the repository and run `make demo` there",
    )
