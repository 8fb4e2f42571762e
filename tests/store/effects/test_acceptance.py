"""Acceptance and its fence (authority §6, §6.1; PROTOCOL F, T5, T7): one terminal fact per key, whoever asks."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa
from msgspec.structs import replace
from tests.store.effects.world import ORG, World, make_world

from doonce.base.ids import new_id, new_token
from doonce.commands import store as commands
from doonce.commands.model import Admitted, ConflictFound, HandoffState
from doonce.db.database import Database
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch
from doonce.ownership import store as ownership
from doonce.work.model import Scope
from doonce.work.tables import work_item

COUNTS = Statement(
    "test.acceptance_counts",
    lambda dialect: sa.select(
        sa.select(sa.func.count()).select_from(commands.handoff).scalar_subquery(),
        sa.select(sa.func.count()).select_from(commands.command).scalar_subquery(),
        sa.select(sa.func.count()).select_from(work_item).scalar_subquery(),
        sa.select(sa.func.count()).select_from(commands.handoff_conflict).scalar_subquery(),
    ),
)


def read_counts() -> Txn[tuple[int, ...]]:
    return tuple((yield from fetch(COUNTS))[0])  # type: ignore[arg-type]  # a row is iterable


async def counts(world: World) -> tuple[int, ...]:
    """Handoffs, commands, work items, conflicts."""
    return await world.database.read(read_counts)


@pytest.fixture
async def world(database: Database) -> World:
    await database.transact(ownership.install, "default", "test", "first")
    return await make_world(database)


async def test_accepting_writes_handoff_command_and_one_work_item(world: World) -> None:
    acceptance = world.acceptance("k1", source="s", target="t")
    (admitted,) = await world.accept(acceptance)
    assert isinstance(admitted, Admitted)
    assert (admitted.state, admitted.command_id) == (HandoffState.COMMAND_ACCEPTED, acceptance.command_id)
    assert await counts(world) == (1, 1, 1, 0)
    stored = (await world.database.read(commands.load, [acceptance.command_id]))[acceptance.command_id]
    assert (stored.request, stored.payload, stored.pins) == (
        acceptance.request,
        acceptance.payload,
        acceptance.pins,
    )


async def test_t5_the_same_acceptance_again_is_the_same_admission(world: World) -> None:
    acceptance = world.acceptance("k1")
    first = await world.accept(acceptance)
    assert await world.accept(acceptance) == first
    assert await counts(world) == (1, 1, 1, 0)


async def test_f1_a_relay_that_asks_again_gets_the_first_receipt(world: World) -> None:
    (first,) = await world.accept(world.acceptance("k1"))
    (again,) = await world.accept(world.acceptance("k1"))
    assert isinstance(first, Admitted)
    assert isinstance(again, Admitted)
    assert (again.receipt_id, again.command_id, again.first) == (first.receipt_id, first.command_id, False)
    assert await counts(world) == (1, 1, 1, 0)


async def test_late_delivery_after_a_rejection_makes_no_command(world: World) -> None:
    acceptance = world.acceptance("k1")
    rejected = await world.reject(acceptance)
    (late,) = await world.accept(acceptance)
    assert isinstance(rejected, Admitted)
    assert isinstance(late, Admitted)
    assert late.state is HandoffState.HANDOFF_REJECTED
    assert (late.receipt_id, late.command_id) == (rejected.receipt_id, None)
    assert await counts(world) == (1, 0, 0, 0)


async def test_a_rejection_after_acceptance_gets_the_acceptance(world: World) -> None:
    acceptance = world.acceptance("k1")
    (accepted,) = await world.accept(acceptance)
    rejected = await world.reject(acceptance)
    assert isinstance(accepted, Admitted)
    assert isinstance(rejected, Admitted)
    assert (rejected.state, rejected.receipt_id) == (HandoffState.COMMAND_ACCEPTED, accepted.receipt_id)


async def test_acceptance_racing_rejection_has_one_winner_and_one_story(world: World) -> None:
    for round_number in range(20):
        acceptance = world.acceptance(f"k{round_number}")
        (accepted,), rejected = await asyncio.gather(world.accept(acceptance), world.reject(acceptance))
        assert isinstance(accepted, Admitted)
        assert isinstance(rejected, Admitted)
        assert (accepted.state, accepted.receipt_id) == (rejected.state, rejected.receipt_id)
    handoffs, made, items, _ = await counts(world)
    assert handoffs == 20
    assert made == items


@pytest.mark.parametrize(
    "axis, change",
    [
        ("payload_digest", {"payload_digest": "sha256:" + "1" * 64}),
        ("outbox_id", {"outbox_id": "obx_" + "1" * 32}),
        ("scope", {"scope": Scope("other", "main")}),
        ("scope", {"scope": Scope(ORG, "other")}),
        ("scope", {"capability": "other"}),
        ("scope", {"binding_digest": "sha256:" + "2" * 64}),
    ],
)
@pytest.mark.parametrize("settled_as", ["accepted", "rejected"])
async def test_f2_the_same_key_with_anything_else_is_quarantined(
    world: World, axis: str, change: dict[str, object], settled_as: str
) -> None:
    acceptance = world.acceptance("k1")
    if settled_as == "accepted":
        await world.accept(acceptance)
    else:
        await world.reject(acceptance)
    before = await counts(world)
    other = replace(
        world.acceptance("k1"),
        handoff=replace(acceptance.handoff, **change),  # type: ignore[arg-type]  # by axis
    )
    (found,) = await world.accept(other)
    assert found == ConflictFound(acceptance.handoff.key, axis)
    assert await world.reject(other) == ConflictFound(acceptance.handoff.key, axis)
    assert (await counts(world))[:3] == before[:3]
    assert (await counts(world))[3] == 1
    (exact,) = await world.accept(replace(acceptance, nonce=new_token(), command_id=new_id("cmd")))
    assert isinstance(exact, Admitted)


async def test_f2_conflict_records_are_bounded(world: World) -> None:
    acceptance = world.acceptance("k1")
    await world.accept(acceptance)
    for number in range(1, 60):
        changed = replace(acceptance.handoff, payload_digest=f"sha256:{number:064x}")
        for _ in range(2):
            await world.accept(replace(world.acceptance("k1"), handoff=changed))
        assert (await counts(world))[3] == min(number, commands.CONFLICT_SLOTS)


async def test_f2_conflicts_at_once_are_each_recorded(world: World) -> None:
    acceptance = world.acceptance("k1")
    await world.accept(acceptance)
    others = [
        replace(world.acceptance("k1"), handoff=replace(acceptance.handoff, outbox_id=new_id("obx")))
        for _ in range(commands.CONFLICT_SLOTS)
    ]
    found = await asyncio.gather(*(world.accept(other) for other in others))
    assert found == [[ConflictFound(acceptance.handoff.key, "outbox_id")]] * len(others)
    assert (await counts(world))[3] == len(others)


async def test_f1_an_ended_generation_rejects_the_key_durably(world: World) -> None:
    acceptance = world.acceptance("k1")
    await world.principals.disconnect(world.principal, reason="test")
    (admitted,) = await world.accept(acceptance)
    assert isinstance(admitted, Admitted)
    assert (admitted.state, admitted.reason) == (HandoffState.HANDOFF_REJECTED, commands.GENERATION_ENDED)
    assert await counts(world) == (1, 0, 0, 0)


async def test_a_batch_gives_each_request_its_own_answer(world: World) -> None:
    taken = world.acceptance("k1")
    await world.accept(taken)
    conflict = replace(world.acceptance("k1"), handoff=replace(taken.handoff, outbox_id=new_id("obx")))
    fresh = [world.acceptance(f"k{number}", source="s", target=f"t{number}") for number in range(2, 5)]
    found = await world.accept(conflict, *fresh)
    assert isinstance(found[0], ConflictFound)
    assert [a.command_id for a in found[1:] if isinstance(a, Admitted)] == [a.command_id for a in fresh]
