"""Bearer credentials: shown once, stored as digests, revoked for ever."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from doonce.base.errors import Invalid, MissingOrDenied, Unauthenticated
from doonce.base.secrets import Secret
from doonce.db.database import Database
from doonce.db.statement import Statement
from doonce.db.transaction import fetch
from doonce.trust.service import BearerCredentials
from doonce.trust.store import CredentialState
from doonce.trust.tables import credential

SECOND_NS = 1_000_000_000


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.ns = 5 * SECOND_NS

    def __call__(self) -> int:
        return self.ns


def count_reads(database: Database) -> list[Any]:
    read, seen = database.read, []

    async def counted(operation: Callable[..., Any], *args: Any) -> Any:
        seen.append(operation)
        return await read(operation, *args)

    database.read = counted  # type: ignore[method-assign]  # the test looks over the database's shoulder
    return seen


async def test_an_issued_credential_is_verified(database: Database) -> None:
    credentials = BearerCredentials(database)
    issued, token = await credentials.issue("acme", "main", ["crm.sync", "crm.read"], note="the relay")
    identity = await credentials.verify(token)
    assert (identity.subject, identity.org, identity.installation) == (issued.id, "acme", "main")
    assert identity.capabilities == {"crm.sync", "crm.read"}
    assert await credentials.all() == [issued]


EVERYTHING = Statement("test.credentials", lambda dialect: sa.select(credential))


async def test_the_token_is_nowhere_in_the_database(database: Database) -> None:
    _, token = await BearerCredentials(database).issue("acme", "main", ["crm.sync"])
    (row,) = await database.read(lambda: fetch(EVERYTHING))
    assert all(token.reveal() not in str(row[column.name]) for column in credential.c)
    assert len(token.reveal()) == len("dnc_") + 43


@pytest.mark.parametrize(
    "token", ["x", "dnc_" + "A" * 43, "dnc_" + "A" * 44, "DNC_" + "A" * 43, "dnc_" + "A" * 42 + "\n", "\x00"]
)
async def test_f6_what_was_not_issued_is_unauthenticated(database: Database, token: str) -> None:
    with pytest.raises(Unauthenticated, match="the credential is not valid"):
        await BearerCredentials(database).verify(Secret(token))


async def test_f6_a_revoked_credential_is_unauthenticated_here_at_once_and_elsewhere_in_time(
    database: Database,
) -> None:
    clock = Clock()
    credentials, elsewhere = BearerCredentials(database, now_ns=clock), BearerCredentials(database)
    issued, token = await credentials.issue("acme", "main", ["crm.sync"])
    _, other = await credentials.issue("acme", "main", ["crm.sync"])
    await credentials.verify(token)
    await elsewhere.verify(token)
    first = await elsewhere.revoke(issued.id)
    assert first.state is CredentialState.REVOKED
    assert await elsewhere.revoke(issued.id) == first
    with pytest.raises(Unauthenticated):
        await elsewhere.verify(token)
    await credentials.verify(token)
    clock.ns += SECOND_NS
    with pytest.raises(Unauthenticated):
        await credentials.verify(token)
    await credentials.verify(other)


async def test_a_verified_credential_costs_one_read_an_interval(database: Database) -> None:
    clock = Clock()
    credentials = BearerCredentials(database, now_ns=clock)
    _, token = await credentials.issue("acme", "main", ["crm.sync"])
    reads = count_reads(database)
    for _ in range(5):
        await credentials.verify(token)
    assert len(reads) == 1
    clock.ns += SECOND_NS
    await credentials.verify(token)
    assert len(reads) == 2


async def test_a_revocation_of_nothing_is_missing(database: Database) -> None:
    with pytest.raises(MissingOrDenied):
        await BearerCredentials(database).revoke("crd_absent")


@pytest.mark.parametrize(
    "org,installation,capabilities,note",
    [
        ("", "main", ["a"], ""),
        ("acme", "x" * 65, ["a"], ""),
        ("acme", "main", [], ""),
        ("acme", "main", [f"c{at}" for at in range(257)], ""),
        ("acme", "main", ["a"], "x" * 513),
    ],
)
async def test_a_credential_for_nobody_or_nothing_is_refused(
    database: Database, org: str, installation: str, capabilities: list[str], note: str
) -> None:
    credentials = BearerCredentials(database)
    with pytest.raises(Invalid):
        await credentials.issue(org, installation, capabilities, note)
    assert await credentials.all() == []
