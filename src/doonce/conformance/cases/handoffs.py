"""Handoff keys: one terminal fact each, whoever asks, and nothing said to anybody else (PROTOCOL F1–F3, T7)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import sqlalchemy as sa

from doonce.base.digests import digest_bytes
from doonce.base.errors import DoonceError, ErrorClass, Quarantined
from doonce.base.ids import new_id, new_token
from doonce.commands import store as commands
from doonce.commands.model import ConflictFound, HandoffClaim, Rejection
from doonce.commands.tables import command, handoff
from doonce.conformance.cases.case import Case
from doonce.conformance.jobs import AdmitJob
from doonce.conformance.model import Broken, expect, expect_equal
from doonce.conformance.stage import Stage, Tenant, rejection_of, view_of
from doonce.db.schema import IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, fetch
from doonce.wire import AcceptRequest, Admission, AdmissionState
from doonce.work.model import Scope
from doonce.work.tables import work_item

KEYS: Final = 40


def _facts(dialect: Dialect) -> sa.Select[Any]:
    key = sa.bindparam("key", type_=IDENTITY)
    made = sa.select(command.c.id).where(command.c.origin_key == key)
    return sa.select(
        sa.select(sa.func.count()).select_from(handoff).where(handoff.c.key == key).scalar_subquery(),
        sa.select(sa.func.count()).select_from(made.subquery()).scalar_subquery(),
        sa.select(sa.func.count())
        .select_from(work_item)
        .where(work_item.c.subject_id.in_(made))
        .scalar_subquery(),
    )


FACTS: Final = Statement("conformance.facts", _facts)


def read_facts(key: str) -> Txn[tuple[int, int, int]]:
    """How many admissions, commands and work items one key has."""
    (row,) = yield from fetch(FACTS, key=key)
    return (row[0], row[1], row[2])


async def facts(stage: Stage, key: str) -> tuple[int, int, int]:
    """Admissions, commands and work items of a key."""
    return await stage.database.read(read_facts, key)


async def accept_or_reject(stage: Stage) -> None:
    tenant = await stage.tenant()
    requests = tuple(tenant.request(f"k{number}") for number in range(KEYS))
    rejections = tuple(rejection_of(request) for request in requests)
    jobs = [
        AdmitJob(place=stage.place, accept=requests),
        AdmitJob(place=stage.place, reject=rejections[::-1]),
        AdmitJob(place=stage.place, accept=requests[::-1]),
    ]
    processes = await stage.spawn_together(jobs)
    results = [await process.result() for process in processes]
    answers = [answer for result in results for answer in result.answered]
    for request in requests:
        told = {(answer.state, answer.receipt_id) for answer in answers if answer.key == request.key}
        expect(len(told) == 1, f"one key was answered differently: {sorted(told)}")
        ((state, _),) = told
        accepted = state == AdmissionState.COMMAND_ACCEPTED.value
        made = int(accepted)
        expect_equal(await facts(stage, request.key), (1, made, made), f"the facts of a key that is {state}")


async def other_payload(stage: Stage) -> None:
    tenant = await stage.tenant()
    request = tenant.request("k1")
    payload = b'{"first":"other"}'
    other = msgspec.structs.replace(request, payload=payload, payload_digest=digest_bytes(payload))
    await _quarantined(stage, tenant, request, other)


async def other_outbox_id(stage: Stage) -> None:
    tenant = await stage.tenant()
    request = tenant.request("k1")
    await _quarantined(stage, tenant, request, msgspec.structs.replace(request, outbox_id=new_id("obx")))


async def _quarantined(stage: Stage, tenant: Tenant, request: AcceptRequest, other: AcceptRequest) -> None:
    """The key keeps its first fact, exact retries keep their receipt, and anything else is quarantined."""
    first = await tenant.engine.acceptor.accept_one(tenant.identity, request)
    for ask in (_accept(tenant, other), tenant.reject(other)):
        refused = await _refusal(ask)
        expect(
            isinstance(refused, Quarantined),
            f"a key that was used with something else was answered: {refused}",
        )
        expect(first.receipt_id not in str(refused), "the refusal tells the receipt of the stored fact")
    expect_equal(await facts(stage, request.key), (1, 1, 1), "the facts of the key")
    expect_equal(await _accept(tenant, request), first, "the answer to an exact retry")


async def _accept(tenant: Tenant, request: AcceptRequest) -> Admission:
    return await tenant.engine.acceptor.accept_one(tenant.identity, request)


async def _refusal(asking: Any) -> DoonceError | str:
    try:
        return str(await asking)
    except DoonceError as refused:
        return refused


async def other_org(stage: Stage) -> None:
    await _foreign(stage, await stage.tenant(org=f"org_{new_token()[:12]}"))


async def other_installation(stage: Stage) -> None:
    await _foreign(stage, await stage.tenant(installation="second"))


async def other_capability(stage: Stage) -> None:
    await _foreign(stage, await stage.tenant(capability="others"))


async def _foreign(stage: Stage, stranger: Tenant) -> None:
    """Whoever acts for another scope gets one answer to a key, whether it exists or not, and changes nothing."""
    tenant = await stage.tenant()
    request = tenant.request("k1")
    first = await _accept(tenant, request)
    answers = []
    for asked in (request, tenant.request("absent")):
        own = msgspec.structs.replace(asked, scope=stranger.handoff())
        answers += [await _denied(stranger, asked), await _denied(stranger, own)]
    expect_equal(answers[:2], answers[2:], "the answers for a key that exists and for one that does not")
    expect_equal(await facts(stage, request.key), (1, 1, 1), "the facts of the key")
    expect_equal(
        await facts(stage, tenant.request("absent").key), (0, 0, 0), "the facts of a key never admitted"
    )
    await _fenced(stage, request, org=stranger.place.org, installation=stranger.place.installation,
                  capability=stranger.place.capability)  # fmt: skip
    expect_equal(await _accept(tenant, request), first, "the answer to an exact retry")


async def _denied(stranger: Tenant, request: AcceptRequest) -> list[tuple[ErrorClass, str]]:
    """How a stranger's acceptance and rejection are refused."""
    answers = []
    for ask in (_accept(stranger, request), stranger.reject(request)):
        refused = await _refusal(ask)
        if isinstance(refused, str):
            raise Broken(f"somebody else's key was answered: {refused}")
        allowed = (ErrorClass.MISSING_OR_DENIED, ErrorClass.FORBIDDEN)
        expect(
            refused.error_class in allowed, f"somebody else's key was refused as {refused.error_class.value}"
        )
        answers.append((refused.error_class, refused.message))
    return answers


async def _fenced(stage: Stage, request: AcceptRequest, **other: str) -> None:
    """The row itself refuses another scope too, should a caller ever get that far."""
    scope = request.scope
    claim = HandoffClaim(
        key=request.key,
        scope=Scope(other.get("org", scope.org), other.get("installation", scope.installation)),
        capability=other.get("capability", scope.capability),
        binding_digest=other.get("binding_digest", scope.binding_digest),
        outbox_id=request.outbox_id,
        payload_digest=request.payload_digest,
    )
    rejection = Rejection(claim, new_token(), new_id("hnd"), "conformance")
    (found,) = await stage.database.transact(commands.reject, [rejection])
    expect_equal(found, ConflictFound(request.key, "scope"), "the fence of a key under another scope")


async def other_binding(stage: Stage) -> None:
    tenant = await stage.tenant()
    request = tenant.request("k1")
    first = await _accept(tenant, request)
    newer = view_of(tenant.place, first="second")
    await tenant.engine.views.publish([newer])
    refused = await _refusal(_accept(tenant, msgspec.structs.replace(request, scope=tenant.handoff(newer))))
    expect(
        isinstance(refused, DoonceError) and refused.error_class is ErrorClass.MISSING_OR_DENIED,
        f"a key of one binding was answered under another: {refused}",
    )
    expect_equal(await facts(stage, request.key), (1, 1, 1), "the facts of the key")
    await _fenced(stage, request, binding_digest=newer.digest)
    expect_equal(await _accept(tenant, request), first, "the answer to an exact retry")


async def late_delivery(stage: Stage) -> None:
    tenant = await stage.tenant()
    requests = [tenant.request(f"k{number}") for number in range(3)]
    receipts = [await tenant.reject(request) for request in requests]
    for request, receipt in zip(requests, receipts, strict=True):
        expect_equal(await _accept(tenant, request), receipt, "the answer to a delivery after the rejection")
        expect_equal(await facts(stage, request.key), (1, 0, 0), "the facts of a rejected key")
    late = await stage.spawn_together([AdmitJob(place=stage.place, accept=tuple(requests))])
    states = [answer.state for answer in (await late[0].result()).answered]
    expect_equal(states, [AdmissionState.HANDOFF_REJECTED.value] * 3, "late deliveries by another process")


CASES: Final = (
    Case(
        "accept-or-reject",
        "Acceptance and rejection at once leave one fact, told to everybody",
        accept_or_reject,
        paced=False,
    ),
    Case(
        "other-payload",
        "A key with another payload is quarantined and changes nothing",
        other_payload,
        paced=False,
    ),
    Case(
        "other-outbox-id",
        "A key with another outbox id is quarantined and changes nothing",
        other_outbox_id,
        paced=False,
    ),
    Case("other-org", "Another organization learns and changes nothing of a key", other_org, paced=False),
    Case(
        "other-installation",
        "Another installation learns and changes nothing of a key",
        other_installation,
        paced=False,
    ),
    Case(
        "other-capability",
        "Another capability learns and changes nothing of a key",
        other_capability,
        paced=False,
    ),
    Case("other-binding", "A key of one binding is not answered under another", other_binding, paced=False),
    Case(
        "late-delivery",
        "A delivery after the rejection gets the rejection, and creates nothing",
        late_delivery,
        paced=False,
    ),
)
