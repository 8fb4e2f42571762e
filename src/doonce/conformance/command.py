"""`doonce conformance`: prove the protocol on a database of one's own (docs/conformance.md)."""

from __future__ import annotations

import logging
from typing import Annotated, Final

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from doonce.app import logs
from doonce.app.cli.options import AsJson
from doonce.app.cli.output import console, print_json
from doonce.app.settings import LogFormat
from doonce.conformance.model import Report, Status
from doonce.conformance.skew import SKEWS
from doonce.conformance.suite import run

DONE: Final = 0
FAILED: Final = 1
MARKS: Final = {Status.PASSED: "[green]passed[/green]", Status.FAILED: "[red]FAILED[/red]"}


async def conformance(
    url: str,
    /,
    *,
    case: Annotated[
        list[str] | None, Parameter(negative="", help="Only this case; may be given several times.")
    ] = None,
    also: Annotated[
        list[str] | None,
        Parameter(
            negative="",
            help="Another way to the same database, such as a node of its cluster; may be given several times. "
            "The worker processes are spread over all of them.",
        ),
    ] = None,
    skew: Annotated[
        bool,
        Parameter(
            negative="",
            help="Each worker process has another time of day and time zone, by libfaketime, which must be installed.",
        ),
    ] = False,
    json: AsJson = False,
) -> int:
    """Prove the protocol on a database: real processes, real kills, in a scratch place that is dropped afterwards.

    Parameters
    ----------
    url
        The database. On PostgreSQL a schema is made in it, on MariaDB a database beside it, on SQLite a file beside the
        file of the URL; nothing else is read or written.
    """
    logs.configure(LogFormat.CONSOLE, level=logging.CRITICAL)  # what a case provokes is no news
    skews = SKEWS if skew else ()
    if json:
        report = await run(url, case or (), also=also or (), skews=skews)
        print_json(report)
    else:
        waiting = Console(stderr=True)
        with waiting.status("making the scratch place") as status:
            report = await run(
                url,
                case or (),
                lambda one: status.update(f"{one.id}: {escape(one.title)}"),
                also=also or (),
                skews=skews,
            )
        print_report(console(), report)
    return FAILED if report.failed else DONE


def print_report(out: Console, report: Report) -> None:
    """The cases, what the failed ones saw, and what this release cannot be asked yet."""
    table = Table(box=None, padding=(0, 2), title=f"conformance on {report.engine}", title_justify="left")
    table.add_column("case", no_wrap=True)
    table.add_column("status")
    table.add_column("seconds", justify="right")
    table.add_column("what holds", overflow="fold")
    for one in report.cases:
        table.add_row(one.id, MARKS[one.status], f"{one.seconds:.1f}", escape(one.title))
    out.print(table)
    for one in report.cases:
        if one.seen:
            out.print(f"[red]{one.id}[/red]  {escape(one.seen)}", soft_wrap=True)
    if report.not_run:
        out.print(f"not run: {', '.join(one.id for one in report.not_run)}")
        for reason in sorted({one.reason for one in report.not_run}):
            out.print(f"  {escape(reason)}", soft_wrap=True)
    if report.not_built:
        missing = Table(box=None, padding=(0, 2), title="not built yet, so not proven", title_justify="left")
        missing.add_column("mechanism", no_wrap=True)
        missing.add_column("what it would have to hold", overflow="fold")
        for line in report.not_built:
            missing.add_row(escape(line.mechanism), escape(line.line))
        out.print(missing)
    failed = f"[red]{report.failed} failed[/red]" if report.failed else "0 failed"
    not_run = f", {len(report.not_run)} not run" if report.not_run else ""
    out.print(f"{report.passed} passed, {failed}{not_run}, {len(report.not_built)} lines not built yet")
