"""The operators' side as one object: show, status, cancel, resolve, replay, release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from doonce.app.engine import Engine
from doonce.app.operate import cancel as cancelling
from doonce.app.operate import catch_ups, events, receipts, store
from doonce.app.operate import counts as counting
from doonce.app.operate.counts import Counts
from doonce.app.operate.deliveries import delivery_status
from doonce.app.operate.gaps import GapOperator
from doonce.app.operate.model import (
    BodyView,
    CommandView,
    Decision,
    Pruned,
    ReplayView,
    RetentionStatus,
    Status,
    Story,
    Timeline,
    WorkView,
    facts_of,
    moments_of,
    standing,
    unresolved_attempt,
)
from doonce.app.operate.parties import link_timeline, principal_timeline
from doonce.base.digests import digest_bytes
from doonce.base.errors import Conflict, DoonceError, Invalid, MissingOrDenied, Stale
from doonce.base.ids import new_id
from doonce.base.limits import LIMITS, check_text
from doonce.catalog.model import Verdict
from doonce.commands import store as commands
from doonce.commands.model import Command, CommandState
from doonce.commands.service import creates
from doonce.db.database import safe_url
from doonce.effects import reconcile
from doonce.effects.linking import Linked
from doonce.effects.model import Verdicted
from doonce.effects.reconcile import Resolve, Resolved
from doonce.ownership.model import Family
from doonce.work import settle
from doonce.work import store as work
from doonce.work.model import Scope

log = structlog.get_logger("doonce.operate")

ENDED = frozenset({CommandState.ACCEPTED, CommandState.REJECTED, CommandState.DEAD, CommandState.CANCELLED})
NOTHING = msgspec.Raw(b"{}")

VERDICTS: dict[Decision, tuple[Verdict, bool]] = {
    Decision.HAPPENED: (Verdict.EFFECT_PROVEN, False),
    Decision.NOT_HAPPENED: (Verdict.NO_EFFECT_PROVEN, False),
    Decision.RESEND: (Verdict.NO_EFFECT_PROVEN, True),
    Decision.SUPERSEDED: (Verdict.SUPERSEDED, False),
}


class Operator(GapOperator):
    """Reads and decisions of one deployment. `scope` None is an operator of all of it."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._database = engine.database
        self._deployment = engine.settings.deployment

    async def show(self, asked: str, scope: Scope | None = None) -> list[Timeline]:
        """The timelines of an id of ours, a handoff key, or an outbox id (which two installations may share).

        Raises `MissingOrDenied` for what is not there and for what is another scope's; the two look alike.
        """
        found = await self.find(asked, scope)
        if not found:
            raise MissingOrDenied(
                "there is nothing with this id",
                hint="an id looks like cmd_…, att_…, wrk_…, hnd_…, ing_…, evt_…, ctu_…, pag_…, lnk_… or prn_…",
            )
        return found

    async def find(self, asked: str, scope: Scope | None = None) -> list[Timeline]:
        """The same, and an empty list for what is not there."""
        check_text("the id", asked, LIMITS.key_bytes_max)
        if asked.startswith("lnk_"):
            return [link_timeline(row) for row in await self._database.read(store.link_rows, asked, scope)]
        if asked.startswith("prn_"):
            rows, generations = await self._database.read(store.principal_rows, asked, scope)
            return [principal_timeline(row, generations) for row in rows]
        if asked.startswith("evt_"):
            return await self._events(asked, scope)
        if asked.startswith("ing_"):
            return await self._receipts(asked, scope)
        if asked.startswith(("ctu_", "pag_")):
            return await self._catch_ups(asked, scope)
        found = [_timeline(asked, story) for story in await self._database.read(store.stories, asked, scope)]
        if found or not asked.startswith(("wrk_", "att_")):
            return found
        found = await self._events(asked, scope) or await self._receipts(asked, scope)
        return found or await self._catch_ups(asked, scope)

    async def _events(self, asked: str, scope: Scope | None) -> list[Timeline]:
        found = await self._database.read(events.event_stories, asked, scope)
        return [events.event_timeline(asked, story) for story in found]

    async def _receipts(self, asked: str, scope: Scope | None) -> list[Timeline]:
        found = await self._database.read(receipts.receipt_stories, asked, scope)
        return [receipts.receipt_timeline(asked, story) for story in found]

    async def _catch_ups(self, asked: str, scope: Scope | None) -> list[Timeline]:
        found = await self._database.read(catch_ups.catch_up_stories, asked, scope)
        return [catch_ups.catch_up_timeline(asked, story) for story in found]

    async def body(self, receipt_id: str, *, who: str, scope: Scope | None = None) -> BodyView:
        """The raw body of a delivery or of a catch-up's page, for the eyes of an operator. That it was read is logged.

        Raises `MissingOrDenied`, also for a body whose time is over.
        """
        if not receipt_id.startswith(("ing_", "pag_")):
            raise Invalid(
                "only a delivery or a page has a body to show", hint="its id looks like ing_… or pag_…"
            )
        if not await self.find(receipt_id, scope):
            raise MissingOrDenied("there is no such receipt", hint="its id looks like ing_… or pag_…")
        raw = await self._engine.ingress.body(receipt_id)
        log.info("a body was read", receipt=receipt_id, who=who)
        return BodyView(receipt_id=receipt_id, digest=digest_bytes(raw), raw=raw)

    async def command(self, command_id: str, scope: Scope | None = None) -> CommandView:
        """Where a command stands; raises `MissingOrDenied`."""
        story = await self._story(command_id, scope)
        state, attempt_id, reason = standing(story)
        row = story.command or {}
        return CommandView(
            command_id=command_id,
            key=row["origin_key"],
            operation=row["operation"],
            state=state,
            final=state in ENDED,
            reason=reason,
            attempt_id=attempt_id,
            result=msgspec.Raw(story.end["result"].encode()) if story.end is not None else NOTHING,
        )

    async def _story(self, command_id: str, scope: Scope | None) -> Story:
        if not command_id.startswith("cmd_"):
            raise Invalid("this is no command id", hint="it looks like cmd_…; `show` takes any id")
        found = await self._database.read(store.stories, command_id, scope)
        if not found or found[0].command is None:
            raise MissingOrDenied("there is no such command", hint="`doonce show` takes any id")
        return found[0]

    async def counts(self, scope: Scope | None = None) -> Counts:
        """What waits, and what nobody knows; bounded."""
        return await self._database.read(counting.counts, await self._engine.scopes(), scope)

    async def status(self, scope: Scope | None = None) -> Status:
        """How the deployment stands, or one installation of it."""
        counted = await self.counts(scope)
        gate = self._engine.gate
        return Status(
            database=safe_url(self._database.url) if scope is None else self._database.dialect.value,
            dispatch="open" if gate.open else f"closed: {gate.reason}",
            now_us=counted.now_us,
            families=counted.families,
            unknown=counted.unresolved,
            unknown_more=counted.more,
            deliveries=await self._database.read(delivery_status, scope),
            gaps=await self.gaps(scope),
            retention=await self.retention(),
        )

    async def retention(self) -> RetentionStatus:
        """How the moving of ended work into history stands."""
        enabled = self._engine.settings.retention.enabled
        return await self._database.read(counting.retention, enabled)

    async def prune(self, *, dry_run: bool, told: Callable[[Pruned], None] = lambda _: None) -> Pruned:
        """Move all ended work whose time is over into history now, or say what would go; see `Retention.prune`."""
        return await self._engine.retention.prune(dry_run=dry_run, told=told)

    async def cancel(self, command_id: str, scope: Scope | None = None) -> CommandView:
        """Cancel a command that waits; ask the one that runs to stop before its dispatch (PROTOCOL W5).

        Returns where it stands afterwards: `cancelled`, or still `running` when the request came while it runs.
        Raises `Conflict` once its outcome decides: it has ended, it is unknown, or an earlier call may have worked.
        """
        await self._story(command_id, scope)
        cancelled = await self._database.transact(cancelling.cancel, command_id, "cancelled by request")
        if cancelled is not None:
            raise Conflict(*cancelled)
        return await self.command(command_id, scope)

    async def resolve(
        self, attempt_id: str, decision: Decision, *, who: str, reason: str, scope: Scope | None = None
    ) -> CommandView:
        """Record an operator's disposition of an attempt that nobody knows the outcome of; once, for ever.

        Raises `Conflict` for an attempt that is not unresolved, `Stale` when evidence came in meanwhile: look again.
        """
        check_text("reason", reason, LIMITS.reason_bytes_max)
        check_text("who", who, LIMITS.name_bytes_max)
        if not attempt_id.startswith("att_"):
            raise Invalid(
                "this is no attempt id", hint="it looks like att_…; `doonce status` lists the unresolved ones"
            )
        found = await self._database.read(store.stories, attempt_id, scope)
        command_id = found[0].handoff["command_id"] if found and found[0].handoff else None
        attempt = unresolved_attempt(found[0]) if found else None
        if command_id is None:
            raise MissingOrDenied("there is no such attempt", hint="`doonce status` lists them")
        if attempt is None or attempt["id"] != attempt_id or found[0].end is not None:
            raise Conflict(
                "the outcome of this attempt is not in question",
                hint="`doonce show` has its story; `doonce status` lists the unresolved ones",
            )
        await self._record(attempt, command_id, decision, who, reason)
        return await self.command(command_id, scope)

    async def _record(self, attempt: Any, command_id: str, decision: Decision, who: str, reason: str) -> None:
        command = (await self._database.read(commands.load, [command_id]))[command_id]
        verdict, resend = VERDICTS[decision]
        created = await self._created(command)
        resolved = await self._database.transact(
            reconcile.resolve,
            Resolve(
                claimed=None,
                deployment=self._deployment,
                attempt_id=attempt["id"],
                command=command,
                decided_by=f"operator {who}",
                successor_id=new_id("wrk"),
                verdict=Verdicted(
                    verdict, reason, attempt["evidence_version"], names_attempt=True, resend=resend
                ),
                reason=reason,
                creates=created,
            ),
        )
        if resolved is Resolved.RECORDED and created is not None and verdict is Verdict.EFFECT_PROVEN:
            self._engine.metrics.linked(command.operation, Linked.REFUSED.value)  # nobody's word has an id
        if resolved is Resolved.CHANGED:
            raise Stale(
                "evidence came in meanwhile",
                hint="look at it with `doonce show`, then decide",
                axis="evidence",
            )
        if resolved is not Resolved.RECORDED:
            raise Conflict("this attempt has been decided already", hint="`doonce show` says by whom")

    async def _created(self, command: Command) -> str | None:
        """The kind of object that a command makes, None where it makes none or its pinned view cannot be had."""
        try:
            view = await self._engine.views.get(command.pins.view_digest)
            return creates(view, view.operations[command.operation])
        except (DoonceError, KeyError):
            return None

    async def replay(self, work_id: str, scope: Scope | None = None) -> ReplayView:
        """Have dead work of a family that may repeat it (`work.replay`) done once more, as a new item (PROTOCOL W6).

        A receipt's id stands for its newest work. Asked again it names the successor that is under way. Raises
        `MissingOrDenied`; `Conflict` for an effect, for work that has not died, and for a body that is erased.
        """
        if not work_id.startswith(("wrk_", "ing_")):
            raise Invalid(
                "this is no work id",
                hint="it looks like wrk_…, or ing_… for a receipt; `doonce show` lists the work of anything",
            )
        about = await self._about(work_id, scope)
        row = work.Replay(about.work_id, new_id("wrk"))
        if about.receipt_id:
            successor = await self._database.transact(receipts.replay, about.receipt_id, row)
        else:
            successor = await self._database.transact(work.replay, row)
        return ReplayView(
            work_id=successor,
            replay_of=about.work_id,
            family=about.family,
            command_id=about.command_id,
            event_id=about.event_id,
            receipt_id=about.receipt_id,
            catch_up_id=about.catch_up_id,
        )

    async def release(self, work_id: str, *, who: str, reason: str, scope: Scope | None = None) -> WorkView:
        """Let what waits behind an ended item in its source lane go on without it (PROTOCOL L3); repeatable.

        Who and why stay with the item. Raises `MissingOrDenied`; `Conflict` for an item that has not ended or has no
        source lane.
        """
        check_text("reason", reason, LIMITS.reason_bytes_max)
        check_text("who", who, LIMITS.name_bytes_max)
        if not work_id.startswith("wrk_"):
            raise Invalid(
                "this is no work id", hint="it looks like wrk_…; `doonce show` lists the work of anything"
            )
        about = await self._about(work_id, scope)
        note = f"its lane was let go on by {who}: {reason}"
        if not await self._database.transact(settle.release, about.work_id, note):
            raise Conflict(
                "this item holds up no lane: it has not ended, or its binding orders nothing by a lane",
                hint="`doonce show` has its state; `doonce cancel` ends a command that waits",
            )
        return about

    async def _about(self, work_id: str, scope: Scope | None) -> WorkView:
        """The work item within a scope that an id means, and what it is about."""
        for story in await self._database.read(store.stories, work_id, scope):
            for item in story.items:
                if item["id"] == work_id and story.command is not None:
                    return WorkView(work_id=work_id, family=item["family"], command_id=story.command["id"])
        for told in await self._database.read(events.event_stories, work_id, scope):
            for item in told.work:
                if item["id"] == work_id:
                    return WorkView(work_id=work_id, family=item["family"], event_id=told.event["id"])
        for delivery in await self._database.read(receipts.receipt_stories, work_id, scope):
            row = receipts.work_to_replay(work_id, delivery)
            if row is not None:
                return WorkView(work_id=row["id"], family=row["family"], receipt_id=delivery.receipt["id"])
        for reading in await self._database.read(catch_ups.catch_up_stories, work_id, scope):
            if catch_ups.has_read(work_id, reading):
                raise Conflict(
                    "this work's page has been read, so there is nothing to read again",
                    hint="`doonce gap reconcile` starts the reading of its gap again",
                )
            return WorkView(work_id=work_id, family=Family.CATCH_UP.value, catch_up_id=reading.catch_up["id"])
        raise MissingOrDenied("there is no such work item", hint="`doonce show` takes any id")


# --- from rows to timelines ---------------------------------------------------------------------------------------


def _timeline(asked: str, story: Story) -> Timeline:
    handoff = story.handoff or {}
    if story.command is None:
        return Timeline(
            asked=asked,
            kind="handoff",
            id=handoff["receipt_id"],
            state=handoff["state"],
            facts=facts_of(story),
            moments=moments_of(story),
        )
    state, _, _ = standing(story)
    return Timeline(
        asked=asked,
        kind="command",
        id=story.command["id"],
        state=state.value,
        facts=facts_of(story),
        moments=moments_of(story),
    )
