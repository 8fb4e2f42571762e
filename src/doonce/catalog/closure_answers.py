"""What must hold between the parts of an operation that read its answers (PROTOCOL D6)."""

import re
from typing import Final

from msgspec import UNSET

from doonce.base.errors import Invalid
from doonce.catalog.closure_request import is_secret_name
from doonce.catalog.model import (
    RESULT_REMOTE_ID,
    RESULT_STATUS,
    Action,
    LinkUse,
    Method,
    OperationContract,
    OutcomeRule,
    ValueSource,
)
from doonce.catalog.parts import Condition
from doonce.catalog.pointers import parse_pointer
from doonce.catalog.reading import Place

_RESULT_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)


def check_answers(place: Place, operation: OperationContract) -> None:
    """Raise one `Invalid` for the first thing about answers that is missing, contradictory or unreachable."""
    for condition in operation.evidence:
        check_condition(place, "evidence", condition)
    _check_outcomes(place, operation)
    check_results(place, "results", operation.results)
    check_results(place, "rejection", operation.rejection)
    if RESULT_STATUS in operation.rejection:
        raise place.inner("rejection").fault(RESULT_STATUS, "is given anyway", "choose another name")
    for name in operation.receipt_headers:
        _check_header(place, "receipt_headers", name)
    if operation.link is LinkUse.CREATES:
        _check_created(place, operation)
    elif RESULT_REMOTE_ID in operation.results and operation.link is LinkUse.ENDS:
        raise place.inner("results").fault(RESULT_REMOTE_ID, "the link ends here", "remove it")
    if operation.duplicates_rejected and operation.method is Method.GET:
        raise place.fault("duplicates_rejected", "a read has no duplicates", "remove it")


def check_condition(place: Place, field: str, condition: Condition) -> None:
    """Raise `Invalid` for a place of an answer that cannot be read, or a comparison that cannot hold."""
    _check_place(place, field, condition.json, condition.header)
    if (
        condition.header is not None
        and condition.equals is not UNSET
        and not isinstance(condition.equals, str)
    ):
        raise place.fault(field, "a header is a text", 'write equals = "…"')


def check_results(place: Place, field: str, results: dict[str, ValueSource]) -> None:
    """Raise `Invalid` for a result with an unfit name or an unreadable source."""
    for name, source in results.items():
        if _RESULT_NAME.fullmatch(name) is None:
            raise place.inner("results").fault(
                name, "is not a result's name", "use lower case and underscores"
            )
        if not source.target_segment:
            _check_place(place.inner(field), name, source.json, source.header)


def check_source(place: Place, field: str, source: ValueSource) -> None:
    """Raise `Invalid` for a source that is no place of an answer."""
    _check_place(place, field, source.json, source.header)


def _check_place(place: Place, field: str, pointer: str | None, header: str | None) -> None:
    if (pointer is None) == (header is None):
        raise place.fault(
            field, "exactly one place must be given", 'write json = "/pointer" or header = "name"'
        )
    if header is not None:
        _check_header(place, field, header)
    if pointer is not None:
        try:
            parse_pointer(pointer)
        except Invalid as fault:
            raise place.fault(field, fault.message, fault.hint) from None


def _check_header(place: Place, field: str, name: str) -> None:
    if is_secret_name(name):
        raise place.fault(field, f"the header {name!r} may carry a secret", "it is never kept; remove it")
    if name != name.lower():
        raise place.fault(field, f"the header {name!r} is not in lower case")


def _check_created(place: Place, operation: OperationContract) -> None:
    source = operation.results.get(RESULT_REMOTE_ID)
    here = place.inner("results")
    if source is None:
        raise here.fault(RESULT_REMOTE_ID, "an operation that creates must give it", 'write { json = "/id" }')
    places = {(condition.json, condition.header) for condition in operation.evidence}
    if not source.target_segment and (source.json, source.header) not in places:
        raise place.fault(
            "evidence",
            "the new remote id is not demanded of the answer",
            "add the place of results.remote_id",
        )


def _check_outcomes(place: Place, operation: OperationContract) -> None:
    covered: set[int] = set()
    for index, rule in enumerate(operation.outcomes):
        here = Place(place.file, f"{place.inner('outcomes').table}[{index}]")
        statuses = {status for low, high in rule.statuses for status in range(low, high + 1)}
        if statuses <= covered:
            raise here.fault(
                "status", "an earlier rule takes every such answer", "put the narrower rule first"
            )
        if rule.body is None:
            covered |= statuses
        else:
            check_condition(here, "body", rule.body)
        _check_rule(here, operation, rule, statuses)


def _check_rule(here: Place, operation: OperationContract, rule: OutcomeRule, statuses: set[int]) -> None:
    has_success = any(200 <= status <= 299 for status in statuses)
    if (
        has_success
        and rule.body is None
        and rule.action in (Action.REJECTED, Action.NO_EFFECT, Action.VERIFY)
    ):
        raise here.fault(
            "body", "a success status needs a condition to mean anything else", "write body = { … }"
        )
    if rule.action is Action.VERIFY and operation.probe is None:
        raise here.fault("outcome", "verify needs a probe", "declare the probe, or write another outcome")
    if rule.settles_earlier and rule.action is not Action.REJECTED:
        raise here.fault("settles_earlier", "belongs to a rejection", "remove it")
    waits = rule.retry_after_default_us is not None or rule.retry_after_us_max is not None
    if waits and rule.action is not Action.NO_EFFECT:
        raise here.fault("retry_after_max", 'belongs to outcome = "no_effect"', "remove it")
    if rule.action is Action.NO_EFFECT and rule.retry_after_us_max is None:
        raise here.fault("retry_after_max", "missing: how long may the provider ask to wait?", 'write "10m"')
    default_us, most_us = rule.retry_after_default_us, rule.retry_after_us_max
    if default_us is not None and most_us is not None and default_us > most_us:
        raise here.fault("retry_after_default", "is longer than retry_after_max", "lower it")
