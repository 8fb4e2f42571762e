"""Each bad input gets one clear typed error and leaves nothing half-written."""

import os
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from simulators.launch import Simulator
from tests.e2e.conftest import PACK, ROOT, TOKEN, deployment, people

from doonce import Doonce, Installation
from doonce.app.operate.service import Operator
from doonce.base.digests import digest_bytes
from doonce.base.errors import DoonceError, ErrorClass, Invalid, MissingOrDenied, Unavailable
from doonce.base.keys import handoff_key
from doonce.base.limits import LIMITS
from doonce.wire import AcceptRequest, HandoffScope, Refused

pytestmark = pytest.mark.e2e


async def nothing_written(app: Doonce) -> None:
    """No work, no unknown, and no handoff of any outbox id."""
    counted = await Operator(app.engine).counts()
    assert all(family.waiting == 0 for family in counted.families)
    assert counted.unresolved == ()
    with pytest.raises(MissingOrDenied):
        await app.show("outbox-of-a-bad-input")


EXACT = b'{"title":"CTO"}' + b" " * (LIMITS.payload_bytes_max - 15)


WRONG_PAYLOADS: dict[str, tuple[Any, str]] = {
    "duplicate key": (b'{"title":"a","title":"b"}', "key"),
    "NaN": (b'{"title":NaN}', "NaN"),
    "Infinity": (b'{"title":Infinity}', "Infinity"),
    "float NaN": ({"title": float("nan")}, "float"),
    "float infinity": ({"title": float("inf")}, "float"),
    "float that would change": ({"title": 0.1}, "float"),
    "unpaired surrogate, escaped": (b'{"title":"\\ud800"}', "surrogate"),
    "unpaired surrogate": ({"title": "\ud800"}, "surrogate"),
    "NUL, escaped": (b'{"title":"a\\u0000b"}', "NUL"),
    "NUL": ({"title": "a\x00b"}, "NUL"),
    "second document": (b'{"title":"CTO"} {}', ""),
    "half a document": (b'{"title":"CTO"', ""),
    "nothing": (b"", ""),
    "no object": (b"[1]", ""),
    "undeclared field": ({"colour": "red"}, "colour"),
    "wrong type": ({"title": 7}, "title"),
    "one byte over": (EXACT + b" ", "262144"),
    "no JSON value": ({"title": {"deep": object()}}, ""),
    "no mapping": ("a text", "bytes or a mapping"),
}


@pytest.mark.parametrize("payload, says", WRONG_PAYLOADS.values(), ids=list(WRONG_PAYLOADS))
async def test_a_payload_that_is_wrong(app: Doonce, crm: Installation, payload: Any, says: str) -> None:
    with pytest.raises(Invalid) as caught:
        await crm.accept("contact.patch", "1", payload)
    assert says in caught.value.message
    assert "a\x00b" not in caught.value.message
    await nothing_written(app)


async def test_a_payload_exactly_at_its_bound_is_taken(app: Doonce, crm: Installation) -> None:
    assert (await app.outcome(await crm.accept("contact.patch", "1", EXACT))).final


async def test_exact_numbers_are_no_bad_input(crm: Installation) -> None:
    for number in (0.5, Decimal("0.1"), 2**60):
        with pytest.raises(Invalid, match="title"):  # the schema wants a text; the number itself is fine
            await crm.accept("contact.patch", "1", {"title": number})


async def test_an_unknown_operation(app: Doonce, crm: Installation) -> None:
    with pytest.raises(Invalid, match=r"offers no operation 'contact\.melt'") as caught:
        await crm.accept("contact.melt", "1", {"title": "CTO"})
    assert "contact.patch" in caught.value.hint
    await nothing_written(app)


@pytest.mark.parametrize(
    "field, value",
    [("key", "k" * 256), ("lane", "l" * 256), ("key", "a\x00b"), ("lane", "a\nb"), ("link", "x" * 129)],
)
async def test_a_name_over_its_bound_or_with_control_characters(
    app: Doonce, crm: Installation, field: str, value: str
) -> None:
    with pytest.raises(Invalid):
        await crm.accept("contact.patch", "1", {"title": "CTO"}, **{field: value})
    with pytest.raises(Invalid):
        await crm.accept("contact.patch", "r" * 256, {"title": "CTO"})
    await nothing_written(app)


def handoff(key_installation: str, binding: str) -> AcceptRequest:
    """An acceptance for acme / main whose key says another installation, or which pins another binding."""
    raw = b'{"title":"CTO"}'
    return AcceptRequest(
        key=handoff_key("acme", key_installation, "people.write", binding, "k"),
        scope=HandoffScope(
            org="acme",
            installation="main",
            capability="people.write",
            binding_digest=binding,
            binding_generation=1,
        ),
        outbox_id="outbox-of-a-bad-input",
        operation="contact.patch",
        local_ref="1",
        link=None,
        payload=raw,
        payload_digest=digest_bytes(raw),
        source_lane=None,
    )


async def test_an_unknown_binding_and_a_key_with_the_wrong_scope(app: Doonce, crm: Installation) -> None:
    asked = [handoff("main", "sha256:" + "0" * 64), handoff("other", crm.scope.binding_digest)]
    answers = await crm.handoffs.accept(asked)
    for answer in answers:
        assert isinstance(answer, Refused)
        assert answer.error_class is ErrorClass.MISSING_OR_DENIED
    await nothing_written(app)


async def test_a_pack_with_an_undeclared_field(app: Doonce, simulator: Simulator, tmp_path: Path) -> None:
    folder = tmp_path / "pack"
    shutil.copytree(PACK, folder)
    text = (folder / "pack.toml").read_text()
    (folder / "pack.toml").write_text(text.replace('scheme = "header"', 'scheme = "header"\ncolour = "red"'))
    with pytest.raises(Invalid) as caught:
        await app.installation("acme", "main", pack=folder, binding=people(simulator.url), secret=TOKEN)
    assert "colour" in caught.value.message
    assert str(folder / "pack.toml") in caught.value.message
    with pytest.raises(MissingOrDenied):
        await app.engine.views.latest("acme", "main", "people.write")


async def test_a_binding_with_an_undeclared_field(app: Doonce, simulator: Simulator) -> None:
    binding = people(simulator.url) | {"colour": "red"}
    with pytest.raises(Invalid, match="colour"):
        await app.installation("acme", "main", pack=PACK, binding=binding, secret=TOKEN)


@pytest.mark.parametrize(
    "url, says",
    [
        ("postgresql://doonce@127.0.0.1:1/doonce", "cannot be reached"),
        ("mysql://doonce@127.0.0.1:1/doonce", "cannot be reached"),
        ("sqlite:////nowhere/at/all/doonce.db", "cannot be reached"),
    ],
)
async def test_an_unreachable_database(tmp_path: Path, url: str, says: str) -> None:
    with pytest.raises(Unavailable) as caught:
        async with deployment(url, tmp_path):
            pass
    assert says in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "url", ["oracle://db/x", "mysql://db", "sqlite://", "no url at all", "sqlite:///:memory:"]
)
async def test_a_database_that_is_not_supported(tmp_path: Path, url: str) -> None:
    with pytest.raises(Invalid) as caught:
        async with deployment(url, tmp_path):
            pass
    assert "sqlite:///" in caught.value.hint


async def test_a_database_with_the_wrong_schema(sqlite_path: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{sqlite_path}"
    async with deployment(url, tmp_path):
        pass
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE command DROP COLUMN target"))
    engine.dispose()
    with pytest.raises(Unavailable) as caught:
        async with deployment(url, tmp_path):
            pass
    assert "column command.target should be TEXT NOT NULL, but is missing" in caught.value.message


async def test_somebody_elses_database_is_left_alone(sqlite_path: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{sqlite_path}"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE theirs (id INTEGER)"))
    engine.dispose()
    with pytest.raises(DoonceError) as caught:
        async with deployment(url, tmp_path):
            pass
    assert "database of its own" in caught.value.hint or "of its own" in caught.value.hint


FILL_THE_DISK = """
import asyncio, sys
from pathlib import Path
from doonce.base.errors import Exhausted
from tests.e2e.conftest import PACK, deployment, people

async def main(folder, ballast, origin):
    async with deployment(f"sqlite:///{folder}/doonce.db", Path(ballast)) as app:
        crm = await app.installation("acme", "main", pack=PACK, binding=people(origin), secret="simulated-token")
        await crm.link("contact", local="1", remote="501")
        app.engine.gate.set("work waits")
        accepted = 0
        try:
            while accepted < 1000:
                await crm.accept("contact.patch", "1", b'{"title":"CTO"}' + b" " * 100_000, key=f"k-{accepted}")
                accepted += 1
        except Exhausted as full:
            print("full:", full.message, "|", full.hint)
        Path(folder, "ballast").unlink()
        same = await crm.accept("contact.patch", "1", b'{"title":"CTO"}' + b" " * 100_000, key=f"k-{accepted}")
        for number in range(accepted):
            await crm.accept("contact.patch", "1", b'{"title":"CTO"}' + b" " * 100_000, key=f"k-{number}")
        app.engine.gate.set("")
        print("accepted:", accepted > 0, (await app.outcome(same, 60)).state.value)

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_full_disk(tmp_path: Path, simulator: Simulator) -> None:
    """On a small file system, mostly taken: what was accepted stays, the rest is refused, typed."""
    small = tmp_path / "small"
    small.mkdir()
    keys = tmp_path / "keys"
    keys.mkdir()
    script = tmp_path / "fill.py"
    script.write_text(FILL_THE_DISK)
    inside = (
        'mount -t tmpfs -o size=24m doonce-test "$1" && head -c 18000000 /dev/zero > "$1/ballast" && '
        'exec "$2" "$3" "$1" "$4" "$5"'
    )
    # a mount namespace of its own, so that nothing is left mounted, whatever happens
    namespace = (
        ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--user", "--map-root-user"]
    )
    done = subprocess.run(
        [
            *namespace,
            "sh",
            "-c",
            inside,
            "sh",
            str(small),
            sys.executable,
            str(script),
            str(keys),
            simulator.url,
        ],
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert "full: the database's disk is full; nothing was written | free space" in done.stdout, done
    assert "accepted: True accepted" in done.stdout, done
