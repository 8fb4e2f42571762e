"""Looking whether an effect is there, and what the finding proves (PROTOCOL H1 to H3)."""

from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS
from doonce.catalog.classify import no_effect_admissible_from_us
from doonce.catalog.comparing import Match, compare_all
from doonce.catalog.compile import BindingView
from doonce.catalog.exchange import FrozenRequest, Judgement, Response
from doonce.catalog.extraction import Answer, encode_result, extract, time_us
from doonce.catalog.model import (
    RESULT_REMOTE_ID,
    Action,
    ChangedAt,
    LinkUse,
    OperationContract,
    Probe,
    Verdict,
)
from doonce.catalog.render import build_request, read_payload, reference_values


def probe_request(
    view: BindingView, operation_name: str, payload: bytes, *, remote_id: str | None, command_id: str
) -> FrozenRequest:
    """Return the read that looks for a command's effect, from the command's own payload and link.

    It is an attempt of its own, under a read contract (`probe_operation`). Raises `Invalid` where the
    operation declares no probe, and where `render` of the command would raise.
    """
    operation = view.operation(operation_name)
    name = probe_operation(operation.contract)
    if name is None:
        raise Invalid(f"{operation_name} declares no probe", hint="an operator decides what happened")
    fields = read_payload(operation, payload)
    values = reference_values(view, operation, fields, remote_id=remote_id, command_id=command_id)
    return build_request(view, view.operations[name], {}, values)


def probe_operation(contract: OperationContract) -> str | None:
    """Return the name of the read that an operation is probed with, None where it cannot be probed."""
    return None if contract.probe is None else contract.probe.operation


def judge(
    contract: OperationContract,
    request: FrozenRequest,
    response: Response,
    *,
    dispatched_at_us: int,
    probed_at_us: int,
    refused_with: int | None = None,
) -> Judgement:
    """Return what a probe's answer proves about the attempt that sent `request`; never raises.

    `dispatched_at_us` is that attempt's mark, `probed_at_us` the probe's own: a finding of no effect counts
    only after the in-flight horizon, and is *cannot tell* before. `refused_with` is the status with which the
    provider refused the attempt, where a rule answered `verify`.
    """
    probe = contract.probe
    if probe is None:
        return Judgement(Verdict.CANNOT_TELL, "the operation declares no probe")
    if not response.complete:
        return Judgement(Verdict.CANNOT_TELL, "the probe's answer is incomplete")
    if response.status in probe.missing_statuses:
        found = Judgement(probe.missing, f"the provider holds nothing (status {response.status})")
    elif not 200 <= response.status <= 299:
        return Judgement(Verdict.CANNOT_TELL, f"the probe was answered with status {response.status}")
    else:
        found = _judge_found(contract, probe, request, response, dispatched_at_us, refused_with)
    return _admissible(contract, found, dispatched_at_us, probed_at_us)


def _judge_found(
    contract: OperationContract,
    probe: Probe,
    request: FrozenRequest,
    response: Response,
    dispatched_at_us: int,
    refused_with: int | None,
) -> Judgement:
    answer = Answer(response, bytes_max=LIMITS.response_bytes_max)
    match = compare_all(probe.compare, request, response, answer) if probe.compare else Match.DIFFERENT
    if match is Match.INCOMPARABLE:
        return Judgement(Verdict.CANNOT_TELL, "the probe's answer cannot be compared with the request")
    if match is Match.SAME:
        values = extract(probe.results or contract.results, answer, request.target)
        if contract.link is LinkUse.CREATES and RESULT_REMOTE_ID not in values:
            return Judgement(Verdict.CANNOT_TELL, "the effect is there, but its remote id is not usable")
        return Judgement(
            Verdict.EFFECT_PROVEN,
            "the provider holds what the request wrote",
            names_attempt=probe.names_attempt,
            result=encode_result(values),
        )
    if _is_unchanged(probe, request, response):
        return Judgement(probe.unchanged, "the provider holds the version that the request was to replace")
    if refused_with is not None and _is_verified(contract, refused_with):
        return Judgement(
            probe.mismatch_when_refused, f"refused with {refused_with}, and the provider holds another"
        )
    if probe.changed_at is not None:
        return _judge_time(probe.changed_at, answer, dispatched_at_us)
    return Judgement(probe.mismatch, "the provider holds something else")


def _is_unchanged(probe: Probe, request: FrozenRequest, response: Response) -> bool:
    if probe.unchanged_header is None:
        return False
    expected = next((value for name, value in request.headers if name == "If-Match"), None)
    return expected is not None and response.header(probe.unchanged_header) == expected


def _judge_time(changed: ChangedAt, answer: Answer, dispatched_at_us: int) -> Judgement:
    at_us = time_us(answer.at(changed.source.json, changed.source.header), changed.format)
    if at_us is None:
        return Judgement(Verdict.CANNOT_TELL, "the provider does not say when the record changed")
    if at_us < dispatched_at_us - changed.skew_us:
        return Judgement(changed.before, "the record has not changed since before the request")
    if at_us > dispatched_at_us + changed.skew_us:
        return Judgement(changed.after, "the record has changed since the request")
    return Judgement(Verdict.CANNOT_TELL, "the record changed at about the time of the request")


def _is_verified(contract: OperationContract, status: int) -> bool:
    return any(
        rule.action is Action.VERIFY and any(low <= status <= high for low, high in rule.statuses)
        for rule in contract.outcomes
    )


def _admissible(
    contract: OperationContract, found: Judgement, dispatched_at_us: int, probed_at_us: int
) -> Judgement:
    if found.verdict is not Verdict.NO_EFFECT_PROVEN:
        return found
    from_us = no_effect_admissible_from_us(contract, dispatched_at_us)
    if from_us is not None and probed_at_us >= from_us:
        return found
    return Judgement(
        Verdict.CANNOT_TELL,
        f"{found.evidence}, but the request may still be on its way",
        not_before_us=from_us,
    )
