"""Seeded rounds of commands: every kind of operation, several to a lane, and faults on the way."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.process.effects.deployment import Accepted, Deployment, Wanted
from tests.process.kill.boundaries import Needs

CONTACTS = "/crm/v3/objects/contacts"
COMMITTED, UNDONE = "commit_reset", "reset_after_body"
"""Two ways to lose an answer: after the effect, and without one."""


@dataclass(slots=True)
class Rounds:
    """Makes rounds for one deployment. Names never repeat, so each value at the provider names its command."""

    deployment: Deployment
    rng: random.Random
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(10_001))

    _made: list[str] = field(default_factory=list)

    def contact(self) -> str:
        """A new contact, which the application will know when the next commands are accepted."""
        self._made.append(str(next(self._numbers)))
        return self._made[-1]

    def patch(self, contact: str) -> Accepted:
        """Accept one change of a contact."""
        (one,) = self._accept([[self._write("contact.patch", contact, None)]])
        return one

    def accept(self, need: Needs = Needs.NOTHING) -> list[Accepted]:
        """Accept a round, after having scripted the faults that it is to meet."""
        lanes = self._lanes()
        self._script(need, [lane[0] for lane in lanes])
        return self._accept([list(filter(None, batch)) for batch in itertools.zip_longest(*lanes)])

    def _accept(self, batches: list[list[Wanted]]) -> list[Accepted]:
        self.deployment.contacts(*self._made)
        self._made.clear()

        async def run() -> list[Accepted]:
            async with self.deployment.engine() as engine:
                return [one for batch in batches for one in await self.deployment.accept_in(engine, *batch)]

        return asyncio.run(run())

    def _lanes(self) -> list[list[Wanted]]:
        """Commands by source lane, each lane in order; the first lane begins with a PATCH."""
        number = self.rng.randint
        lanes = [self._of_one(self.contact(), number(1, 3)), self._of_two(), self._ending()]
        lanes += [[self._create()] for _ in range(number(1, 2))]
        lanes += [[self._put()] for _ in range(number(1, 2))]
        lanes.append([self._replace()])
        lanes.append([self._write("contact.nudge", self.contact(), f"pass{next(self._numbers)}")])
        return lanes

    def _write(self, operation: str, contact: str, lane: str | None) -> Wanted:
        name = f"c{next(self._numbers)}"
        return Wanted(name, operation, contact, {"title": name}, lane)

    def _of_one(self, contact: str, count: int) -> list[Wanted]:
        lane = f"lane{contact}"
        return [self._write("contact.patch", contact, lane) for _ in range(count)]

    def _of_two(self) -> list[Wanted]:
        """One lane over two records."""
        first, second = self.contact(), self.contact()
        return [self._write("contact.patch", each, f"lane{first}") for each in (first, second)]

    def _ending(self) -> list[Wanted]:
        contact = self.contact()
        name = f"c{next(self._numbers)}"
        gone = Wanted(name, "contact.delete", contact, {}, f"lane{contact}")
        return [*self._of_one(contact, self.rng.randint(0, 1)), gone]

    def _create(self) -> Wanted:
        name = f"c{next(self._numbers)}"
        return Wanted(name, "contact.create", None, {"title": name, "email": f"{name}@example.com"})

    def _put(self) -> Wanted:
        name = f"c{next(self._numbers)}"
        return Wanted(name, "contact.put", None, {"title": name, "uid": f"own-{name}"})

    def _replace(self) -> Wanted:
        name = f"c{next(self._numbers)}"
        return Wanted(name, "contact.replace", self.contact(), {"title": name, "etag": '"v1"'})

    def _script(self, need: Needs, heads: list[Wanted]) -> None:
        patched = heads[0].contact
        if need is Needs.UNKNOWN:
            self._fault(COMMITTED, "PATCH", f"{CONTACTS}/{patched}")
        elif need is Needs.SLOW:
            self._fault("slow_drip", "PATCH", f"{CONTACTS}/{patched}", delay_ms=2)
        for head in heads[1:]:
            if self.rng.random() < 0.25:
                method, path = _request_of(head)
                self._fault(self.rng.choice((COMMITTED, UNDONE)), method, path)

    def _fault(self, fault: str, method: str, path: str, **more: int) -> None:
        self.deployment.simulator.faults({"fault": fault, "method": method, "path": path, **more})


def _request_of(wanted: Wanted) -> tuple[str, str]:
    match wanted.operation:
        case "contact.create":
            return "POST", CONTACTS
        case "contact.put":
            return "PUT", f"/sim/objects/contacts/{wanted.payload['uid']}"
        case "contact.replace":
            return "PUT", f"/sim/objects/contacts/{wanted.contact}"
        case "contact.delete":
            return "DELETE", f"{CONTACTS}/{wanted.contact}"
        case _:
            return "PATCH", f"{CONTACTS}/{wanted.contact}"
