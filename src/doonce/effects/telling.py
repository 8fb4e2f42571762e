"""Telling an application something under a live claim: the push itself, and how its work item goes on.

Nothing told here is told for the last time before the application's whole receipt validates: whatever is lost on the
way is told again, and the application takes it once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import structlog

from doonce.base.errors import Invalid, Unavailable
from doonce.base.secrets import Secret
from doonce.http import Client, Go, Replied, Request
from doonce.http.model import boottime_ns
from doonce.wire.codec import RECEIPT_BODY_BYTES_MAX, decode, encode
from doonce.wire.handoffs import fitted
from doonce.work.model import Claimed, Event, RetryPolicy, Settlement

log = structlog.get_logger()
ReceiptT = TypeVar("ReceiptT", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Inbox:
    """Where an application is told something: a URL of its own, and the credential that it expects."""

    origin: str
    target: str
    credential: Secret


async def push(
    client: Client, inbox: Inbox, notice: msgspec.Struct, receipt: type[ReceiptT], budget_ns: int
) -> ReceiptT:
    """The application's receipt for a notice; raises `Unavailable`, fit to be shown, for anything that is not one."""
    until_ns = boottime_ns() + budget_ns

    async def gate() -> Go:
        return Go(until_ns, until_ns)

    request = Request(
        "POST", inbox.origin, inbox.target, (("content-type", "application/json"),), encode(notice)
    )
    sent = await client.send(
        request,
        secret_headers={"authorization": Secret(f"Bearer {inbox.credential.reveal()}")},
        gate=gate,
        declared_origins=(inbox.origin,),
    )
    if not isinstance(sent, Replied):
        raise Unavailable(f"the inbox did not answer: {sent.reason}")
    if sent.status != 200 or not sent.complete:
        raise Unavailable(f"the inbox answered {sent.status}")
    try:
        return decode(sent.body, receipt, bytes_max=RECEIPT_BODY_BYTES_MAX)
    except Invalid as malformed:
        raise Unavailable(f"the inbox's receipt is malformed: {malformed.message}") from malformed


def told(claimed: Claimed, summary: str) -> Settlement:
    """The application has it."""
    return Settlement(claimed, Event.SUCCEED, summary=fitted(summary))


def needless(claimed: Claimed, summary: str) -> Settlement:
    """There is nothing to tell."""
    return Settlement(claimed, Event.SKIP, summary=fitted(summary))


def again(claimed: Claimed, summary: str, policy: RetryPolicy, failures_max: int | None) -> Settlement:
    """Try again later; give up, visibly, at the bound of time, and of failures where there is one."""
    failures = claimed.item.failures + 1
    since_us = claimed.lease_until - (claimed.item.first_failed_at or claimed.lease_until)
    if since_us >= policy.failing_us_max or (failures_max is not None and failures >= failures_max):
        return given_up(claimed, "not_delivered", summary)
    delay_us = policy.delay_us(failures, random.random())  # noqa: S311 (spreads retries)
    return Settlement(claimed, Event.RETRY, delay_us=delay_us, failed=True, summary=fitted(summary))


def poisoned(claimed: Claimed) -> Settlement:
    """To take it up once more would be to die of it once more (PROTOCOL W2)."""
    return given_up(claimed, "poison", "its workers keep dying, even alone")


def given_up(claimed: Claimed, failure_class: str, summary: str) -> Settlement:
    """Dead, until an operator replays it."""
    item = claimed.item
    log.error(
        "telling the application is given up; `doonce replay` tries again",
        family=item.family,
        item=item.id,
        reason=summary,
    )
    return Settlement(claimed, Event.DIE, failure_class=failure_class, summary=fitted(summary))
