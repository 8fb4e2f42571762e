"""Reading the half of an operation that is about answers: evidence, outcome rules, results, the probe."""

import re
from typing import Final

from doonce.catalog.bounds import RETRY_AFTER_US_MAX
from doonce.catalog.model import (
    Action,
    ChangedAt,
    Compare,
    CompareKind,
    OutcomeRule,
    Probe,
    TimeFormat,
    ValueSource,
    Verdict,
)
from doonce.catalog.parts import Condition
from doonce.catalog.reading import NAME, Table

_CLASS: Final = re.compile(r"([2-5])xx", re.ASCII)
_STATUS_HINT: Final = 'write a list of statuses such as [409] or ["5xx"]'


def read_conditions(table: Table, field: str) -> tuple[Condition, ...]:
    """Return what an answer must hold; the list must be written, even when it is empty."""
    if not table.has(field):
        raise table.fault(
            field, "missing", f"write what proves success, or {field} = [] if the status alone does"
        )
    return tuple(read_condition(inner) for inner in table.tables(field))


def read_condition(table: Table) -> Condition:
    """Return one thing that a document from outside must hold."""
    pointer, header = _read_place(table)
    if table.has("equals"):
        condition = Condition(json=pointer, header=header, equals=table.scalar("equals"))
    else:
        condition = Condition(json=pointer, header=header)
    table.close()
    return condition


def _read_place(table: Table) -> tuple[str | None, str | None]:
    if table.has("json") == table.has("header"):
        raise table.fault(
            "json", "exactly one place must be given", 'write json = "/pointer" or header = "name"'
        )
    if table.has("json"):
        return str(table.scalar("json")), None
    return None, table.text("header").lower()


def _read_source(table: Table) -> ValueSource:
    if table.has("target_segment"):
        table.text("target_segment", pattern=re.compile("last"), wanted='"last"')
        source = ValueSource(target_segment=True)
    else:
        pointer, header = _read_place(table)
        source = ValueSource(json=pointer, header=header)
    table.close()
    return source


def read_sources(table: Table, field: str) -> dict[str, ValueSource]:
    """Return the values that are taken from an answer, by their names."""
    return {name: _read_source(inner) for name, inner in table.named_tables(field).items()}


def read_outcomes(table: Table) -> tuple[OutcomeRule, ...]:
    """Return the outcome rules in their order: the first that fits decides."""
    return tuple(_read_outcome(inner) for inner in table.tables("outcomes"))


def _read_outcome(table: Table) -> OutcomeRule:
    action = table.choice("outcome", Action)
    body = table.optional_table("body")
    rule = OutcomeRule(
        statuses=tuple(_status_range(table, value) for value in table.array("status")),
        action=action,
        body=None if body is None else read_condition(body),
        settles_earlier=table.boolean("settles_earlier", default=False),
        retry_after_default_us=table.optional_duration_us("retry_after_default"),
        retry_after_us_max=table.duration_us("retry_after_max", most_us=RETRY_AFTER_US_MAX)
        if table.has("retry_after_max")
        else None,
    )
    if not rule.statuses:
        raise table.fault("status", "missing", _STATUS_HINT)
    table.close()
    return rule


def _status_range(table: Table, value: object) -> tuple[int, int]:
    if type(value) is int and 200 <= value <= 599:
        return value, value
    found = _CLASS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise table.fault("status", "is not a final HTTP status", _STATUS_HINT)
    first = int(found.group(1)) * 100
    return first, first + 99


def read_probe(table: Table) -> Probe:
    """Return how an unknown outcome is looked into; whatever is not declared cannot tell."""
    mismatch = table.choice("mismatch", Verdict, default=Verdict.CANNOT_TELL)
    changed_at = table.optional_table("changed_at")
    probe = Probe(
        operation=table.text("operation", pattern=NAME, wanted='"the name of a GET operation"'),
        compare=tuple(_read_compare(inner) for inner in table.tables("compare")),
        missing_statuses=read_missing_statuses(table),
        missing=table.choice("missing", Verdict, default=Verdict.CANNOT_TELL),
        mismatch=mismatch,
        mismatch_when_refused=table.choice("mismatch_when_refused", Verdict, default=mismatch),
        unchanged_header=_lower(table.optional_text("unchanged_header")),
        unchanged=table.choice("unchanged", Verdict, default=Verdict.CANNOT_TELL),
        changed_at=None if changed_at is None else _read_changed_at(changed_at),
        names_attempt=table.boolean("names_attempt", default=False),
        results=read_sources(table, "results"),
    )
    table.close()
    return probe


def _lower(name: str | None) -> str | None:
    return None if name is None else name.lower()


def read_missing_statuses(table: Table) -> tuple[int, ...]:
    """Return the statuses that say that what was asked for is not there."""
    return tuple(_missing_status(table, value) for value in table.array("missing_status"))


def _missing_status(table: Table, value: object) -> int:
    if type(value) is int and 400 <= value <= 499:
        return value
    raise table.fault(
        "missing_status", "only a 4xx status can say that something is not there", "write [404]"
    )


def _read_compare(table: Table) -> Compare:
    kind = table.choice("kind", CompareKind)
    if kind is CompareKind.JSON:
        compare = Compare(
            kind=kind,
            request=str(table.scalar("request")),
            response=str(table.scalar("response")),
            empty_is_null=table.boolean("empty_is_null", default=False),
        )
    elif kind is CompareKind.LINES:
        content_lines = table.boolean("content_lines", default=False)
        compare = Compare(
            kind=kind,
            content_lines=content_lines,
            ordered=table.boolean("ordered", default=True),
            ignore=tuple(sorted(name.upper() for name in table.texts("ignore", default=())))
            if content_lines
            else (),
        )
    else:
        compare = Compare(kind=kind, response=str(table.scalar("response")))
    table.close()
    return compare


def _read_changed_at(table: Table) -> ChangedAt:
    pointer, header = _read_place(table)
    changed_at = ChangedAt(
        source=ValueSource(json=pointer, header=header),
        format=table.choice("format", TimeFormat),
        skew_us=table.duration_us("skew"),
        before=table.choice("before", Verdict, default=Verdict.CANNOT_TELL),
        after=table.choice("after", Verdict, default=Verdict.CANNOT_TELL),
    )
    table.close()
    return changed_at
