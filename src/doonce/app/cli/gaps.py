"""Commands about deliveries that may be lost: list open gaps, close one, and have a provider read for them."""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final

from cyclopts import App, Parameter

from doonce.app.cli.options import OPERATING, AsJson, Deployment, opened
from doonce.app.cli.output import console, print_facts, print_json
from doonce.app.operate.gap_model import Gaps, GapView
from doonce.app.operate.gaps import Reconcile
from doonce.app.operate.model import EPOCH, when
from doonce.app.operate.service import Operator
from doonce.base.errors import Invalid
from doonce.ingress.gaps import CloseGap
from doonce.ingress.receipts import RouteKey

HERE: Final = Deployment()

gap_app = App(
    name="gap",
    group=OPERATING,
    help="Time in which deliveries may have been lost, of providers that send once.",
)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class LookedInto:
    """What somebody looked into, and what they say about it."""

    sequence: Annotated[int, Parameter(help="The gap's number at its route (`doonce gap list`).")]
    losses: Annotated[
        int, Parameter(help="How many losses you looked into; refused when there are more by now.")
    ]
    reason: Annotated[str, Parameter(help="How you know, and what you did about them.")]
    who: Annotated[str | None, Parameter(help="Who says so; this user by default.")] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ToRead:
    """What is to be read: an open gap by its number, or a time."""

    reason: Annotated[str, Parameter(help="Why it is to be read.")]
    sequence: Annotated[
        int | None, Parameter(help="An open gap's number at its route: its reading starts again.")
    ] = None
    since: Annotated[
        str | None, Parameter(help="Since when deliveries may be missing: 2026-01-31T10:00:00Z.")
    ] = None
    until: Annotated[str | None, Parameter(help="Until when; now by default.")] = None
    who: Annotated[str | None, Parameter(help="Who asks; this user by default.")] = None


@gap_app.command(name="list")
async def list_gaps(*, deployment: Deployment = HERE, json: AsJson = False) -> None:
    """List open gaps, the oldest first."""
    async with opened(deployment) as engine:
        found = await Operator(engine).gaps()
    if json:
        print_json(Gaps(gaps=found))
        return
    out = console()
    for gap in found:
        out.print(_line(gap), markup=False, soft_wrap=True)
        if gap.catch_up is not None:
            out.print(f"    {_reading(gap)}", markup=False, soft_wrap=True)
    if not found:
        out.print("no gap is open")


@gap_app.command
async def close(
    org: str,
    installation: str,
    capability: str,
    webhook: str,
    /,
    *,
    looked: LookedInto,
    deployment: Deployment = HERE,
    json: AsJson = False,
) -> None:
    """Record that the losses of a gap were looked into. It stays for ever; what is lost later opens the next gap."""
    route = RouteKey(org, installation, capability, webhook)
    asked = CloseGap(route, looked.sequence, looked.losses, looked.who or getpass.getuser(), looked.reason)
    async with opened(deployment) as engine:
        closed = await Operator(engine).close_gap(asked)
    if json:
        print_json(closed)
        return
    print_facts(
        console(),
        {
            "gap": f"{' / '.join(route.parts)} {closed.sequence}",
            "losses": str(closed.losses),
            "closed": f"{when(closed.closed_at_us)} by {closed.closed_by}",
            "reason": closed.reason or "",
        },
    )


@gap_app.command
async def reconcile(
    org: str,
    installation: str,
    capability: str,
    webhook: str,
    /,
    *,
    wanted: ToRead,
    deployment: Deployment = HERE,
    json: AsJson = False,
) -> None:
    """Have the provider read for a gap once more, or for a time in which no process ran.

    It makes the events that are missing, once each, and closes the gap when all of it has been read. A time becomes a
    gap of its own, with who asked and why.
    """
    asked = Reconcile(
        RouteKey(org, installation, capability, webhook),
        wanted.who or getpass.getuser(),
        wanted.reason,
        wanted.sequence,
        _us("since", wanted.since),
        _us("until", wanted.until),
    )
    async with opened(deployment) as engine:
        gap = await Operator(engine).reconcile_gap(asked)
    if json:
        print_json(gap)
        return
    print_facts(
        console(),
        {
            "gap": f"{' / '.join(asked.route.parts)} {gap.sequence}",
            "time": f"{when(gap.opened_at_us)} to {when(gap.last_at_us)}",
            "catch-up": gap.catch_up.catch_up_id if gap.catch_up is not None else "-",
        },
    )


def _us(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise Invalid(f"--{name} is no time with its zone", hint='write "2026-01-31T10:00:00Z"')
    return (moment - EPOCH) // timedelta(microseconds=1)


def _line(gap: GapView) -> str:
    asked = f"  asked for by {gap.asked_by}: {gap.asked_why}" if gap.asked_by is not None else ""
    return (
        f"{gap.org} {gap.installation} {gap.capability} {gap.webhook}  --sequence {gap.sequence} --losses "
        f"{gap.losses}  {when(gap.opened_at_us)} to {when(gap.last_at_us)}{asked}"
    )


def _reading(gap: GapView) -> str:
    """How far it has been read, and what to do where that has ended for nothing."""
    found = gap.catch_up
    if found is None:
        return ""
    told = f"{found.catch_up_id}  {found.state}  {found.pages} pages, {found.items} items, {found.events} new"
    said = f"{told}  {found.reason}" if found.reason else told
    return f"{said}  (doonce gap reconcile starts it again)" if found.dead else said
