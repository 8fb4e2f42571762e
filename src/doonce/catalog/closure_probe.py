"""What must hold for a probe: it only reads, the command suffices to build it, its proof is one."""

from collections.abc import Mapping

from doonce.base.errors import Invalid
from doonce.catalog.closure_answers import check_results, check_source
from doonce.catalog.closure_request import check_references
from doonce.catalog.model import (
    RESULT_REMOTE_ID,
    BodyKind,
    Compare,
    CompareKind,
    LinkUse,
    Method,
    OperationContract,
    ParameterKind,
    Probe,
    ReplayKind,
    Verdict,
)
from doonce.catalog.pointers import parse_pointer
from doonce.catalog.reading import Place
from doonce.catalog.templates import parse_target


def check_probe(
    place: Place,
    operation: OperationContract,
    probe: Probe,
    operations: Mapping[str, OperationContract],
    parameters: Mapping[str, ParameterKind],
) -> set[str]:
    """Return the payload fields that the probe's request uses; raise `Invalid` for a probe that is none."""
    here = place.inner("probe")
    if operation.method is Method.GET:
        raise here.fault("", "a read needs no probe: it is sent again", "remove the probe")
    read = operations.get(probe.operation)
    if read is None:
        raise here.fault("operation", f"there is no operation {probe.operation!r}", "name a GET of this pack")
    if read.method is not Method.GET or read.replay.kind is not ReplayKind.READ:
        raise here.fault("operation", f"{probe.operation!r} is not a read", "name a GET operation")
    names = parse_target(read.target, read.query, parameters).references()
    used = check_references(here, "operation", names, operation, parameters)
    _check_verdicts(place, here, operation, probe)
    for compare in probe.compare:
        _check_compare(here, operation, compare)
    if probe.names_attempt and all(
        compare.kind is not CompareKind.IDEMPOTENCY_KEY for compare in probe.compare
    ):
        raise here.fault(
            "names_attempt",
            "only the idempotency key names an attempt",
            'compare it: kind = "idempotency_key"',
        )
    check_results(here, "results", probe.results)
    _check_created_id(here, operation, probe)
    return used


def _check_verdicts(place: Place, here: Place, operation: OperationContract, probe: Probe) -> None:
    changed = probe.changed_at
    verdicts = {
        "mismatch": probe.mismatch,
        "mismatch_when_refused": probe.mismatch_when_refused,
        "unchanged": probe.unchanged,
        "before": changed.before if changed else Verdict.CANNOT_TELL,
        "after": changed.after if changed else Verdict.CANNOT_TELL,
    }
    for field, verdict in verdicts.items():
        if verdict is Verdict.EFFECT_PROVEN:
            raise here.fault(
                field, "a difference does not prove the effect", 'write "cannot_tell" or another'
            )
    if probe.missing is Verdict.EFFECT_PROVEN and operation.link is not LinkUse.ENDS:
        raise here.fault(
            "missing", "only an operation that ends a link is proven by absence", 'or link = "ends"'
        )
    if (probe.missing is not Verdict.CANNOT_TELL) != bool(probe.missing_statuses):
        raise here.fault("missing_status", "goes together with missing", "write both or neither")
    if (probe.unchanged_header is None) != (probe.unchanged is Verdict.CANNOT_TELL):
        raise here.fault("unchanged_header", "goes together with unchanged", "write both or neither")
    if probe.unchanged_header is not None and operation.replay.if_match is None:
        raise here.fault(
            "unchanged_header", "there is no If-Match to compare with", "declare replay.if_match"
        )
    if Verdict.NO_EFFECT_PROVEN in {*verdicts.values(), probe.missing} and operation.settle_after_us is None:
        raise place.fault(
            "settle_after",
            "missing: a verdict of no effect must wait out a request that is still on its way",
            'write settle_after = "60s"',
        )
    if changed is not None:
        check_source(here.inner("changed_at"), "json", changed.source)


def _check_compare(here: Place, operation: OperationContract, compare: Compare) -> None:
    needs = {
        CompareKind.JSON: operation.body.kind is BodyKind.JSON,
        CompareKind.LINES: operation.body.kind is BodyKind.TEXT,
        CompareKind.IDEMPOTENCY_KEY: operation.replay.kind is ReplayKind.IDEMPOTENCY_KEY,
    }
    if not needs[compare.kind]:
        raise here.fault(
            "compare", f'the request has nothing for kind = "{compare.kind.value}"', "choose another kind"
        )
    for pointer in (compare.request, compare.response):
        try:
            parse_pointer(pointer)
        except Invalid as fault:
            raise here.fault("compare", fault.message, fault.hint) from None


def _check_created_id(here: Place, operation: OperationContract, probe: Probe) -> None:
    if operation.link is not LinkUse.CREATES or not probe.compare or RESULT_REMOTE_ID in probe.results:
        return
    raise here.inner("results").fault(
        RESULT_REMOTE_ID,
        "a proven creation must give its remote id",
        'write { json = "/id" } or { target_segment = "last" }',
    )
