"""Completions: which of them are told, what counts as delivered, and the way back for those that were given up."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.store.effects.calls import GOOD, Calls, make_calls

from doonce.app.operate.service import Operator
from doonce.base.errors import Conflict, Invalid, MissingOrDenied
from doonce.base.ids import new_id
from doonce.commands import store as commands
from doonce.db.database import Database
from doonce.effects.completions import Completion, CompletionSettings
from doonce.http import Replied, Request, Sent, Unanswered
from doonce.wire.codec import decode, encode
from doonce.wire.completions import CompletionNotice, CompletionOutcome, CompletionReceipt, ReceiptState
from doonce.work.model import RetryPolicy, Scope

IMPATIENT = CompletionSettings(policy=RetryPolicy(base_us=1, cap_us=1, failing_us_max=0))
AWAY = Unanswered("refused")


@pytest.fixture
async def calls(database: Database) -> Calls:
    return await make_calls(database)


async def receipt(request: Request, **wrong: object) -> Sent:
    """What a good inbox answers, or something that is wrong in one place."""
    notice = decode(request.body, CompletionNotice, bytes_max=2_000_000)
    fields = {
        "command_id": notice.command_id,
        "notice_digest": notice.digest,
        "state": ReceiptState.APPLIED,
        "receipt_id": new_id("rcp"),
    }
    answer = CompletionReceipt(**(fields | wrong))  # type: ignore[arg-type]  # test shorthand
    return Replied(200, (), encode(answer), complete=True)


async def ended(calls: Calls) -> Completion:
    """The completion of a command that the provider accepted."""
    calls.provider.answer = GOOD
    await calls.run(await calls.accepted())
    (completion,) = await calls.completions()
    return completion


async def state(calls: Calls, completion: Completion) -> tuple[object, object]:
    item = await calls.item(completion.claimed.item.id)
    return item["state"], item["failure_class"]


def operator(calls: Calls) -> Operator:
    """The operators' side over a database; `show`, `replay` and `resolve` need nothing else of an engine."""

    class Engine:
        database = calls.database
        views = calls.views

        class settings:  # noqa: N801  # an attribute of that name
            deployment = "default"

    return Operator(Engine())  # type: ignore[arg-type]  # as much of an engine as it reads


async def test_k1_a_completion_succeeds_only_on_the_whole_receipt(calls: Calls) -> None:
    completion = await ended(calls)
    wrong: list[dict[str, object]] = [
        {"command_id": new_id("cmd")},
        {"notice_digest": "sha256:" + "0" * 64},
    ]
    for one in wrong:
        calls.provider.answer = lambda request, one=one: receipt(request, **one)
        await calls.tell(completion)
        assert (await state(calls, completion))[0] == "retry"
        await calls.age(0)
        (completion,) = await calls.completions()
    for answer in (AWAY, Replied(200, (), b"{}", complete=True), Replied(200, (), b"", complete=False)):
        calls.provider.answer = answer
        await calls.tell(completion)
        assert (await state(calls, completion))[0] == "retry"
        await calls.age(0)
        (completion,) = await calls.completions()
    calls.provider.answer = receipt
    await calls.tell(completion)
    assert (await state(calls, completion))[0] == "succeeded"


async def test_w6_an_inbox_that_was_away_for_too_long_is_told_by_a_replay(calls: Calls) -> None:
    completion = await ended(calls)
    old = completion.claimed.item.id
    calls.provider.answer = AWAY
    await calls.tell(completion, IMPATIENT)
    assert await state(calls, completion) == ("dead", "not_delivered")
    assert await calls.completions() == []
    assert completion.command is not None
    view = await operator(calls).replay(old)
    assert (view.replay_of, view.command_id, view.family) == (old, completion.command.id, "completion")
    told: list[CompletionNotice] = []

    async def inbox(request: Request) -> Sent:
        told.append(decode(request.body, CompletionNotice, bytes_max=2_000_000))
        return await receipt(request)

    calls.provider.answer = inbox
    (again,) = await calls.completions()
    assert again.claimed.item.id == view.work_id
    await calls.tell(again)
    assert (await state(calls, again))[0] == "succeeded"
    assert [(notice.command_id, notice.outcome) for notice in told] == [
        (completion.command.id, CompletionOutcome.ACCEPTED)
    ]
    (timeline,) = await operator(calls).show(view.work_id)
    assert f"follows {old}" in {moment.detail for moment in timeline.moments}


async def test_w6_a_replay_is_authorized_when_it_is_asked_for(calls: Calls) -> None:
    completion = await ended(calls)
    calls.provider.answer = AWAY
    await calls.tell(completion, IMPATIENT)
    old = completion.claimed.item.id
    for scope in (Scope("acme", "other"), Scope("other", "main")):
        with pytest.raises(MissingOrDenied):
            await operator(calls).replay(old, scope)
    with pytest.raises(MissingOrDenied):
        await operator(calls).replay(new_id("wrk"))
    assert completion.command is not None
    with pytest.raises(Invalid, match="no work id"):
        await operator(calls).replay(completion.command.id)
    assert await calls.completions() == []
    assert (await operator(calls).replay(old, calls.world.scope)).replay_of == old


async def test_w6_the_effect_of_an_ended_command_is_not_replayed(calls: Calls) -> None:
    start = await calls.accepted()
    calls.provider.answer = Replied(404, (), b"{}", complete=True)
    await calls.run(start)
    with pytest.raises(Conflict) as refused:
        await operator(calls).replay(start.claimed.item.id)
    assert "new intent" in refused.value.hint
    assert await calls.world.claim() == []


async def test_w2_a_convicted_completion_is_not_told_and_can_be_replayed(calls: Calls) -> None:
    completion = await ended(calls)
    asked = len(calls.provider.sent)
    await calls.tell(replace(completion, claimed=replace(completion.claimed, poison=True)))
    assert len(calls.provider.sent) == asked
    assert await state(calls, completion) == ("dead", "poison")
    assert completion.command is not None
    ends = await calls.database.read(commands.load_ends, [completion.command.id])
    assert ends[completion.command.id].ended_as.value == "accepted", (
        "what the application is told has not changed"
    )
    await operator(calls).replay(completion.claimed.item.id)
    assert len(await calls.completions()) == 1
