"""Published views: content-addressed, proven per scope, and never "the latest" for who pinned one."""

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa

from doonce.base.errors import Internal, Invalid, MissingOrDenied
from doonce.catalog import store
from doonce.catalog.binding import read_binding
from doonce.catalog.compile import BindingView, OriginPolicy, compile_view
from doonce.catalog.pack import read_pack
from doonce.catalog.service import Views, ViewSettings
from doonce.catalog.tables import binding_view
from doonce.db.database import Database
from doonce.db.schema import BODY
from doonce.db.statement import Statement
from doonce.db.transaction import fetch

PACK = b"""
format = "doonce.pack/1"
name = "shop"
version = "1.0.0"
title = "A shop"
origins = ["https://api.shop.example"]

[auth]
scheme = "header"
header = "Authorization"
prefix = "Bearer "

[operations.look]
summary = "Look"
method = "GET"
target = "/items"
payload_schema = "empty.json"
link = "none"
call_budget = "10s"
send_window = "2s"
evidence = []
"""
SCHEMA = b'{"type": "object", "additionalProperties": false}'
ABSENT = "sha256:" + "0" * 64


def view(capability: str = "shop.sync", org: str = "acme", principal: str = "robot") -> BindingView:
    binding: dict[str, Any] = {
        "format": "doonce.binding/1",
        "org": org,
        "installation": "main",
        "capability": capability,
        "pack": "shop@1.0.0",
        "principal": principal,
        "operations": ["look"],
    }
    pack = read_pack(PACK, {"empty.json": SCHEMA})
    return compile_view(pack, read_binding(binding), origins=OriginPolicy())


def named(opened: BindingView) -> tuple[str, str, str, str]:
    document = opened.document
    return document.org, document.installation, document.capability, opened.digest


async def test_a_published_view_is_got_by_its_digest_as_it_was(database: Database) -> None:
    wanted = view()
    (publication,) = await Views(database).publish([wanted])
    assert (publication.digest, publication.sequence, publication.first) == (wanted.digest, 1, True)
    got = await Views(database).get(wanted.digest)
    assert (got.raw, got.digest) == (wanted.raw, wanted.digest)
    with pytest.raises(MissingOrDenied):
        await Views(database).get(ABSENT)


async def test_publishing_again_changes_nothing(database: Database) -> None:
    views = Views(database)
    (first,) = await views.publish([view()])
    (again,) = await views.publish([view()])
    assert again.first is False
    assert (again.sequence, again.published_at) == (first.sequence, first.published_at)


async def test_concurrent_publications_of_a_scope_get_one_sequence_each(database: Database) -> None:
    wanted = [view(principal=f"robot{at}") for at in range(6)]
    results = await asyncio.gather(*[Views(database).publish([each]) for each in wanted])
    assert sorted(publication.sequence for (publication,) in results) == [1, 2, 3, 4, 5, 6]


async def test_an_older_view_published_again_is_the_newest(database: Database) -> None:
    views, old, new = Views(database), view(), view(principal="other")
    await views.publish([old])
    await views.publish([new])
    assert (await views.latest("acme", "main", "shop.sync")).digest == new.digest
    (back,) = await views.publish([old])
    assert (back.sequence, back.first) == (3, True)
    assert (await views.latest("acme", "main", "shop.sync")).digest == old.digest


async def test_f1_a_superseded_digest_is_still_proven_for_its_scope_and_for_no_other(
    database: Database,
) -> None:
    views, old, new, foreign = Views(database), view(), view(principal="other"), view(org="other")
    await views.publish([old, foreign])
    await views.publish([new])
    assert await database.read(
        store.published,
        [named(old), named(new), named(foreign), ("other", "main", "shop.sync", old.digest)],
    ) == {named(old), named(new), named(foreign)}
    assert (await views.published(*named(old))).digest == old.digest
    refusals = [
        ("other", "main", "shop.sync", old.digest),
        ("acme", "main", "shop.other", old.digest),
        ("acme", "main", "shop.sync", ABSENT),
    ]
    told = set()
    for refused in refusals * 2:
        with pytest.raises(MissingOrDenied) as denied:
            await views.published(*refused)
        told.add(str(denied.value))
    assert len(told) == 1
    with pytest.raises(Invalid):
        await views.published("acme", "main", "shop.sync", "latest")


async def test_f1_nobody_is_proven_by_somebody_elses_cached_fact(database: Database) -> None:
    views, wanted = Views(database), view()
    await views.publish([wanted])
    await views.published(*named(wanted))
    with pytest.raises(MissingOrDenied):
        await views.published("other", "main", "shop.sync", wanted.digest)


async def test_two_views_of_one_scope_are_not_published_at_once(database: Database) -> None:
    with pytest.raises(Invalid):
        await Views(database).publish([view(), view(principal="other")])
    with pytest.raises(MissingOrDenied):
        await Views(database).latest("acme", "main", "shop.sync")


DAMAGE = Statement(
    "test.damage_view",
    lambda dialect: sa.update(binding_view).values(document=sa.bindparam("damaged", type_=BODY)),
)


async def test_a_damaged_view_is_never_executed(database: Database) -> None:
    wanted = view()
    await Views(database).publish([wanted])
    damaged = wanted.raw.replace(b"robot", b"roboT")
    await database.transact(lambda: fetch(DAMAGE, damaged=damaged))
    with pytest.raises(Internal, match="cannot be used") as refused:
        await Views(database).get(wanted.digest)
    assert wanted.digest in refused.value.message


async def test_a_view_is_opened_once_and_the_cache_is_bounded(database: Database) -> None:
    views = Views(database, ViewSettings(views_max=2, facts_max=2))
    wanted = [view(f"shop.n{at}") for at in range(4)]
    await views.publish(wanted)
    opened = await asyncio.gather(*[views.get(wanted[0].digest) for _ in range(5)])
    assert len({id(each) for each in opened}) == 1
    for each in wanted:
        await views.published(*named(each))
    assert len(views._opened) == len(views._facts) == 2
    assert not views._opening
    assert (await views.get(wanted[0].digest)).digest == wanted[0].digest


async def test_installations_are_those_with_a_published_view(database: Database) -> None:
    now = [0]
    views, elsewhere = Views(database, now_ns=lambda: now[0]), Views(database)
    assert await views.installations() == []
    await views.publish([view(), view("shop.other")])
    assert await views.installations() == [("acme", "main")]
    await elsewhere.publish([view(org="other")])
    assert await views.installations() == [("acme", "main")]
    now[0] += 1_000_000_000
    assert await views.installations() == [("acme", "main"), ("other", "main")]
