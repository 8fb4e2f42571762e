"""Commands of the operator: status, show, cancel, resolve, replay, release, declare, prune, rewrap."""

from __future__ import annotations

import getpass
from enum import Enum
from typing import Annotated, Final

from cyclopts import Parameter

from doonce.app.cli.options import AsJson, Deployment, opened
from doonce.app.cli.output import (
    console,
    going,
    print_facts,
    print_json,
    print_status,
    print_timeline,
    printable,
    progress,
)
from doonce.app.operate.model import CommandView, Decision, ReplayView, WorkView
from doonce.app.operate.service import Operator
from doonce.app.proof import declare_incarnation, look_at_dispatch
from doonce.db.incarnation import Declaration

HERE: Final = Deployment()


class Declared(str, Enum):
    """What an operator says about a database that may not be the one of before, or about its clock."""

    LOSSLESS = Declaration.LOSSLESS.value
    LOSSY = Declaration.LOSSY.value
    CLOCK = Declaration.CLOCK.value


async def status(*, deployment: Deployment = HERE, json: AsJson = False) -> None:
    """How the deployment stands: what waits and for how long, who owns it, and what nobody knows."""
    async with opened(deployment) as engine:
        await look_at_dispatch(engine, deployment.settings())
        found = await Operator(engine).status()
    if json:
        print_json(found)
    else:
        print_status(console(), found)


async def show(
    what: str,
    /,
    *,
    body: Annotated[
        bool,
        Parameter(
            negative="",
            help="Also the raw body of a delivery or page. That it was read is logged.",
        ),
    ] = False,
    deployment: Deployment = HERE,
    json: AsJson = False,
) -> None:
    """The story of anything: each durable step with its time, id and reason. No body, unless it is asked for.

    Parameters
    ----------
    what
        An id (cmd_…, wrk_…, att_…, obx_…, hnd_…, ing_…, evt_…, ctu_…, pag_…, lnk_…, prn_…), an application's outbox id,
        or a handoff key.
    """
    async with opened(deployment) as engine:
        operator = Operator(engine)
        found = await operator.show(what)
        raw = await operator.body(what, who=getpass.getuser()) if body else None
    if json:
        print_json({"timelines": found} if raw is None else {"timelines": found, "body": raw})
        return
    out = console()
    for timeline in found:
        print_timeline(out, timeline)
    if raw is not None:
        out.print(printable(raw.raw), markup=False, soft_wrap=True)


async def cancel(command: str, /, *, deployment: Deployment = HERE, json: AsJson = False) -> None:
    """Cancel a command that waits; ask the one that runs to stop before its call."""
    async with opened(deployment) as engine:
        view = await Operator(engine).cancel(command)
    _print_command(view, json=json)


async def resolve(
    attempt: str,
    decision: Decision,
    /,
    *,
    reason: str,
    who: Annotated[str | None, Parameter(help="Who decides; this user by default.")] = None,
    deployment: Deployment = HERE,
    json: AsJson = False,
) -> None:
    """Record what you found out about an attempt that nobody knows the outcome of. It stays for ever.

    Parameters
    ----------
    attempt
        The attempt in question (`doonce status` lists them).
    decision
        happened: the effect is there, the command was accepted. not-happened: it is not, and is not wanted any more.
        resend: it is not there, send it again. superseded: something newer took its place.
    reason
        How you know; the application's operators will read it.
    """
    async with opened(deployment) as engine:
        view = await Operator(engine).resolve(attempt, decision, who=who or getpass.getuser(), reason=reason)
    _print_command(view, json=json)


async def replay(work: str, /, *, deployment: Deployment = HERE, json: AsJson = False) -> None:
    """Do dead work once more: tell an application, look into an unknown outcome, read a delivery.

    Parameters
    ----------
    work
        The dead completion, reconciliation, derivation, event's or page's work (wrk_…, `doonce show` has it), or the
        delivery's receipt (ing_…). An effect is never run again: emit a new intent.
    """
    async with opened(deployment) as engine:
        view = await Operator(engine).replay(work)
    if json:
        print_json(view)
        return
    about = _about(view)
    facts = {"work": view.work_id, "replays": view.replay_of, "family": view.family} | about
    print_facts(console(), {name: text for name, text in facts.items() if text})


async def release(
    work: str,
    /,
    *,
    reason: str,
    who: Annotated[str | None, Parameter(help="Who decides; this user by default.")] = None,
    deployment: Deployment = HERE,
    json: AsJson = False,
) -> None:
    """Let what waits behind ended work in its source lane go on without it.

    Parameters
    ----------
    work
        The dead work that blocks (wrk_…, `doonce show` has it). It stays as it is.
    reason
        Why the order may be broken here; it stays with the work.
    """
    async with opened(deployment) as engine:
        view = await Operator(engine).release(work, who=who or getpass.getuser(), reason=reason)
    if json:
        print_json(view)
        return
    about = _about(view)
    facts = {"released": view.work_id, "family": view.family} | about
    print_facts(console(), {name: text for name, text in facts.items() if text})


async def declare(
    what: Declared, /, *, reason: str, deployment: Deployment = HERE, json: AsJson = False
) -> None:
    """Say whether a restored or failed-over database has lost anything, and open dispatch again; or that its clock,
    which was set back, is right.

    Parameters
    ----------
    what
        lossless: it has every commit of the one before. lossy: it may lack some, so whatever had not ended is
        looked into before anything is sent. clock: the database's clock (on SQLite, this host's) is right now, and was
        ahead before.
    reason
        How you know.
    """
    async with opened(deployment) as engine:
        settings = deployment.settings()
        facts = await declare_incarnation(
            engine, settings, Declaration(what.value), who=getpass.getuser(), reason=reason
        )
    if json:
        print_json(facts)
    else:
        print_facts(console(), facts)


async def prune(
    *,
    dry_run: Annotated[bool, Parameter(negative="", help="Move nothing; say what would go.")] = False,
    deployment: Deployment = HERE,
    json: AsJson = False,
) -> None:
    """Move all ended work whose time is over (`retention`) into history now. Nothing is lost: `show` still tells it.

    Running processes do the same little by little. Can be stopped at any time, and run beside them.
    """
    async with opened(deployment) as engine:
        with progress() as shown:
            done = await Operator(engine).prune(
                dry_run=dry_run, told=lambda so_far: shown(f"{so_far.looked} looked at, {going(so_far)}")
            )
    if json:
        print_json(done)
    else:
        facts = {"looked at": str(done.looked), "result": going(done)}
        print_facts(console(), facts | {why: str(count) for why, count in sorted(done.stays.items())})


async def rewrap(*, deployment: Deployment = HERE, json: AsJson = False) -> None:
    """Seal everything at rest with the current key of the key file, so that an older key can be taken out of it.

    Beside running processes, which all need to have the new key by then; can be stopped and run again.
    """
    async with opened(deployment) as engine:
        done = await engine.rewrap()
    if json:
        print_json(done)
    else:
        print_facts(console(), {name: str(count) for name, count in done.items()})


def _about(view: ReplayView | WorkView) -> dict[str, str]:
    """What a work item is about, by the names that people know."""
    return {
        "command": view.command_id,
        "event": view.event_id,
        "receipt": view.receipt_id,
        "catch-up": view.catch_up_id,
    }


def _print_command(view: CommandView, *, json: bool) -> None:
    if json:
        print_json(view)
        return
    print_facts(
        console(), {"command": view.command_id, "state": view.state.value, "reason": view.reason or "-"}
    )
