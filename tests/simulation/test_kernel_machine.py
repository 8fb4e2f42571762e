"""The kernel against a reference of a few lines: any sequence of legal and illegal steps ends in the same states.

The reference knows TRANSITIONS, who holds which token, and lanes as plain lists. Whatever a claim takes must be
eligible there, and whatever is eligible there must be taken: so the machine tests safety and liveness alike.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace
from tests.store.work.kernel import EXPIRED_US, LONG_US, SCOPE, Kernel, Places, name_of

from doonce.work import settle
from doonce.work.model import (
    SETTLING,
    TERMINAL,
    TRANSITIONS,
    WAITING,
    Claimed,
    Event,
    LanePolicy,
    Scope,
    Settled,
    State,
)
from doonce.work.settle import Cancelled

SOURCES = {"s1": LanePolicy.BLOCK, "s2": LanePolicy.PASS}
TARGETS = ("t1", "t2")
EVENTS = sorted(SETTLING)


@dataclass(slots=True)
class Thing:
    """An item as the reference sees it."""

    name: str
    source: str | None
    target: str | None
    due: bool
    state: State = State.PENDING
    token: str = ""
    expired: bool = False
    asked: bool = False
    claims: int = 0


@dataclass(slots=True)
class Reference:
    """What the kernel must agree with."""

    things: dict[str, Thing] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=lambda: {lane: [] for lane in SOURCES})
    holders: dict[str, str | None] = field(default_factory=lambda: dict.fromkeys(TARGETS))

    def eligible(self, thing: Thing) -> bool:
        if thing.state is State.PROCESSING:
            return thing.expired
        return (
            thing.state in WAITING
            and thing.due
            and (thing.source is None or self.lines[thing.source][0] == thing.name)
            and (thing.target is None or self.holders[thing.target] is None)
        )

    def claim(self, thing: Thing, claimed: Claimed, *, expired: bool) -> None:
        thing.state, thing.token, thing.expired = State.PROCESSING, claimed.token, expired
        thing.claims += 1
        if thing.target is not None:
            self.holders[thing.target] = thing.name

    def verdict(self, thing: Thing, token: str, event: Event) -> Settled:
        if thing.state is State.PROCESSING and thing.token == token and not thing.expired:
            return Settled.STALE if event is Event.ACK_CANCEL and not thing.asked else Settled.DONE
        if thing.token == token and thing.state is TRANSITIONS[State.PROCESSING, event]:
            return Settled.REPEATED
        return Settled.STALE

    def leave(self, thing: Thing, event: Event, *, due: bool) -> None:
        """The item moves as TRANSITIONS say, out of its lanes or back into them."""
        thing.state = TRANSITIONS[thing.state, event]
        thing.due = due
        thing.claims -= event is Event.HAND_BACK
        if thing.target is not None and self.holders[thing.target] == thing.name:
            self.holders[thing.target] = None
        blocks = event is Event.DIE and thing.source is not None and SOURCES[thing.source] is LanePolicy.BLOCK
        if thing.source is not None and thing.state in TERMINAL and not blocks:
            self.lines[thing.source].remove(thing.name)


class KernelMachine(RuleBasedStateMachine):
    """Every rule acts on both, and compares what each says."""

    kernel: Kernel
    runner: asyncio.Runner

    claims = Bundle("claims")

    def run(self, coroutine: Any) -> Any:
        return self.runner.run(coroutine)

    @initialize()
    def begin(self) -> None:
        self.reference = Reference()
        self.run(self.kernel.clear())

    @rule(
        line=st.sampled_from([None, *SOURCES]),
        thing=st.sampled_from([None, *TARGETS]),
        late=st.booleans(),
        number=st.integers(1, 3),
    )
    def insert(self, line: str | None, thing: str | None, late: bool, number: int) -> None:
        items = []
        for _ in range(number):
            name = f"{len(self.reference.things):03}"
            self.reference.things[name] = Thing(name, line, thing, due=not late)
            lanes: dict[str, Any] = {"target_lane": thing}
            if line is not None:
                self.reference.lines[line].append(name)
                lanes |= {"source_lane": line, "source_policy": SOURCES[line]}
            items.append(self.kernel.new(name, **lanes, delay_us=LONG_US if late else 0))
        self.run(self.kernel.insert(*items))

    @rule(target=claims, rows_max=st.sampled_from([1, 2, 100]), expired=st.booleans())
    def claim(self, rows_max: int, expired: bool) -> Any:
        before = {thing.name for thing in self.reference.things.values() if self.reference.eligible(thing)}
        taken = self.run(
            self.kernel.claim(rows_max, lease_us=EXPIRED_US if expired else LONG_US, expiries_max=10**6)
        )
        for claimed in taken:
            thing = self.reference.things[name_of(claimed)]
            assert self.reference.eligible(thing), f"{thing.name} was not to be claimed"
            self.reference.claim(thing, claimed, expired=expired)
        assert len(taken) <= rows_max
        if rows_max == 100:
            names = {name_of(claimed) for claimed in taken}
            left = {name for name in before - names if self.reference.eligible(self.reference.things[name])}
            assert not left, f"{left} could have been claimed"
        return multiple(*taken)

    @rule(
        wrong=st.sampled_from(
            [
                {"scopes": ()},
                {"scopes": (Scope("other", SCOPE.installation), Scope(SCOPE.org, "other"))},
                {"deployment": "elsewhere"},
                {"family": "completion"},
                {"rows_max": 0},
            ]
        )
    )
    def claim_without_right(self, wrong: dict[str, Any]) -> None:
        assert self.run(self.kernel.claim(**wrong)) == []

    @rule(claimed=claims, event=st.sampled_from(EVENTS), late=st.booleans())
    def settle(self, claimed: Claimed, event: Event, late: bool) -> None:
        thing = self.reference.things[name_of(claimed)]
        expected = self.reference.verdict(thing, claimed.token, event)
        before = None if expected is Settled.DONE else self.run(self.kernel.tables())
        settled = self.run(self.kernel.settle(claimed, event, delay_us=LONG_US if late else 0))
        assert settled is expected
        if before is not None:
            assert self.run(self.kernel.tables()) == before, "a refused settlement changed something"
        else:
            waits = event in (Event.RETRY, Event.DEFER)
            self.reference.leave(thing, event, due=not late if waits else True)

    @rule(claimed=claims, event=st.sampled_from(EVENTS), wrong=st.sampled_from(["token", "epoch", "id"]))
    def settle_with_a_wrong_fence(self, claimed: Claimed, event: Event, wrong: str) -> None:
        changed = {
            "token": replace(claimed, token="0" * 32),
            "epoch": replace(claimed, epoch=claimed.epoch + 1),
            "id": replace(claimed, item=replace(claimed.item, id="wrk_nobody")),
        }[wrong]
        before = self.run(self.kernel.tables())
        settled = self.run(self.kernel.settle(changed, event))
        thing = self.reference.things[name_of(claimed)]
        repeated = (
            wrong == "epoch" and self.reference.verdict(thing, claimed.token, event) is Settled.REPEATED
        )
        assert settled in ((Settled.REPEATED, Settled.STALE) if repeated else (Settled.STALE,))
        assert self.run(self.kernel.renew(changed)) is None
        assert self.run(self.kernel.tables()) == before

    @rule(claimed=claims)
    def renew(self, claimed: Claimed) -> None:
        thing = self.reference.things[name_of(claimed)]
        live = thing.state is State.PROCESSING and thing.token == claimed.token and not thing.expired
        before = self.run(self.kernel.item(thing.name)).lease_until
        until_us = self.run(self.kernel.renew(claimed))
        assert (until_us is not None) == live
        assert until_us is None or until_us > before

    @rule(claimed=consumes(claims))
    def forget(self, claimed: Claimed) -> None:
        """A holder goes away without a word; its lease stays as it is."""

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        thing = self.any_thing(data)
        if thing is None:
            return
        answer = self.run(self.kernel.cancel(thing.name))[f"wrk_{thing.name}"]
        if thing.state in WAITING:
            assert answer is Cancelled.CANCELLED
            self.reference.leave(thing, Event.CANCEL, due=thing.due)
        elif thing.state is State.PROCESSING:
            assert answer is Cancelled.REQUESTED
            thing.asked = True
        else:
            assert answer is (Cancelled.CANCELLED if thing.state is State.CANCELLED else Cancelled.ENDED)

    @rule(data=st.data())
    def bring_forward(self, data: st.DataObject) -> None:
        thing = self.any_thing(data)
        if thing is None:
            return
        found = self.run(self.kernel.database.transact(settle.bring_forward, f"cmd_{thing.name}", "effect"))
        assert found == (thing.state not in TERMINAL)
        thing.due = thing.due or thing.state in WAITING

    @rule(lane=st.sampled_from(sorted(SOURCES)))
    def release_head(self, lane: str) -> None:
        line = self.reference.lines[lane]
        if not line:
            return
        dead = self.reference.things[line[0]].state is State.DEAD
        assert self.run(self.kernel.database.transact(settle.release_head, lane, f"wrk_{line[0]}")) == dead
        if dead:
            line.pop(0)

    @rule(lose=st.booleans())
    def sweep(self, lose: bool) -> None:
        if lose:
            self.run(self.kernel.lose_hints())
        self.run(self.kernel.sweep())

    def any_thing(self, data: st.DataObject) -> Thing | None:
        names = sorted(self.reference.things)
        return self.reference.things[data.draw(st.sampled_from(names))] if names else None

    @invariant()
    def states_agree(self) -> None:
        if not hasattr(self, "reference"):
            return
        expected = {thing.name: thing.state.value for thing in self.reference.things.values()}
        assert self.run(self.kernel.states()) == expected

    def teardown(self) -> None:
        """Whatever has happened: once all is due, every line released and every lease over, everything ends."""
        if not hasattr(self, "reference"):
            return
        for thing in self.reference.things.values():
            assert self.run(self.kernel.item(thing.name)).claims == thing.claims
            if thing.state in WAITING and not thing.due:
                self.run(self.kernel.database.transact(settle.bring_forward, f"cmd_{thing.name}", "effect"))
            elif thing.state is State.PROCESSING and not thing.expired:
                assert self.run(self.kernel.finish_row(f"wrk_{thing.name}"))
        for lane, line in self.reference.lines.items():
            for name in line:
                self.run(self.kernel.database.transact(settle.release_head, lane, f"wrk_{name}"))
        self.run(self.kernel.drain())
        ended = {state.value for state in TERMINAL}
        assert set(self.run(self.kernel.states()).values()) <= ended


def test_the_kernel_agrees_with_its_reference(places: Places) -> None:
    with asyncio.Runner() as runner:
        opening = places.kernel()
        kernel = runner.run(opening.__aenter__())
        machine = type("Machine", (KernelMachine,), {"kernel": kernel, "runner": runner})
        try:
            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=20,
                    stateful_step_count=30,
                    deadline=None,
                    derandomize=True,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(opening.__aexit__(None, None, None))
