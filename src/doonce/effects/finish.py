"""The end of an attempt: its outcome, its work item, its command, its link and what follows, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace

from doonce.base.records import Record
from doonce.catalog.model import Outcome
from doonce.commands import store as commands
from doonce.commands.model import Command, NewEnd
from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, fetch
from doonce.effects import linking
from doonce.effects.attempts import lock_attempts_then_clock
from doonce.effects.linking import Creation, Linking
from doonce.effects.model import Attempt, AttemptState, Ending, NextStep, Terms, Unresolved, next_step
from doonce.effects.tables import effect_attempt
from doonce.ownership import store as ownership
from doonce.ownership.model import Family
from doonce.work import lanes as lane_store
from doonce.work import settle
from doonce.work import store as work
from doonce.work.model import Claimed, NewItem, Settled, Settlement, live


def _end(dialect: Dialect) -> sa.Update:
    ends = dialect.batch(
        "ends",
        id=IDENTITY,
        outcome=IDENTITY,
        reason=IDENTITY,
        effect_free=COUNT,
        settled_by=IDENTITY,
        status=COUNT,
        receipt=IDENTITY,
        result=IDENTITY,
    )
    names = ("outcome", "reason", "effect_free", "settled_by", "status", "receipt", "result")
    return (
        sa.update(effect_attempt)
        .where(effect_attempt.c.id == ends.c.id, effect_attempt.c.outcome.is_(None))
        .values(
            state=AttemptState.ENDED.value,
            ended_at=sa.bindparam("now_us", type_=MICROSECONDS),
            **{name: ends.c[name] for name in names},
        )
    )


END = Statement("effects.end", _end)


class Finish(Record, frozen=True):
    """How the live claimant of an effect says that its attempt ended.

    `attempt_id` may be an attempt that an earlier claimant left open: the next one settles it first (`for_vanished`).
    """

    claimed: Claimed
    deployment: str
    command: Command
    attempt_id: str
    ending: Ending
    terms: Terms
    earlier: Attempt | None
    for_vanished: bool = False


class Finished(str, Enum):
    """What became of a finish."""

    DONE = "done"
    REPEATED = "repeated"
    STALE = "stale"


def finish(rows: Sequence[Finish]) -> Txn[list[tuple[Finished, NextStep | None]]]:
    """End attempts with all that follows: the item's next state, the command's end and completion, reconciliation.

    Each is judged on its own under its live token and epoch (PROTOCOL W4); a stale one changes nothing, and what it saw
    should be appended as late evidence. A rerun after an unknown commit answers as before.
    """
    claims = [row.claimed for row in rows]
    owners = yield from ownership.fence(claimed.item.family for claimed in claims)
    yield from linking.hold(filter(None, map(_creation, rows)))
    held = yield from lane_store.lock(settle.lanes_of(claims))
    items = yield from work.lock_claimed(claims)
    attempts, now_us = yield from lock_attempts_then_clock(row.attempt_id for row in rows)
    results: list[tuple[Finished, NextStep | None]] = []
    steps: list[tuple[Finish, NextStep]] = []
    for row in rows:
        item, attempt = items.get(row.claimed.item.id), attempts.get(row.attempt_id)
        owner = owners.get(row.claimed.item.family)
        if attempt is not None and attempt.outcome is not None and attempt.settled_by == row.claimed.token:
            results.append((Finished.REPEATED, None))
        elif (
            item is None
            or attempt is None
            or attempt.outcome is not None
            or owner is None
            or not owner.lets_finish(row.deployment, row.claimed.epoch)
            or not live(item, row.claimed, now_us)
        ):
            results.append((Finished.STALE, None))
        else:
            step = next_step(
                item,
                row.ending,
                row.terms,
                now_us,
                poison=row.claimed.poison,
                earlier=row.earlier is not None,
            )
            results.append((Finished.DONE, step))
            steps.append((row, step))
    if steps:
        ends = [end_row(row.attempt_id, row.claimed.token, step.outcome, row.ending) for row, step in steps]
        yield from fetch(END, ends=ends, now_us=now_us)
        outcomes = yield from settle.apply(
            [_settlement(row, step) for row, step in steps], items, held, now_us
        )
        if any(outcome is not Settled.DONE for outcome in outcomes):
            raise AssertionError("an item that was live under its lock refused its settlement")
        yield from lane_store.save(held.values())
        linkings = yield from _link([row for row, step in steps if step.ended_as is not None])
        yield from _follow(steps, linkings, now_us)
        results = [
            (done, _with_link(step, linkings.get(row.command.id)))
            for row, (done, step) in zip(rows, results, strict=True)
        ]
    return results


def _with_link(step: NextStep | None, linked: Linking | None) -> NextStep | None:
    return step if step is None or linked is None else replace(step, linked=linked.linked.value)


def _creation(row: Finish) -> Creation | None:
    """What an ending would link if it is believed: an accepted create's object."""
    if row.terms.creates is None or row.ending.outcome is not Outcome.ACCEPTED:
        return None
    return Creation(row.command, row.terms.creates, row.ending.result_json)


def _link(rows: Sequence[Finish]) -> Txn[dict[str, Linking]]:
    """Finalize the links of what was created, by command."""
    creations = [creation for creation in map(_creation, rows) if creation is not None]
    found = yield from linking.finalize(creations)
    return {creation.command.id: one for creation, one in zip(creations, found, strict=True)}


def end_row(attempt_id: str, token: str, outcome: Outcome, ending: Ending) -> tuple[Any, ...]:
    """A row of `END`: how an attempt ended, and under which claim that was said."""
    return (
        attempt_id, outcome.value, ending.reason, int(effect_free(ending)), token, ending.status, ending.receipt_json,
        ending.result_json,
    )  # fmt: skip


def effect_free(ending: Ending) -> bool:
    """Whether an ending proves that its attempt did nothing."""
    return ending.effect_free or ending.outcome in (Outcome.RETRYABLE_PRE_DISPATCH, Outcome.REJECTED)


def _settlement(row: Finish, step: NextStep) -> Settlement:
    return Settlement(
        claimed=row.claimed,
        event=step.event,
        delay_us=step.delay_us,
        failed=step.failed,
        failure_class=step.failure_class,
        summary=row.ending.reason,
        hold_lane_for=_unresolved_attempt(row, step),
        for_vanished=row.for_vanished,
    )


def _unresolved_attempt(row: Finish, step: NextStep) -> str | None:
    match step.unresolved:
        case Unresolved.NONE:
            return None
        case Unresolved.THIS:
            return row.attempt_id
        case Unresolved.EARLIER:
            return row.earlier.id if row.earlier is not None else None


def _follow(
    steps: Sequence[tuple[Finish, NextStep]], linkings: Mapping[str, Linking], now_us: int
) -> Txn[None]:
    """End commands, and for each unresolved attempt create its reconciliation and a notice that is not the end."""
    ends: list[NewEnd] = []
    follow: list[NewItem] = []
    for row, step in steps:
        if step.ended_as is not None:
            linked = linkings.get(row.command.id)
            ends.append(
                NewEnd(
                    row.command,
                    step.ended_as,
                    row.attempt_id,
                    row.ending.result_json,
                    row.ending.reason if linked is None else linked.said(row.ending.reason),
                    asked_for=row.terms.asks,
                )
            )
        attempt_id = _unresolved_attempt(row, step)
        if attempt_id is not None:
            follow.append(_about(attempt_id, row.command, Family.RECONCILE))
            done = commands.LEFT if row.terms.asks else None
            follow.append(_about(attempt_id, row.command, Family.COMPLETION, done))
    if ends:
        yield from commands.end(ends, now_us)
    yield from work.insert(follow, now_us=now_us)


def _about(attempt_id: str, command: Command, family: Family, done: str | None = None) -> NewItem:
    return NewItem(
        id=derived_id(attempt_id, family),
        family=family.value,
        scope=command.scope,
        subject_kind="attempt",
        subject_id=attempt_id,
        view_digest=command.pins.view_digest,
        done=done,
    )


def derived_id(attempt_id: str, family: Family) -> str:
    """The id of an attempt's reconciliation or notice: derived, so that there can be one of each only."""
    digits = attempt_id[4:]
    return f"wrk_{digits[:12]}{'8' if family is Family.RECONCILE else '9'}{digits[13:]}"
