"""Commands about deliveries that may be lost: list open gaps, and close one."""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import App, Parameter

from doonce.app.cli.options import OPERATING, AsJson, Deployment, opened
from doonce.app.cli.output import console, print_facts, print_json
from doonce.app.operate.model import Gaps, when
from doonce.app.operate.service import Operator
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
        out.print(
            f"{gap.org} {gap.installation} {gap.capability} {gap.webhook}  --sequence {gap.sequence} --losses "
            f"{gap.losses}  {when(gap.opened_at_us)} to {when(gap.last_at_us)}",
            markup=False,
            soft_wrap=True,
        )
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
