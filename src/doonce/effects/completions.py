"""Completions: what the application is told when a command ends, or when nobody knows yet.

A completion is a work item, created with the end itself. It is pushed under a live claim to the application's inbox,
idempotent by command, and succeeds only after the whole receipt validates (PROTOCOL K1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
import structlog

from doonce.base.errors import DoonceError, Unavailable
from doonce.base.records import Record
from doonce.catalog.model import CompletionMode
from doonce.catalog.service import Views
from doonce.commands import store as commands
from doonce.commands.model import Command, CommandEnd
from doonce.db.database import Database
from doonce.db.faults import DatabaseFault
from doonce.db.schema import IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, fetch
from doonce.effects.tables import effect_attempt
from doonce.effects.telling import Inbox, again, needless, poisoned, push, told
from doonce.http import Client
from doonce.wire.completions import CompletionNotice, CompletionOutcome, CompletionReceipt, seal_notice
from doonce.work import store as work
from doonce.work.model import Claimed, RetryPolicy, Settlement
from doonce.work.service import Worker

log = structlog.get_logger()


def _attempts(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(
        effect_attempt.c.id, effect_attempt.c.subject_id, effect_attempt.c.reason, effect_attempt.c.ended_at
    ).where(effect_attempt.c.id.in_(sa.select(ids.c.id).select_from(ids.source)))


ATTEMPTS = Statement("completions.attempts", _attempts)


class Completion(Record, frozen=True):
    """A claimed completion: the command, and its end or the attempt that nobody knows the outcome of."""

    claimed: Claimed
    command: Command | None
    end: CommandEnd | None
    attempt_id: str | None
    unknown_since: int


def claim_completions(request: work.ClaimRequest) -> Txn[list[Completion]]:
    """Claim completions with all that they have to tell."""
    claimed = yield from work.claim(request)
    if not claimed:
        return []
    about = {c.item.subject_id for c in claimed if c.item.subject_kind == "attempt"}
    rows = (yield from fetch(ATTEMPTS, ids=[(i,) for i in sorted(about)])) if about else []
    attempts = {row["id"]: row for row in rows}
    commanded = {
        c.item.id: attempts[c.item.subject_id]["subject_id"]
        if c.item.subject_id in attempts
        else c.item.subject_id
        for c in claimed
    }
    known = yield from commands.load(commanded.values())
    ends = yield from commands.load_ends(commanded.values())
    return [
        Completion(
            claimed=c,
            command=known.get(commanded[c.item.id]),
            end=ends.get(commanded[c.item.id]),
            attempt_id=c.item.subject_id if c.item.subject_id in attempts else None,
            unknown_since=(attempts[c.item.subject_id]["ended_at"] or 0)
            if c.item.subject_id in attempts
            else 0,
        )
        for c in claimed
    ]


def notice_of(completion: Completion) -> CompletionNotice | None:
    """What to tell; None when a notice of an unknown outcome has been overtaken by the command's end."""
    command, end = completion.command, completion.end
    if command is None:
        return None
    if completion.attempt_id is not None:
        if end is not None:
            return None
        return _notice(
            command, CompletionOutcome.UNKNOWN, "{}", completion.attempt_id, completion.unknown_since
        )
    if end is None:
        return None
    outcome = CompletionOutcome(end.ended_as.value)
    return _notice(command, outcome, end.result_json, end.attempt_id, end.recorded_at)


def _notice(
    command: Command, outcome: CompletionOutcome, result: str, attempt: str | None, at_us: int
) -> CompletionNotice:
    return seal_notice(
        command_id=command.id,
        key=command.handoff_key,
        outbox_id=command.outbox_id,
        payload_digest=command.payload_digest,
        outcome=outcome,
        result=result.encode(),
        attempt_id=attempt,
        recorded_at_us=at_us,
    )


@dataclass(frozen=True, slots=True)
class CompletionSettings:
    """How completions are pushed. They are idempotent, so they are tried for as long as it takes, within a week.

    What is given up then is tried again by an operator's replay.
    """

    policy: RetryPolicy = field(
        default_factory=lambda: RetryPolicy(
            base_us=500_000, cap_us=60_000_000, failing_us_max=604_800_000_000
        )
    )
    call_budget_ns: int = 10_000_000_000


class Completer:
    """Runs claimed completions."""

    def __init__(
        self,
        database: Database,
        views: Views,
        client: Client,
        inboxes: Mapping[str, Inbox],
        settings: CompletionSettings,
    ) -> None:
        self._database = database
        self._views = views
        self._client = client
        self._inboxes = inboxes
        self._settings = settings
        self.worker: Worker[Completion] | None = None

    async def run(self, completion: Completion) -> None:
        """Tell the application, or leave the end for it to ask for, as its binding says."""
        claimed = completion.claimed
        settlement = poisoned(claimed) if claimed.poison else await self._tell(completion)
        if self.worker is None:
            raise AssertionError("a completer belongs to a worker")
        try:
            await self.worker.settlements.submit(settlement)
        except (DoonceError, DatabaseFault) as error:
            log.warning("a completion could not be settled", item=claimed.item.id, error=str(error))

    async def _tell(self, completion: Completion) -> Settlement:
        claimed, command = completion.claimed, completion.command
        if command is None:
            return needless(claimed, "there is no such command")
        try:
            view = await self._views.get(command.pins.view_digest)
            policy = view.policies.completion
            if policy.mode is CompletionMode.PULL:
                return told(claimed, commands.LEFT)
            notice = notice_of(completion)
            if notice is None:
                return needless(claimed, "the command has ended since")
            return told(claimed, await self._push(policy.url_name or "", notice))
        except DoonceError as error:
            return again(claimed, str(error), self._settings.policy, None)

    async def _push(self, name: str, notice: CompletionNotice) -> str:
        inbox = self._inboxes.get(name)
        if inbox is None:
            raise Unavailable(f"no inbox named {name!r} is configured")
        receipt = await push(self._client, inbox, notice, CompletionReceipt, self._settings.call_budget_ns)
        if receipt.command_id != notice.command_id or receipt.notice_digest != notice.digest:
            raise Unavailable("the inbox's receipt is about something else")
        return f"{receipt.state.value}: {receipt.receipt_id}"
