"""The outside witness: what the provider's own ledger and the application's inbox say of every command.

`check` compares them with the journal, once all is over. Nothing of what it holds against the journal was written by
the processes under test.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

import sqlalchemy as sa
from tests.process.effects.deployment import Accepted, Deployment

from doonce.catalog.model import LinkUse, Method, OperationContract, ReplayKind, SourceFailure
from doonce.links.tables import remote_link
from doonce.work.tables import work_lane, work_lane_entry

Entry = dict[str, Any]


class Witness:
    """Everything that was seen from outside, by command."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.arrivals: dict[str, list[Entry]] = defaultdict(list)
        self.probes: dict[str, list[Entry]] = defaultdict(list)
        methods = {
            one.id: self.contract(one).method.value
            for one in deployment.accepted
            if one.admission.command_id is not None
        }
        for entry in deployment.simulator.ledger():
            named = parse_qs(urlsplit(entry["target"]).query).get("command", [""])[0]
            assert named in methods, f"a request of no accepted command arrived: {entry}"
            kind = self.arrivals if entry["method"] == methods[named] else self.probes
            kind[named].append(entry)

    def contract(self, one: Accepted) -> OperationContract:
        """The contract of a command's operation."""
        return self.deployment.view.document.operations[one.wanted.operation]

    def committed(self, command_id: str) -> int:
        """How often the provider did what the command asks."""
        return sum(entry["committed"] for entry in self.arrivals[command_id])


def check(deployment: Deployment) -> None:
    """Assert every invariant of a deployment whose commands have all ended (DESIGN section 7)."""
    try:
        _check(deployment)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{deployment.story(str(error))}") from None


def _check(deployment: Deployment) -> None:
    witness = Witness(deployment)
    attempts: dict[str, list[Any]] = defaultdict(list)
    for attempt in deployment.journal.attempts():
        assert attempt.outcome is not None, f"an attempt was left open: {attempt}"
        attempts[attempt.subject_id].append(attempt)
    for one in deployment.accepted:
        if one.admission.command_id is not None:
            _check_sends(witness, one, attempts[one.id])
            _check_end(witness, one)
            _check_completion(deployment, one)
            _check_link(witness, one)
    _check_dispositions(witness)
    _check_target_lanes(deployment)
    _check_source_lanes(witness)
    _check_lanes_are_free(deployment)


def _check_sends(witness: Witness, one: Accepted, attempts: Sequence[Any]) -> None:
    """Each arrival is one marked attempt's, within its horizon; without a contract there is one, or a verdict."""
    arrivals = witness.arrivals[one.id]
    marked = [attempt for attempt in attempts if attempt.dispatched_at is not None]
    assert len(arrivals) <= len(marked), f"{one.id}: more requests than marks"
    for arrival in arrivals:
        assert any(attempt.dispatched_at <= arrival["at_us"] <= attempt.horizon_at for attempt in marked), (
            f"{one.id}: a request arrived outside of every attempt: {arrival}"
        )
    if witness.contract(one).replay.kind is ReplayKind.NONE:
        verdicts = witness.deployment.journal.dispositions()
        resends = [
            attempt
            for attempt in attempts
            if attempt.id in verdicts and verdicts[attempt.id].successor_item_id is not None
        ]
        assert len(arrivals) <= 1 + len(resends), f"{one.id} arrived twice, and no verdict allowed it"
    assert witness.committed(one.id) <= 1, f"{one.id} was done twice"


def _check_end(witness: Witness, one: Accepted) -> None:
    """An accepted end is exactly one effect; any other end is none."""
    end = witness.deployment.journal.ends().get(one.id)
    assert end is not None, f"{one.id} was lost"
    done = witness.committed(one.id)
    if witness.contract(one).method is Method.GET:
        assert done == 0
    else:
        assert done == (1 if end.ended_as == "accepted" else 0), f"{one.id} ended {end.ended_as}, done {done}"


def _check_link(witness: Witness, one: Accepted) -> None:
    """An accepted create has one link, to the object that the provider made of it; any other end has none."""
    if witness.contract(one).link is not LinkUse.CREATES:
        return
    deployment = witness.deployment
    found = deployment.journal.rows(
        sa.select(remote_link.c.remote_id).where(remote_link.c.local_ref == one.request.local_ref)
    )
    if deployment.journal.ends()[one.id].ended_as != "accepted":
        assert not found, f"{one.id} made nothing, and is linked"
        return
    assert len(found) == 1, f"{one.id} was accepted, and has the links {found}"
    made = deployment.simulator.contact(str(found[0].remote_id))
    assert one.wanted.payload["title"] in made["properties"].values(), f"{one.id} is linked to another object"


def _check_completion(deployment: Deployment, one: Accepted) -> None:
    """One completion an ended command, and the application has been told exactly that."""
    (item,) = deployment.journal.items("completion", one.id)
    assert item.state == "succeeded", f"{one.id}: its completion is {item.state}"
    said = [notice for notice in deployment.inbox.of(one.id) if notice.terminal]
    assert len({notice.digest for notice in said}) == 1, f"{one.id}: the application heard {said}"
    assert said[0].outcome.value == deployment.journal.ends()[one.id].ended_as
    assert said[0].key == one.request.key


def _check_dispositions(witness: Witness) -> None:
    """A proven effect is in the ledger; a proven absence was one when it was recorded."""
    subjects = {attempt.id: attempt.subject_id for attempt in witness.deployment.journal.attempts()}
    for row in witness.deployment.journal.dispositions().values():
        done = [entry for entry in witness.arrivals[subjects[row.attempt_id]] if entry["committed"]]
        if row.verdict == "effect_proven":
            assert len(done) == 1, f"an effect was proven that is not there: {row}"
        elif row.verdict == "no_effect_proven":
            assert all(entry["at_us"] > row.recorded_at for entry in done), f"there was an effect: {row}"


def _check_target_lanes(deployment: Deployment) -> None:
    """What might have been under way for one remote record never overlaps (PROTOCOL L4)."""
    items = {item.id: item for item in deployment.journal.items("effect")}
    verdicts = deployment.journal.dispositions()
    lanes: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for attempt in deployment.journal.attempts():
        item = items.get(attempt.work_id)
        if item is None or item.target_lane is None or attempt.dispatched_at is None:
            continue
        until_us = attempt.ended_at
        if attempt.outcome == "OUTCOME_UNKNOWN":
            verdict = verdicts[attempt.id]
            horizon_us = 0 if verdict.names_attempt else attempt.horizon_at
            until_us = max(verdict.recorded_at, horizon_us)
        lanes[item.target_lane].append((attempt.dispatched_at, until_us, attempt.id))
    for lane, spans in lanes.items():
        spans.sort()
        for (_, until_us, first), (start_us, _, second) in itertools.pairwise(spans):
            assert start_us >= until_us, f"{first} and {second} overlap in {lane}"


def _check_source_lanes(witness: Witness) -> None:
    """First arrivals are in the order of acceptance, in every lane that blocks."""
    lanes: dict[str, list[int]] = defaultdict(list)
    for one in witness.deployment.accepted:
        arrivals = witness.arrivals[one.id] if one.admission.command_id is not None else []
        blocks = witness.contract(one).source_lane is SourceFailure.BLOCK
        if one.wanted.lane is not None and arrivals and blocks:
            lanes[one.wanted.lane].append(arrivals[0]["seq"])
    for lane, order in lanes.items():
        assert order == sorted(order), f"the lane {lane} was not kept: {order}"


def _check_lanes_are_free(deployment: Deployment) -> None:
    """Nobody holds a lane for ever."""
    held = deployment.journal.rows(sa.select(work_lane).where(work_lane.c.holder.is_not(None)))
    assert not held, f"lanes are still held: {held}"
    assert not deployment.journal.rows(sa.select(work_lane_entry)), "a lane still has entries"
