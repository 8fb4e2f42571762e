"""What commands print: for people with colours and columns, for programs as one JSON document."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from doonce.app.operate.gap_model import GapView
from doonce.app.operate.model import Moment, Pruned, Status, Timeline, when
from doonce.work.claimers import KNOWS

PIPED_COLUMNS: Final = 200
"""Where nobody's terminal says how wide it is, an id is never cut."""

GOOD: Final = ("accepted", "succeeded", "ACCEPTED", "effect_proven", "active", "connected", "open")
BAD: Final = ("dead", "rejected", "REJECTED", "unknown", "UNKNOWN", "quarantined", "closed", "cannot")


def console() -> Console:
    """A console on standard output, wide enough for ids when it is no terminal."""
    stdout = sys.stdout
    width = None if stdout.isatty() else PIPED_COLUMNS
    return Console(file=stdout, width=width, highlight=False, soft_wrap=False)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def print_timeline(out: Console, timeline: Timeline) -> None:
    """What it is, where it stands, and each durable step with its time, id and reason."""
    out.print(f"[bold]{timeline.kind}[/bold] {escape(timeline.id)}  {_coloured(timeline.state)}")
    for name, value in timeline.facts.items():
        out.print(f"  [dim]{name:<10}[/dim] {escape(value)}", soft_wrap=True)
    print_moments(out, timeline.moments)


def print_moments(out: Console, moments: tuple[Moment, ...]) -> None:
    """The steps, one a line."""
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=True)
    for column in ("time", "event", "id"):
        table.add_column(column, no_wrap=True)
    table.add_column("detail", overflow="fold")
    for moment in moments:
        who = f" [dim]{escape(_short(moment.who))}[/dim]" if moment.who else ""
        table.add_row(
            f"[dim]{when(moment.at_us)[11:]}[/dim]",
            _coloured(moment.event),
            escape(moment.id),
            f"{escape(moment.detail)}{who}",
        )
    out.print(table)


def print_status(out: Console, status: Status) -> None:
    """How a deployment stands."""
    out.print(f"[bold]database[/bold]  {escape(status.database)}  at {when(status.now_us)}")
    out.print(f"[bold]dispatch[/bold]  {_coloured(status.dispatch)}")
    table = Table(box=None, padding=(0, 2))
    for name in ("family", "owner", "epoch", "state", "waiting", "oldest due"):
        table.add_column(name, justify="right" if name in ("epoch", "waiting", "oldest due") else "left")
    for family in status.families:
        waiting = f"{family.waiting}{'+' if family.bounded else ''}"
        table.add_row(
            family.family,
            escape(family.owner),
            str(family.epoch),
            _coloured(family.ownership),
            waiting,
            f"{family.oldest_due_us / 1e6:.1f} s",
        )
    out.print(table)
    for family in (one for one in status.families if one.newer):
        out.print(
            f"[bold yellow]{family.family}: {family.newer} need a later release of doonce[/bold yellow]; "
            "start its workers, none of this one touches them"
        )
    print_deliveries(out, status)
    print_retention(out, status)
    if not status.unknown:
        out.print("no outcome is unknown")
        return
    more = "+" if status.unknown_more else ""
    out.print(f"[bold yellow]{len(status.unknown)}{more} outcomes that nobody knows[/bold yellow]")
    for one in status.unknown:
        asks = "[bold red]needs an operator[/bold red]" if one.needs_operator else "being looked into"
        out.print(f"  {one.attempt_id}  {escape(one.operation)}  since {when(one.since_us)}  {asks}")
        out.print(f"    [dim]{escape(one.command_id)}  {escape(one.reason)}[/dim]", soft_wrap=True)
    out.print(
        "next: doonce show ATTEMPT, then doonce resolve ATTEMPT happened|not-happened|resend|superseded"
    )


def printable(raw: bytes) -> str:
    """Somebody else's bytes as text that does nothing to a terminal."""
    text = raw.decode("utf-8", "backslashreplace")
    return "".join(one if one.isprintable() or one in "\n\t" else repr(one)[1:-1] for one in text)


def print_deliveries(out: Console, status: Status) -> None:
    """How receiving stands."""
    found = status.deliveries
    more = ", counted up to a bound" if found.bounded else ""
    out.print(
        f"[bold]received[/bold]  {found.received} deliveries and {found.events} events in a day, "
        f"{found.quarantined} quarantined{more}"
    )
    if found.turned_away:
        reasons = ", ".join(f"{one.reason} {one.count}" for one in found.turned_away)
        out.print(f"[bold]refused[/bold]   {escape(reasons)}", soft_wrap=True)
    for receipt_id in found.newest_quarantined:
        out.print(f"  {receipt_id}  [red]quarantined[/red]", soft_wrap=True)
    for gap in status.gaps:
        where = f"{gap.org} / {gap.installation} / {gap.capability} / {gap.webhook}"
        out.print(
            f"[bold yellow]gap {gap.sequence}[/bold yellow]  {escape(where)}  {gap.losses} may be lost, "
            f"{when(gap.opened_at_us)} to {when(gap.last_at_us)}{_read_so_far(gap)}",
            soft_wrap=True,
        )
    if any(gap.needs_operator for gap in status.gaps):
        out.print(
            "next: doonce gap reconcile, or find at the provider what is missing, then doonce gap close"
        )


def _read_so_far(gap: GapView) -> str:
    found = gap.catch_up
    return "" if found is None else f"  {_coloured(found.state)}, {found.pages} pages"


def print_retention(out: Console, status: Status) -> None:
    """How the moving of ended work stands."""
    found = status.retention
    walked = f"{found.walked_us / 1e6:.0f} s ago" if found.walked_us is not None else "never"
    overdue = f", the oldest left behind ended {found.overdue_us / 1e6:.0f} s ago" if found.overdue_us else ""
    state = "" if found.enabled else " (switched off here)"
    out.print(
        f"[bold]history[/bold]   {found.moved} moved, last walk {walked}{overdue}{state}", soft_wrap=True
    )


def going(pruned: Pruned) -> str:
    """How much went, or would."""
    total = sum(pruned.moved.values())
    families = ", ".join(f"{family} {count}" for family, count in sorted(pruned.moved.items()))
    return f"{total} {'would move' if pruned.dry_run else 'moved'}{f' ({families})' if families else ''}"


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Something to say how far a command has come: one line that changes, where a person looks on."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with Console(stderr=True).status("…") as line:
        yield lambda text: line.update(escape(text))


def print_facts(out: Console, facts: dict[str, str]) -> None:
    """Names and values, one a line."""
    width = max((len(name) for name in facts), default=0)
    for name, value in facts.items():
        out.print(f"[dim]{name:<{width}}[/dim]  {escape(value)}", soft_wrap=True)


def _short(who: str) -> str:
    """A process is told from another by its last digits; people and deployments have names."""
    return f"by …{who.partition(KNOWS)[0][-6:]}" if who.startswith("prc_") else f"by {who}"


def _coloured(text: str) -> str:
    words = escape(text)
    if any(word in text for word in BAD):
        return f"[red]{words}[/red]"
    if any(word in text for word in GOOD):
        return f"[green]{words}[/green]"
    return words
