"""Reads of the operators' side. They lock nothing and write nothing; every one is bounded.

`scope` narrows a read to one installation, in the predicate itself; None is an operator of the whole deployment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from doonce.app.operate.model import Story
from doonce.base.errors import Invalid
from doonce.base.ids import id_kind
from doonce.base.keys import HANDOFF_KIND
from doonce.commands.tables import command, command_end, handoff, handoff_conflict
from doonce.db.schema import IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, fetch
from doonce.effects.tables import attempt_evidence, disposition, effect_attempt
from doonce.links.tables import remote_link
from doonce.principals.tables import binding_generation, principal
from doonce.work.model import Scope
from doonce.work.tables import work_item, work_item_history

ROWS_MAX = 500
"""Rows of one kind in one story; a story that is longer shows its first ones."""


def by(table: sa.Table, column: str, *order: str, scoped: bool = False) -> Statement:
    """The rows of `table` for a batch of values of one indexed column; `scoped` ones of one installation only."""

    def build(dialect: Dialect) -> sa.Select[Any]:
        wanted = dialect.batch("wanted", value=IDENTITY)
        rows = (
            sa.select(table)
            .where(table.c[column].in_(sa.select(wanted.c.value).select_from(wanted.source)))
            .order_by(*[table.c[name] for name in order])
            .limit(ROWS_MAX)
        )
        if scoped:
            rows = rows.where(
                table.c.org == sa.bindparam("the_org", type_=IDENTITY),
                table.c.installation == sa.bindparam("the_installation", type_=IDENTITY),
            )
        return rows

    return Statement(f"operate.{table.name}_by_{column}{'_in_scope' if scoped else ''}", build)


HANDOFF_BY_KEY = by(handoff, "key", "key")
HANDOFF_IN_SCOPE = by(handoff, "key", "key", scoped=True)
HANDOFF_BY_OUTBOX = by(handoff, "outbox_id", "recorded_at", "key")
HANDOFF_BY_RECEIPT = by(handoff, "receipt_id", "key")
CONFLICTS = by(handoff_conflict, "key", "recorded_at")
COMMANDS = by(command, "id", "id")
ENDS = by(command_end, "command_id", "command_id")
ITEMS_BY_ID = by(work_item, "id", "id")
ITEMS_BY_SUBJECT = by(work_item, "subject_id", "created_at", "id")
MOVED_BY_ID = by(work_item_history, "id", "id")
MOVED_BY_SUBJECT = by(work_item_history, "subject_id", "created_at", "id")
ATTEMPTS_BY_ID = by(effect_attempt, "id", "id")
ATTEMPTS_BY_SUBJECT = by(effect_attempt, "subject_id", "prepared_at", "id")
EVIDENCE = by(attempt_evidence, "attempt_id", "recorded_at", "id")
EVIDENCE_BY_ID = by(attempt_evidence, "id", "id")
DISPOSITIONS = by(disposition, "attempt_id", "recorded_at")
LINKS = by(remote_link, "id", "id")
LINKS_IN_SCOPE = by(remote_link, "id", "id", scoped=True)
PRINCIPALS = by(principal, "id", "id")
PRINCIPALS_IN_SCOPE = by(principal, "id", "id", scoped=True)
GENERATIONS = by(binding_generation, "principal_id", "generation")


def rows_of(table: sa.Table, statement: Statement, values: Iterable[str | None]) -> Txn[list[dict[str, Any]]]:
    """The rows of a statement of `by`, by their column names."""
    wanted = sorted({value for value in values if value is not None})
    if not wanted:
        return []
    rows = yield from fetch(statement, wanted=[(value,) for value in wanted])
    return [_named(table, row) for row in rows]


def _named(table: sa.Table, row: Row) -> dict[str, Any]:
    return {column.name: row[position] for position, column in enumerate(table.c)}


def items_by_id(item_ids: Iterable[str]) -> Txn[list[dict[str, Any]]]:
    """Work items, wherever they are."""
    return (yield from _anywhere(ITEMS_BY_ID, MOVED_BY_ID, list(item_ids)))


def items_of(subject_ids: Iterable[str | None]) -> Txn[list[dict[str, Any]]]:
    """The work about these subjects in the order in which it was made, wherever it is."""
    return (yield from _anywhere(ITEMS_BY_SUBJECT, MOVED_BY_SUBJECT, list(subject_ids)))


def _anywhere(
    working: Statement, moved: Statement, values: Sequence[str | None]
) -> Txn[list[dict[str, Any]]]:
    """The working table first and history then: what moves in between is seen, and at most twice."""
    here = yield from rows_of(work_item, working, values)
    there = yield from rows_of(work_item_history, moved, values)
    nothing: dict[str, Any] = dict.fromkeys(column.name for column in work_item.c)
    rows = {row["id"]: row for row in here} | {row["id"]: nothing | row for row in there}
    return sorted(rows.values(), key=lambda row: (row["created_at"], row["id"]))


def subject_of(asked: str) -> Txn[str]:
    """What the work or the call of this id is about; any other id stands for itself, and "" for what is not there."""
    if asked.startswith("wrk_"):
        found = yield from items_by_id([asked])
    elif asked.startswith("att_"):
        found = yield from rows_of(effect_attempt, ATTEMPTS_BY_ID, [asked])
    else:
        return asked
    return found[0]["subject_id"] if found else ""


def scoped_rows(
    table: sa.Table, anywhere: Statement, inside: Statement, values: Iterable[str], scope: Scope | None
) -> Txn[list[dict[str, Any]]]:
    """The rows within a scope, by a predicate of the read itself; None reads the whole deployment."""
    wanted = [(value,) for value in sorted(set(values))]
    if not wanted:
        return []
    if scope is None:
        rows = yield from fetch(anywhere, wanted=wanted)
    else:
        rows = yield from fetch(inside, wanted=wanted, the_org=scope.org, the_installation=scope.installation)
    return [_named(table, row) for row in rows]


def stories(asked: str, scope: Scope | None) -> Txn[list[Story]]:
    """The stories that an id, a handoff key or an outbox id names, within a scope; none for what is not there."""
    keys = yield from _keys_of(asked)
    handoffs = yield from scoped_rows(handoff, HANDOFF_BY_KEY, HANDOFF_IN_SCOPE, keys, scope)
    told: list[Story] = []
    for row in handoffs:
        story = yield from _story(row)
        told.append(story)
    return told


def _keys_of(asked: str) -> Txn[list[str]]:
    """The handoff keys that a text names."""
    if asked.startswith(f"{HANDOFF_KIND}:"):
        return [asked]
    try:
        kind = id_kind(asked)
    except Invalid:
        kind = "obx"  # an outbox id is the application's own text
    if kind == "hnd":
        return [row["key"] for row in (yield from rows_of(handoff, HANDOFF_BY_RECEIPT, [asked]))]
    if kind == "obx":
        return [row["key"] for row in (yield from rows_of(handoff, HANDOFF_BY_OUTBOX, [asked]))]
    if kind == "evd":
        found = yield from rows_of(attempt_evidence, EVIDENCE_BY_ID, [asked])
        asked = found[0]["attempt_id"] if found else ""
    subject = yield from subject_of(asked)
    while subject.startswith("att_"):  # a probe is about an attempt, and that one about a command
        subject = yield from subject_of(subject)
    return [row["origin_key"] for row in (yield from rows_of(command, COMMANDS, [subject]))]


def _story(admitted: Mapping[str, Any]) -> Txn[Story]:
    command_id = admitted["command_id"]
    commands = yield from rows_of(command, COMMANDS, [command_id])
    ends = yield from rows_of(command_end, ENDS, [command_id])
    attempts = yield from rows_of(effect_attempt, ATTEMPTS_BY_SUBJECT, [command_id])
    ids = [row["id"] for row in attempts]
    probes = yield from rows_of(effect_attempt, ATTEMPTS_BY_SUBJECT, ids)
    return Story(
        handoff=admitted,
        command=commands[0] if commands else None,
        end=ends[0] if ends else None,
        conflicts=(yield from rows_of(handoff_conflict, CONFLICTS, [admitted["key"]])),
        items=(yield from items_of([command_id, *ids])),
        attempts=_in_order([*attempts, *probes]),
        evidence=(yield from rows_of(attempt_evidence, EVIDENCE, ids)),
        dispositions=(yield from rows_of(disposition, DISPOSITIONS, ids)),
    )


def _in_order(attempts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(attempts, key=lambda row: (row["prepared_at"], row["id"]))


def link_rows(link_id: str, scope: Scope | None) -> Txn[list[dict[str, Any]]]:
    """A link by id, within a scope."""
    return (yield from scoped_rows(remote_link, LINKS, LINKS_IN_SCOPE, [link_id], scope))


def principal_rows(
    principal_id: str, scope: Scope | None
) -> Txn[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """A principal by id, within a scope, and its generations."""
    found = yield from scoped_rows(principal, PRINCIPALS, PRINCIPALS_IN_SCOPE, [principal_id], scope)
    generations = yield from rows_of(binding_generation, GENERATIONS, [row["id"] for row in found])
    return found, generations
