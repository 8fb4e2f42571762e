"""A small world for the journal's tests: a database with a principal and a link, and short ways to each step."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from msgspec.structs import replace

from doonce.base.ids import new_id, new_token
from doonce.base.keys import handoff_key
from doonce.base.secrets import Secret
from doonce.catalog.model import Outcome
from doonce.commands import store as commands
from doonce.commands.model import Acceptance, Admission, HandoffClaim, Pins, Rejection, Request
from doonce.db.database import Database
from doonce.effects import finish as finish_store
from doonce.effects import store as effects
from doonce.effects.finish import Finish, Finished
from doonce.effects.model import Ending, MarkResult, NextStep, Start, Terms
from doonce.effects.store import MarkRequest, PrepareRequest
from doonce.links import store as links
from doonce.links.model import NewLink, RemoteLink
from doonce.ownership.model import Family
from doonce.principals.model import Principal
from doonce.principals.service import Principals
from doonce.principals.vault import KeyRing, Vault
from doonce.work.model import Claimed, LanePolicy, RetryPolicy, Scope
from doonce.work.store import ClaimRequest

ORG, INSTALLATION, CAPABILITY = "acme", "main", "records"
DIGEST = "sha256:" + "0" * 64
DEPLOYMENT = "default"
TERMS = Terms(RetryPolicy(base_us=1, cap_us=1), wants_rejected_result=True)


@dataclass(slots=True)
class World:
    """One installation with a connected principal and one linked record."""

    database: Database
    principals: Principals
    principal: Principal
    link: RemoteLink
    scope: Scope = field(default_factory=lambda: Scope(ORG, INSTALLATION))
    terms: Terms = TERMS

    def acceptance(
        self, key: str, *, body: bytes = b"{}", source: str | None = None, target: str | None = None
    ) -> Acceptance:
        """An acceptance of one command on the linked record."""
        return Acceptance(
            handoff=HandoffClaim(
                key=handoff_key(ORG, INSTALLATION, CAPABILITY, DIGEST, key),
                scope=self.scope,
                capability=CAPABILITY,
                binding_digest=DIGEST,
                outbox_id=f"obx_{random.Random(key).getrandbits(128):032x}",
                payload_digest=f"sha256:{random.Random(body).getrandbits(256):064x}",
            ),
            nonce=new_token(),
            receipt_id=new_id("hnd"),
            command_id=new_id("cmd"),
            work_id=new_id("wrk"),
            operation="record.patch",
            local_ref="r1",
            payload=body,
            remote_id="501",
            pins=Pins(DIGEST, self.principal.id, self.principal.generation, self.link.id, self.link.version),
            request=Request("PATCH", "https://provider.example", "/records/501", (), body, DIGEST, None),
            source_lane=source,
            source_policy=LanePolicy.BLOCK,
            target_lane=target,
        )

    async def accept(self, *acceptances: Acceptance) -> list[Admission]:
        """Admit them in one flush."""
        return await self.database.transact(commands.accept, list(acceptances))

    async def reject(self, acceptance: Acceptance) -> Admission:
        """Reject the key of an acceptance."""
        rejection = Rejection(acceptance.handoff, new_token(), new_id("hnd"), "withdrawn")
        return (await self.database.transact(commands.reject, [rejection]))[0]

    def claim_request(self, family: Family, *, lease_us: int = 30_000_000, rows: int = 10) -> ClaimRequest:
        """A claim by a process of its own."""
        return ClaimRequest(
            family=family.value,
            scopes=(self.scope,),
            deployment=DEPLOYMENT,
            owner=new_id("prc"),
            token=new_token(),
            rows_max=rows,
            lease_us=lease_us,
            expiries_max=5,
        )

    async def claim(self, *, lease_us: int = 30_000_000, rows: int = 10) -> list[Start]:
        """Claim and prepare effects."""
        request = PrepareRequest(
            self.claim_request(Family.EFFECT, lease_us=lease_us, rows=rows),
            tuple(new_id("att") for _ in range(rows)),
        )
        return await self.database.transact(effects.claim_and_prepare, request)

    def mark_request(self, start: Start, **changes: object) -> MarkRequest:
        """The mark of a prepared attempt."""
        assert start.command is not None
        pins = start.command.pins
        request = MarkRequest(
            claimed=start.claimed,
            deployment=DEPLOYMENT,
            attempt_id=start.attempt_id,
            nonce=new_token(),
            principal_id=pins.principal_id,
            generation=pins.generation,
            link_id=pins.link_id,
            link_version=pins.link_version,
            request_digest=DIGEST,
            lineage=start.lineage,
            budget_us=10_000_000,
            margin_us=5_000_000,
            settle_us=60_000_000,
        )
        return replace(request, **changes)  # type: ignore[arg-type]  # test shorthand

    async def mark(self, start: Start, **changes: object) -> MarkResult:
        """Mark one attempt."""
        return (await self.database.transact(effects.mark, [self.mark_request(start, **changes)]))[0]

    async def finish(
        self, start: Start, outcome: Outcome, *, claimed: Claimed | None = None, **changes: object
    ) -> tuple[Finished, NextStep | None]:
        """End one attempt, under the terms of `self.terms`."""
        assert start.command is not None
        ending = replace(Ending(outcome, "test"), **changes)  # type: ignore[arg-type]  # test shorthand
        row = Finish(
            claimed or start.claimed,
            DEPLOYMENT,
            start.command,
            start.attempt_id,
            ending,
            self.terms,
            start.earlier,
        )
        return (await self.database.transact(finish_store.finish, [row]))[0]


async def make_world(database: Database) -> World:
    """A world in an empty, migrated database."""
    principals = Principals(database, Vault(KeyRing.generate()))
    principal = await principals.connect(
        org=ORG, installation=INSTALLATION, pack="test", name="main", secret=Secret("token")
    )
    adopted = await database.transact(
        links.adopt,
        [
            NewLink(
                new_id("lnk"), ORG, INSTALLATION, principal.id, principal.generation, "record", "r1", "501"
            )
        ],
    )
    link = adopted[0]
    assert isinstance(link, RemoteLink)
    return World(database, principals, principal, link)
